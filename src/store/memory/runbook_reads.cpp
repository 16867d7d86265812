#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <ranges>

#include "store/execution_views.hpp"
#include "store/memory/reads.hpp"

namespace baton::store {
namespace {

using namespace runbook;
using memory::at_most;

constexpr std::array batch_statuses = {BatchStatus::detected,  BatchStatus::init_dispatched,
                                       BatchStatus::active,    BatchStatus::completed,
                                       BatchStatus::failed,    BatchStatus::cancelled};

template <class Row>
std::optional<Row> copy_of(const Row* row) {
  return row == nullptr ? std::nullopt : std::optional<Row>(*row);
}
template <class Row>
std::vector<Row> all(auto&& rows) {
  std::vector<Row> out;
  for (const Row* row : rows) out.push_back(*row);
  return out;
}
std::vector<ExecutionView> views(auto&& rows) {
  std::vector<ExecutionView> out;
  for (const auto* row : rows) out.push_back(view_of(*row));
  return out;
}

KnownMember known(const Member& member, const Batch& batch) {
  return {.id = member.id,
          .batch_id = batch.id,
          .member_key = member.member_key,
          .status = std::string(name(member.status)),
          .batch_open = !is_terminal(batch.status),
          .batch_manual = batch.is_manual,
          .batch_time = batch.batch_start_time,
          .data_hash = member.data_json ? hash_data(member.data_json->text) : 0,
          .removed_by_hand = member.removed_by.has_value()};
}

}  // namespace

// --- runbooks

Result<std::vector<Runbook>> MemoryReads::runbooks(const std::string& after, std::size_t limit) {
  const auto reading = lock();
  std::vector<Runbook> found;
  std::string last = after;
  while (found.size() < limit) {
    const auto next = database_.runbooks.runbooks.after<memory::RunbooksByName>(std::tuple<>{}, last);
    if (next.empty()) break;
    last = next.front()->name;
    found.push_back(*database_.runbooks.newest_of(last));
  }
  return found;
}

Result<std::optional<Runbook>> MemoryReads::runbook(const std::string& name, std::int32_t version) {
  const auto reading = lock();
  return copy_of(database_.runbooks.version_of(name, version));
}

Result<std::vector<Runbook>> MemoryReads::versions(const std::string& name) {
  const auto reading = lock();
  return all<Runbook>(database_.runbooks.runbooks.with<memory::RunbooksByName>(name) | std::views::reverse);
}

Result<std::vector<Runbook>> MemoryReads::active_runbooks() {
  const auto reading = lock();
  return all<Runbook>(database_.runbooks.runbooks.with<memory::RunbooksActive>());
}

// --- batches

BatchSummary MemoryReads::summary_of(const Batch& batch) const {
  const Runbook* book = database_.runbooks.runbooks.get(batch.runbook_id);
  const auto& counts = database_.runbooks.counts;
  bool has_failures = false;
  for (auto at = counts.lower_bound({batch.id, 0, "", 0, ""}); at != counts.end(); ++at) {
    const Count& count = at->second;
    if (count.batch_id != batch.id) break;
    const auto step = step_status(count.status);
    const bool is_of_members = count.lane == "member" || count.lane == "step" || count.lane == "catch_up";
    if (is_of_members && count.n > 0 && step && is_failure(*step)) has_failures = true;
  }
  return {batch, book != nullptr ? book->name : "", book != nullptr ? book->version : 0, has_failures};
}

Result<std::vector<BatchSummary>> MemoryReads::batches(const BatchFilter& filter, std::int64_t before,
                                                       std::size_t limit) {
  const auto reading = lock();
  const std::int64_t below = before == 0 ? std::numeric_limits<std::int64_t>::max() : before;
  if (filter.runbook_name) return batches_of(*filter.runbook_name, filter.status, below, limit);
  const auto& batches = database_.runbooks.batches;
  std::vector<BatchSummary> found;
  if (filter.status) {
    for (const Batch* batch : batches.before<memory::BatchesByStatus>(std::tie(*filter.status), below) |
                                  std::views::reverse | at_most(limit))
      found.push_back(summary_of(*batch));
  } else {
    for (const auto& [id, batch] : std::ranges::subrange(batches.begin(), batches.lower_bound(below)) |
                                       std::views::reverse | at_most(limit))
      found.push_back(summary_of(batch));
  }
  return found;
}

// Each version and status is a range of its own, in the order of the page; the page is their merge.
std::vector<BatchSummary> MemoryReads::batches_of(const std::string& runbook_name,
                                                  std::optional<BatchStatus> status, std::int64_t before,
                                                  std::size_t limit) const {
  std::vector<const Batch*> found;
  for (const Runbook* book : database_.runbooks.runbooks.with<memory::RunbooksByName>(runbook_name))
    for (const BatchStatus each : batch_statuses)
      if (!status || *status == each)
        std::ranges::copy(database_.runbooks.batches.before<memory::BatchesByRunbook>(
                              std::tie(book->id, each), before) |
                              std::views::reverse | at_most(limit),
                          std::back_inserter(found));
  std::ranges::sort(found, std::greater{}, &Batch::id);
  std::vector<BatchSummary> page;
  for (const Batch* batch : found | at_most(limit)) page.push_back(summary_of(*batch));
  return page;
}

Result<std::optional<BatchSummary>> MemoryReads::batch(std::int64_t id) {
  const auto reading = lock();
  const Batch* found = database_.runbooks.batches.get(id);
  return found == nullptr ? std::nullopt : std::optional(summary_of(*found));
}

Result<std::vector<Hold>> MemoryReads::open_holds(std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  return all<Hold>(database_.runbooks.holds.after<memory::HoldsOpen>(std::tuple<>{}, after) | at_most(limit));
}

Result<std::vector<Hold>> MemoryReads::holds(std::int64_t batch_id) {
  const auto reading = lock();
  return all<Hold>(database_.runbooks.holds.with<memory::HoldsByBatch>(batch_id));
}

Result<std::optional<Hold>> MemoryReads::hold(std::int64_t id) {
  const auto reading = lock();
  return copy_of(database_.runbooks.holds.get(id));
}

namespace {

void add_waiting(std::map<std::string, QueueBacklog>& to, const Execution& row) {
  QueueBacklog& backlog = to[row.worker_id];
  backlog.queue = row.worker_id;
  backlog.waiting = std::min(backlog.waiting + 1, backlog_max);
  if (row.queued_at) backlog.since = std::min(backlog.since.value_or(*row.queued_at), *row.queued_at);
}

}  // namespace

std::map<std::string, QueueBacklog> MemoryReads::backlogs(std::optional<std::int64_t> batch_id) const {
  const memory::RunbookTables& db = database_.runbooks;
  std::map<std::string, QueueBacklog> found;
  const auto add = [&](const Execution& row, std::int64_t of_batch) {
    if (row.job_state == JobState::queued && (!batch_id || *batch_id == of_batch)) add_waiting(found, row);
  };
  for (const auto& [id, step] : db.steps) {
    const PhaseExecution* phase = db.phases.get(step.phase_execution_id);
    add(step, phase != nullptr ? phase->batch_id : 0);
  }
  for (const auto& [id, init] : db.inits) add(init, init.batch_id);
  for (const auto& [id, cleanup] : db.cleanups) add(cleanup, cleanup.batch_id);
  return found;
}

Result<std::vector<QueueBacklog>> MemoryReads::job_backlogs() {
  const auto reading = lock();
  std::vector<QueueBacklog> all;
  for (auto& [queue, backlog] : backlogs(std::nullopt)) all.push_back(backlog);
  return all;
}

Result<QueueBacklog> MemoryReads::backlog_of_batch(std::int64_t batch_id, const std::string& queue) {
  const auto reading = lock();
  QueueBacklog backlog = backlogs(batch_id)[queue];
  backlog.queue = queue;
  return backlog;
}

Result<std::vector<Retrying>> MemoryReads::retrying(std::int64_t batch_id) {
  const auto reading = lock();
  std::vector<Retrying> found;
  for (const PhaseExecution* phase : database_.runbooks.phases.with<memory::PhasesByBatch>(batch_id)) {
    Retrying retrying{.phase_execution_id = phase->id};
    for (const auto& [id, step] : database_.runbooks.steps) {
      if (step.phase_execution_id != phase->id || step.status != StepStatus::pending || !step.retry_after) continue;
      ++retrying.n;
      retrying.next = std::min(retrying.next.value_or(*step.retry_after), *step.retry_after);
    }
    if (retrying.n > 0) found.push_back(retrying);
  }
  return found;
}

Result<std::vector<BatchSummary>> MemoryReads::importing() {
  const auto reading = lock();
  std::vector<BatchSummary> found;
  for (const Batch* batch : database_.runbooks.batches.with<memory::BatchesImporting>())
    found.push_back(summary_of(*batch));
  return found;
}

Result<std::vector<ApprovedRemovals>> MemoryReads::approved_removals(const std::string& runbook_name) {
  const auto reading = lock();
  std::vector<ApprovedRemovals> found;
  for (const Runbook* book : database_.runbooks.runbooks.with<memory::RunbooksByName>(runbook_name))
    for (const Batch* batch : database_.runbooks.batches.with<memory::BatchesApproved>(book->id))
      found.push_back({batch->id, *batch->removals_approved});
  std::ranges::sort(found);
  return found;
}

Result<std::vector<std::int64_t>> MemoryReads::moved_phases(std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  std::vector<std::int64_t> ids;
  for (const auto& [id, phase] : database_.runbooks.phases) {
    const Batch* batch = database_.runbooks.batches.get(phase.batch_id);
    if (id > after && ids.size() < limit && batch && !is_terminal(batch->status) &&
        phase.status == PhaseStatus::pending && phase.waits_for == PhaseWait::none && phase.due_at &&
        phase.due_at != phase.timer_due)
      ids.push_back(id);
  }
  return ids;
}

Result<std::vector<PhaseExecution>> MemoryReads::phases(std::int64_t batch_id) {
  const auto reading = lock();
  return all<PhaseExecution>(database_.runbooks.phases.with<memory::PhasesByBatch>(batch_id));
}

Result<std::optional<PhaseExecution>> MemoryReads::phase(std::int64_t id) {
  const auto reading = lock();
  return copy_of(database_.runbooks.phases.get(id));
}

Result<std::vector<Count>> MemoryReads::counts(std::int64_t batch_id) {
  const auto reading = lock();
  const auto& counts = database_.runbooks.counts;
  std::vector<Count> found;
  for (auto at = counts.lower_bound({batch_id, 0, "", 0, ""}); at != counts.end(); ++at) {
    if (at->second.batch_id != batch_id) break;
    found.push_back(at->second);
  }
  return found;
}

Result<std::vector<BatchEvent>> MemoryReads::batch_events(std::int64_t batch_id, std::int64_t after,
                                                          std::size_t limit) {
  const auto reading = lock();
  const auto& events = database_.runbooks.events;
  std::vector<BatchEvent> found;
  for (auto at = events.upper_bound({batch_id, after}); at != events.end(); ++at) {
    if (at->second.batch_id != batch_id || found.size() >= limit) break;
    found.push_back(at->second);
  }
  return found;
}

// --- members

Result<std::vector<Member>> MemoryReads::members(std::int64_t batch_id, std::optional<MemberStatus> status,
                                                 std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  const auto& members = database_.runbooks.members;
  if (status && *status != MemberStatus::active)
    return all<Member>(members.after<memory::MembersLeft>(std::tie(batch_id, *status), after) |
                       at_most(limit));
  const auto fits = [&](const Member* member) { return !status || member->status == *status; };
  return all<Member>(members.after<memory::MembersByBatch>(std::tie(batch_id), after) |
                     std::views::filter(fits) | at_most(limit));
}

Result<std::optional<Member>> MemoryReads::member(std::int64_t id) {
  const auto reading = lock();
  return copy_of(database_.runbooks.members.get(id));
}

Result<std::optional<Member>> MemoryReads::member_by_key(std::int64_t batch_id, const std::string& key) {
  const auto reading = lock();
  const Member* best = nullptr;  // the active one, else the newest
  for (const Member* member : database_.runbooks.members.with<memory::MembersByKey>(batch_id, key))
    if (best == nullptr || best->status != MemberStatus::active || member->status == MemberStatus::active)
      best = member;
  return copy_of(best);
}

// Batch by batch, as the page before ended.
Result<std::vector<KnownMember>> MemoryReads::known_members(const std::string& runbook_name,
                                                            std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  const memory::RunbookTables& db = database_.runbooks;
  std::vector<const Batch*> batches;
  for (const Runbook* book : db.runbooks.with<memory::RunbooksByName>(runbook_name))
    std::ranges::copy(db.batches.with<memory::BatchesByRunbook>(book->id), std::back_inserter(batches));
  std::ranges::sort(batches, {}, &Batch::id);
  const Member* last = db.members.get(after);
  const std::int64_t current = last != nullptr ? last->batch_id : 0;
  std::vector<KnownMember> found;
  for (const Batch* batch : batches) {
    if (batch->id < current) continue;
    const std::int64_t from = batch->id == current ? after : 0;
    for (const Member* member : db.members.after<memory::MembersByBatch>(std::tie(batch->id), from) |
                                    at_most(limit - found.size()))
      found.push_back(known(*member, *batch));
    if (found.size() >= limit) break;
  }
  return found;
}

// --- steps, init steps and cleanups

ExecutionView MemoryReads::step_view(const StepExecution& step) const {
  const PhaseExecution* phase = database_.runbooks.phases.get(step.phase_execution_id);
  return view_of(step, phase != nullptr ? phase->batch_id : 0,
                 phase != nullptr ? phase->runbook_version : 0);
}

Failure MemoryReads::failure_of(ExecutionView view) const {
  const PhaseExecution* phase = database_.runbooks.phases.get(view.phase_execution_id.value_or(0));
  const Member* member = database_.runbooks.members.get(view.batch_member_id.value_or(0));
  return {std::move(view), member != nullptr ? member->member_key : "",
          phase != nullptr ? phase->phase_name : ""};
}

Result<std::vector<MatrixCell>> MemoryReads::cells(const std::vector<std::int64_t>& member_ids) {
  const auto reading = lock();
  std::vector<MatrixCell> cells;
  for (const std::int64_t member_id : member_ids)
    for (const StepExecution* step : database_.runbooks.steps_of_member(member_id))
      cells.push_back({.batch_member_id = step->batch_member_id,
                       .phase_execution_id = step->phase_execution_id,
                       .step_id = step->id,
                       .step_index = step->step_index,
                       .step_name = step->step_name,
                       .status = step->status,
                       .retry_count = step->retry_count,
                       .poll_count = step->poll_count,
                       .is_catch_up = step->is_catch_up,
                       .is_skipped = is_skipped(*step),
                       .dispatched_at = step->dispatched_at,
                       .completed_at = step->completed_at,
                       .error_message = step->error_message ? std::optional(step->error_message->substr(0, 500))
                                                            : std::nullopt});
  return cells;
}

Result<std::vector<ExecutionView>> MemoryReads::steps_of_member(std::int64_t member_id) {
  const auto reading = lock();
  std::vector<ExecutionView> found;
  for (const StepExecution* step : database_.runbooks.steps_of_member(member_id))
    found.push_back(step_view(*step));
  return found;
}

Result<std::vector<Failure>> MemoryReads::failures(std::int64_t phase_execution_id, const FailedBefore& before,
                                                   std::size_t limit) {
  const auto reading = lock();
  std::vector<Failure> found;
  for (const StepExecution* step : database_.runbooks.steps.before<memory::StepsFailed>(
                                       std::tie(phase_execution_id), before.at, before.id) |
                                       std::views::reverse | at_most(limit))
    found.push_back(failure_of(step_view(*step)));
  return found;
}

Result<std::vector<Failure>> MemoryReads::cleanup_failures(std::int64_t batch_id, const FailedBefore& before,
                                                           std::size_t limit) {
  const auto reading = lock();
  std::vector<Failure> found;
  for (const CleanupExecution* cleanup : database_.runbooks.cleanups.before<memory::CleanupsFailed>(
                                             std::tie(batch_id), before.at, before.id) |
                                             std::views::reverse | at_most(limit))
    found.push_back(failure_of(view_of(*cleanup)));
  return found;
}

// Each table is a range of its own, in the order of the page; the page is their merge.
Result<std::vector<ExecutionView>> MemoryReads::dead_jobs(const DeadJobCursor& after, std::size_t limit) {
  const auto reading = lock();
  std::vector<ExecutionView> found;
  const auto add = [&]<class Row>(const auto& table, runbook::RowType type, std::type_identity<Row>) {
    constexpr auto last_id = std::numeric_limits<std::int64_t>::max();
    const std::int64_t id = type < after.ref.type ? last_id : type == after.ref.type ? after.ref.id : 0;
    const auto rows = table.template after<memory::JobsDead<Row>>(std::tuple<>{}, after.at, id);
    for (const Row* row : rows | at_most(limit)) {
      if constexpr (std::is_same_v<Row, StepExecution>)
        found.push_back(step_view(*row));
      else
        found.push_back(view_of(*row));
    }
  };
  add(database_.runbooks.steps, runbook::RowType::step, std::type_identity<StepExecution>{});
  add(database_.runbooks.inits, runbook::RowType::init, std::type_identity<InitExecution>{});
  add(database_.runbooks.cleanups, runbook::RowType::cleanup, std::type_identity<CleanupExecution>{});
  std::ranges::sort(found, {}, [](const ExecutionView& job) { return std::pair(job.execution.dead_at, job.ref); });
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<std::vector<ExecutionView>> MemoryReads::steps_of_phase(std::int64_t phase_execution_id,
                                                               std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  const auto& steps = database_.runbooks.steps;
  std::vector<ExecutionView> found;
  const StepExecution* last = after == 0 ? nullptr : steps.get(after);
  if (after != 0 && last == nullptr) return found;
  const StepExecution first{};  // before all that are stored, whose ids are larger than 0
  const StepExecution& from = last != nullptr ? *last : first;
  for (const StepExecution* step :
       steps.after<memory::StepsByPhase>(std::tie(phase_execution_id), from.batch_member_id, from.step_index,
                                         from.id) |
           at_most(limit))
    found.push_back(step_view(*step));
  return found;
}

Result<std::optional<ExecutionView>> MemoryReads::execution(Ref ref) {
  const auto reading = lock();
  const memory::RunbookTables& db = database_.runbooks;
  if (ref.type == runbook::RowType::step) {
    if (const auto* row = db.steps.get(ref.id)) return step_view(*row);
  } else if (ref.type == runbook::RowType::init) {
    if (const auto* row = db.inits.get(ref.id)) return view_of(*row);
  } else if (ref.type == runbook::RowType::cleanup) {
    if (const auto* row = db.cleanups.get(ref.id)) return view_of(*row);
  }
  return std::nullopt;
}

Result<std::vector<ExecutionView>> MemoryReads::inits(std::int64_t batch_id) {
  const auto reading = lock();
  return views(database_.runbooks.inits.with<memory::InitsByBatch>(batch_id));
}

Result<std::vector<ExecutionView>> MemoryReads::cleanups(std::int64_t batch_id, std::int64_t after,
                                                         std::size_t limit) {
  const auto reading = lock();
  return views(database_.runbooks.cleanups.after<memory::CleanupsByBatch>(std::tie(batch_id), after) |
               at_most(limit));
}

Result<std::vector<ExecutionView>> MemoryReads::open_cleanups(std::int64_t batch_id, std::size_t limit) {
  const auto reading = lock();
  return views(database_.runbooks.cleanups.with<memory::CleanupsOpen>(batch_id) | at_most(limit));
}

Result<std::vector<ExecutionView>> MemoryReads::cleanups_of_member(
    std::int64_t member_id, const std::vector<std::int64_t>& step_ids) {
  const auto reading = lock();
  const auto& cleanups = database_.runbooks.cleanups;
  std::map<std::int64_t, const CleanupExecution*> found;
  for (const CleanupExecution* row : cleanups.with<memory::RemovalsOfMember>(member_id))
    found.emplace(row->id, row);
  for (const std::int64_t step_id : step_ids)
    for (const CleanupExecution* row : cleanups.with<memory::CleanupsOfStep>(step_id))
      found.emplace(row->id, row);
  return views(found | std::views::values);
}

}  // namespace baton::store
