// What the writer loads of runbooks.
#include <algorithm>
#include <ranges>

#include "core/runbook/machine/versions.hpp"
#include "store/memory/runbook_tables.hpp"
#include "store/tables.hpp"

namespace baton::store::memory {
namespace {

using namespace runbook;

constexpr std::array open_statuses = {BatchStatus::detected, BatchStatus::init_dispatched,
                                      BatchStatus::active};
static_assert(!is_terminal(BatchStatus::active) && is_terminal(BatchStatus::completed));

// As a load gives it: without outcomes.
template <class Row>
Row as_loaded(Row row) {
  for_each_column<Row>([&](const auto& column) {
    if constexpr (requires { (row.*column.member).reset(); }) {
      if (column.role == ColumnRole::outcome) (row.*column.member).reset();
    }
  });
  return row;
}

// One load: rows are added once, in the order in which they are first found.
class Load {
 public:
  explicit Load(const RunbookTables& db) : db_(db) {}

  // Lists first: see RunbookTables::load.
  void list(const auto&) {}
  void list(const need::RunbookNamed& n) { runbooks_.add(db_.version_of(n.name, n.version)); }
  void list(const need::LatestVersion& n) { runbooks_.add(db_.newest_of(n.name)); }
  void list(const need::RunbooksOfTable& n) {
    runbooks_.add_all(db_.runbooks.with<RunbooksByTable>(n.data_table));
  }
  void list(const need::BatchOfTime& n);
  void list(const need::OpenBatches& n);
  void list(const need::BegunBatches& n);
  void list(const need::PhasesOf& n) { phases_.add_all(db_.phases.with<PhasesByBatch>(n.batch)); }
  void list(const need::InitsOf& n) { inits_.add_all(db_.inits.with<InitsByBatch>(n.batch)); }
  void list(const need::MembersOf& n) {
    members_.add_page(db_.members.after<MembersByBatch>(std::tuple(n.batch), n.after), n.limit);
  }
  void list(const need::FailedMembersOf& n) {
    members_.add_page(db_.members.after<MembersLeft>(std::tuple(n.batch, MemberStatus::failed), n.after),
                      n.limit);
  }
  void list(const need::MembersNamed& n) { members_.add_all(db_.members.with<MembersByKey>(n.batch, n.key)); }
  void list(const need::StepsOf& n) { steps_.add_all(db_.steps.with<StepsByPhase>(n.phase, n.member)); }
  void list(const need::StepsAhead& n);
  void list(const need::StepsOfMember& n) { steps_.add_all(db_.steps_of_member(n.member)); }
  void list(const need::ParkedSteps& n);
  void list(const need::CleanupsOfStep& n) { cleanups_.add_all(db_.cleanups.with<CleanupsOfStep>(n.step)); }
  void list(const need::CleanupsOfInit& n) { cleanups_.add_all(db_.cleanups.with<CleanupsOfInit>(n.init)); }
  void list(const need::RemovalsOf& n) { cleanups_.add_all(db_.cleanups.with<RemovalsOfMember>(n.member)); }
  void list(const need::OpenCleanupsOf& n) { cleanups_.add_all(db_.cleanups.with<CleanupsOpen>(n.batch)); }
  void list(const need::DeadCleanupsOf& n) {
    for (const auto* row : db_.cleanups.with<CleanupsFailed>(n.batch))
      if (row->dead_at) cleanups_.add(row);
  }
  void list(const need::HoldsOf& n) { holds_.add_all(db_.holds.with<HoldsByBatch>(n.batch)); }
  void list(const need::LimitedSteps& n);
  void list(const need::HeldMembers& n) {
    members_.add_page(db_.members.with<MembersHeld>(n.hold), n.limit);
  }
  void list(const need::CountsOf& n);
  void list(const need::DataRow& n);

  void by_id(const auto&) {}
  void by_id(const need::Runbook& n) { runbooks_.add(db_.runbooks.get(n.id)); }
  void by_id(const need::Batch& n) { batches_.add(db_.batches.get(n.id)); }
  void by_id(const need::Phase& n) { phases_.add(db_.phases.get(n.id)); }
  void by_id(const need::Init& n) { inits_.add(db_.inits.get(n.id)); }
  void by_id(const need::Member& n) { members_.add(db_.members.get(n.id)); }
  void by_id(const need::Step& n);
  void by_id(const need::Cleanup& n) { cleanups_.add(db_.cleanups.get(n.id)); }
  void by_id(const need::Hold& n) { holds_.add(db_.holds.get(n.id)); }
  [[nodiscard]] runbook::Loaded finish() { return std::move(loaded_); }

 private:
  template <class Row>
  struct Found {
    std::vector<Row>& rows;
    std::set<std::int64_t> ids;
    void add(const Row* row) {
      if (row != nullptr && ids.insert(row->id).second) rows.push_back(as_loaded(*row));
    }
    void add_all(auto&& range) {
      for (const Row* row : range) add(row);
    }
    void add_page(auto&& range, std::int32_t limit) {
      for (const Row* row : range | std::views::take(limit)) add(row);
    }
  };

  const RunbookTables& db_;
  runbook::Loaded loaded_;
  Found<Runbook> runbooks_{loaded_.runbooks, {}};
  Found<Batch> batches_{loaded_.batches, {}};
  Found<Member> members_{loaded_.members, {}};
  Found<PhaseExecution> phases_{loaded_.phases, {}};
  Found<StepExecution> steps_{loaded_.steps, {}};
  Found<InitExecution> inits_{loaded_.inits, {}};
  Found<CleanupExecution> cleanups_{loaded_.cleanups, {}};
  Found<Hold> holds_{loaded_.holds, {}};
};

// The newest open one.
void Load::list(const need::BatchOfTime& need) {
  const Batch* newest = nullptr;
  for (const Runbook* book : db_.runbooks.with<RunbooksByName>(need.runbook))
    for (const Batch* batch : db_.batches.with<BatchesByTime>(book->id, need.time))
      if (!is_terminal(batch->status) && (newest == nullptr || newest->id < batch->id)) newest = batch;
  batches_.add(newest);
}

void Load::list(const need::OpenBatches& need) {
  std::vector<const Batch*> found;
  for (const Runbook* book : db_.runbooks.with<RunbooksByName>(need.runbook))
    for (const BatchStatus status : open_statuses)
      std::ranges::copy(db_.batches.after<BatchesByRunbook>(std::tie(book->id, status), need.after) |
                            std::views::take(need.limit),
                        std::back_inserter(found));
  std::ranges::sort(found, {}, &Batch::id);
  batches_.add_page(found, need.limit);
}

void Load::list(const need::BegunBatches& need) {
  std::vector<const Batch*> found;
  for (const Runbook* book : db_.runbooks.with<RunbooksByName>(need.runbook))
    for (const BatchStatus status : open_statuses)
      for (const Batch* batch : db_.batches.after<BatchesByRunbook>(std::tie(book->id, status), 0)) {
        std::vector<const PhaseExecution*> phases;
        std::ranges::copy(db_.phases.with<PhasesByBatch>(batch->id), std::back_inserter(phases));
        if (has_begun(*batch, phases)) found.push_back(batch);
      }
  std::ranges::sort(found, {}, &Batch::id);
  batches_.add_page(found, need.limit);
}

void Load::list(const need::StepsAhead& need) {
  std::int32_t left = need::StepsAhead::limit;
  for (const StepExecution* step : db_.steps.with<StepsByPhase>(need.phase, need.member)) {
    if (step->status == StepStatus::succeeded) continue;
    if (left-- == 0) return;
    steps_.add(step);
  }
}

void Load::list(const need::ParkedSteps& need) {
  std::int32_t left = need.limit;
  for (const PhaseExecution* phase : db_.phases.with<PhasesByBatch>(need.batch))
    for (const StepExecution* step : db_.steps.with<StepsParked>(phase->id)) {
      if (left-- <= 0) return;
      steps_.add(step);
    }
}

void Load::list(const need::LimitedSteps& need) {
  steps_.add_page(db_.steps.with<StepsLimited>(need.phase), need.limit);
}

void Load::list(const need::CountsOf& need) {
  const auto first = db_.counts.lower_bound({need.batch, need.phase, "", 0, ""});
  for (auto at = first; at != db_.counts.end(); ++at) {
    if (at->second.batch_id != need.batch || at->second.phase_execution_id != need.phase) break;
    loaded_.counts.push_back(at->second);
  }
}

void Load::list(const need::DataRow& need) {
  const auto table = db_.data.find(need.table);
  if (table == db_.data.end()) return;
  const auto& rows = table->second.rows;
  auto row = rows.find(need.member_key);
  if (row == rows.end() || !row->second.is_current)
    row = std::ranges::find_if(rows, [&](const auto& entry) {
      return entry.second.is_current && equal_ignoring_case(entry.first, need.member_key);
    });
  if (row == rows.end()) return;
  std::string data;
  for (const std::string& column : table->second.columns) {
    data += data.empty() ? '{' : ',';
    append_quoted(data, column);
    data += ':';
    const auto cell = row->second.cells.find(column);
    if (cell == row->second.cells.end() || !cell->second)
      data += "null";
    else
      append_quoted(data, *cell->second);
  }
  loaded_.data_rows.push_back({need.table, need.member_key, Json{(data.empty() ? "{" : data) + "}"}});
}

void Load::by_id(const need::Step& need) {
  const StepExecution* step = db_.steps.get(need.id);
  steps_.add(step);
  const PhaseExecution* phase = step ? db_.phases.get(step->phase_execution_id) : nullptr;
  const Batch* batch = phase ? db_.batches.get(phase->batch_id) : nullptr;
  if (batch) loaded_.places.push_back({step->id, batch->id, batch->runbook_id});
}

template <class Row>
void add_waiting(std::vector<WaitingTask>& found, const auto& table, runbook::RowType type,
                 const std::string& queue, std::size_t limit) {
  const auto rows = table.template with<JobsWaiting<Row>>(queue);
  for (const Row* row : rows | at_most(limit))
    found.push_back(waiting_task({type, row->id}, row->queued_at.value_or(Time{})));
}

}  // namespace

runbook::Loaded RunbookTables::load(const std::vector<Need>& needs) const {
  const std::set<Need> asked(needs.begin(), needs.end());
  Load load(*this);
  for (const Need& need : asked) std::visit([&](const auto& one) { load.list(one); }, need);
  for (const Need& need : asked) std::visit([&](const auto& one) { load.by_id(one); }, need);
  return load.finish();
}

std::vector<WaitingTask> RunbookTables::waiting(const std::string& queue, std::size_t limit) const {
  std::vector<WaitingTask> found;
  add_waiting<StepExecution>(found, steps, runbook::RowType::step, queue, limit);
  add_waiting<InitExecution>(found, inits, runbook::RowType::init, queue, limit);
  add_waiting<CleanupExecution>(found, cleanups, runbook::RowType::cleanup, queue, limit);
  std::ranges::sort(found);
  return found;
}

// Looks through the tables, as the databases do.
std::vector<Ref> RunbookTables::left_by_others(Ref after, std::size_t limit) const {
  std::vector<Ref> found;
  const auto add = [&](const auto& table, runbook::RowType type) {
    for (const auto& [id, row] : table) {
      const bool is_out = row.status == StepStatus::dispatched || row.status == StepStatus::polling;
      if (found.size() < limit && Ref{type, id} > after && is_out && !row.timer_due &&
          row.job_state == JobState::none)
        found.push_back({type, id});
    }
  };
  add(steps, runbook::RowType::step);
  add(inits, runbook::RowType::init);
  for (const auto& [id, row] : phases)
    if (found.size() < limit && Ref{runbook::RowType::phase, id} > after && row.status == PhaseStatus::dispatched &&
        row.walk == Walk::none && row.walk_after == 0)
      found.push_back({runbook::RowType::phase, id});
  return found;
}

const Runbook* RunbookTables::newest_of(const std::string& name) const {
  const auto versions = runbooks.with<RunbooksByName>(name);
  return versions.empty() ? nullptr : versions.back();
}

const Runbook* RunbookTables::version_of(const std::string& name, std::int32_t version) const {
  if (version != 0) {
    const auto found = runbooks.with<RunbooksByName>(name, version);
    return found.empty() ? nullptr : found.front();
  }
  const auto active = runbooks.with<RunbooksActive>(name);
  return active.empty() ? newest_of(name) : active.back();
}

std::vector<const StepExecution*> RunbookTables::steps_of_member(std::int64_t member_id) const {
  std::vector<const StepExecution*> found;
  const Member* member = members.get(member_id);
  if (member == nullptr) return found;
  for (const PhaseExecution* phase : phases.with<PhasesByBatch>(member->batch_id))
    std::ranges::copy(steps.with<StepsByPhase>(phase->id, member_id), std::back_inserter(found));
  return found;
}

}  // namespace baton::store::memory
