#include "store/sql_runbooks.hpp"

#include <algorithm>
#include <array>

#include "store/changes.hpp"

namespace baton::store {

using namespace runbook;
using What = Need::What;
namespace {

constexpr auto number = Type::integer;
constexpr auto text = Type::text;

template <class Row>
struct WriteStatements {
  explicit WriteStatements(Dialect d)
      : insert(insert_statement<Row>(d)), by_id(select_statement<Row>(d, Columns::deciding)), updates(d) {}
  Statement insert, by_id;
  ChangeStatements<Row> updates;

  void add(std::vector<Call>& calls, const std::vector<Row>& rows_new,
           const std::vector<Changed<Row>>& rows_changed) {
    add_write(calls, insert, rows_new, Columns::all);
    updates.add(calls, rows_changed);
  }
};

// A statement that takes one set at a time in both dialects, because it has a limit for each.
template <class Row>
Statement page(std::string_view from, std::string_view rest, std::vector<Type> parameters) {
  return {"SELECT " + names<Row>(Columns::deciding, "t.") + " FROM " + std::string(from) + " AS t " +
              std::string(rest),
          std::move(parameters)};
}

template <class Row>
Statement page(std::string_view rest, std::vector<Type> parameters) {
  return page<Row>(Table<Row>::name, rest, std::move(parameters));
}

Statement waiting_statement(std::string_view table) {
  return {"SELECT id,queued_at FROM " + std::string(table) +
              " WHERE job_state='queued' AND worker_id=?1 ORDER BY queued_at,id LIMIT ?2",
          {text, number}};
}

Statement untimed_statement(std::string_view table) {
  return {"SELECT id FROM " + std::string(table) +
              " WHERE id>?1 AND status IN ('dispatched','polling') AND timer_due IS NULL AND coalesce(job_state,'none')='none'"
              " ORDER BY id LIMIT ?2",
          {number, number}};
}

constexpr std::array<std::string_view, 7> table_names = {
    "runbooks",        "batches",         "batch_members",     "phase_executions",
    "step_executions", "init_executions", "cleanup_executions"};
static_assert(table_names.size() == static_cast<std::size_t>(runbook::Table::cleanup_executions) + 1);

// SQLite's AUTOINCREMENT takes the larger of sqlite_sequence and what is in the table, and so do we. The
// answer is the last id of the range.
Statement reserve_statement(Dialect dialect, const std::string& table) {
  if (dialect == Dialect::postgres)
    return {"SELECT nextval(s.name) FROM (SELECT pg_get_serial_sequence('" + table +
                "','id')::regclass AS name OFFSET 0) AS s, generate_series(1,?1)",
            {number}};
  return {"UPDATE sqlite_sequence SET seq=max(seq,(SELECT coalesce(max(id),0) FROM " + table +
              "))+?1 WHERE name='" + table + "' RETURNING seq",
          {number}};
}

// Before the first row of a table there is no row in sqlite_sequence.
Statement begin_statement(const std::string& table) {
  return {"INSERT INTO sqlite_sequence(name,seq) SELECT '" + table +
              "',0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name='" + table + "')",
          {}};
}

}  // namespace

struct RunbookStatements {
  explicit RunbookStatements(Dialect d)
      : dialect(d),
        runbooks(d),
        batches(d),
        members(d),
        phases(d),
        steps(d),
        inits(d),
        cleanups(d),
        count_upsert(upsert_statement<Count>(d)),
        event_insert(insert_statement<BatchEvent>(d)),
        runbook_version(select_by<Runbook>(d, Columns::deciding, {{"name", text}, {"version", number}})),
        phases_of(select_by<PhaseExecution>(d, Columns::deciding, {{"batch_id", number}}, "", "t.id")),
        inits_of(select_by<InitExecution>(d, Columns::deciding, {{"batch_id", number}}, "",
                                          "t.batch_id,t.runbook_version,t.step_index")),
        members_named(select_by<Member>(d, Columns::deciding, {{"batch_id", number}, {"member_key", text}},
                                        "", "t.batch_id,t.member_key,t.id")),
        steps_of(select_by<StepExecution>(d, Columns::deciding,
                                          {{"batch_member_id", number}, {"phase_execution_id", number}}, "",
                                          "t.phase_execution_id,t.batch_member_id,t.step_index,t.id")),
        steps_ahead(select_by<StepExecution>(d, Columns::deciding,
                                             {{"batch_member_id", number}, {"phase_execution_id", number}},
                                             status_word(d, "t.status") + "<>'succeeded'",
                                             "t.phase_execution_id,t.batch_member_id,t.step_index,t.id")),
        steps_of_member{"SELECT " + names<StepExecution>(Columns::deciding, "t.") + from_steps_of_members(d) +
                            " ORDER BY p.id,t.step_index",
                        {number},
                        true},
        cleanups_of_step(cleanups_by(d, "caused_by_step_id")),
        cleanups_of_init(cleanups_by(d, "caused_by_init_id")),
        removals_of(cleanups_by(d, "batch_member_id", "t.kind='removal'")),
        open_cleanups_of(cleanups_by(d, "batch_id", "t.status IN ('pending','dispatched','polling')")),
        counts_of(select_by<Count>(d, Columns::all, {{"batch_id", number}, {"phase_execution_id", number}})) {
    for (std::size_t i = 0; i < table_names.size(); ++i) {
      reserve[i] = reserve_statement(d, std::string(table_names[i]));
      begin[i] = begin_statement(std::string(table_names[i]));
    }
  }

  static Statement cleanups_by(Dialect d, std::string_view column, std::string_view condition = "") {
    return select_by<CleanupExecution>(d, Columns::deciding, {{column, number}}, condition,
                                       "t." + std::string(column) + ",t.id");
  }

  Dialect dialect;
  const std::string status = status_word(dialect, "t.status");
  WriteStatements<Runbook> runbooks;
  WriteStatements<Batch> batches;
  WriteStatements<Member> members;
  WriteStatements<PhaseExecution> phases;
  WriteStatements<StepExecution> steps;
  WriteStatements<InitExecution> inits;
  WriteStatements<CleanupExecution> cleanups;
  Statement count_upsert, event_insert;
  Statement runbook_version, phases_of, inits_of, members_named, steps_of, steps_ahead, steps_of_member;
  Statement cleanups_of_step, cleanups_of_init, removals_of, open_cleanups_of, counts_of;

  // The active version, else the newest.
  Statement runbook_active = page<Runbook>(
      "WHERE t.id=coalesce((SELECT id FROM runbooks WHERE name=?1 AND is_active=1 ORDER BY version DESC LIMIT "
      "1),"
      "(SELECT id FROM runbooks WHERE name=?1 ORDER BY version DESC LIMIT 1))",
      {text});
  Statement runbook_latest = page<Runbook>(
      "WHERE t.id=(SELECT id FROM runbooks WHERE name=?1 ORDER BY version DESC LIMIT 1)", {text});
  Statement runbooks_of_table = page<Runbook>("WHERE t.data_table_name=?1", {text});
  // The range is wider than it must be: others write times with other separators and offsets, and as text
  // those do not sort by time. Which batch has the very T is seen when it is read.
  Statement batches_of_time{
      "SELECT " + names<Batch>(Columns::deciding, "t.") +
          ",r.name FROM runbooks AS r CROSS JOIN batches AS t WHERE r.name=?1 AND t.runbook_id=r.id"
          " AND t.batch_start_time>?2 AND t.batch_start_time<?3 AND " + status +
          " IN ('detected','init_dispatched','active')",
      {text, Type::time, Type::time}};
  Statement open_batches = page<Batch>(
      "runbooks AS r CROSS JOIN batches",
      "WHERE r.name=?1 AND t.runbook_id=r.id AND " + status +
          " IN ('detected','init_dispatched','active') AND t.id>?2 ORDER BY t.id LIMIT ?3",
      {text, number, number});
  Statement members_of =
      page<Member>("WHERE t.batch_id=?1 AND t.id>?2 ORDER BY t.id LIMIT ?3", {number, number, number});
  Statement failed_members_of = page<Member>(
      "WHERE t.batch_id=?1 AND " + status + "='failed' AND " + status +
          "<>'active' AND t.id>?2 ORDER BY t.id LIMIT ?3",
      {number, number, number});
  Statement parked_steps =
      page<StepExecution>("phase_executions AS p CROSS JOIN step_executions",
                          "WHERE p.batch_id=?1 AND t.phase_execution_id=p.id AND t.job_state='parked'"
                          " ORDER BY p.id,t.id LIMIT ?2",
                          {number, number});

  Statement waiting_steps = waiting_statement("step_executions");
  Statement waiting_inits = waiting_statement("init_executions");
  Statement waiting_cleanups = waiting_statement("cleanup_executions");
  Statement untimed{
      "SELECT id FROM phase_executions WHERE " + status_word(dialect, "status") +
          "='pending' AND timer_due IS NULL AND due_at IS NOT NULL ORDER BY id LIMIT ?1",
      {number}};
  Statement untimed_steps = untimed_statement("step_executions");
  Statement untimed_inits = untimed_statement("init_executions");
  std::array<Statement, table_names.size()> reserve, begin;
};

SqlRunbooks::SqlRunbooks(Dialect dialect) : sql_(std::make_unique<RunbookStatements>(dialect)) {}
SqlRunbooks::~SqlRunbooks() = default;

const Statement& SqlRunbooks::phases_without_timer() const { return sql_->untimed; }
const Statement& SqlRunbooks::jobs_without_timer(runbook::Kind kind) const {
  return kind == runbook::Kind::step ? sql_->untimed_steps : sql_->untimed_inits;
}
const Statement& SqlRunbooks::reserve_ids(runbook::Table table) const {
  return sql_->reserve[static_cast<std::size_t>(table)];
}
const Statement& SqlRunbooks::begin_sequence(runbook::Table table) const {
  return sql_->begin[static_cast<std::size_t>(table)];
}

void SqlRunbooks::add_writes(std::vector<Call>& calls, const Writes& w) {
  sql_->runbooks.add(calls, w.runbooks_new, w.runbooks_changed);
  sql_->batches.add(calls, w.batches_new, w.batches_changed);
  sql_->members.add(calls, w.members_new, w.members_changed);
  sql_->phases.add(calls, w.phases_new, w.phases_changed);
  sql_->steps.add(calls, w.steps_new, w.steps_changed);
  sql_->inits.add(calls, w.inits_new, w.inits_changed);
  sql_->cleanups.add(calls, w.cleanups_new, w.cleanups_changed);
  add_write(calls, sql_->count_upsert, w.counts, Columns::all);
  add_write(calls, sql_->event_insert, w.events_new, Columns::all);
}

void SqlRunbooks::add_waiting(std::vector<Call>& calls, const std::string& queue, std::size_t limit,
                              std::vector<WaitingTask>& out) const {
  const auto add = [&](const Statement& statement, runbook::Kind kind) {
    const auto take = [&out, kind](const RowView& row) -> Result<> {
      WaitingTask task{.runbook_job = {kind, row.integer(0)}};
      if (!row.is_null(1)) (void)decode(row, 1, task.dispatched_at);  // what is unreadable is found out when it is given
      out.push_back(std::move(task));
      return {};
    };
    calls.push_back(
        {&statement, 1, constant({std::string_view(queue), static_cast<std::int64_t>(limit)}), take, {}});
  };
  add(sql_->waiting_steps, runbook::Kind::step);
  add(sql_->waiting_inits, runbook::Kind::init);
  add(sql_->waiting_cleanups, runbook::Kind::cleanup);
}

// --- loading
// --------------------------------------------------------------------------------------------------------------------------

namespace {

void by_id(const Need& n, std::span<Value> out) { out[0] = n.id; }
void by_id_and_other(const Need& n, std::span<Value> out) { out[0] = n.id, out[1] = n.other; }
void by_id_page(const Need& n, std::span<Value> out) {
  out[0] = n.id, out[1] = n.other, out[2] = std::int64_t{n.n};
}
void by_id_and_text(const Need& n, std::span<Value> out) { out[0] = n.id, out[1] = std::string_view(n.text); }
void by_id_and_limit(const Need& n, std::span<Value> out) { out[0] = n.id, out[1] = std::int64_t{n.n}; }
void by_text(const Need& n, std::span<Value> out) { out[0] = std::string_view(n.text); }
void by_text_and_version(const Need& n, std::span<Value> out) {
  out[0] = std::string_view(n.text), out[1] = std::int64_t{n.n};
}
void by_text_page(const Need& n, std::span<Value> out) {
  out[0] = std::string_view(n.text), out[1] = n.other, out[2] = std::int64_t{n.n};
}
// Two days around T hold it whatever its offset is.
void by_text_and_days(const Need& n, std::span<Value> out) {
  using std::chrono::days;
  const Time midnight = std::chrono::floor<days>(from_millis(n.other));
  out[0] = std::string_view(n.text), out[1] = Time{midnight - days{2}}, out[2] = Time{midnight + days{2}};
}

}  // namespace

RunbookLoad::RunbookLoad(const SqlRunbooks& runbooks, const std::vector<Need>& needs)
    : sql_(runbooks.statements()) {
  for (const Need& need : needs) {
    const bool of_version = need.what == What::runbook_named && need.n != 0;
    (of_version ? versions_ : needs_[need.what]).push_back(&need);
  }
  const auto keep_unique = [](Needs& list) {
    std::ranges::sort(list, [](const Need* a, const Need* b) { return *a < *b; });
    const auto rest = std::ranges::unique(list, [](const Need* a, const Need* b) { return *a == *b; });
    list.erase(rest.begin(), rest.end());
  };
  for (auto& [what, list] : needs_) keep_unique(list);
  keep_unique(versions_);
}

template <class Row>
void RunbookLoad::add(std::vector<Call>& calls, const Needs& needs, const Statement& statement, Fill fill,
                      Found<Row>& found) {
  const auto take = [&found](const RowView& view) -> Result<> {
    if (!found.ids.insert(view.integer(0)).second) return {};  // the id is the first column
    if (!read_into(found.rows.emplace_back(), view, Columns::deciding)) found.unreadable.push_back(view.integer(0));
    return {};
  };
  found.rows.reserve(found.rows.capacity() + needs.size());
  calls.push_back({&statement,
                   needs.size(),
                   [&needs, fill](std::size_t set, std::span<Value> to) { fill(*needs[set], to); },
                   take,
                   {}});
}

void RunbookLoad::add_calls(std::vector<Call>& calls) {
  if (!versions_.empty()) add(calls, versions_, sql_.runbook_version, by_text_and_version, runbooks_);
  for (const auto& [what, needs] : needs_) add_list(calls, what, needs);
  for (const auto& [what, needs] : needs_) add_by_id(calls, what, needs);
}

void RunbookLoad::add_list(std::vector<Call>& calls, What what, const Needs& needs) {
  const auto list = [&](const Statement& statement, Fill fill, auto& found) {
    add(calls, needs, statement, fill, found);
  };
  switch (what) {
    case What::runbook_named: return list(sql_.runbook_active, by_text, runbooks_);
    case What::latest_version: return list(sql_.runbook_latest, by_text, runbooks_);
    case What::runbooks_of_table: return list(sql_.runbooks_of_table, by_text, runbooks_);
    case What::batch_of_time: return add_batches_of_time(calls, needs);
    case What::open_batches: return list(sql_.open_batches, by_text_page, batches_);
    case What::phases_of: return list(sql_.phases_of, by_id, phases_);
    case What::inits_of: return list(sql_.inits_of, by_id, inits_);
    case What::members_of: return list(sql_.members_of, by_id_page, members_);
    case What::failed_members_of: return list(sql_.failed_members_of, by_id_page, members_);
    case What::members_named: return list(sql_.members_named, by_id_and_text, members_);
    case What::steps_of: return list(sql_.steps_of, by_id_and_other, steps_);
    case What::steps_ahead: return list(sql_.steps_ahead, by_id_and_other, steps_);
    case What::steps_of_member: return list(sql_.steps_of_member, by_id, steps_);
    case What::parked_steps: return list(sql_.parked_steps, by_id_and_limit, steps_);
    case What::cleanups_of_step: return list(sql_.cleanups_of_step, by_id, cleanups_);
    case What::cleanups_of_init: return list(sql_.cleanups_of_init, by_id, cleanups_);
    case What::removals_of: return list(sql_.removals_of, by_id, cleanups_);
    case What::open_cleanups_of: return list(sql_.open_cleanups_of, by_id, cleanups_);
    case What::counts_of: return add_counts(calls, needs);
    case What::runbook:
    case What::batch:
    case What::phase:
    case What::init:
    case What::member:
    case What::step:
    case What::cleanup:
    case What::data_row: return;
  }
}

void RunbookLoad::add_by_id(std::vector<Call>& calls, What what, const Needs& needs) {
  switch (what) {
    case What::runbook: return add(calls, needs, sql_.runbooks.by_id, by_id, runbooks_);
    case What::batch: return add(calls, needs, sql_.batches.by_id, by_id, batches_);
    case What::phase: return add(calls, needs, sql_.phases.by_id, by_id, phases_);
    case What::init: return add(calls, needs, sql_.inits.by_id, by_id, inits_);
    case What::member: return add(calls, needs, sql_.members.by_id, by_id, members_);
    case What::step: return add(calls, needs, sql_.steps.by_id, by_id, steps_);
    case What::cleanup: return add(calls, needs, sql_.cleanups.by_id, by_id, cleanups_);
    default: return;
  }
}

void RunbookLoad::add_counts(std::vector<Call>& calls, const Needs& needs) {
  calls.push_back({&sql_.counts_of,
                   needs.size(),
                   [&needs](std::size_t set, std::span<Value> to) { by_id_and_other(*needs[set], to); },
                   collect(counts_),
                   {}});
}

void RunbookLoad::add_batches_of_time(std::vector<Call>& calls, const Needs& needs) {
  for (const Need* need : needs) newest_.try_emplace({need->text, from_millis(need->other)});
  const auto take = [this](const RowView& view) -> Result<> {
    Batch row;
    if (!read_into(row, view, Columns::deciding)) batches_.unreadable.push_back(view.integer(0));
    const int name_column = static_cast<int>(types<Batch>(Columns::deciding).size());
    const auto asked =
        newest_.find({std::string(view.text(name_column)), row.batch_start_time.value_or(Time{})});
    if (asked != newest_.end() && asked->second.id < row.id) asked->second = std::move(row);
    return {};
  };
  calls.push_back({&sql_.batches_of_time,
                   needs.size(),
                   [&needs](std::size_t set, std::span<Value> to) { by_text_and_days(*needs[set], to); },
                   take,
                   {}});
}

runbook::Loaded RunbookLoad::finish() {
  for (auto& [asked, batch] : newest_) {
    if (batch.id != 0 && batches_.ids.insert(batch.id).second) batches_.rows.push_back(std::move(batch));
  }
  std::set<std::pair<runbook::Table, std::int64_t>> unreadable;
  const auto note = [&](runbook::Table table, const std::vector<std::int64_t>& ids) {
    for (const std::int64_t id : ids) unreadable.insert({table, id});
  };
  note(runbook::Table::runbooks, runbooks_.unreadable);
  note(runbook::Table::batches, batches_.unreadable);
  note(runbook::Table::batch_members, members_.unreadable);
  note(runbook::Table::phase_executions, phases_.unreadable);
  note(runbook::Table::step_executions, steps_.unreadable);
  note(runbook::Table::init_executions, inits_.unreadable);
  note(runbook::Table::cleanup_executions, cleanups_.unreadable);
  return {.runbooks = std::move(runbooks_.rows),
          .batches = std::move(batches_.rows),
          .members = std::move(members_.rows),
          .phases = std::move(phases_.rows),
          .steps = std::move(steps_.rows),
          .inits = std::move(inits_.rows),
          .cleanups = std::move(cleanups_.rows),
          .counts = std::move(counts_),
          .data_rows = {},
          .unreadable = std::move(unreadable)};
}

// CROSS JOIN is the order in which SQLite looks; why there is an OFFSET, see select_by.
std::string from_steps_of_members(Dialect dialect) {
  if (dialect == Dialect::sqlite)
    return " FROM batch_members AS m CROSS JOIN phase_executions AS p CROSS JOIN step_executions AS t"
           " WHERE m.id=?1 AND p.batch_id=m.batch_id AND t.phase_execution_id=p.id AND "
           "t.batch_member_id=m.id";
  return " FROM unnest(?1) AS k(id) CROSS JOIN LATERAL (SELECT p.id,p.batch_id,p.runbook_version"
         " FROM batch_members AS m, phase_executions AS p WHERE m.id=k.id AND p.batch_id=m.batch_id OFFSET "
         "0) AS p"
         " CROSS JOIN LATERAL (SELECT * FROM step_executions AS t WHERE t.phase_execution_id=p.id"
         " AND t.batch_member_id=k.id OFFSET 0) AS t";
}

std::vector<Statement> runbook_need_statements(Dialect dialect) {
  RunbookStatements sql(dialect);
  return {sql.runbooks.by_id,
          sql.batches.by_id,
          sql.members.by_id,
          sql.phases.by_id,
          sql.steps.by_id,
          sql.inits.by_id,
          sql.cleanups.by_id,
          sql.runbook_version,
          sql.runbook_active,
          sql.runbook_latest,
          sql.runbooks_of_table,
          sql.batches_of_time,
          sql.open_batches,
          sql.phases_of,
          sql.inits_of,
          sql.members_of,
          sql.failed_members_of,
          sql.members_named,
          sql.steps_of,
          sql.steps_ahead,
          sql.steps_of_member,
          sql.parked_steps,
          sql.cleanups_of_step,
          sql.cleanups_of_init,
          sql.removals_of,
          sql.open_cleanups_of,
          sql.counts_of,
          sql.waiting_steps,
          sql.waiting_inits,
          sql.waiting_cleanups,
          sql.untimed,
          sql.steps.updates.statement(live_columns<StepExecution>())};
}

}  // namespace baton::store
