// What the databases make of the statements about runbooks, service calls and messages, and of what the guide tells others to ask: nothing
// reads a table from end to end.
#include <algorithm>

#include "store/call_tables.hpp"
#include "store/postgres/connection.hpp"
#include "store/sql_call_reads.hpp"
#include "store/sql_calls.hpp"
#include "store/sql_messages.hpp"
#include "store/sql_runbook_reads.hpp"
#include "store/sql_runbooks.hpp"
#include "store/sql_timers.hpp"
#include "store/sqlite/connection.hpp"
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::plans_test {
namespace {

std::vector<store::Statement> statements(store::Dialect dialect) {
  auto all = store::runbook_need_statements(dialect);
  std::ranges::move(store::runbook_list_statements(dialect), std::back_inserter(all));
  std::ranges::move(store::call_read_statements(), std::back_inserter(all));
  all.push_back(store::rows_at_head_statement(dialect));
  const store::SqlTimers timers(dialect);
  for (const store::Statement& statement : {timers.due, timers.next, timers.remove}) all.push_back(statement);
  all.push_back(store::update_statement<call::Call>(dialect));
  std::ranges::move(store::SqlMessages(dialect).statements(), std::back_inserter(all));
  for (const char* view : {"dag_task_results", "dag_node_states"})
    all.push_back({"SELECT * FROM " + std::string(view) + " WHERE job_id=substr(?1,1,36) AND task_id=?1", {store::Type::text}});
  return all;
}

std::vector<std::string> lines(store::Connection& connection, const store::Statement& statement, int column) {
  std::vector<std::string> found;
  const store::Query query{
      &statement,
      1,
      {},
      [&](const store::RowView& row) -> Result<> { return found.emplace_back(row.text(column)), Result<>{}; },
      {}};
  const auto done = connection.run({&query, 1}, store::Mode::read);
  if (!done) found.push_back("SCAN: " + done.error().message);
  return found;
}

TEST(SqlitePlans, NothingIsReadFromEndToEnd) {
  Database database(StoreType::sqlite);
  ASSERT_TRUE(database.store()->open(partition));
  auto connection = store::sqlite::connect(database.path(), store::sqlite::Access::reader).value();
  // Indexes that hold only what is looked for, the first timer, lists that were made before, and what one page holds.
  const char* const whole[] = {"USING INDEX phase_executions_untimed",
                               "USING INDEX runbooks_active",
                               "USING INDEX batches_importing",
                               "USING INDEX bus_messages_locked",
                               "SCAN baton_timers",
                               "SCAN latest",
                               "SCAN page",
                               "SCAN w",
                               "SCAN e VIRTUAL TABLE",
                               "SCAN dag_task_results",
                               "SCAN dag_node_states"};
  for (store::Statement statement : statements(store::Dialect::sqlite)) {
    const std::string sql = statement.sql;
    statement.sql.insert(0, "EXPLAIN QUERY PLAN ");
    statement.exact = false;  // nothing is changed
    for (const std::string& line : lines(*connection, statement, 3)) {
      const bool may = std::ranges::any_of(whole, [&](const char* part) { return line.contains(part); });
      EXPECT_TRUE(may || !line.starts_with("SCAN")) << sql << "\n" << line;
      const bool is_timer = line.contains("service_calls_by_time") || line.contains("service_calls_due");
      EXPECT_TRUE(!is_timer || line.contains("COVERING")) << sql << "\n" << line;
    }
  }
}

// PostgreSQL shows the plan that it keeps for all parameters only for a statement that is prepared.
TEST(PostgresPlans, NothingIsReadFromEndToEndEvenBeforeThereAreStatistics) {
  Database database(StoreType::postgres);
  ASSERT_TRUE(database.store()->open(partition));
  auto connection = store::postgres::connect(database.url()).value();
  for (const store::Statement& statement : statements(store::Dialect::postgres)) {
    std::string types, values, sql = statement.sql;
    std::ranges::replace(sql, '?', '$');
    for (const store::Type type : statement.parameters) {
      constexpr const char* words[] = {"text", "json", "bigint", "timestamptz", "bytea"};
      types.append(types.empty() ? "(" : ",").append(words[static_cast<int>(type)]);
      if (statement.arrays) types += "[]";
      values += values.empty() ? "(NULL" : ",NULL";
    }
    if (!types.empty()) types += ')', values += ')';
    const auto prepared = connection->script("PREPARE q" + types + " AS " + sql);
    ASSERT_TRUE(prepared) << prepared.error().message << "\n" << sql;
    const store::Statement explain{"EXPLAIN (COSTS OFF) EXECUTE q" + values, {}};
    std::string plan;
    for (const std::string& line : lines(*connection, explain, 0)) plan += line + "\n";
    EXPECT_FALSE(plan.contains("Seq Scan")) << sql << "\n" << plan;
    EXPECT_FALSE(plan.contains("Materialize")) << sql << "\n" << plan;
    if (sql.contains("service_calls") && statement.arrays) {
      EXPECT_TRUE(plan.contains("service_calls_pkey")) << sql << "\n" << plan;
    }
    if (sql.starts_with("DELETE FROM baton_timers")) {
      EXPECT_TRUE(plan.contains("Index Cond: ((due = k.due) AND (subject = k.subject) AND (what = k.what))")) << plan;
      EXPECT_TRUE(plan.contains("Tid Scan")) << plan;
    }
    if (sql.starts_with("DELETE FROM bus_messages") || sql.contains("UPDATE bus_messages")) {
      EXPECT_TRUE(plan.contains("Index Scan using bus_messages_pkey")) << plan;
      EXPECT_TRUE(plan.contains("AND (sequence_number = k.sequence_number))")) << plan;
    }
    const bool is_of_a_start = sql.contains("locked_until IS NOT NULL");  // all that are locked
    if ((sql.contains("bus_messages") || sql.contains("bus_history")) && !is_of_a_start) {  // lists are read in the order of an index
      EXPECT_FALSE(plan.contains("Sort")) << sql << "\n" << plan;
    }
    if (plan.contains("step_executions_by_phase")) {
      EXPECT_TRUE(plan.contains("Index Cond: ((phase_execution_id = ")) << sql << "\n" << plan;
    }
    ASSERT_TRUE(connection->script("DEALLOCATE q"));
  }
}

}  // namespace
}  // namespace baton::contract::plans_test
