// What a commit does to the tables: first everything that may be in its way is looked for, then it is done.
#include <algorithm>
#include <mutex>
#include <string>

#include "base/mutant.hpp"
#include "store/data_columns.hpp"
#include "store/memory/database.hpp"
#include "store/tables.hpp"

namespace baton::store::memory {
namespace {

std::unexpected<Error> exists(std::string_view table) {
  return fail(Code::conflict,
              "table " + std::string(table) + " has a row already that was to be inserted");
}

// --- checks

// All rows must be new, also among themselves.
template <class Row>
Result<> check_new(const auto& table, const std::vector<Row>& rows) {
  std::set<decltype(PrimaryKey<Row>::of(rows.front()))> seen;
  for (const Row& row : rows) {
    const auto key = PrimaryKey<Row>::of(row);
    if (table.contains(key) || (rows.size() > 1 && !seen.insert(key).second)) return exists(Table<Row>::name);
  }
  return {};
}

// The row as it is when the commit updates it: stored, or inserted by the commit itself.
template <class Row>
const Row* updated_row(const auto& table, const std::vector<Row>& rows_new, const Row& row) {
  const auto key = PrimaryKey<Row>::of(row);
  if (const Row* stored = table.get(key)) return stored;
  const auto is_it = [&](const Row& other) { return PrimaryKey<Row>::of(other) == key; };
  const auto found = std::ranges::find_if(rows_new, is_it);
  return found == rows_new.end() ? nullptr : &*found;
}

template <class Row>
Result<> check_rows(const auto& table, const std::vector<Row>& rows_new,
                    const std::vector<Row>& rows_changed) {
  TRY(check_new(table, rows_new));
  for (const Row& row : rows_changed)
    if (updated_row(table, rows_new, row) == nullptr)
      return fail(Code::conflict,
                  "table " + std::string(Table<Row>::name) + " lacks a row that was to be updated");
  return {};
}

// Rows that others write too: an update finds its row in the status that was loaded.
template <class Row>
Result<> check_rows(const auto& table, const std::vector<Row>& rows_new,
                    const std::vector<runbook::Update<Row>>& rows_changed) {
  TRY(check_new(table, rows_new));
  for (const auto& [before, row] : rows_changed) {
    if (differing_columns(before, row) == 0) continue;
    const Row* stored = updated_row(table, rows_new, row);
    bool fits = stored != nullptr;
    if constexpr (requires { row.status; }) fits = fits && stored->status == before.status;
    if (!fits)
      return fail(Code::conflict, "a row of table " + std::string(Table<Row>::name) +
                                      " is gone, or another program has changed its status meanwhile");
  }
  return {};
}

Result<> check(const RunbookTables& db, const runbook::Writes& w) {
  TRY(check_rows(db.runbooks, w.runbooks_new, w.runbooks_changed));
  TRY(check_rows(db.batches, w.batches_new, w.batches_changed));
  TRY(check_rows(db.members, w.members_new, w.members_changed));
  TRY(check_rows(db.phases, w.phases_new, w.phases_changed));
  TRY(check_rows(db.steps, w.steps_new, w.steps_changed));
  TRY(check_rows(db.inits, w.inits_new, w.inits_changed));
  TRY(check_rows(db.cleanups, w.cleanups_new, w.cleanups_changed));
  TRY(check_rows(db.holds, w.holds_new, w.holds_changed));
  TRY(check_new(db.events, w.events_new));
  std::set<std::pair<std::string, std::int32_t>> versions;
  for (const runbook::Runbook& row : w.runbooks_new)
    if (!db.runbooks.with<RunbooksByName>(row.name, row.version).empty() ||
        !versions.emplace(row.name, row.version).second)
      return exists(Table<runbook::Runbook>::name);
  return {};
}

Result<> check(const CallTables& db, const call::Writes& w) {
  TRY(check_new(db.call_events, w.events_new));
  TRY(check_new(db.calls, w.calls_new));
  TRY(check_new(db.call_requests, w.requests_new));
  return check_new(db.call_keys, w.keys_new);
}

Result<> check(const WorkflowTables& db, const WriteSet& w) {
  TRY(check_rows(db.jobs, w.jobs_new, w.jobs_changed));
  TRY(check_rows(db.nodes, w.nodes_new, w.nodes_changed));
  TRY(check_new(db.task_results, w.task_results_new));
  TRY(check_new(db.events, w.events_new));
  TRY(check_new(db.workflows, w.workflows_new));
  TRY(check_new(db.idempotency_keys, w.idempotency_keys_new));
  TRY(check_new(db.tags, w.tags_new));
  return check_new(db.logs, w.logs_new);
}

// --- writes that were checked

void insert(auto& table, const auto& rows) {
  for (const auto& row : rows) table.insert(row);
}

template <class Row>
void apply(auto& table, const std::vector<Row>& rows_new, const std::vector<Row>& rows_changed) {
  insert(table, rows_new);
  for (const Row& row : rows_changed)
    table.change(PrimaryKey<Row>::of(row), [&](Row& stored) { copy_live(row, stored); });
}

template <class Row>
void apply(auto& table, const std::vector<Row>& rows_new,
           const std::vector<runbook::Update<Row>>& rows_changed) {
  insert(table, rows_new);
  for (const auto& [before, row] : rows_changed) {
    ColumnSet set = differing_columns(before, row);
    if (MUTANT(whole_row_written)) set |= differing_columns(Row{}, row);
    if (set != 0) table.change(PrimaryKey<Row>::of(row), [&](Row& stored) { copy_columns(row, stored, set); });
  }
}

void apply(RunbookTables& db, const runbook::Writes& w) {
  apply(db.runbooks, w.runbooks_new, w.runbooks_changed);
  apply(db.batches, w.batches_new, w.batches_changed);
  apply(db.members, w.members_new, w.members_changed);
  apply(db.phases, w.phases_new, w.phases_changed);
  apply(db.steps, w.steps_new, w.steps_changed);
  apply(db.inits, w.inits_new, w.inits_changed);
  apply(db.cleanups, w.cleanups_new, w.cleanups_changed);
  apply(db.holds, w.holds_new, w.holds_changed);
  for (const runbook::Count& count : w.counts)
    if (!db.counts.insert(count))
      db.counts.change(PrimaryKey<runbook::Count>::of(count), [&](auto& stored) { stored.n = count.n; });
  insert(db.events, w.events_new);
}

void apply(CallTables& db, const call::Writes& w) {
  insert(db.call_events, w.events_new);
  insert(db.calls, w.calls_new);
  for (const call::Call& row : w.calls_changed)  // one that is gone stays so
    if (db.calls.contains(row.key())) db.calls.change(row.key(), [&](call::Call& stored) { copy_live(row, stored); });
  insert(db.call_requests, w.requests_new);
  for (const call::Call& row : w.calls_rebuilt) {  // whole, whether there is a row or not
    db.calls.erase(row.key());
    db.calls.insert(row);
  }
  insert(db.call_tags, w.tags_new);  // one may be there
  insert(db.call_keys, w.keys_new);
}

void apply(WorkflowTables& db, const WriteSet& w) {
  apply(db.jobs, w.jobs_new, w.jobs_changed);
  apply(db.nodes, w.nodes_new, w.nodes_changed);
  insert(db.task_results, w.task_results_new);
  insert(db.events, w.events_new);
  insert(db.workflows, w.workflows_new);
  insert(db.idempotency_keys, w.idempotency_keys_new);
  insert(db.tags, w.tags_new);
  insert(db.logs, w.logs_new);
}

std::int64_t largest_id(const RunbookTables& db, runbook::Table table) {
  const auto last = [](const auto& rows) { return rows.empty() ? 0 : rows.rbegin()->first; };
  switch (table) {
    case runbook::Table::runbooks: return last(db.runbooks);
    case runbook::Table::batches: return last(db.batches);
    case runbook::Table::batch_members: return last(db.members);
    case runbook::Table::phase_executions: return last(db.phases);
    case runbook::Table::step_executions: return last(db.steps);
    case runbook::Table::init_executions: return last(db.inits);
    case runbook::Table::cleanup_executions: return last(db.cleanups);
    case runbook::Table::holds: return last(db.holds);
  }
  return 0;
}

}  // namespace

Result<> write(Database& database, const WriteSet& writes) {
  const WorkflowTables& workflows = database;
  const CallTables& calls = database;
  TRY(check(workflows, writes));
  TRY(check(database.runbooks, writes.runbooks));
  TRY(check(calls, writes.calls));
  TRY(database.bus.check(writes.messages));
  apply(static_cast<WorkflowTables&>(database), writes);
  apply(database.runbooks, writes.runbooks);
  apply(static_cast<CallTables&>(database), writes.calls);
  database.bus.apply(writes.messages);
  for (const Timer& timer : writes.timers_gone) database.timers.erase(timer);
  database.timers.insert(writes.timers_new.begin(), writes.timers_new.end());
  return {};
}

Result<> write_beside_journal(Database& database, const WriteSet& writes) {
  TRY(check(database.runbooks, writes.runbooks));
  apply(database.runbooks, writes.runbooks);
  return {};
}

std::vector<std::int64_t> RunbookTables::reserve_ids(runbook::Table table, std::size_t count) {
  std::int64_t& last = last_ids[static_cast<std::size_t>(table)];
  last = std::max(last, largest_id(*this, table));
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) id = ++last;
  return ids;
}

Result<> RunbookTables::write_data(const runbook::DataRows& rows) {
  TRY(check_data_table_name(rows.table));
  const auto names = data_column_names(rows.columns);
  std::vector<Cells> cells;
  for (const runbook::DataRow& row : rows.rows) {
    TRY_ASSIGN(auto of_row, cells_of(row, rows.columns));
    cells.push_back(std::move(of_row));
  }
  DataTable& table = data[rows.table];
  for (const std::string& name : names)
    if (std::ranges::find(table.columns, name) == table.columns.end()) table.columns.push_back(name);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const runbook::DataRow& row = rows.rows[i];
    const auto [at, is_new] = table.rows.try_emplace(row.member_key);
    if (is_new) at->second.first_seen_at = rows.seen_at;
    at->second.cells.clear();  // the row is replaced, not added to
    for (std::size_t c = 0; c < names.size(); ++c) at->second.cells[names[c]] = std::move(cells[i][c]);
    at->second.batch_time = row.batch_time;
    at->second.last_seen_at = rows.seen_at;
    at->second.is_current = true;
  }
  if (!rows.finish) return {};
  for (auto& [key, row] : table.rows) row.is_current = row.is_current && row.last_seen_at >= rows.seen_at;
  return {};
}

}  // namespace baton::store::memory
