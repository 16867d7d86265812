// What the row of a job says about it. Private to the machine.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "core/runbook/machine/machine.hpp"

namespace baton::runbook {

[[nodiscard]] inline Time deadline(const Execution& row) {
  return row.leased_at.value_or(Time{}) + std::chrono::seconds{row.timeout_sec.value_or(3600)};
}

[[nodiscard]] inline bool is_out(const Execution& row) { return row.job_state != JobState::none; }

// Another orchestrator gave the job out, and we have not: ours are queued before anybody has them, and are
// counted when they are delivered. Its worker may report under any job id.
[[nodiscard]] inline bool is_from_another(const Execution& row) {
  if (row.delivery_count > 0) return false;
  if (row.status == StepStatus::dispatched)
    return row.job_state == JobState::none || row.job_state == JobState::leased;
  return row.status == StepStatus::polling && row.job_state == JobState::none;
}

// Somebody may leave a batch that has ended: that is cleaned up all the same.
[[nodiscard]] inline bool may_run(const Job& job, const Batch& batch) {
  if (!is_terminal(batch.status)) return true;
  return job.cleanup && job.cleanup->kind == CleanupKind::removal;
}

[[nodiscard]] inline std::optional<std::int64_t> member_of(const Job& job) {
  if (job.step) return job.step->batch_member_id;
  return job.cleanup ? job.cleanup->batch_member_id : std::nullopt;
}

// A worker's answer that a poll step is not done yet.
[[nodiscard]] bool says_incomplete(const OptionalJson& result, bool is_poll_step);

[[nodiscard]] inline std::string timed_out_polling(const Execution& row) {
  return "polling timed out after " + std::to_string(row.poll_timeout_sec.value_or(0)) + " s";
}

}  // namespace baton::runbook
