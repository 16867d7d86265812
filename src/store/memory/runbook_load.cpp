#include "tests/support/memory_runbooks.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <unordered_map>

#include "store/tables.hpp"

namespace baton::support {
namespace {

using namespace runbook;
using What = Need::What;

// As a load gives it: without outcomes.
template <class Row>
Row as_loaded(Row row) {
  store::for_each_column<Row>([&](const auto& column) {
    if constexpr (requires { (row.*column.member).reset(); }) {
      if (column.kind == store::Kind::outcome) (row.*column.member).reset();
    }
  });
  return row;
}

bool is_open(const Batch& batch) { return !is_terminal(batch.status); }

// One load: rows are added once, in the order in which they are first found.
class Load {
 public:
  explicit Load(const MemoryRunbooks& db) : db_(db) {}

  void list(const Need& need);
  void by_id(const Need& need);
  [[nodiscard]] runbook::Loaded finish() { return std::move(loaded_); }

 private:
  template <class Row>
  struct Found {
    std::vector<Row>& rows;
    std::set<std::int64_t> ids;
    void add(const Row& row) {
      if (ids.insert(row.id).second) rows.push_back(as_loaded(row));
    }
  };

  // Those that match, by `order`, at most so many.
  template <class Row>
  void select(const std::map<std::int64_t, Row>& table, Found<Row>& found,
              const std::function<bool(const Row&)>& matches, auto order, std::int32_t limit = -1) {
    std::vector<const Row*> rows;
    for (const auto& [id, row] : table)
      if (matches(row)) rows.push_back(&row);
    std::ranges::stable_sort(rows, {}, [&](const Row* row) { return order(*row); });
    if (limit >= 0 && rows.size() > static_cast<std::size_t>(limit))
      rows.resize(static_cast<std::size_t>(limit));
    for (const Row* row : rows) found.add(*row);
  }

  template <class Row>
  static void find(const std::map<std::int64_t, Row>& table, Found<Row>& found, std::int64_t id) {
    if (const auto at = table.find(id); at != table.end()) found.add(at->second);
  }

  void named(const Need& need);
  void batches_of(const Need& need);
  void members_of(const Need& need);
  void steps_of(const Need& need);
  void cleanups_of(const Need& need);
  void counts_of(const Need& need);
  void data_row(const Need& need);

  const MemoryRunbooks& db_;
  runbook::Loaded loaded_;
  Found<Runbook> runbooks_{loaded_.runbooks, {}};
  Found<Batch> batches_{loaded_.batches, {}};
  Found<Member> members_{loaded_.members, {}};
  Found<PhaseExecution> phases_{loaded_.phases, {}};
  Found<StepExecution> steps_{loaded_.steps, {}};
  Found<InitExecution> inits_{loaded_.inits, {}};
  Found<CleanupExecution> cleanups_{loaded_.cleanups, {}};
  std::optional<std::unordered_map<std::int64_t, std::vector<const StepExecution*>>> steps_by_member_;
};

constexpr auto id_of = [](const auto& row) { return row.id; };

void Load::named(const Need& need) {
  const bool newest = need.what == What::latest_version;
  const Runbook* best = nullptr;
  for (const auto& [id, row] : db_.runbooks) {
    if (row.name != need.text) continue;
    if (!newest && need.n != 0) {
      if (row.version == need.n) best = &row;
      continue;
    }
    const auto rank = [&](const Runbook& r) { return std::pair(!newest && r.is_active, r.version); };
    if (best == nullptr || rank(*best) < rank(row)) best = &row;
  }
  if (best != nullptr) runbooks_.add(*best);
}

void Load::batches_of(const Need& need) {
  const auto of_name = [&](const Batch& batch) {
    const auto runbook = db_.runbooks.find(batch.runbook_id);
    return runbook != db_.runbooks.end() && runbook->second.name == need.text && is_open(batch);
  };
  if (need.what == What::open_batches) {
    return select<Batch>(
        db_.batches, batches_, [&](const Batch& b) { return of_name(b) && b.id > need.other; }, id_of,
        need.n);
  }
  select<Batch>(
      db_.batches, batches_,
      [&](const Batch& b) { return of_name(b) && b.batch_start_time == from_millis(need.other); },
      [](const Batch& b) { return -b.id; }, 1);
}

void Load::members_of(const Need& need) {
  const bool named = need.what == What::members_named;
  const bool failed = need.what == What::failed_members_of;
  select<Member>(
      db_.members, members_,
      [&](const Member& m) {
        if (m.batch_id != need.id) return false;
        return named ? m.member_key == need.text
                     : m.id > need.other && (!failed || m.status == MemberStatus::failed);
      },
      id_of, named ? -1 : need.n);
}

void Load::steps_of(const Need& need) {
  if (need.what == What::parked_steps) {
    const auto parked = [&](const StepExecution& s) {
      const auto phase = db_.phases.find(s.phase_execution_id);
      return s.job_state == JobState::parked && phase != db_.phases.end() && phase->second.batch_id == need.id;
    };
    const auto order = [](const StepExecution& s) { return std::pair(s.phase_execution_id, s.id); };
    return select<StepExecution>(db_.steps, steps_, parked, order, need.n);
  }
  if (!steps_by_member_) {
    steps_by_member_.emplace();
    for (const auto& [id, step] : db_.steps) (*steps_by_member_)[step.batch_member_id].push_back(&step);
  }
  const auto found = steps_by_member_->find(need.id);
  if (found == steps_by_member_->end()) return;
  auto steps = found->second;
  if (need.what != What::steps_of_member)
    std::erase_if(steps, [&](const StepExecution* s) { return s->phase_execution_id != need.other; });
  if (need.what == What::steps_ahead)
    std::erase_if(steps, [](const StepExecution* s) { return s->status == StepStatus::succeeded; });
  std::ranges::stable_sort(
      steps, {}, [](const StepExecution* s) { return std::pair(s->phase_execution_id, s->step_index); });
  for (const StepExecution* step : steps) steps_.add(*step);
}

void Load::cleanups_of(const Need& need) {
  select<CleanupExecution>(
      db_.cleanups, cleanups_,
      [&](const CleanupExecution& c) {
        switch (need.what) {
          case What::cleanups_of_step: return c.caused_by_step_id == need.id;
          case What::cleanups_of_init: return c.caused_by_init_id == need.id;
          case What::removals_of: return c.kind == CleanupKind::removal && c.batch_member_id == need.id;
          default: return c.batch_id == need.id && !is_terminal(c.status);
        }
      },
      id_of);
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
  const auto row = table->second.find(need.key);
  if (row == table->second.end() || !row->second.is_current) return;
  loaded_.data_rows.push_back({need.text, need.key, row->second.row.data});
}

void Load::list(const Need& need) {
  switch (need.what) {
    case What::runbook_named:
    case What::latest_version: return named(need);
    case What::runbooks_of_table:
      return select<Runbook>(
          db_.runbooks, runbooks_, [&](const Runbook& r) { return r.data_table_name == need.text; }, id_of);
    case What::batch_of_time:
    case What::open_batches: return batches_of(need);
    case What::phases_of:
      return select<PhaseExecution>(
          db_.phases, phases_, [&](const PhaseExecution& p) { return p.batch_id == need.id; }, id_of);
    case What::inits_of:
      return select<InitExecution>(
          db_.inits, inits_, [&](const InitExecution& i) { return i.batch_id == need.id; },
          [](const InitExecution& i) { return std::pair(i.runbook_version, i.step_index); });
    case What::members_of:
    case What::failed_members_of:
    case What::members_named: return members_of(need);
    case What::steps_of:
    case What::steps_ahead:
    case What::steps_of_member:
    case What::parked_steps: return steps_of(need);
    case What::cleanups_of_step:
    case What::cleanups_of_init:
    case What::removals_of:
    case What::open_cleanups_of: return cleanups_of(need);
    case What::counts_of: return counts_of(need);
    case What::data_row: return data_row(need);
    default: return;
  }
}

void Load::by_id(const Need& need) {
  switch (need.what) {
    case What::runbook: return find(db_.runbooks, runbooks_, need.id);
    case What::batch: return find(db_.batches, batches_, need.id);
    case What::phase: return find(db_.phases, phases_, need.id);
    case What::init: return find(db_.inits, inits_, need.id);
    case What::member: return find(db_.members, members_, need.id);
    case What::step: return find(db_.steps, steps_, need.id);
    case What::cleanup: return find(db_.cleanups, cleanups_, need.id);
    default: return;
  }
}

// Inserts must be new, also among themselves; an update finds its row, in the status that it expects.
template <class Row>
Result<> check_rows(const std::map<std::int64_t, Row>& table, const std::vector<Row>& rows_new,
                    const std::vector<runbook::Changed<Row>>& rows_changed) {
  std::map<std::int64_t, const Row*> inserted;
  const std::string name(store::Table<Row>::name);
  for (const Row& row : rows_new) {
    if (table.contains(row.id) || !inserted.emplace(row.id, &row).second)
      return fail(Code::conflict, "table " + name + " has row " + std::to_string(row.id) + " already");
  }
  for (const auto& [before, row] : rows_changed) {
    if (store::differing_columns(before, row) == 0) continue;
    const auto at = table.find(row.id);
    const auto is_new = inserted.find(row.id);
    const Row* stored = at != table.end() ? &at->second : is_new != inserted.end() ? is_new->second : nullptr;
    bool found = stored != nullptr;
    if constexpr (requires { row.status; }) found = found && stored->status == before.status;
    if (!found)
      return fail(Code::conflict,
                  "row " + std::to_string(row.id) + " of table " + name + " is gone or has another status");
  }
  return {};
}

template <class Row>
void apply_rows(std::map<std::int64_t, Row>& table, const std::vector<Row>& rows_new,
                const std::vector<runbook::Changed<Row>>& rows_changed) {
  for (const Row& row : rows_new) table.emplace(row.id, row);
  for (const auto& [before, row] : rows_changed)
    if (const auto set = store::differing_columns(before, row)) store::copy_columns(row, table.at(row.id), set);
}

// Columns hold text: what is neither text nor null is stored as its JSON.
Json as_stored(const Json& data) {
  boost::json::object stored;
  const auto parsed = boost::json::parse(data.text);
  for (const auto& [name, value] : parsed.as_object()) {
    if (value.is_string() || value.is_null())
      stored[name] = value;
    else
      stored[name] = boost::json::serialize(value);
  }
  return {boost::json::serialize(stored)};
}

std::int64_t largest_id(const MemoryRunbooks& db, Table table) {
  const auto last = [](const auto& rows) { return rows.empty() ? 0 : rows.rbegin()->first; };
  switch (table) {
    case Table::runbooks: return last(db.runbooks);
    case Table::batches: return last(db.batches);
    case Table::batch_members: return last(db.members);
    case Table::phase_executions: return last(db.phases);
    case Table::step_executions: return last(db.steps);
    case Table::init_executions: return last(db.inits);
    case Table::cleanup_executions: return last(db.cleanups);
  }
  return 0;
}

}  // namespace

runbook::Loaded MemoryRunbooks::load(const std::vector<Need>& needs) const {
  const std::set<Need> asked(needs.begin(), needs.end());
  Load load(*this);
  for (const Need& need : asked) load.list(need);
  for (const Need& need : asked) load.by_id(need);
  return load.finish();
}

std::vector<std::int64_t> MemoryRunbooks::reserve_ids(Table table, std::size_t count) {
  std::int64_t& last = last_ids[static_cast<std::size_t>(table)];
  last = std::max(last, largest_id(*this, table));
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) id = ++last;
  return ids;
}

void MemoryRunbooks::write_data(const DataRows& rows) {
  auto& table = data[rows.table];
  for (const DataRow& row : rows.rows) {
    const auto [at, is_new] = table.try_emplace(row.member_key);
    if (is_new) at->second.first_seen_at = rows.seen_at;
    at->second.row = {row.member_key, row.batch_time, as_stored(row.data)};
    at->second.last_seen_at = rows.seen_at;
    at->second.is_current = true;
  }
  if (!rows.finish) return;
  for (auto& [key, row] : table) row.is_current = row.is_current && row.last_seen_at >= rows.seen_at;
}

std::vector<std::int64_t> MemoryRunbooks::phases_without_timer(std::size_t limit) const {
  std::vector<std::int64_t> found;
  for (const auto& [id, phase] : phases) {
    if (found.size() < limit && phase.status == PhaseStatus::pending && !phase.timer_due && phase.due_at)
      found.push_back(id);
  }
  return found;
}

std::vector<Ref> MemoryRunbooks::jobs_without_timer(Ref after, std::size_t limit) const {
  std::vector<Ref> found;
  const auto add = [&](const auto& table, runbook::Kind kind) {
    for (const auto& [id, row] : table) {
      const bool is_out = row.status == StepStatus::dispatched || row.status == StepStatus::polling;
      if (found.size() < limit && Ref{kind, id} > after && is_out && !row.timer_due && row.job_state == JobState::none)
        found.push_back({kind, id});
    }
  };
  add(steps, runbook::Kind::step);
  add(inits, runbook::Kind::init);
  return found;
}

std::vector<WaitingTask> MemoryRunbooks::waiting(const std::string& queue) const {
  std::vector<WaitingTask> found;
  const auto add = [&](const auto& table, runbook::Kind kind) {
    for (const auto& [id, row] : table) {
      if (row.job_state != JobState::queued || row.worker_id != queue) continue;
      found.push_back({.dispatched_at = row.queued_at.value_or(Time{}), .runbook_job = {kind, id}});
    }
  };
  add(steps, runbook::Kind::step);
  add(inits, runbook::Kind::init);
  add(cleanups, runbook::Kind::cleanup);
  std::ranges::sort(found);
  return found;
}

Result<> MemoryRunbooks::check(const Writes& w) const {
  TRY(check_rows(runbooks, w.runbooks_new, w.runbooks_changed));
  TRY(check_rows(batches, w.batches_new, w.batches_changed));
  TRY(check_rows(members, w.members_new, w.members_changed));
  TRY(check_rows(phases, w.phases_new, w.phases_changed));
  TRY(check_rows(steps, w.steps_new, w.steps_changed));
  TRY(check_rows(inits, w.inits_new, w.inits_changed));
  TRY(check_rows(cleanups, w.cleanups_new, w.cleanups_changed));
  const std::set<runbook::Timer> gone(w.timers_gone.begin(), w.timers_gone.end());
  std::set<runbook::Timer> seen;
  for (const runbook::Timer& timer : w.timers_new) {
    if ((timers.contains(timer) && !gone.contains(timer)) || !seen.insert(timer).second)
      return fail(Code::conflict, "a timer that was to be inserted exists already");
  }
  for (const Runbook& row : w.runbooks_new) {
    for (const auto& [id, known] : runbooks)
      if (known.name == row.name && known.version == row.version)
        return fail(Code::conflict, "this version of the runbook exists already");
  }
  std::set<std::pair<std::int64_t, std::int64_t>> keys;
  for (const BatchEvent& event : w.events_new) {
    if (events.contains({event.batch_id, event.event_id}) ||
        !keys.emplace(event.batch_id, event.event_id).second)
      return fail(Code::conflict, "an event that was to be inserted exists already");
  }
  return {};
}

void MemoryRunbooks::apply(const Writes& w) {
  apply_rows(runbooks, w.runbooks_new, w.runbooks_changed);
  apply_rows(batches, w.batches_new, w.batches_changed);
  apply_rows(members, w.members_new, w.members_changed);
  apply_rows(phases, w.phases_new, w.phases_changed);
  apply_rows(steps, w.steps_new, w.steps_changed);
  apply_rows(inits, w.inits_new, w.inits_changed);
  apply_rows(cleanups, w.cleanups_new, w.cleanups_changed);
  for (const Count& count : w.counts) {
    counts[{count.batch_id, count.phase_execution_id, count.lane, count.step_index, count.status}] = count;
  }
  for (const runbook::Timer& timer : w.timers_gone) timers.erase(timer);
  timers.insert(w.timers_new.begin(), w.timers_new.end());
  for (const BatchEvent& event : w.events_new)
    events.emplace(std::pair(event.batch_id, event.event_id), event);
}

}  // namespace baton::support
