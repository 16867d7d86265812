// Where the API keeps runbooks, batches and their jobs, and the arguments that name them.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "cli/commands/parser.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {

[[nodiscard]] std::string runbook_target(const std::string& name);
[[nodiscard]] std::string batch_target(std::int64_t batch_id);
// step-12, init-3, rollback-4, removal-5; also with -retry-1 or -poll-2 behind it.
[[nodiscard]] std::string job_target(const std::string& job_id);

// A required argument that is the number of a batch.
void add_batch_id(Parser command, const std::string& name, std::int64_t& batch_id);

// A required argument that is a job's id.
void add_job_id(Parser command, std::string& job_id);

// The id by which people call a step, whichever try or poll it is at: step-12.
[[nodiscard]] std::string job_of(const Fields& step);

[[nodiscard]] Time now();

}  // namespace baton::cli
