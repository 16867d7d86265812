// What the API and the scheduler read of runbooks; see reads.hpp. Lists are pages by id: `after` is the last
// id of the page before, 0 for the first.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "core/runbook/machine/rows.hpp"
#include "core/runbook/members/members.hpp"

namespace baton {

struct BatchSummary {
  runbook::Batch batch;
  std::string runbook_name;
  std::int32_t runbook_version = 0;
  bool has_failures = false;  // a member failed, or a step of a phase did
};

// Jobs that wait in a queue for a worker. No more than so many are counted.
constexpr std::int64_t backlog_max = 10'000;
struct QueueBacklog {
  std::string queue;
  std::int64_t waiting = 0;
  std::optional<Time> since;  // the oldest of them
};

// Steps of a phase that failed and wait for their next attempt.
struct Retrying {
  std::int64_t phase_execution_id = 0;
  std::int64_t n = 0;
  std::optional<Time> next;
};

struct BatchFilter {
  std::optional<std::string> runbook_name;
  std::optional<runbook::BatchStatus> status;
};

// One of the three tables of jobs, as the API shows it.
struct ExecutionView {
  runbook::Ref ref;
  runbook::Execution execution;             // result_json included
  std::int64_t batch_id = 0;
  std::optional<std::int64_t> phase_execution_id, batch_member_id;
  std::int32_t runbook_version = 0;
  bool is_catch_up = false;
  std::optional<runbook::CleanupKind> cleanup_kind;
  std::optional<std::int64_t> caused_by_step_id, caused_by_init_id;
  std::string sequence;
};

// What a cell of the matrix shows, or a line of the report: a step of a member, without its documents.
struct MatrixCell {
  std::int64_t batch_member_id = 0;
  std::int64_t phase_execution_id = 0;
  std::int64_t step_id = 0;
  std::int32_t step_index = 0;
  std::string step_name;
  runbook::StepStatus status{};
  std::int32_t retry_count = 0;
  std::int32_t poll_count = 0;
  bool is_catch_up = false;
  bool is_skipped = false;
  std::optional<Time> dispatched_at, completed_at;
  std::optional<std::string> error_message;  // its beginning
};

// A step, init step or cleanup that failed for good, with whose it is.
struct Failure {
  ExecutionView step;
  std::string member_key;  // empty: of the batch as a whole
  std::string phase_name;  // empty: of none
};

// Where a page of failures begins: those that failed before this time, or then and have a lower id.
struct FailedBefore {
  Time at = from_millis(253'402'300'799'000);  // the end of the year 9999
  std::int64_t id = std::numeric_limits<std::int64_t>::max();
};

// Where a page of dead jobs goes on: after this one. Type none: with all of that time.
struct DeadJobCursor {
  Time at{};
  runbook::Ref ref;
};

class RunbookReads {
 public:
  virtual ~RunbookReads() = default;

  // The newest version of each name, by name.
  [[nodiscard]] virtual Result<std::vector<runbook::Runbook>> runbooks(const std::string& after,
                                                                       std::size_t limit) = 0;
  // version 0: the active one, else the newest.
  [[nodiscard]] virtual Result<std::optional<runbook::Runbook>> runbook(const std::string& name,
                                                                        std::int32_t version) = 0;
  [[nodiscard]] virtual Result<std::vector<runbook::Runbook>> versions(const std::string& name) = 0;
  [[nodiscard]] virtual Result<std::vector<runbook::Runbook>> active_runbooks() = 0;

  // Newest first; `before` is the last id of the page before, 0 for the first.
  [[nodiscard]] virtual Result<std::vector<BatchSummary>> batches(const BatchFilter& filter,
                                                                  std::int64_t before,
                                                                  std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<BatchSummary>> batch(std::int64_t id) = 0;
  [[nodiscard]] virtual Result<std::vector<runbook::PhaseExecution>> phases(std::int64_t batch_id) = 0;
  [[nodiscard]] virtual Result<std::optional<runbook::PhaseExecution>> phase(std::int64_t id) = 0;
  [[nodiscard]] virtual Result<std::vector<runbook::Count>> counts(std::int64_t batch_id) = 0;
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> inits(std::int64_t batch_id) = 0;
  [[nodiscard]] virtual Result<std::vector<runbook::BatchEvent>> batch_events(std::int64_t batch_id,
                                                                              std::int64_t after,
                                                                              std::size_t limit) = 0;

  // By id; status: only those.
  [[nodiscard]] virtual Result<std::vector<runbook::Member>> members(
      std::int64_t batch_id, std::optional<runbook::MemberStatus> status, std::int64_t after,
      std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<runbook::Member>> member(std::int64_t id) = 0;
  // The active one of that key, else the newest.
  [[nodiscard]] virtual Result<std::optional<runbook::Member>> member_by_key(std::int64_t batch_id,
                                                                             const std::string& key) = 0;
  [[nodiscard]] virtual Result<std::vector<MatrixCell>> cells(
      const std::vector<std::int64_t>& member_ids) = 0;
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> steps_of_member(std::int64_t member_id) = 0;
  // Steps of a phase that failed for good, the last to fail first.
  [[nodiscard]] virtual Result<std::vector<Failure>> failures(std::int64_t phase_execution_id,
                                                              const FailedBefore& before, std::size_t limit) = 0;
  // The same for the rollbacks and removals of a batch.
  [[nodiscard]] virtual Result<std::vector<Failure>> cleanup_failures(std::int64_t batch_id,
                                                                      const FailedBefore& before,
                                                                      std::size_t limit) = 0;
  // Jobs of steps, init steps and cleanups that were given up after too many deliveries, oldest first.
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> dead_jobs(const DeadJobCursor& after,
                                                                     std::size_t limit) = 0;
  // Steps of a phase, by member and step_index; `after` is the id of the last step of the page before.
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> steps_of_phase(std::int64_t phase_execution_id,
                                                                          std::int64_t after,
                                                                          std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<ExecutionView>> execution(runbook::Ref ref) = 0;
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> cleanups(std::int64_t batch_id, std::int64_t after,
                                                                    std::size_t limit) = 0;
  // Those that have not ended, by id.
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> open_cleanups(std::int64_t batch_id,
                                                                         std::size_t limit) = 0;
  // The removals of a member and the rollbacks of these steps of the member, by id.
  [[nodiscard]] virtual Result<std::vector<ExecutionView>> cleanups_of_member(
      std::int64_t member_id, const std::vector<std::int64_t>& step_ids) = 0;

  // For the diff: the members of all batches of the runbook, all versions, batch by batch, each by id; `after`
  // is the id of the last member of the page before.
  [[nodiscard]] virtual Result<std::vector<runbook::KnownMember>> known_members(const std::string& runbook_name,
                                                                                std::int64_t after,
                                                                                std::size_t limit) = 0;
  // Batches whose held removals somebody has approved.
  [[nodiscard]] virtual Result<std::vector<runbook::ApprovedRemovals>> approved_removals(
      const std::string& runbook_name) = 0;
  // Pending phases of open batches whose time another program has changed, so that it is not that of their timer, or
  // that it has added, so that they have none: at most `limit` ids, by id; `after` is the last of the page before.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> moved_phases(std::int64_t after, std::size_t limit) = 0;
  // What waits for a person, oldest first; `after` is the last id of the page before.
  [[nodiscard]] virtual Result<std::vector<runbook::Hold>> open_holds(std::int64_t after, std::size_t limit) = 0;
  // All of a batch, the answered ones too, by id.
  [[nodiscard]] virtual Result<std::vector<runbook::Hold>> holds(std::int64_t batch_id) = 0;
  [[nodiscard]] virtual Result<std::optional<runbook::Hold>> hold(std::int64_t id) = 0;
  // The queues in which jobs of runbooks wait, by name.
  [[nodiscard]] virtual Result<std::vector<QueueBacklog>> job_backlogs() = 0;
  // What of it is of one batch.
  [[nodiscard]] virtual Result<QueueBacklog> backlog_of_batch(std::int64_t batch_id, const std::string& queue) = 0;
  [[nodiscard]] virtual Result<std::vector<Retrying>> retrying(std::int64_t batch_id) = 0;
  // Batches whose import was interrupted.
  [[nodiscard]] virtual Result<std::vector<BatchSummary>> importing() = 0;
};

}  // namespace baton
