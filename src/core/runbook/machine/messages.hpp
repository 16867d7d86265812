// What a scheduler says: the messages of the topic orchestrator-events, and how jobs are named. Field names
// of incoming JSON match without regard to case; outgoing ones are as the contract has them.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

struct BatchInit {};
struct PhaseDue {
  std::int64_t phase_execution_id = 0;
  std::vector<std::int64_t> member_ids;  // empty: all
};
struct MemberAdded {
  std::int64_t batch_member_id = 0;
};
struct MemberRemoved {
  std::int64_t batch_member_id = 0;
};
// One of the two ids is set where the message says which table it means; both point to the same number when
// it does not, and the batch and the name decide.
struct PollCheck {
  std::optional<std::int64_t> step_execution_id, init_execution_id;
  std::string step_name;
};
struct RetryCheck {
  std::optional<std::int64_t> step_execution_id, init_execution_id;
  std::optional<std::int32_t> retry_count;
};

struct SchedulerMessage {
  std::string runbook_name;
  std::int32_t runbook_version = 0;
  std::int64_t batch_id = 0;
  std::variant<BatchInit, PhaseDue, MemberAdded, MemberRemoved, PollCheck, RetryCheck> what;
};

// The error is for the sender: what is missing or wrong. `document` is one JSON object.
[[nodiscard]] std::expected<SchedulerMessage, std::string> parse_message(std::string_view document);

// What a worker answers (the topic worker-results).
struct WorkerResult {
  std::string job_id;
  std::optional<Ref> correlated;  // the step that correlationData names
  bool success = false;
  OptionalJson result;
  std::optional<std::string> error;
  std::optional<std::string> lease;
  std::optional<std::string> worker;
  std::optional<std::int64_t> duration_ms;
};
[[nodiscard]] std::expected<WorkerResult, std::string> parse_worker_result(std::string_view document);

// step-7, init-7, rollback-7, removal-7; then -retry-2 and -poll-3 where they are not zero.
struct JobName {
  Ref ref;
  std::int32_t retry = 0;
  std::int32_t poll = 0;
};
[[nodiscard]] std::optional<JobName> parse_job_id(std::string_view text);
// Under which name the logs of a step are kept, those of all its tries and polls together: step-7, cleanup-9.
[[nodiscard]] std::string log_name(Ref ref);
[[nodiscard]] std::string job_id(std::string_view prefix, std::int64_t id, std::int32_t retry,
                                 std::int32_t poll);

}  // namespace baton::runbook
