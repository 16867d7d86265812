#include "store/sql_runbooks.hpp"

#include <algorithm>
#include <array>

#include <boost/pfr/core.hpp>

#include "store/changes.hpp"

namespace baton::store {

using namespace runbook;
namespace {

constexpr auto integer_type = Type::integer;
constexpr auto text_type = Type::text;

template <class Row>
struct WriteStatements {
  explicit WriteStatements(Dialect d)
      : insert(insert_statement<Row>(d)), by_id(select_statement<Row>(d, Columns::deciding)), updates(d) {}
  Statement insert, by_id;
  ChangeStatements<Row> updates;

  void add(std::vector<Query>& queries, const std::vector<Row>& rows_new,
           const std::vector<Update<Row>>& rows_changed) {
    add_write(queries, insert, rows_new, Columns::all);
    updates.add(queries, rows_changed);
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
          {text_type, integer_type}};
}

Statement untimed_statement(Dialect dialect, std::string_view table) {
  return {"SELECT id FROM " + std::string(table) +
              " WHERE id>?1 AND " + status_word(dialect, "status") + " IN (\'dispatched\',\'polling\') AND timer_due IS NULL AND "
              "coalesce(job_state,'none')='none'"
              " ORDER BY id LIMIT ?2",
          {integer_type, integer_type}};
}

constexpr std::array<std::string_view, 8> table_names = {
    "runbooks",        "batches",         "batch_members",      "phase_executions",
    "step_executions", "init_executions", "cleanup_executions", "holds"};
static_assert(table_names.size() == static_cast<std::size_t>(runbook::Table::holds) + 1);

// SQLite's AUTOINCREMENT takes the larger of sqlite_sequence and what is in the table, and so do we. The
// answer is the last id of the range.
Statement reserve_statement(Dialect dialect, const std::string& table) {
  if (dialect == Dialect::postgres)
    return {"SELECT nextval(s.name) FROM (SELECT pg_get_serial_sequence('" + table +
                "','id')::regclass AS name OFFSET 0) AS s, generate_series(1,?1)",
            {integer_type}};
  return {"UPDATE sqlite_sequence SET seq=max(seq,(SELECT coalesce(max(id),0) FROM " + table +
              "))+?1 WHERE name='" + table + "' RETURNING seq",
          {integer_type}};
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
        holds(d),
        count_upsert(upsert_statement<Count>(d)),
        event_insert(insert_statement<BatchEvent>(d)),
        runbook_version(select_by<Runbook>(d, Columns::deciding, {{"name", text_type}, {"version", integer_type}})),
        phases_of(select_by<PhaseExecution>(d, Columns::deciding, {{"batch_id", integer_type}}, "", "t.id")),
        inits_of(select_by<InitExecution>(d, Columns::deciding, {{"batch_id", integer_type}}, "",
                                          "t.batch_id,t.runbook_version,t.step_index")),
        members_named(select_by<Member>(d, Columns::deciding, {{"batch_id", integer_type}, {"member_key", text_type}},
                                        "", "t.batch_id,t.member_key,t.id")),
        steps_of(select_by<StepExecution>(d, Columns::deciding,
                                          {{"batch_member_id", integer_type}, {"phase_execution_id", integer_type}}, "",
                                          "t.phase_execution_id,t.batch_member_id,t.step_index,t.id")),
        steps_ahead(select_by<StepExecution>(d, Columns::deciding,
                                             {{"batch_member_id", integer_type}, {"phase_execution_id", integer_type}},
                                             status_word(d, "t.status") + "<>'succeeded'",
                                             "t.phase_execution_id,t.batch_member_id,t.step_index,t.id",
                                             need::StepsAhead::limit)),
        steps_of_member{"SELECT " + names<StepExecution>(Columns::deciding, "t.") + from_steps_of_members(d) +
                            " ORDER BY p.id,t.step_index",
                        {integer_type},
                        true},
        cleanups_of_step(cleanups_by(d, "caused_by_step_id")),
        cleanups_of_init(cleanups_by(d, "caused_by_init_id")),
        removals_of(cleanups_by(d, "batch_member_id", "t.kind='removal'")),
        open_cleanups_of(cleanups_by(d, "batch_id", "t.status IN ('pending','dispatched','polling')")),
        dead_cleanups_of(cleanups_by(
            d, "batch_id", "(t.status='failed' OR t.status='poll_timeout') AND t.dead_at IS NOT NULL")),
        holds_of(select_by<Hold>(d, Columns::deciding, {{"batch_id", integer_type}}, "", "t.batch_id,t.id")),
        counts_of(select_by<Count>(d, Columns::all, {{"batch_id", integer_type}, {"phase_execution_id", integer_type}})) {
    for (std::size_t i = 0; i < table_names.size(); ++i) {
      reserve[i] = reserve_statement(d, std::string(table_names[i]));
      begin[i] = begin_statement(std::string(table_names[i]));
    }
  }

  static Statement cleanups_by(Dialect d, std::string_view column, std::string_view condition = "") {
    return select_by<CleanupExecution>(d, Columns::deciding, {{column, integer_type}}, condition,
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
  WriteStatements<Hold> holds;
  Statement count_upsert, event_insert;
  Statement runbook_version, phases_of, inits_of, members_named, steps_of, steps_ahead, steps_of_member;
  Statement cleanups_of_step, cleanups_of_init, removals_of, open_cleanups_of, dead_cleanups_of, holds_of, counts_of;

  // The active version, else the newest.
  Statement runbook_active = page<Runbook>(
      "WHERE t.id=coalesce((SELECT id FROM runbooks WHERE name=?1 AND is_active=1 ORDER BY version DESC "
      "LIMIT "
      "1),"
      "(SELECT id FROM runbooks WHERE name=?1 ORDER BY version DESC LIMIT 1))",
      {text_type});
  Statement runbook_latest = page<Runbook>(
      "WHERE t.id=(SELECT id FROM runbooks WHERE name=?1 ORDER BY version DESC LIMIT 1)", {text_type});
  Statement runbooks_of_table = page<Runbook>("WHERE t.data_table_name=?1", {text_type});
  // The range is wider than it must be: others write times with other separators and offsets, and as text
  // those do not sort by time. Which batch has the very T is seen when it is read.
  Statement batches_of_time{
      "SELECT " + names<Batch>(Columns::deciding, "t.") +
          ",r.name FROM runbooks AS r CROSS JOIN batches AS t WHERE r.name=?1 AND t.runbook_id=r.id"
          " AND t.batch_start_time>?2 AND t.batch_start_time<?3 AND " +
          status + " IN ('detected','init_dispatched','active')",
      {text_type, Type::time, Type::time}};
  Statement open_batches =
      page<Batch>("runbooks AS r CROSS JOIN batches",
                  "WHERE r.name=?1 AND t.runbook_id=r.id AND " + status +
                      " IN ('detected','init_dispatched','active') AND t.id>?2 ORDER BY t.id LIMIT ?3",
                  {text_type, integer_type, integer_type});
  Statement begun_batches = page<Batch>(
      "runbooks AS r CROSS JOIN batches",
      "WHERE r.name=?1 AND t.runbook_id=r.id AND " + status +
          " IN ('detected','init_dispatched','active') AND (t.init_dispatched_at IS NOT NULL OR EXISTS"
          " (SELECT 1 FROM phase_executions AS p WHERE p.batch_id=t.id AND (p.dispatched_at IS NOT NULL OR " +
          status_word(dialect, "p.status") + " IN ('dispatched','completed','failed')))) ORDER BY t.id LIMIT ?2",
      {text_type, integer_type});
  Statement members_of =
      page<Member>("WHERE t.batch_id=?1 AND t.id>?2 ORDER BY t.id LIMIT ?3", {integer_type, integer_type, integer_type});
  Statement failed_members_of = page<Member>("WHERE t.batch_id=?1 AND " + status + "='failed' AND " + status +
                                                 "<>'active' AND t.id>?2 ORDER BY t.id LIMIT ?3",
                                             {integer_type, integer_type, integer_type});
  Statement parked_steps =
      page<StepExecution>("phase_executions AS p CROSS JOIN step_executions",
                          "WHERE p.batch_id=?1 AND t.phase_execution_id=p.id AND t.job_state='parked'"
                          " ORDER BY p.id,t.id LIMIT ?2",
                          {integer_type, integer_type});

  Statement limited_steps =
      page<StepExecution>("WHERE t.phase_execution_id=?1 AND t.job_state='limited' ORDER BY t.step_index DESC,t.id LIMIT ?2",
                          {integer_type, integer_type});
  Statement held_members =
      page<Member>("WHERE t.hold_id=?1 ORDER BY t.id LIMIT ?2", {integer_type, integer_type});

  // With the batch and the runbook that the step belongs to, behind its columns.
  Statement step_and_place{
      "SELECT " + names<StepExecution>(Columns::deciding, "t.") + ",p.batch_id,b.runbook_id FROM " +
          (dialect == Dialect::postgres ? "unnest(?1) AS k(id) JOIN step_executions AS t ON t.id=k.id"
                                        : "step_executions AS t") +
          " LEFT JOIN phase_executions AS p ON p.id=t.phase_execution_id LEFT JOIN batches AS b ON "
          "b.id=p.batch_id" +
          (dialect == Dialect::postgres ? "" : " WHERE t.id=?1"),
      {integer_type},
      true};

  Statement waiting_steps = waiting_statement("step_executions");
  Statement waiting_inits = waiting_statement("init_executions");
  Statement waiting_cleanups = waiting_statement("cleanup_executions");
  Statement untimed{"SELECT id FROM phase_executions WHERE " + status_word(dialect, "status") +
                        "='pending' AND timer_due IS NULL AND due_at IS NOT NULL AND waits_for IS NULL ORDER BY id LIMIT ?1",
                    {integer_type}};
  Statement unwalked_phases{"SELECT id FROM phase_executions WHERE id>?1 AND " + status_word(dialect, "status") +
                                "='dispatched' AND coalesce(walk,'none')='none' AND coalesce(walk_after,0)=0"
                                " ORDER BY id LIMIT ?2",
                            {integer_type, integer_type}};
  Statement untimed_steps = untimed_statement(dialect, "step_executions");
  Statement untimed_inits = untimed_statement(dialect, "init_executions");
  std::array<Statement, table_names.size()> reserve, begin;
};

SqlRunbooks::SqlRunbooks(Dialect dialect) : sql_(std::make_unique<RunbookStatements>(dialect)) {}
SqlRunbooks::~SqlRunbooks() = default;

const Statement& SqlRunbooks::phases_without_timer() const { return sql_->untimed; }
const Statement& SqlRunbooks::left_by_others(runbook::RowType type) const {
  if (type == runbook::RowType::phase) return sql_->unwalked_phases;
  return type == runbook::RowType::step ? sql_->untimed_steps : sql_->untimed_inits;
}
const Statement& SqlRunbooks::reserve_ids(runbook::Table table) const {
  return sql_->reserve[static_cast<std::size_t>(table)];
}
const Statement& SqlRunbooks::begin_sequence(runbook::Table table) const {
  return sql_->begin[static_cast<std::size_t>(table)];
}

void SqlRunbooks::add_writes(std::vector<Query>& queries, const Writes& w) {
  sql_->runbooks.add(queries, w.runbooks_new, w.runbooks_changed);
  sql_->batches.add(queries, w.batches_new, w.batches_changed);
  sql_->members.add(queries, w.members_new, w.members_changed);
  sql_->phases.add(queries, w.phases_new, w.phases_changed);
  sql_->steps.add(queries, w.steps_new, w.steps_changed);
  sql_->inits.add(queries, w.inits_new, w.inits_changed);
  sql_->cleanups.add(queries, w.cleanups_new, w.cleanups_changed);
  sql_->holds.add(queries, w.holds_new, w.holds_changed);
  add_write(queries, sql_->count_upsert, w.counts, Columns::all);
  add_write(queries, sql_->event_insert, w.events_new, Columns::all);
}

void SqlRunbooks::add_waiting(std::vector<Query>& queries, const std::string& queue, std::size_t limit,
                              std::vector<WaitingTask>& out) const {
  const auto add = [&](const Statement& statement, runbook::RowType type) {
    const auto take = [&out, type](const RowView& row) -> Result<> {
      Time queued_at{};
      if (!row.is_null(1)) (void)decode(row, 1, queued_at);  // what is unreadable is found out when it is given
      out.push_back(waiting_task({type, row.integer(0)}, queued_at));
      return {};
    };
    queries.push_back(
        {&statement, 1, constant({std::string_view(queue), static_cast<std::int64_t>(limit)}), take, {}});
  };
  add(sql_->waiting_steps, runbook::RowType::step);
  add(sql_->waiting_inits, runbook::RowType::init);
  add(sql_->waiting_cleanups, runbook::RowType::cleanup);
}

// --- loading
// --------------------------------------------------------------------------------------------------------------------------

namespace {

// The parameters of a statement are the fields of the need, in their order.
template <class Need>
void fill(const Need& need, std::span<Value> out) {
  boost::pfr::for_each_field(need, [&](const auto& field, std::size_t i) {
    if constexpr (std::is_same_v<decltype(field), const std::string&>)
      out[i] = std::string_view(field);
    else
      out[i] = static_cast<std::int64_t>(field);
  });
}
// Whichever version, the name alone.
void fill_name(const need::RunbookNamed& need, std::span<Value> out) { out[0] = std::string_view(need.name); }
// Two days around T hold it whatever its offset is.
void fill_days(const need::BatchOfTime& need, std::span<Value> out) {
  using std::chrono::days;
  const Time midnight = std::chrono::floor<days>(need.time);
  out[0] = std::string_view(need.runbook), out[1] = Time{midnight - days{2}},
  out[2] = Time{midnight + days{2}};
}

template <class Need>
auto filled_from(const std::vector<const Need*>& asked, void (*fill_one)(const Need&, std::span<Value>)) {
  return [&asked, fill_one](std::size_t set, std::span<Value> to) { fill_one(*asked[set], to); };
}

template <class Row>
auto collect_into(auto& found) {
  return [&found](const RowView& view) -> Result<> {
    if (!found.ids.insert(view.integer(0)).second) return {};  // the id is the first column
    if (!read_into(found.rows.emplace_back(), view, Columns::deciding))
      found.unreadable.push_back(view.integer(0));
    return {};
  };
}

}  // namespace

RunbookLoad::RunbookLoad(const SqlRunbooks& runbooks, const std::vector<Need>& needs)
    : sql_(runbooks.statements()) {
  for (const Need& need : needs) {
    std::visit([&]<class One>(const One& one) { std::get<Asked<One>>(asked_).push_back(&one); }, need);
  }
  const auto keep_unique = [](auto& list) {
    std::ranges::sort(list, [](const auto* a, const auto* b) { return *a < *b; });
    const auto rest = std::ranges::unique(list, [](const auto* a, const auto* b) { return *a == *b; });
    list.erase(rest.begin(), rest.end());
  };
  std::apply([&](auto&... list) { (keep_unique(list), ...); }, asked_);
  auto& named = std::get<Asked<need::RunbookNamed>>(asked_);
  const auto versions = std::ranges::partition(named, [](const auto* one) { return one->version == 0; });
  versions_.assign(versions.begin(), versions.end());
  named.erase(versions.begin(), versions.end());
}

template <class Need, class Row>
void RunbookLoad::add(std::vector<Query>& queries, const Asked<Need>& asked, const Statement& statement,
                      Found<Row>& found) {
  if (asked.empty()) return;
  found.rows.reserve(found.rows.capacity() + asked.size());
  queries.push_back({&statement, asked.size(), filled_from(asked, fill<Need>), collect_into<Row>(found), {}});
}

void RunbookLoad::add_queries(std::vector<Query>& queries) {
  add(queries, versions_, sql_.runbook_version, runbooks_);
  if (const auto& named = std::get<Asked<need::RunbookNamed>>(asked_); !named.empty())
    queries.push_back({&sql_.runbook_active,
                       named.size(),
                       filled_from(named, fill_name),
                       collect_into<runbook::Runbook>(runbooks_),
                       {}});
  add<need::LatestVersion>(queries, sql_.runbook_latest, runbooks_);
  add<need::RunbooksOfTable>(queries, sql_.runbooks_of_table, runbooks_);
  add_batches_of_time(queries);
  add<need::OpenBatches>(queries, sql_.open_batches, batches_);
  add<need::BegunBatches>(queries, sql_.begun_batches, batches_);
  add<need::PhasesOf>(queries, sql_.phases_of, phases_);
  add<need::InitsOf>(queries, sql_.inits_of, inits_);
  add<need::MembersOf>(queries, sql_.members_of, members_);
  add<need::FailedMembersOf>(queries, sql_.failed_members_of, members_);
  add<need::MembersNamed>(queries, sql_.members_named, members_);
  add<need::StepsOf>(queries, sql_.steps_of, steps_);
  add<need::StepsAhead>(queries, sql_.steps_ahead, steps_);
  add<need::StepsOfMember>(queries, sql_.steps_of_member, steps_);
  add<need::ParkedSteps>(queries, sql_.parked_steps, steps_);
  add<need::LimitedSteps>(queries, sql_.limited_steps, steps_);
  add<need::HeldMembers>(queries, sql_.held_members, members_);
  add<need::HoldsOf>(queries, sql_.holds_of, holds_);
  add<need::CleanupsOfStep>(queries, sql_.cleanups_of_step, cleanups_);
  add<need::CleanupsOfInit>(queries, sql_.cleanups_of_init, cleanups_);
  add<need::RemovalsOf>(queries, sql_.removals_of, cleanups_);
  add<need::OpenCleanupsOf>(queries, sql_.open_cleanups_of, cleanups_);
  add<need::DeadCleanupsOf>(queries, sql_.dead_cleanups_of, cleanups_);
  add_counts(queries);

  add<need::Runbook>(queries, sql_.runbooks.by_id, runbooks_);
  add<need::Batch>(queries, sql_.batches.by_id, batches_);
  add<need::Phase>(queries, sql_.phases.by_id, phases_);
  add<need::Init>(queries, sql_.inits.by_id, inits_);
  add<need::Member>(queries, sql_.members.by_id, members_);
  add_steps(queries);
  add<need::Cleanup>(queries, sql_.cleanups.by_id, cleanups_);
  add<need::Hold>(queries, sql_.holds.by_id, holds_);
}

void RunbookLoad::add_steps(std::vector<Query>& queries) {
  const auto& asked = std::get<Asked<need::Step>>(asked_);
  if (asked.empty()) return;
  const auto take = [this, collect = collect_into<StepExecution>(steps_)](const RowView& view) -> Result<> {
    static const int behind = static_cast<int>(types<StepExecution>(Columns::deciding).size());
    if (!view.is_null(behind + 1))
      places_.push_back({view.integer(0), view.integer(behind), view.integer(behind + 1)});
    return collect(view);
  };
  steps_.rows.reserve(steps_.rows.capacity() + asked.size());
  queries.push_back({&sql_.step_and_place, asked.size(), filled_from(asked, fill<need::Step>), take, {}});
}

void RunbookLoad::add_counts(std::vector<Query>& queries) {
  const auto& asked = std::get<Asked<need::CountsOf>>(asked_);
  if (asked.empty()) return;
  queries.push_back(
      {&sql_.counts_of, asked.size(), filled_from(asked, fill<need::CountsOf>), collect(counts_), {}});
}

void RunbookLoad::add_batches_of_time(std::vector<Query>& queries) {
  const auto& asked = std::get<Asked<need::BatchOfTime>>(asked_);
  if (asked.empty()) return;
  for (const need::BatchOfTime* need : asked) newest_.try_emplace({need->runbook, need->time});
  const auto take = [this](const RowView& view) -> Result<> {
    runbook::Batch row;
    if (!read_into(row, view, Columns::deciding)) batches_.unreadable.push_back(view.integer(0));
    const int name_column = static_cast<int>(types<runbook::Batch>(Columns::deciding).size());
    const auto wanted =
        newest_.find({std::string(view.text(name_column)), row.batch_start_time.value_or(Time{})});
    if (wanted != newest_.end() && wanted->second.id < row.id) wanted->second = std::move(row);
    return {};
  };
  queries.push_back({&sql_.batches_of_time, asked.size(), filled_from(asked, fill_days), take, {}});
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
  note(runbook::Table::holds, holds_.unreadable);
  return {.runbooks = std::move(runbooks_.rows),
          .batches = std::move(batches_.rows),
          .members = std::move(members_.rows),
          .phases = std::move(phases_.rows),
          .steps = std::move(steps_.rows),
          .places = std::move(places_),
          .inits = std::move(inits_.rows),
          .cleanups = std::move(cleanups_.rows),
          .holds = std::move(holds_.rows),
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
          sql.step_and_place,
          sql.inits.by_id,
          sql.cleanups.by_id,
          sql.runbook_version,
          sql.runbook_active,
          sql.runbook_latest,
          sql.runbooks_of_table,
          sql.batches_of_time,
          sql.open_batches,
          sql.begun_batches,
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
          sql.dead_cleanups_of,
          sql.limited_steps,
          sql.held_members,
          sql.holds.by_id,
          sql.holds_of,
          sql.counts_of,
          sql.waiting_steps,
          sql.waiting_inits,
          sql.waiting_cleanups,
          sql.untimed,
          sql.steps.updates.statement(live_columns<StepExecution>())};
}

}  // namespace baton::store
