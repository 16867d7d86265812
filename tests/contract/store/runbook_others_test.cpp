// Other programs write the tables of runbooks too: what they leave out, how they write times, and what
// happens when they are faster than the writer.
#include <algorithm>
#include <thread>

#include "store/open.hpp"
#include "store/postgres/connection.hpp"
#include "store/sqlite/connection.hpp"
#include "tests/contract/store/runbook_fixture.hpp"

namespace baton::contract::runbook_others_test {
namespace {

using namespace runbook;

using RunbookOthers = RunbookStoreContract;

INSTANTIATE_TEST_SUITE_P(All, RunbookOthers, ::testing::Values(StoreType::sqlite, StoreType::postgres), name_of);

TEST_P(RunbookOthers, ATimeInAnotherSpellingIsNotAnotherTime) {
  database.execute(R"sql(
INSERT INTO runbooks(name, version, yaml_content) VALUES ('waves', 1, 'name: waves');
INSERT INTO batches(runbook_id, status) VALUES (1, 'Active');
INSERT INTO phase_executions(batch_id, phase_name, offset_minutes, runbook_version, due_at, timer_due) VALUES
  (1, 'a', 0, 1, '2025-03-10T08:00:00Z', '2025-03-10T08:00:00.000Z'),
  (1, 'b', 0, 1, '2025-03-10 08:00:00', '2025-03-10T08:00:00.000Z'),
  (1, 'c', 0, 1, '2025-03-10T09:00:00+01:00', '2025-03-10T08:00:00.000Z'),
  (1, 'd', 0, 1, '2025-03-10T09:00:00Z', '2025-03-10T08:00:00.000Z');
)sql");
  EXPECT_EQ(database.reads().value()->moved_phases(0, 10).value(), Ids{4});
}

TEST_P(RunbookOthers, RowsWithTheColumnsOfTheContractOnlyLoadWithDefaults) {
  database.execute(R"sql(
INSERT INTO runbooks(name, version, yaml_content, data_table_name) VALUES ('waves', 3, 'name: waves', 'runbook_waves_v3');
INSERT INTO batches(runbook_id, batch_start_time, status, detected_at)
  VALUES (1, '2025-03-15T00:00:00Z', 'detected', '2025-03-01T08:00:00Z');
INSERT INTO batch_members(batch_id, member_key) VALUES (1, 'a@contoso.com');
INSERT INTO phase_executions(batch_id, phase_name, offset_minutes, due_at, runbook_version)
  VALUES (1, 'prepare', 7200, '2025-03-10T00:00:00Z', 3);
INSERT INTO step_executions(phase_execution_id, batch_member_id, step_name, step_index, worker_id)
  VALUES (1, 1, 'create-user', 0, 'pool-1');
INSERT INTO init_executions(batch_id, step_name, step_index, runbook_version, worker_id, function_name, params_json)
  VALUES (1, 'make-group', 0, 3, 'pool-1', 'New-Group', '{"Name" : "wave"}');
)sql");
  const auto l = load({need::RunbookNamed{"waves", 3},
                       need::Batch{1},
                       need::MembersOf{1, 0, 10},
                       need::PhasesOf{1},
                       need::StepsOf{1, 1},
                       need::InitsOf{1}});
  Runbook runbook{.id = 1,
                  .name = "waves",
                  .version = 3,
                  .yaml_content = "name: waves",
                  .data_table_name = "runbook_waves_v3"};
  EXPECT_GT(l.runbooks.at(0).created_at, at(0));  // now
  runbook.created_at = l.runbooks[0].created_at;
  EXPECT_TRUE(same(runbook, l.runbooks[0]));
  Batch batch{.id = 1,
              .runbook_id = 1,
              .batch_start_time = from_iso("2025-03-15T00:00:00Z"),
              .detected_at = from_iso("2025-03-01T08:00:00Z").value()};
  EXPECT_TRUE(same(batch, l.batches.at(0)));
  Member member{.id = 1, .batch_id = 1, .member_key = "a@contoso.com", .added_at = l.members.at(0).added_at};
  EXPECT_TRUE(same(member, l.members[0]));
  PhaseExecution phase{.id = 1,
                       .batch_id = 1,
                       .phase_name = "prepare",
                       .offset_minutes = 7200,
                       .due_at = from_iso("2025-03-10T00:00:00Z"),
                       .runbook_version = 3};
  EXPECT_TRUE(same(phase, l.phases.at(0)));
  StepExecution step;
  step.id = step.phase_execution_id = step.batch_member_id = 1;
  step.step_name = "create-user";
  step.worker_id = "pool-1";
  EXPECT_TRUE(same(step, l.steps.at(0)));
  EXPECT_EQ(l.inits.at(0).params_json, Json{R"({"Name" : "wave"})"});
  EXPECT_EQ(l.inits.at(0).status, StepStatus::pending);
  EXPECT_EQ(store->phases_without_timer(10).value(), Ids{1});
}

TEST_P(RunbookOthers, WhatTheyLeaveNullOfTheirOwnColumnsReadsAsNothing) {
  database.execute(R"sql(
INSERT INTO runbooks(name, version, yaml_content, data_table_name, is_active, overdue_behavior, rerun_init)
  VALUES ('waves', 1, '', NULL, NULL, NULL, NULL);
INSERT INTO step_executions(phase_execution_id, batch_member_id, step_name, step_index, worker_id, function_name,
  params_json, job_id, result_json, is_poll_step, poll_count, retry_count)
  VALUES (1, 1, 's', 0, 'w', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
)sql");
  const auto l = load({need::Runbook{1}, need::Step{1}});
  EXPECT_EQ(l.runbooks.at(0).data_table_name, "");
  EXPECT_FALSE(l.runbooks[0].is_active);
  EXPECT_EQ(l.steps.at(0).poll_count, 0);
  EXPECT_FALSE(l.steps[0].is_poll_step || l.steps[0].params_json);
}

TEST_P(RunbookOthers, TimesAreReadAsOthersWriteThem) {
  const Time expected = from_iso("2025-03-15T10:20:30Z").value();
  int id = 0;
  for (const char* text :
       {"2025-03-15T10:20:30Z", "2025-03-15 10:20:30", "2025-03-15T10:20:30", "2025-03-15T10:20:30.0001234",
        "2025-03-15 12:20:30+02:00", "2025-03-15 10:20:30+00", "2025-03-15T10:20:30.000Z"}) {
    database.execute(
        "INSERT INTO phase_executions(batch_id,phase_name,due_at,runbook_version) VALUES (1,'p','" +
        std::string(text) + "',1)");
    const auto l = load({need::Phase{++id}});
    ASSERT_EQ(l.phases.size(), 1u) << text;
    EXPECT_EQ(l.phases[0].due_at, expected) << text;
  }
}

TEST_P(RunbookOthers, TheBatchOfATimeIsFoundHoweverTheTimeWasWritten) {
  const Time midnight = from_iso("2025-03-15T00:00:00Z").value();
  database.execute("INSERT INTO runbooks(name,version,yaml_content) VALUES ('waves',1,'')");
  std::int64_t id = 0;
  for (const char* text :
       {"2025-03-15T00:00:00Z", "2025-03-15 00:00:00", "2025-03-15T00:00:00.0000000",
        "2025-03-15T14:00:00+14:00", "2025-03-14 12:00:00-12:00", "2025-03-15T02:00:00+02:00"}) {
    database.execute("INSERT INTO batches(runbook_id,batch_start_time) VALUES (1,'" + std::string(text) +
                     "')");
    EXPECT_EQ(
        ids(load({need::BatchOfTime{"waves", midnight}}).batches),
        Ids{++id})
        << text;
  }
  database.execute("INSERT INTO batches(runbook_id,batch_start_time) VALUES (1,'2025-03-15T00:00:01Z')");
  EXPECT_EQ(ids(load({need::BatchOfTime{"waves", midnight}}).batches),
            Ids{id});
}

TEST_P(RunbookOthers, WhatCannotBeReadIsNamedAndTheRestIsThere) {
  using Unreadable = std::set<std::pair<runbook::Table, std::int64_t>>;
  database.execute("INSERT INTO batches(runbook_id,status) VALUES (1,'mañana')");
  database.execute("INSERT INTO batches(runbook_id,status) VALUES (1,'active')");
  const auto loaded = load({need::Batch{1}, need::Batch{2}});
  EXPECT_EQ(loaded.batches.size(), 2U);
  EXPECT_EQ(loaded.unreadable, (Unreadable{{runbook::Table::batches, 1}}));
  if (GetParam() != StoreType::sqlite) return;  // the other refuses it at once
  database.execute(
      "INSERT INTO phase_executions(batch_id,phase_name,due_at,runbook_version) VALUES (1,'p','soon',1)");
  EXPECT_EQ(load({need::Phase{1}}).unreadable, (Unreadable{{runbook::Table::phase_executions, 1}}));
}

TEST_P(RunbookOthers, ARowThatAnotherProgramChangedMeanwhileIsAConflictAndNothingIsWritten) {
  Writes w;
  w.steps_new = {step_row(1), step_row(2)};
  commit(w);
  const auto seen = load({need::Step{1}, need::Step{2}});
  database.execute("UPDATE step_executions SET status='cancelled' WHERE id=2");
  Writes u;
  const auto succeed = [](auto& row) { row.status = StepStatus::succeeded; };
  for (const StepExecution& step : seen.steps) u.steps_changed.push_back(changed(step, succeed));
  const auto done = try_commit(u, {runbook_timer(at(1), runbook::RowType::step, 1)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  EXPECT_TRUE(done.error().message.contains("step_executions")) << done.error().message;
  EXPECT_EQ(store->next_timer().value(), std::nullopt);
  const auto again = load({need::Step{1}, need::Step{2}});
  EXPECT_EQ(again.steps.at(0).status, StepStatus::dispatched);
  EXPECT_EQ(again.steps.at(1).status, StepStatus::cancelled);
  database.execute("DELETE FROM step_executions WHERE id=1");
  u.steps_changed = {changed(again.steps[0], succeed)};
  EXPECT_EQ(try_commit(u).error().code, Code::conflict);
  u.steps_changed = {changed(again.steps[1], succeed)};
  commit(u);
}

// A scheduler refreshes rows between our load and our commit: both keep what they wrote.
TEST_P(RunbookOthers, WhatAnotherProgramWritesToARowThatIsBeingUpdatedStays) {
  Writes w;
  w.runbooks_new = {runbook_row(1)};
  w.batches_new = {batch_row(1)};
  w.members_new = {member_row(1)};
  w.phases_new = {phase_row(1)};
  w.steps_new = {step_row(1)};
  w.inits_new = {init_row(1)};
  commit(w);
  const std::vector<Need> needs{need::Runbook{1}, need::Batch{1}, need::Member{1},
                                need::Phase{1},   need::Step{1},  need::Init{1}};
  const auto seen = load(needs);
  database.execute(R"sql(
UPDATE runbooks SET overdue_behavior='rerun', yaml_content='name: theirs' WHERE id=1;
UPDATE batches SET batch_start_time='2031-01-01T00:00:00Z' WHERE id=1;
UPDATE batch_members SET data_json='{"A":"theirs"}', add_dispatched_at='2031-01-02T00:00:00Z' WHERE id=1;
UPDATE phase_executions SET due_at='2031-01-03T00:00:00Z', offset_minutes=17 WHERE id=1;
UPDATE step_executions SET params_json='{"Upn":"theirs"}', function_name='Theirs', max_retries=9 WHERE id=1;
UPDATE init_executions SET params_json='{"Name":"theirs"}', retry_interval_sec=77 WHERE id=1;
)sql");
  Writes u;
  u.runbooks_changed = {changed(seen.runbooks.at(0), [](auto& row) { row.is_active = true; })};
  u.batches_changed = {changed(seen.batches.at(0), [](auto& row) { row.status = BatchStatus::completed; })};
  u.members_changed = {changed(seen.members.at(0), [](auto& row) { row.worker_data_json = Json{R"({"B":"ours"})"}; })};
  u.phases_changed = {changed(seen.phases.at(0), [](auto& row) { row.status = PhaseStatus::completed; })};
  const auto succeed = [](auto& row) { row.status = StepStatus::succeeded, row.completed_at = at(77); };
  u.steps_changed = {changed(seen.steps.at(0), succeed)};
  u.inits_changed = {changed(seen.inits.at(0), succeed)};
  commit(u);
  runbook::Loaded expected = seen;
  const auto day = [](int n) { return from_iso("2031-01-0" + std::to_string(n) + "T00:00:00Z").value(); };
  expected.runbooks[0].is_active = true;
  expected.runbooks[0].overdue_behavior = "rerun";
  expected.runbooks[0].yaml_content = "name: theirs";
  expected.batches[0].status = BatchStatus::completed;
  expected.batches[0].batch_start_time = day(1);
  expected.members[0].worker_data_json = Json{R"({"B":"ours"})"};
  expected.members[0].data_json = Json{R"({"A":"theirs"})"};
  expected.members[0].add_dispatched_at = day(2);
  expected.phases[0].status = PhaseStatus::completed;
  expected.phases[0].due_at = day(3);
  expected.phases[0].offset_minutes = 17;
  succeed(expected.steps[0]);
  expected.steps[0].params_json = Json{R"({"Upn":"theirs"})"};
  expected.steps[0].function_name = "Theirs";
  expected.steps[0].max_retries = 9;
  succeed(expected.inits[0]);
  expected.inits[0].params_json = Json{R"({"Name":"theirs"})"};
  expected.inits[0].retry_interval_sec = 77;
  expect_same(expected, load(needs));
}

// The SQL of the contract as it is written there, on rows of ours and on rows of others.
TEST_P(RunbookOthers, FlagsAreZeroAndOne) {
  Writes w;
  w.runbooks_new = {runbook_row(1), runbook_row(2, "other")};
  w.runbooks_new[0].is_active = true;
  w.steps_new = {step_row(1), step_row(2)};
  w.steps_new[1].is_poll_step = false;
  commit(w);
  ASSERT_TRUE(store->write_data({.table = "runbook_waves_v1",
                                 .columns = {"A"},
                                 .rows = {{"x", at(7), Json{R"({"A":"1"})"}}, {"y", at(7), Json{R"({"A":"1"})"}}},
                                 .seen_at = at(100)}));
  database.execute(R"sql(
INSERT INTO batches(runbook_id, is_manual) SELECT id, 1 FROM runbooks WHERE is_active = 1;
INSERT INTO batches(runbook_id, is_manual) SELECT id, 0 FROM runbooks WHERE is_active = 0;
UPDATE step_executions SET job_id='polls' WHERE is_poll_step = 1;
UPDATE step_executions SET job_id='once' WHERE is_poll_step = 0;
UPDATE runbook_waves_v1 SET _is_current = 0 WHERE _is_current = 1 AND _member_key = 'y';
)sql");
  const auto l = load({need::Batch{1}, need::Batch{2}, need::Step{1}, need::Step{2}});
  EXPECT_EQ(l.batches.at(0).runbook_id, 1);
  EXPECT_TRUE(l.batches[0].is_manual);
  EXPECT_EQ(l.batches.at(1).runbook_id, 2);
  EXPECT_FALSE(l.batches[1].is_manual);
  EXPECT_EQ(l.steps.at(0).job_id, "polls");
  EXPECT_EQ(l.steps.at(1).job_id, "once");
  const auto data = load({need::DataRow{"runbook_waves_v1", "x"},
                          need::DataRow{"runbook_waves_v1", "y"}});
  ASSERT_EQ(data.data_rows.size(), 1u);
  EXPECT_EQ(data.data_rows[0].member_key, "x");
}

TEST_P(RunbookOthers, StatusesMatchWithoutRegardToCase) {
  database.execute(R"sql(
INSERT INTO runbooks(name, version, yaml_content) VALUES ('waves', 1, '');
INSERT INTO batches(runbook_id, batch_start_time, status) VALUES (1, '2025-03-15T00:00:00Z', 'Active');
INSERT INTO batches(runbook_id, batch_start_time, status) VALUES (1, '2025-03-15T00:00:00Z', 'COMPLETED');
INSERT INTO batch_members(batch_id, member_key, status) VALUES (1, 'a', 'Active'), (1, 'b', 'FAILED');
INSERT INTO phase_executions(batch_id, phase_name, due_at, runbook_version, status)
  VALUES (1, 'p', '2025-03-15T00:00:00Z', 1, 'Pending'), (1, 'q', '2025-03-15T00:00:00Z', 1, 'Dispatched');
INSERT INTO step_executions(phase_execution_id, batch_member_id, step_name, step_index, worker_id, status)
  VALUES (1, 1, 's', 0, 'w', 'Succeeded'), (1, 1, 't', 1, 'w', 'PENDING'), (1, 1, 'u', 2, 'w', 'Poll_Timeout');
)sql");
  const auto midnight = to_millis(from_iso("2025-03-15T00:00:00Z").value());
  EXPECT_EQ(ids(load({need::BatchOfTime{"waves", from_millis(midnight)}}).batches), Ids{1});
  EXPECT_EQ(ids(load({need::OpenBatches{"waves", 0, 9}}).batches), Ids{1});
  EXPECT_EQ(ids(load({need::FailedMembersOf{1, 0, 9}}).members), Ids{2});
  EXPECT_EQ(store->phases_without_timer(9).value(), Ids{1});
  const auto ahead = load({need::StepsAhead{1, 1}});
  EXPECT_EQ(ids(ahead.steps), (Ids{2, 3}));
  EXPECT_EQ(ahead.steps.at(0).status, StepStatus::pending);
  EXPECT_TRUE(ahead.unreadable.empty());

  Writes u;  // what was not changed keeps its spelling, what was gets ours
  u.batches_changed = {changed(load({need::Batch{1}}).batches.at(0), [](auto& row) { row.paused_by = "ann"; })};
  u.steps_changed = {changed(ahead.steps[0], [](auto& row) { row.status = StepStatus::dispatched; })};
  commit(u);
  database.execute("UPDATE batches SET error_message='spelled so' WHERE status='Active'");
  database.execute("UPDATE step_executions SET error_message='spelled so' WHERE status='dispatched'");
  EXPECT_EQ(load({need::Batch{1}}).batches.at(0).error_message, "spelled so");
  EXPECT_EQ(load({need::Step{2}}).steps.at(0).error_message, "spelled so");

  const auto reads = store::make_reads(database.url()).value();
  EXPECT_EQ(reads->batches({.status = BatchStatus::completed}, 0, 9)->at(0).batch.id, 2);
  EXPECT_EQ(ids(reads->members(1, MemberStatus::failed, 0, 9).value()), Ids{2});
  EXPECT_EQ(ids(reads->members(1, MemberStatus::active, 0, 9).value()), Ids{1});
  EXPECT_EQ(reads->failures(1, {}, 9)->at(0).step.ref.id, 3);
}

TEST_P(RunbookOthers, WhatOthersInsertNeverMeetsAReservedId) {
  const auto insert = [&] {
    database.execute("INSERT INTO batch_members(batch_id,member_key) VALUES (1,'theirs')");
  };
  Writes w;
  const auto write = [&](const Ids& given) {
    w.members_new.clear();
    for (const std::int64_t id : given) w.members_new.push_back(member_row(id));
    commit(w);
  };
  insert();
  const auto early = store->reserve_ids(runbook::Table::batch_members, 10).value();
  insert();
  insert();
  write(early);
  insert();
  const auto late = store->reserve_ids(runbook::Table::batch_members, 10).value();
  EXPECT_GT(late.front(), early.back());
  write(late);
  insert();
  EXPECT_EQ(load({need::MembersOf{1, 0, 100}}).members.size(), 25u);
  EXPECT_EQ(load({need::MembersNamed{1, "theirs"}}).members.size(), 5u);
}

TEST_P(RunbookOthers, IdsAreReservedAtOnceByManyPrograms) {
  std::vector<Ids> given(4);
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < given.size(); ++i) {
      others.emplace_back([&] {
        for (int n = 0; n < 20; ++n)
          database.execute(
              "INSERT INTO init_executions(batch_id,step_name,step_index,runbook_version,worker_id) "
              "VALUES (1,'s',0,1,'w')");
      });
    }
    for (int n = 0; n < 20; ++n) {
      const auto some = store->reserve_ids(runbook::Table::init_executions, 3);
      ASSERT_TRUE(some) << some.error().message;
      given[0].insert(given[0].end(), some->begin(), some->end());
    }
  }
  Writes w;
  for (const std::int64_t id : given[0]) w.inits_new.push_back(init_row(id, 2));
  commit(w);
  EXPECT_EQ(load({need::InitsOf{1}}).inits.size(), 60u);
  EXPECT_EQ(load({need::InitsOf{2}}).inits.size(), 60u);
}

// Somebody has changed a row at a prompt and gone for coffee.
TEST(PostgresRunbooks, ARowThatAnotherProgramHoldsIsAConflictInAShortWhileAndTheStoreGoesOn) {
  Database database(StoreType::postgres);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  w.runbooks.members_new = {member_row(1), member_row(2)};
  ASSERT_TRUE(store->commit(w, 1));
  const auto seen = store->load(std::vector<Need>{need::Member{1}, need::Member{2}}).value().members;
  auto other = store::postgres::connect(database.url()).value();
  ASSERT_TRUE(other->script("BEGIN; UPDATE batch_members SET status=status WHERE id=1"));
  const auto change = [&](std::size_t i) {
    WriteSet set;
    set.runbooks.members_changed = {changed(seen.at(i), [](auto& row) { row.removed_by = "ann"; })};
    return set;
  };
  const auto begun = std::chrono::steady_clock::now();
  const auto done = store->commit(change(0), 2);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{5});
  EXPECT_TRUE(store->commit(change(1), 2));  // without open()
  ASSERT_TRUE(other->script("ROLLBACK"));
  EXPECT_TRUE(store->commit(change(0), 3));
}

TEST(PostgresRunbooks, ADeadlockWithAnotherProgramIsAConflictOrTheOthersProblem) {
  Database database(StoreType::postgres);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  w.runbooks.batches_new = {batch_row(1)};
  w.runbooks.members_new = {member_row(1)};
  ASSERT_TRUE(store->commit(w, 1));
  const auto seen = store->load(std::vector<Need>{need::Batch{1}, need::Member{1}}).value();
  auto other = store::postgres::connect(database.url()).value();
  // Whichever of the two the writer changes first, the other program has the one it changes last.
  ASSERT_TRUE(other->script("SET deadlock_timeout='60s'; BEGIN; UPDATE batch_members SET status=status WHERE id=1"));
  std::jthread waits([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    (void)other->script("UPDATE batches SET status=status WHERE id=1");
    (void)other->script("ROLLBACK");
  });
  WriteSet set;
  set.runbooks.batches_changed = {changed(seen.batches.at(0), [](auto& row) { row.paused_by = "ann"; })};
  set.runbooks.members_changed = {changed(seen.members.at(0), [](auto& row) { row.removed_by = "ann"; })};
  const auto done = store->commit(set, 2);
  EXPECT_EQ(done ? Code::conflict : done.error().code, Code::conflict) << (done ? "" : done.error().message);
  waits.join();
  EXPECT_TRUE(store->commit(set, done ? 3 : 2));
}

TEST(SqliteRunbooks, ASequenceThatSomebodyHasClearedStartsBehindTheLastRow) {
  Database database(StoreType::sqlite);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  database.execute("INSERT INTO batches(id,runbook_id) VALUES (70,1); DELETE FROM sqlite_sequence");
  EXPECT_EQ(store->reserve_ids(runbook::Table::batches, 2).value(), (Ids{71, 72}));
}

TEST(SqliteRunbooks, WhileAnotherProgramWritesTheStoreIsBusyAndNothingIsLost) {
  Database database(StoreType::sqlite);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  auto other = store::sqlite::connect(database.path(), store::sqlite::Access::admin).value();
  ASSERT_TRUE(other->script("BEGIN IMMEDIATE"));
  EXPECT_EQ(store->reserve_ids(runbook::Table::batches, 2).error().code, Code::busy);
  EXPECT_EQ(store->write_data({.table = "runbook_a_v1"}).error().code, Code::busy);
  EXPECT_TRUE(store->load(std::vector<Need>{need::Batch{1}}));  // who reads does not wait
  ASSERT_TRUE(other->script("COMMIT"));
  EXPECT_EQ(store->reserve_ids(runbook::Table::batches, 2).value(), (Ids{1, 2}));
}

}  // namespace
}  // namespace baton::contract::runbook_others_test
