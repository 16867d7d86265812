// A database of an earlier schema, opened by this version: its jobs go on where they stood.
#include <algorithm>
#include <chrono>
#include <fstream>

#include "core/workflow/machine/machine.hpp"
#include "store/migrations.hpp"
#include "store/open.hpp"
#include "store/postgres/connection.hpp"
#include "tests/contract/store/fixture.hpp"
#include "tests/support/source_dir.hpp"

namespace baton::contract::migration_test {
namespace {

using namespace workflow;

const JobId running{"019c1b7c-4000-7000-8000-000000000001"};
const JobId failed{"019c1b7c-4000-7000-8000-000000000002"};
const Time morning = from_iso("2026-02-02T08:00:00Z").value();

// From each version to the newest; the rows are the same in all of them.
class Migration : public ::testing::TestWithParam<std::tuple<StoreType, int>> {
 protected:
  [[nodiscard]] static StoreType type() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int version() { return std::get<1>(GetParam()); }

  void SetUp() override {
    const std::string name =
        "version_" + std::to_string(version()) + (type() == StoreType::sqlite ? ".sqlite.sql" : ".postgres.sql");
    std::ifstream file(support::source_dir() / "tests/contract/store" / name);
    ASSERT_TRUE(file) << name;
    database.execute(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  void open() {
    store = database.store();
    const auto state = store->open(partition);
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(state->last_commit, 41);
    EXPECT_EQ(state->term, 4);
  }

  // The job and all its nodes, as the engine loads them.
  workflow::Run load_run() {
    LoadRequest request{.jobs_whole = {running}, .workflows = {{{"default"}, "order-flow", 3}}};
    for (const char* id : {"start", "a", "b", "c", "join", "end"})
      request.nodes.push_back({running, no_item, id});
    auto loaded = store->load(request).value();
    const auto parsed = parse(loaded.workflows.at(0).definition, Strictness::stored);
    EXPECT_TRUE(parsed.definition);
    workflow::Run run(parsed.definition, loaded.jobs.at(0));
    EXPECT_EQ(loaded.nodes.size(), 6u);
    for (NodeState& node : loaded.nodes) run.add(std::move(node));
    return run;
  }

  Database database{type()};
  std::unique_ptr<Store> store;
};

INSTANTIATE_TEST_SUITE_P(All, Migration,
                         ::testing::Combine(::testing::Values(StoreType::sqlite, StoreType::postgres),
                                            ::testing::Values(1, 2)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == StoreType::sqlite ? "Sqlite"
                                                                                      : "Postgres") +
                                  "FromVersion" + std::to_string(std::get<1>(test.param));
                         });

TEST_P(Migration, EveryRowIsThereWithWhatIsNewAtItsDefault) {
  open();
  const auto l = store->load({.jobs_whole = {running, failed},
                              .nodes = {{running, no_item, "b"}, {running, no_item, "join"}},
                              .task_results = {running.value + "_b_0"},
                              .idempotency_keys = {{{"default"}, "once", {}, ""}}});
  ASSERT_TRUE(l) << l.error().message;
  Job job;
  job.job_id = running;
  job.tenant = {"default"};
  job.workflow_id = "order-flow";
  job.workflow_version = 3;
  job.status = JobStatus::running;
  job.input_data = {R"({"n": 1})"};
  job.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  job.nodes_active = 3;
  job.created_at = morning;
  job.started_at = morning + std::chrono::milliseconds{1};
  ASSERT_EQ(l->jobs.size(), 2u);
  EXPECT_TRUE(same(job, l->jobs[0]));
  EXPECT_EQ(l->jobs[1].error, "node 'a' failed: no");
  EXPECT_EQ(l->jobs[1].nodes_failed, 1);
  NodeState b;
  b.job_id = running;
  b.node_id = "b";
  b.status = NodeStatus::running;
  b.edges_fired = 1;
  b.retry_count = 1;
  b.delivery_count = 2;
  b.task_id = running.value + "_b_1";
  b.tenant = {"default"};
  b.queue = "worker";
  b.worker_id = "w-1";
  b.lease_until = b.timer_due = morning + std::chrono::seconds{31};
  b.dispatched_at = morning + std::chrono::milliseconds{500};
  b.started_at = morning + std::chrono::seconds{1};
  b.error = "the first attempt";
  ASSERT_EQ(l->nodes.size(), 2u);
  EXPECT_TRUE(same(b, l->nodes[0]));
  EXPECT_EQ(l->nodes[1].status, NodeStatus::pending);
  EXPECT_EQ(l->nodes[1].waiting_for, 3);
  EXPECT_EQ(l->nodes[1].edges_fired, 0);
  ASSERT_EQ(l->task_results.size(), 1u);
  EXPECT_EQ(l->task_results[0].error, "the first attempt");
  EXPECT_EQ(l->idempotency_keys.size(), 1u);
}

TEST_P(Migration, WhatWaitedStillWaitsAndTimersAndLeasesAreThere) {
  open();
  const WaitingTask a = waiting_task({running, no_item, "a"}, 0, morning + std::chrono::milliseconds{1});
  EXPECT_EQ(store->waiting({{"default"}, "worker"}, 10, {}).value(), std::vector{a});
  EXPECT_EQ(store->running_builtin(10).value(), (std::vector{NodeKey{running, no_item, "c"}}));
  EXPECT_EQ(store->next_timer().value(), morning + std::chrono::seconds{31});
  EXPECT_EQ(store->timers_due(morning + std::chrono::hours{1}, 10).value(),
            (std::vector{Timer{morning + std::chrono::seconds{31}, subject_of(running), "b"},
                         Timer{morning + std::chrono::minutes{5}, subject_of(running), "c"}}));
}

TEST_P(Migration, TheJobGoesOnToItsEnd) {
  open();
  const Policy policy;
  Decided decided;
  workflow::Run run = load_run();
  const auto ref = [&](const char* id) { return run.definition->locate(id).value(); };
  const Time now = morning + std::chrono::seconds{10};
  EXPECT_TRUE(hand_out(run, ref("a"), "w-2", std::chrono::seconds{30}, policy, now, decided));
  const auto finish = [&](const char* id, const char* lease) {
    const TaskReport done{.retry_count = run.at(ref(id)).state.retry_count,
                      .completed = true,
                      .output = Json{"1"},
                      .lease = lease};
    EXPECT_EQ(report(run, ref(id), done, nullptr, policy, now, decided), Verdict::accepted) << id;
  };
  finish("a", "0.1");
  finish("b", "1.2");  // a lease that the earlier version gave
  finish("c", "0.1");
  EXPECT_EQ(run.at(ref("join")).state.status, NodeStatus::dispatched);
  WriteSet w;
  for (const auto& slot : run.nodes)
    if (slot->changed) w.nodes_changed.push_back(slot->state);
  w.jobs_changed = {run.job};
  w.timers_gone = store->timers_due(morning + std::chrono::hours{1}, 10).value();
  const auto committed = store->commit(w, 42);
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_EQ(store->next_timer().value(), std::nullopt);
  EXPECT_EQ(store->waiting({{"default"}, "worker"}, 10, {})->at(0).part, "join");
  workflow::Run later = load_run();
  const TaskReport done{.completed = true, .output = Json{"1"}};
  EXPECT_EQ(report(later, ref("join"), done, nullptr, policy, now, decided), Verdict::accepted);
  EXPECT_EQ(later.job.status, JobStatus::completed);
}

TEST_P(Migration, ReadersAreToldToWaitUntilItIsMigratedAndThenSeeEverything) {
  EXPECT_FALSE(store::make_reads(database.url()));
  open();
  auto reads = store::make_reads(database.url()).value();
  const JobFilter filter{.tenant = {"default"},
                         .status = {},
                         .workflow_id = "order-flow",
                         .tag = {},
                         .created_from = {},
                         .created_until = {}};
  const auto page = reads->jobs(filter, {}, 10);
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->jobs.size(), 2u);
  EXPECT_EQ(page->jobs[0].job_id, failed);
  EXPECT_EQ(reads->nodes(running, 10)->size(), 6u);
  EXPECT_TRUE(reads->node(running, "join").value());
  EXPECT_EQ(reads->timeline(running, 0, 10)->size(), 1u);
  EXPECT_EQ(reads->tokens()->size(), 1u);
}

TEST_P(Migration, IsDoneOnceAndANewDatabaseEndsWithTheSameTables) {
  open();
  store.reset();
  store = database.store();
  EXPECT_EQ(store->open(partition)->last_commit, 41);
  WriteSet w;
  w.jobs_new = {job(1)};
  w.nodes_new = {node(1, "a"), child(1, "split", 3)};
  w.timers_new = {node_timer(at(1), 1, "split_3")};
  w.tags_new = {{{"default"}, "eu", job_id(1)}};
  w.logs_new = {{job_id(1), "a", 1, 0, "stdout", at(1), "x"}};
  const auto committed = store->commit(w, 42);
  ASSERT_TRUE(committed) << committed.error().message;
  const auto l = store->load({.jobs_whole = {job_id(1)}, .nodes = {{job_id(1), 3, "split_3"}}}).value();
  EXPECT_TRUE(same(w.jobs_new[0], l.jobs.at(0)));
  EXPECT_TRUE(same(w.nodes_new[1], l.nodes.at(0)));
}

// PostgreSQL binds views to tables and not to names; there they are made anew (operations.md).
TEST_P(Migration, AViewOfOthersShowsJobsThatLeaveNoRows) {
  if (type() != StoreType::sqlite) GTEST_SKIP() << "PostgreSQL binds a view to its table, and the guide says so";
  if (version() < 2) GTEST_SKIP() << "version 2 makes the table anew, and a view on the one of before is not kept";
  database.execute("CREATE VIEW mine AS SELECT job_id, node_id FROM dag_node_states");
  open();
  WriteSet w;
  w.jobs_new = {job(1)};
  w.jobs_new[0].status = JobStatus::completed;
  w.nodes_new = {node(1, "a")};
  w.nodes_new[0].status = NodeStatus::completed;
  w.nodes_new[0].task_id.reset();
  w.nodes_new[0].timer_due.reset();
  w.nodes_new[0].dead_at.reset();
  w.nodes_new[0].sweep_next.reset();
  w.events_new = {event(1, 1)};
  ASSERT_TRUE(store->commit(w, 42));
  const std::string of_job = " WHERE job_id='" + job_id(1).value + "'";
  EXPECT_EQ(database.ask("SELECT node_id FROM mine" + of_job), std::vector<std::string>{"a"});
  EXPECT_TRUE(database.ask("SELECT node_id FROM dag_node_rows" + of_job).empty());
}

TEST_P(Migration, ChildrenPausesTagsAndLogsOfVersion2AreThere) {
  if (version() < 2) GTEST_SKIP();
  open();
  const JobId split{"019c1b7c-4000-7000-8000-000000000003"};
  const auto l = store->load({.jobs_whole = {split}, .nodes = {{split, 4, "split_4"}}}).value();
  EXPECT_EQ(l.jobs.at(0).paused_by, "ann");
  EXPECT_EQ(l.jobs.at(0).priority, 7);
  EXPECT_EQ(l.nodes.at(0).checkpoint, Json{R"({"row":17})"});
  auto reads = store::make_reads(database.url()).value();
  EXPECT_EQ(reads->dead_letters({"default"}, {}, 10)->size(), 1u);
  EXPECT_EQ(reads->logs(split, "split_4", 0, 10)->at(0).text, "hello");
  const JobFilter filter{.tenant = {"default"},
                         .status = {},
                         .workflow_id = {},
                         .tag = "eu",
                         .created_from = {},
                         .created_until = {}};
  EXPECT_EQ(reads->jobs(filter, {}, 10)->jobs.at(0).job_id, split);
}

TEST_P(Migration, RunbooksBegin) {
  open();
  WriteSet w;
  const auto ids = store->reserve_ids(runbook::Table::runbooks, 1);
  ASSERT_TRUE(ids) << ids.error().message;
  w.runbooks.runbooks_new = {runbook::Runbook{.id = ids->at(0), .name = "waves", .version = 1}};
  w.timers_new = {runbook_timer(morning, runbook::RowType::runbook, ids->at(0))};
  const auto committed = store->commit(w, 42);
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_EQ(store->next_timer().value(), morning);
  auto reads = store::make_reads(database.url()).value();
  EXPECT_TRUE(reads->runbook("waves", 0).value());
  EXPECT_TRUE(reads->batches({}, 0, 10)->empty());
}

// The tables of a version, with these rows.
void make_tables(const Database& database, StoreType type, std::size_t version, const std::string& rows) {
  const auto dialect = type == StoreType::sqlite ? store::Dialect::sqlite : store::Dialect::postgres;
  std::string sql = "CREATE TABLE schema_migrations (version {int} PRIMARY KEY, applied_at {time} NOT NULL);";
  for (std::size_t v = 1; v <= version; ++v)
    sql += std::string(store::migrations()[v - 1]) + "INSERT INTO schema_migrations VALUES (" +
           std::to_string(v) + ", {now});";
  database.execute(store::in_dialect(sql + rows, dialect));
}

// Up to version 6 each kind of work had its own table of timers.
class TimersOfVersion : public ::testing::TestWithParam<std::tuple<StoreType, int>> {};

INSTANTIATE_TEST_SUITE_P(All, TimersOfVersion,
                         ::testing::Combine(::testing::Values(StoreType::sqlite, StoreType::postgres),
                                            ::testing::Values(1, 2, 3, 4, 5, 6)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == StoreType::sqlite ? "Sqlite" : "Postgres") +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_P(TimersOfVersion, AreInOneTable) {
  const auto [type, version] = GetParam();
  Database database(type);
  const std::string job = job_id(1).value;
  std::string rows = "INSERT INTO dag_timers(due,job_id,node_id) VALUES (20,'" + job + "','a');";
  std::vector expected{node_timer(from_millis(20), 1, "a")};
  if (version >= 2) {
    rows += "INSERT INTO dag_timers(due,job_id,node_id,item_index) VALUES (10,'" + job + "','split_7',7);";
    expected.insert(expected.begin(), node_timer(from_millis(10), 1, "split_7"));
  }
  if (version >= 3) {
    using enum runbook::RowType;
    std::int64_t due = 30;
    for (const runbook::RowType of : {step, init, cleanup, phase, batch, runbook}) {
      rows += "INSERT INTO runbook_timers(due,kind,id) VALUES (" + std::to_string(++due) + ",'" +
              std::string(name(of)) + "',9000000000);";
      expected.push_back(runbook_timer(from_millis(due), of, 9'000'000'000));
    }
  }
  make_tables(database, type, static_cast<std::size_t>(version), rows);
  auto store = database.store();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(store->timers_due(from_millis(100), 100).value(), expected);
  WriteSet w;
  w.timers_gone = expected;
  ASSERT_TRUE(store->commit(w, 1));
  EXPECT_EQ(store->next_timer().value(), std::nullopt);
}

// A database as a version before flags were numbers has left it.
class FlagsOfVersion4 : public ::testing::TestWithParam<StoreType> {
 protected:
  void SetUp() override {
    make_tables(database, GetParam(), 4, R"sql(
INSERT INTO runbooks(name, version, yaml_content, is_active, rerun_init) VALUES ('waves', 1, '', {true}, {false}), ('waves', 2, '', {false}, {true});
INSERT INTO batches(runbook_id, importing, status) VALUES (1, {true}, 'active'), (1, {false}, 'ACTIVE');
INSERT INTO batch_members(batch_id, member_key, catching_up) VALUES (1, 'a', {true}), (1, 'b', NULL);
INSERT INTO step_executions(phase_execution_id, batch_member_id, step_name, step_index, worker_id, is_poll_step)
  VALUES (1, 1, 's', 0, 'w', {true});
CREATE TABLE runbook_waves_v1 (_row_id {id}, _member_key {text} NOT NULL UNIQUE, _batch_time {time},
  _first_seen_at {time} NOT NULL DEFAULT ({now}), _last_seen_at {time} NOT NULL DEFAULT ({now}),
  _is_current {bool} NOT NULL DEFAULT {true}, "A" {text});
INSERT INTO runbook_waves_v1(_member_key, "A", _is_current) VALUES ('a', '1', {true}), ('b', '2', {false});
)sql");
    store = database.store();
    const auto state = store->open(partition);
    ASSERT_TRUE(state) << state.error().message;
  }

  Database database{GetParam()};
  std::unique_ptr<Store> store;
};

INSTANTIATE_TEST_SUITE_P(All, FlagsOfVersion4, ::testing::Values(StoreType::sqlite, StoreType::postgres), name_of);

TEST_P(FlagsOfVersion4, AreNumbersWithTheirValuesAndDefaults) {
  database.execute(R"sql(
INSERT INTO runbooks(name, version, yaml_content) VALUES ('fresh', 1, '');
INSERT INTO batches(runbook_id) SELECT id FROM runbooks WHERE is_active = 1 AND rerun_init = 0 ORDER BY id;
INSERT INTO runbook_waves_v1(_member_key, "A") VALUES ('c', '3');
UPDATE runbook_waves_v1 SET "A" = 'found' WHERE _is_current = 1;
)sql");
  const auto l = store->load(std::vector<runbook::Need>{runbook::need::Batch{1},
                                                        runbook::need::Batch{2},
                                                        runbook::need::Batch{3},
                                                        runbook::need::Batch{4},
                                                        runbook::need::Batch{5},
                                                        runbook::need::Member{1},
                                                        runbook::need::Member{2},
                                                        runbook::need::Step{1},
                                                        runbook::need::DataRow{"runbook_waves_v1", "a"},
                                                        runbook::need::DataRow{"runbook_waves_v1", "b"},
                                                        runbook::need::DataRow{"runbook_waves_v1", "c"}});
  ASSERT_TRUE(l) << l.error().message;
  ASSERT_EQ(l->batches.size(), 4u);
  EXPECT_TRUE(l->batches[0].importing);
  EXPECT_FALSE(l->batches[1].importing);
  EXPECT_EQ(l->batches[1].status, runbook::BatchStatus::active);
  EXPECT_EQ(l->batches[2].runbook_id, 1);
  EXPECT_EQ(l->batches[3].runbook_id, 3);
  EXPECT_TRUE(l->members.at(0).catching_up);
  EXPECT_FALSE(l->members.at(1).catching_up);
  EXPECT_TRUE(l->steps.at(0).is_poll_step);
  ASSERT_EQ(l->data_rows.size(), 2u);
  for (const auto& row : l->data_rows) EXPECT_EQ(row.data, Json{R"({"A":"found"})"});
}

class MigrationOnPostgres : public ::testing::Test {
 protected:
  Database database{StoreType::postgres};
};

// Whoever waits for a table holds up everybody who comes after it.
TEST_F(MigrationOnPostgres, SaysSoWhenAnotherProgramHoldsATableAndChangesNothing) {
  make_tables(database, StoreType::postgres, 5, "INSERT INTO runbooks(name, version, yaml_content) VALUES ('waves', 1, '');");
  const auto other = store::postgres::connect(database.url()).value();
  ASSERT_TRUE(other->script("BEGIN; SELECT * FROM step_executions"));
  auto store = database.store();
  const auto began = std::chrono::steady_clock::now();
  const auto refused = store->open(partition);
  ASSERT_FALSE(refused);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{8});
  EXPECT_EQ(refused.error().code, Code::unavailable);
  for (const char* part : {"from schema version 5 to", "nothing of it was changed", "lock timeout", "pg_stat_activity"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  // What the migration does before it comes to that table.
  database.execute("UPDATE runbooks SET is_active = true WHERE is_active; DROP INDEX runbooks_active;"
                   "CREATE INDEX runbooks_active ON runbooks (name, version) WHERE is_active;");
  ASSERT_TRUE(other->script("COMMIT"));
  const auto state = store->open(partition);
  EXPECT_TRUE(state) << state.error().message;
}

TEST_F(MigrationOnPostgres, WorksInASchemaWhoseNameHasCapitals) {
  database.execute(R"sql(
CREATE SCHEMA "Wave Runner";
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = %I', current_database(), 'Wave Runner'); END $$;
)sql");
  make_tables(database, StoreType::postgres, 4, "INSERT INTO runbooks(name, version, yaml_content) VALUES ('waves', 1, '');");
  auto store = database.store();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  database.execute(R"sql(INSERT INTO "Wave Runner".batches(runbook_id) SELECT id FROM runbooks WHERE is_active = 1)sql");
  EXPECT_EQ(store->load(std::vector<runbook::Need>{runbook::need::Batch{1}}).value().batches.size(), 1u);
}

}  // namespace
}  // namespace baton::contract::migration_test
