// What the handlers of batches share: reads, which run on a thread of the pool, and their problems.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/runbook/definition/definition.hpp"
#include "http/json/problem.hpp"
#include "http/wire/message.hpp"
#include "ports/reads.hpp"

namespace baton::http {

// Code::not_found when there is no such batch.
[[nodiscard]] Result<BatchSummary> known_batch(Reads& reads, std::int64_t id);

// The response to an error of such a read: what was not found is the batch.
[[nodiscard]] Response no_such_batch(const Request& request);
[[nodiscard]] Response batch_problem(const Request& request, const Error& error);

// `status` in the query: which members are asked for.
[[nodiscard]] std::optional<runbook::MemberStatus> query_member_status(const Request& request,
                                                                       std::vector<FieldError>& errors);

// A version of a runbook as it is stored; null when there is none, or when its text cannot be read.
[[nodiscard]] Result<std::shared_ptr<const runbook::Definition>> read_definition(Reads& reads,
                                                                                 const std::string& name,
                                                                                 std::int32_t version);

}  // namespace baton::http
