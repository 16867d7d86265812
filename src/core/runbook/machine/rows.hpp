// The stored shape of a batch: one struct per table, one field per column. Names of tables, columns and
// statuses are a contract with schedulers and workers that exist already; other programs write these rows
// too. The columns that we added stand behind the words "ours" and are nullable or have defaults.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

enum class BatchStatus { detected, init_dispatched, active, completed, failed, cancelled };
enum class MemberStatus { active, removed, failed };
enum class PhaseStatus { pending, dispatched, completed, failed, skipped, superseded };
enum class StepStatus {
  pending,
  dispatched,
  polling,
  succeeded,
  failed,
  poll_timeout,
  rolled_back,
  cancelled
};

// Where the job of a step is: nobody has it, it waits in its queue, a worker has it, a pause holds it back, a limit or
// a window does.
enum class JobState { none, queued, leased, parked, limited };

// What is being done to all members of a batch or phase, in chunks. held: a phase that is due and waits for
// the init steps.
enum class Walk { none, held, start, advance, stop, again, cancel, resume };

enum class CleanupKind { rollback, removal };

// What a phase waits for that is due and has not begun: its batch, which is held or paused, the phases before it, the
// phase that it requires, an answer.
enum class PhaseWait { none, batch_held, batch_paused, phases_before, required_phase, answer };

// What needs a person; see Hold.
enum class HoldKind { removals, moves, late_batch, late_phase, required, gate, threshold };
// obsolete: what it was about is over, and nobody needs to answer.
enum class HoldStatus { open, answered, obsolete };

// What becomes of open batches that have begun when a version is published: they stay on theirs, go over to the new one
// for what is not due yet, or begin again what is overdue.
enum class OpenBatches { keep, ignore, rerun };

[[nodiscard]] std::string_view name(BatchStatus status);
[[nodiscard]] std::string_view name(MemberStatus status);
[[nodiscard]] std::string_view name(PhaseStatus status);
[[nodiscard]] std::string_view name(StepStatus status);
[[nodiscard]] std::string_view name(JobState state);
[[nodiscard]] std::string_view name(Walk walk);
[[nodiscard]] std::string_view name(CleanupKind kind);
[[nodiscard]] std::string_view name(PhaseWait wait);
[[nodiscard]] std::string_view name(HoldKind kind);
[[nodiscard]] std::string_view name(HoldStatus status);
[[nodiscard]] std::string_view name(PhaseOverlap overlap);
[[nodiscard]] std::string_view name(OpenBatches how);
[[nodiscard]] std::optional<BatchStatus> batch_status(std::string_view name);
[[nodiscard]] std::optional<MemberStatus> member_status(std::string_view name);
[[nodiscard]] std::optional<PhaseStatus> phase_status(std::string_view name);
[[nodiscard]] std::optional<StepStatus> step_status(std::string_view name);
[[nodiscard]] std::optional<JobState> job_state(std::string_view name);
[[nodiscard]] std::optional<Walk> walk(std::string_view name);
[[nodiscard]] std::optional<CleanupKind> cleanup_kind(std::string_view name);
[[nodiscard]] std::optional<PhaseWait> phase_wait(std::string_view name);
[[nodiscard]] std::optional<HoldKind> hold_kind(std::string_view name);
[[nodiscard]] std::optional<HoldStatus> hold_status(std::string_view name);
[[nodiscard]] std::optional<PhaseOverlap> phase_overlap(std::string_view name);
[[nodiscard]] std::optional<OpenBatches> open_batches(std::string_view name);

[[nodiscard]] constexpr bool is_terminal(BatchStatus s) { return s >= BatchStatus::completed; }
[[nodiscard]] constexpr bool is_terminal(PhaseStatus s) { return s >= PhaseStatus::completed; }
[[nodiscard]] constexpr bool is_terminal(StepStatus s) { return s >= StepStatus::succeeded; }
// Failed for good, whatever came of it afterwards.
[[nodiscard]] constexpr bool is_failure(StepStatus s) {
  return s == StepStatus::failed || s == StepStatus::poll_timeout || s == StepStatus::rolled_back;
}

// Of what a worker said of a failure, so much is kept.
constexpr std::size_t error_bytes_max = 64 << 10;

// runbooks
struct Runbook {
  std::int64_t id = 0;
  std::string name;
  std::int32_t version = 0;
  std::string yaml_content;
  std::string data_table_name;
  bool is_active = true;
  std::string overdue_behavior = "rerun";  // or ignore
  bool ignore_overdue_applied = false;
  bool rerun_init = false;
  Time created_at{};
  // ours
  bool automation_enabled = true;         // the data source is looked at
  std::optional<std::string> last_error;  // of the data source
  std::optional<Time> last_error_at;
  std::optional<Time> last_synced_at;
  // [{"batch_id":1,"leaving":30,"active":100,"mark":"…"}]: waiting for approval
  OptionalJson held_removals;
  std::optional<std::int64_t>
      transition_after;  // the version is being applied to open batches: the last done
  std::optional<Time> timer_due;
  std::optional<OpenBatches> open_batches;  // none: as overdue_behavior says
};

// batches
struct Batch {
  std::int64_t id = 0;
  std::int64_t runbook_id = 0;
  std::optional<Time> batch_start_time;  // T; none: a manual batch
  BatchStatus status = BatchStatus::detected;
  Time detected_at{};
  std::optional<Time> init_dispatched_at;
  // ours
  bool is_manual = false;
  bool importing = false;  // its members are still being added
  std::optional<std::string> created_by;
  std::optional<Time> completed_at;
  std::optional<Time> paused_at;
  std::optional<std::string> paused_by;
  std::optional<std::string> error_message;
  std::optional<std::string> removals_approved;  // the mark of the held removals that somebody approved
  Walk walk = Walk::none;
  std::int64_t walk_after = 0;
  std::optional<Time> timer_due;
  std::optional<std::string> paused_reason;
  std::optional<PhaseOverlap> phase_overlap;  // the rule in force; none: allow, as batches of others and of before have it
  std::optional<Time> source_time;            // T as the source still says it, of a batch that was rescheduled by hand
  std::optional<std::int64_t> hold_id;        // nothing of it begins before that hold is answered
  std::int32_t failures_accepted = 0;         // so many failed members do not count for its threshold
};

// batch_members
struct Member {
  std::int64_t id = 0;
  std::int64_t batch_id = 0;
  std::string member_key;
  MemberStatus status = MemberStatus::active;
  Time added_at{};
  std::optional<Time> removed_at;
  std::optional<std::string> removed_by;  // by hand: the source does not bring them back
  std::optional<Time> add_dispatched_at;
  std::optional<Time> remove_dispatched_at;
  std::optional<Time> failed_at;
  OptionalJson data_json;
  OptionalJson worker_data_json;
  // ours
  bool catching_up = false;  // its catch-up steps run one after the other
  std::optional<MemberStatus> counted_as;
  std::optional<std::string> added_by;   // by hand: it stays although the source does not list it
  std::optional<std::int64_t> hold_id;   // no phase begins for it before that hold is answered
  std::optional<std::int64_t> moved_to;  // the batch in which it goes on; it is removed here
  OptionalJson done_json;                // {"phase": ["step", …]}: done in the batch that it was moved from
};

// phase_executions
struct PhaseExecution {
  std::int64_t id = 0;
  std::int64_t batch_id = 0;
  std::string phase_name;
  std::int32_t offset_minutes = 0;
  std::optional<Time> due_at;  // none: by hand
  std::int32_t runbook_version = 0;
  PhaseStatus status = PhaseStatus::pending;
  std::optional<Time> dispatched_at;
  std::optional<Time> completed_at;
  // ours
  Walk walk = Walk::none;
  std::int64_t walk_after = 0;     // the id of the last member that the walk has seen
  std::int32_t current_index = 0;  // lockstep: the step that is running
  OptionalJson member_ids;         // only these, as the phase-due said
  std::optional<Time> timer_due;
  PhaseWait waits_for = PhaseWait::none;  // while it is pending and due
  std::optional<Time> expected_at;        // when it should begin, seen from when it was made or moved; none: nobody minds
};

// What step_executions, init_executions and cleanup_executions have in common: one job for a worker.
struct Execution {
  std::int64_t id = 0;
  std::string step_name;
  std::int32_t step_index = 0;
  std::string worker_id;
  std::optional<std::string> function_name;  // until params_json is there, as the runbook has it
  OptionalJson params_json;                  // as resolved; none: at the first dispatch
  StepStatus status = StepStatus::pending;
  std::optional<std::string> job_id;
  OptionalJson result_json;  // the engine never loads it, so in an update none leaves it as it is
  std::optional<std::string> error_message;
  std::optional<Time> dispatched_at;
  std::optional<Time> completed_at;
  bool is_poll_step = false;
  std::optional<std::int32_t> poll_interval_sec;
  std::optional<std::int32_t> poll_timeout_sec;
  std::optional<Time> poll_started_at;
  std::optional<Time> last_polled_at;
  std::int32_t poll_count = 0;
  std::optional<std::int32_t> max_retries;
  std::optional<std::int32_t> retry_interval_sec;
  std::int32_t retry_count = 0;
  std::optional<Time> retry_after;
  // ours
  std::optional<std::string> retry_backoff;  // fixed or exponential
  std::optional<std::int32_t> retry_max_interval_sec;
  std::optional<std::int32_t> timeout_sec;
  JobState job_state = JobState::none;
  std::optional<Time> queued_at;
  std::optional<std::string> leased_by;  // the worker that has, or had, the job
  std::optional<Time> leased_at;
  std::optional<Time> lease_until;
  std::int32_t delivery_count = 0;  // of the current job
  std::int32_t log_bytes = 0;       // stored of the current job
  std::optional<Time> dead_at;      // failed because worker after worker went silent
  std::optional<Time> timer_due;
  std::optional<StepStatus> counted_as;  // in which column of batch_counts this row is
};

// A person took a step as done. The contract has no status for that: it has succeeded, and its result says who it was.
[[nodiscard]] Json result_of_skip(const std::string& by, bool is_poll_step);
[[nodiscard]] bool is_result_of_skip(std::string_view result_json);  // its first bytes will do
constexpr int result_of_skip_bytes = 40;                             // so many
[[nodiscard]] inline bool is_skipped(const Execution& row) {
  return row.status == StepStatus::succeeded && row.result_json && is_result_of_skip(row.result_json->text);
}

struct StepExecution : Execution {
  std::int64_t phase_execution_id = 0;
  std::int64_t batch_member_id = 0;
  bool is_catch_up = false;  // ours: runs beside its phase, which does not wait for it
  bool has_slot = false;     // ours: its member is one of those that max_parallel of the phase or runbook lets run
};

struct InitExecution : Execution {
  std::int64_t batch_id = 0;
  std::int32_t runbook_version = 0;
};

// Rollbacks and what is done for members that left; a table of ours.
struct CleanupExecution : Execution {
  CleanupKind kind{};
  std::int64_t batch_id = 0;
  std::int32_t runbook_version = 0;
  std::optional<std::int64_t> phase_execution_id;  // of the step that failed
  std::optional<std::int64_t> batch_member_id;
  std::optional<std::int64_t> caused_by_step_id;
  std::optional<std::int64_t> caused_by_init_id;
  std::string sequence;  // the rollback's name, or on_member_removed
};

// batch_counts: how many rows of a batch are in which status, so that nobody has to count them. lane is
// member, init, step, catch_up, rollback or removal; phase_execution_id and step_index are 0 where the lane
// has none. Rollbacks, removals and catch-up are counted for the batch as a whole (phase 0), rollbacks and
// catch-up also for their phase. In the lane `skipped` are those that have succeeded because a person skipped them, with
// the lane that they are in as the status.
struct Count {
  std::int64_t batch_id = 0;
  std::int64_t phase_execution_id = 0;
  std::string lane;
  std::int32_t step_index = 0;
  std::string status;
  std::int64_t n = 0;
};

// batch_events: what happened to a batch as a whole, and whatever was odd; not each step.
struct BatchEvent {
  std::int64_t batch_id = 0;
  std::int64_t event_id = 0;
  Time created_at{};
  std::string event_type;
  std::optional<std::int64_t> batch_member_id;
  std::optional<std::string> job_id;
  std::string message;
};

// holds: what a person has to decide before something goes on. What it is about waits until then, and nothing else does.
// It is decided once; see answers_of() for what may be answered.
struct Hold {
  std::int64_t id = 0;
  HoldKind kind{};
  HoldStatus status = HoldStatus::open;
  std::string runbook_name;
  std::int64_t batch_id = 0;
  std::optional<std::int64_t> phase_execution_id;
  Time opened_at{};
  std::string message;                  // what it is, in a sentence
  OptionalJson details_json;            // whom it touches: {"members": 30, "keys": ["…", at most 100]}, and what its kind needs
  std::optional<std::string> mark;      // of the very members that it is about: others are another hold
  std::optional<Time> answer_by;        // of a gate with a timeout
  std::optional<std::string> answer;
  std::optional<std::string> decided_by;
  std::optional<std::string> reason;
  std::optional<Time> decided_at;
};

enum class RowType { none, step, init, cleanup, phase, batch, runbook };
[[nodiscard]] std::string_view name(RowType type);
[[nodiscard]] std::optional<RowType> row_type(std::string_view name);

struct Ref {
  RowType type = RowType::none;
  std::int64_t id = 0;
  friend auto operator<=>(const Ref&, const Ref&) = default;
};

// A row's timer_due names its timer; one that was put off is later than that.
struct RowTimer {
  Time due{};
  RowType type{};
  std::int64_t id = 0;
  friend auto operator<=>(const RowTimer&, const RowTimer&) = default;
};

// A row of the table that holds what the data source said of the members (data_table_name).
struct DataRow {
  std::string member_key;
  std::optional<Time> batch_time;
  Json data;  // an object of column → text, null or array
};

}  // namespace baton::runbook
