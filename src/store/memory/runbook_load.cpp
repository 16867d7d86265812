// What the writer loads of runbooks.
#include <algorithm>
#include <ranges>

#include "store/memory/runbook_tables.hpp"
#include "store/tables.hpp"

namespace baton::store::memory {
namespace {

using namespace runbook;
using What = Need::What;

constexpr std::array open_statuses = {BatchStatus::detected, BatchStatus::init_dispatched,
                                      BatchStatus::active};
static_assert(!is_terminal(BatchStatus::active) && is_terminal(BatchStatus::completed));

// As a load gives it: without outcomes.
template <class Row>
Row as_loaded(Row row) {
  for_each_column<Row>([&](const auto& column) {
    if constexpr (requires { (row.*column.member).reset(); }) {
      if (column.kind == Kind::outcome) (row.*column.member).reset();
    }
  });
  return row;
}

// One load: rows are added once, in the order in which they are first found.
class Load {
 public:
  explicit Load(const RunbookTables& db) : db_(db) {}

  void list(const Need& need);
  void by_id(const Need& need);
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

  void batch_of_time(const Need& need);
  void open_batches(const Need& need);
  void steps_ahead(const Need& need);
  void parked_steps(const Need& need);
  void counts_of(const Need& need);
  void data_row(const Need& need);

  const RunbookTables& db_;
  runbook::Loaded loaded_;
  Found<Runbook> runbooks_{loaded_.runbooks, {}};
  Found<Batch> batches_{loaded_.batches, {}};
  Found<Member> members_{loaded_.members, {}};
  Found<PhaseExecution> phases_{loaded_.phases, {}};
  Found<StepExecution> steps_{loaded_.steps, {}};
  Found<InitExecution> inits_{loaded_.inits, {}};
  Found<CleanupExecution> cleanups_{loaded_.cleanups, {}};
};

// The newest open one.
void Load::batch_of_time(const Need& need) {
  const Batch* newest = nullptr;
  for (const Runbook* book : db_.runbooks.with<RunbooksByName>(need.text))
    for (const Batch* batch : db_.batches.with<BatchesByTime>(book->id, from_millis(need.other)))
      if (!is_terminal(batch->status) && (newest == nullptr || newest->id < batch->id)) newest = batch;
  batches_.add(newest);
}

void Load::open_batches(const Need& need) {
  std::vector<const Batch*> found;
  for (const Runbook* book : db_.runbooks.with<RunbooksByName>(need.text))
    for (const BatchStatus status : open_statuses)
      std::ranges::copy(
          db_.batches.after<BatchesByRunbook>(std::tie(book->id, status), need.other) | std::views::take(need.n),
          std::back_inserter(found));
  std::ranges::sort(found, {}, &Batch::id);
  batches_.add_page(found, need.n);
}

void Load::steps_ahead(const Need& need) {
  for (const StepExecution* step : db_.steps.with<StepsByPhase>(need.other, need.id))
    if (step->status != StepStatus::succeeded) steps_.add(step);
}

void Load::parked_steps(const Need& need) {
  std::int32_t left = need.n;
  for (const PhaseExecution* phase : db_.phases.with<PhasesByBatch>(need.id))
    for (const StepExecution* step : db_.steps.with<StepsParked>(phase->id)) {
      if (left-- <= 0) return;
      steps_.add(step);
    }
}

void Load::counts_of(const Need& need) {
  const auto first = db_.counts.lower_bound({need.id, need.other, "", 0, ""});
  for (auto at = first; at != db_.counts.end(); ++at) {
    if (at->second.batch_id != need.id || at->second.phase_execution_id != need.other) break;
    loaded_.counts.push_back(at->second);
  }
}

void Load::data_row(const Need& need) {
  const auto table = db_.data.find(need.text);
  if (table == db_.data.end()) return;
  const auto row = table->second.rows.find(need.key);
  if (row == table->second.rows.end() || !row->second.is_current) return;
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
  loaded_.data_rows.push_back({need.text, need.key, Json{(data.empty() ? "{" : data) + "}"}});
}

void Load::list(const Need& need) {
  switch (need.what) {
    case What::runbook_named: return runbooks_.add(db_.version_of(need.text, need.n));
    case What::latest_version: return runbooks_.add(db_.newest_of(need.text));
    case What::runbooks_of_table: return runbooks_.add_all(db_.runbooks.with<RunbooksByTable>(need.text));
    case What::batch_of_time: return batch_of_time(need);
    case What::open_batches: return open_batches(need);
    case What::phases_of: return phases_.add_all(db_.phases.with<PhasesByBatch>(need.id));
    case What::inits_of: return inits_.add_all(db_.inits.with<InitsByBatch>(need.id));
    case What::members_of:
      return members_.add_page(db_.members.after<MembersByBatch>(std::tuple(need.id), need.other), need.n);
    case What::failed_members_of:
      return members_.add_page(
          db_.members.after<MembersLeft>(std::tuple(need.id, MemberStatus::failed), need.other), need.n);
    case What::members_named: return members_.add_all(db_.members.with<MembersByKey>(need.id, need.text));
    case What::steps_of: return steps_.add_all(db_.steps.with<StepsByPhase>(need.other, need.id));
    case What::steps_ahead: return steps_ahead(need);
    case What::steps_of_member: return steps_.add_all(db_.steps_of_member(need.id));
    case What::parked_steps: return parked_steps(need);
    case What::cleanups_of_step: return cleanups_.add_all(db_.cleanups.with<CleanupsOfStep>(need.id));
    case What::cleanups_of_init: return cleanups_.add_all(db_.cleanups.with<CleanupsOfInit>(need.id));
    case What::removals_of: return cleanups_.add_all(db_.cleanups.with<RemovalsOfMember>(need.id));
    case What::open_cleanups_of: return cleanups_.add_all(db_.cleanups.with<CleanupsOpen>(need.id));
    case What::counts_of: return counts_of(need);
    case What::data_row: return data_row(need);
    default: return;
  }
}

void Load::by_id(const Need& need) {
  switch (need.what) {
    case What::runbook: return runbooks_.add(db_.runbooks.get(need.id));
    case What::batch: return batches_.add(db_.batches.get(need.id));
    case What::phase: return phases_.add(db_.phases.get(need.id));
    case What::init: return inits_.add(db_.inits.get(need.id));
    case What::member: return members_.add(db_.members.get(need.id));
    case What::step: return steps_.add(db_.steps.get(need.id));
    case What::cleanup: return cleanups_.add(db_.cleanups.get(need.id));
    default: return;
  }
}

template <class Row>
void add_waiting(std::vector<WaitingTask>& found, const auto& table, runbook::Kind kind,
                 const std::string& queue, std::size_t limit) {
  const auto rows = table.template with<JobsWaiting<Row>>(queue);
  for (const Row* row : rows | at_most(limit))
    found.push_back({.dispatched_at = row->queued_at.value_or(Time{}), .runbook_job = {kind, row->id}});
}

}  // namespace

runbook::Loaded RunbookTables::load(const std::vector<Need>& needs) const {
  const std::set<Need> asked(needs.begin(), needs.end());
  Load load(*this);
  for (const Need& need : asked) load.list(need);
  for (const Need& need : asked) load.by_id(need);
  return load.finish();
}

std::vector<WaitingTask> RunbookTables::waiting(const std::string& queue, std::size_t limit) const {
  std::vector<WaitingTask> found;
  add_waiting<StepExecution>(found, steps, runbook::Kind::step, queue, limit);
  add_waiting<InitExecution>(found, inits, runbook::Kind::init, queue, limit);
  add_waiting<CleanupExecution>(found, cleanups, runbook::Kind::cleanup, queue, limit);
  std::ranges::sort(found);
  return found;
}

// Looks through the tables, as the databases do.
std::vector<Ref> RunbookTables::jobs_without_timer(Ref after, std::size_t limit) const {
  std::vector<Ref> found;
  const auto add = [&](const auto& table, runbook::Kind kind) {
    for (const auto& [id, row] : table) {
      const bool is_out = row.status == StepStatus::dispatched || row.status == StepStatus::polling;
      if (found.size() < limit && Ref{kind, id} > after && is_out && !row.timer_due &&
          row.job_state == JobState::none)
        found.push_back({kind, id});
    }
  };
  add(steps, runbook::Kind::step);
  add(inits, runbook::Kind::init);
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
