// The contract of core/runbook/store_needs.hpp, on every adapter: what is written and what may be asked for.
#include <algorithm>

#include "tests/contract/store/runbook_fixture.hpp"

namespace baton::contract::runbook_store_contract_test {
namespace {

using namespace runbook;

INSTANTIATE_TEST_SUITE_P(All, RunbookStoreContract, every_store(), name_of);

TEST_P(RunbookStoreContract, EveryColumnComesBackAsItWasWritten) {
  Writes w;
  w.runbooks_new = {runbook_row(1)};
  w.batches_new = {batch_row(2)};
  w.members_new = {member_row(3)};
  w.phases_new = {phase_row(4)};
  w.steps_new = {step_row(5)};
  w.inits_new = {init_row(6)};
  w.cleanups_new = {cleanup_row(7)};
  w.holds_new = {hold_row(8)};
  w.counts = {{1, 2, "step", 3, "failed", 4'000'000'000}};
  commit(w);
  const auto l = load({need::Runbook{1},
                       need::Batch{2},
                       need::Member{3},
                       need::Phase{4},
                       need::Step{5},
                       need::Init{6},
                       need::Cleanup{7},
                       need::Hold{8},
                       need::CountsOf{1, 2}});
  expect_same(w, l);
  EXPECT_TRUE(same(w.counts[0], l.counts.at(0)));
}

TEST_P(RunbookStoreContract, AbsentValuesStayAbsent) {
  Writes w;
  w.runbooks_new = {Runbook{.id = 1, .name = "bare"}};
  w.batches_new = {Batch{.id = 1}};
  w.members_new = {Member{.id = 1}};
  w.phases_new = {PhaseExecution{.id = 1}};
  w.steps_new.resize(1), w.steps_new[0].id = 1;
  w.inits_new.resize(1), w.inits_new[0].id = 1;
  w.cleanups_new.resize(1), w.cleanups_new[0].id = 1;
  commit(w);
  const auto l = load({need::Runbook{1},
                       need::Batch{1},
                       need::Member{1},
                       need::Phase{1},
                       need::Step{1},
                       need::Init{1},
                       need::Cleanup{1}});
  expect_same(w, l);
}

TEST_P(RunbookStoreContract, ResultsAreNotLoaded) {
  Writes w;
  w.steps_new = {step_row(1)};
  w.steps_new[0].result_json = Json{"{}"};
  w.inits_new = {init_row(1)};
  w.inits_new[0].result_json = Json{"{}"};
  w.cleanups_new = {cleanup_row(1)};
  w.cleanups_new[0].result_json = Json{"{}"};
  commit(w);
  const auto l = load({need::Step{1}, need::Init{1}, need::Cleanup{1}});
  EXPECT_FALSE(l.steps.at(0).result_json);
  EXPECT_FALSE(l.inits.at(0).result_json);
  EXPECT_FALSE(l.cleanups.at(0).result_json);
}

TEST_P(RunbookStoreContract, AnInsertOfAnIdThatIsThereAndAnUpdateOfOneThatIsNotAreConflicts) {
  Writes w;
  w.runbooks_new = {runbook_row(1)};
  w.steps_new = {step_row(1)};
  w.events_new = {batch_event_row(1, 1)};
  commit(w);
  std::vector<Writes> attempts(5);
  attempts[0].steps_new = {step_row(1)};
  attempts[1].steps_changed = {changed(step_row(2), [](auto& row) { row.job_id = "x"; })};
  attempts[2].runbooks_changed = {changed(runbook_row(2), [](auto& row) { row.is_active = true; })};
  attempts[3].runbooks_new = {runbook_row(2)};  // the same name and version
  attempts[4].events_new = {batch_event_row(1, 1)};
  for (const Writes& attempt : attempts) {
    const auto done = try_commit(attempt);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  }
}

TEST_P(RunbookStoreContract, CountsAreInsertedOrReplacedAndFoundByBatchAndPhase) {
  Writes w;
  w.counts = {{1, 0, "member", 0, "active", 5},
              {1, 0, "rollback", 0, "pending", 1},
              {1, 7, "step", 0, "pending", 2},
              {1, 8, "step", 0, "pending", 3},
              {2, 0, "member", 0, "active", 9}};
  commit(w);
  w.counts = {{1, 7, "step", 0, "pending", 0}, {1, 7, "step", 1, "pending", 2}};
  commit(w);
  const auto counts = [&](std::int64_t batch, std::int64_t phase) {
    std::vector<std::string> found;
    for (const Count& c : load({need::CountsOf{batch, phase}}).counts)
      found.push_back(c.lane + " " + std::to_string(c.step_index) + " " + c.status + " " +
                      std::to_string(c.n));
    std::ranges::sort(found);
    return found;
  };
  EXPECT_EQ(counts(1, 0), (std::vector<std::string>{"member 0 active 5", "rollback 0 pending 1"}));
  EXPECT_EQ(counts(1, 7), (std::vector<std::string>{"step 0 pending 0", "step 1 pending 2"}));
  EXPECT_EQ(counts(3, 0), std::vector<std::string>{});
  EXPECT_EQ(load({need::CountsOf{1, 7}, need::CountsOf{1, 7}, need::CountsOf{1, 8}}).counts.size(),
            3u);
}

TEST_P(RunbookStoreContract, RunbooksAreFoundByNameAndVersion) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1), runbook_row(2, "waves", 2), runbook_row(3, "waves", 3),
                    runbook_row(4, "other", 9), runbook_row(5, "Waves", 8)};
  w.runbooks_new[1].is_active = true;
  commit(w);
  const auto named = [&](Need need) { return ids(load({std::move(need)}).runbooks); };
  EXPECT_EQ(named(need::RunbookNamed{"waves", 0}), Ids{2});  // the active one
  EXPECT_EQ(named(need::RunbookNamed{"other", 0}), Ids{4});  // none is active: the newest
  EXPECT_EQ(named(need::RunbookNamed{"waves", 1}), Ids{1});
  EXPECT_EQ(named(need::RunbookNamed{"waves", 4}), Ids{});
  EXPECT_EQ(named(need::RunbookNamed{"none", 0}), Ids{});
  EXPECT_EQ(named(need::LatestVersion{"waves"}), Ids{3});
  EXPECT_EQ(named(need::LatestVersion{"none"}), Ids{});
  EXPECT_EQ(named(need::RunbooksOfTable{"runbook_waves_v2"}), Ids{2});
  EXPECT_EQ(named(need::RunbooksOfTable{"waves"}), Ids{});
  const auto all = load({need::RunbookNamed{"waves", 3},
                         need::RunbookNamed{"waves", 0},
                         need::LatestVersion{"waves"},
                         need::Runbook{3},
                         need::Runbook{1}});
  auto found = ids(all.runbooks);
  std::ranges::sort(found);
  EXPECT_EQ(found, (Ids{1, 2, 3}));
}

TEST_P(RunbookStoreContract, OpenBatchesAreFoundByRunbookAndTimeWhateverTheVersion) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1), runbook_row(2, "waves", 2), runbook_row(3, "other", 1)};
  const auto batch = [&](std::int64_t id, std::int64_t runbook, BatchStatus status,
                         std::optional<Time> time) {
    Batch row = batch_row(id, runbook);
    row.status = status;
    row.batch_start_time = time;
    w.batches_new.push_back(row);
  };
  batch(1, 1, BatchStatus::active, at(1000));
  batch(2, 2, BatchStatus::detected, at(1000));
  batch(3, 2, BatchStatus::completed, at(1000));
  batch(4, 3, BatchStatus::active, at(1000));
  batch(5, 1, BatchStatus::init_dispatched, at(1001));
  batch(6, 1, BatchStatus::active, std::nullopt);
  batch(7, 1, BatchStatus::failed, at(1001));
  batch(8, 1, BatchStatus::cancelled, at(1001));
  commit(w);
  const auto of_time = [&](const char* name, Time time) {
    return ids(load({need::BatchOfTime{name, time}}).batches);
  };
  EXPECT_EQ(of_time("waves", at(1000)), Ids{2});
  EXPECT_EQ(of_time("waves", at(1001)), Ids{5});
  EXPECT_EQ(of_time("waves", at(1002)), Ids{});
  EXPECT_EQ(of_time("other", at(1000)), Ids{4});
  EXPECT_EQ(of_time("other", at(1001)), Ids{});
  EXPECT_EQ(load({need::BatchOfTime{"waves", at(1000)},
                  need::BatchOfTime{"other", at(1000)},
                  need::BatchOfTime{"waves", at(1001)},
                  need::Batch{2}})
                .batches.size(),
            3u);
  const auto open = [&](std::int64_t after, std::int32_t limit) {
    return ids(load({need::OpenBatches{"waves", after, limit}}).batches);
  };
  EXPECT_EQ(open(0, 10), (Ids{1, 2, 5, 6}));
  EXPECT_EQ(open(1, 2), (Ids{2, 5}));
  EXPECT_EQ(open(6, 10), Ids{});
}

TEST_P(RunbookStoreContract, PhasesAndInitStepsAreFoundByTheirBatch) {
  Writes w;
  w.phases_new = {phase_row(3), phase_row(1), phase_row(2, 9)};
  w.inits_new = {init_row(1), init_row(2), init_row(3), init_row(4, 9)};
  w.inits_new[0].step_index = 1;
  w.inits_new[2].runbook_version = 2;
  commit(w);
  const auto l = load({need::PhasesOf{1}, need::InitsOf{1}, need::Phase{3}, need::Init{1}});
  EXPECT_EQ(ids(l.phases), (Ids{1, 3}));
  EXPECT_EQ(ids(l.inits), (Ids{3, 2, 1}));  // by version and step_index
  EXPECT_TRUE(same(w.inits_new[1], l.inits[1]));
}

TEST_P(RunbookStoreContract, MembersComeInPagesByIdAndByKey) {
  Writes w;
  for (int id = 1; id <= 9; ++id) {
    w.members_new.push_back(member_row(id, id % 2 == 0 ? 2 : 1));
    w.members_new.back().member_key = id < 6 ? "a" : "B";
    w.members_new.back().status = static_cast<MemberStatus>(id % 3);  // 0 active, 1 removed, 2 failed
  }
  commit(w);
  const auto of = [&](Need need) { return ids(load({std::move(need)}).members); };
  EXPECT_EQ(of(need::MembersOf{1, 0, 100}), (Ids{1, 3, 5, 7, 9}));
  EXPECT_EQ(of(need::MembersOf{1, 1, 2}), (Ids{3, 5}));
  EXPECT_EQ(of(need::MembersOf{1, 9, 2}), Ids{});
  EXPECT_EQ(of(need::FailedMembersOf{1, 0, 100}), Ids{5});
  EXPECT_EQ(of(need::FailedMembersOf{2, 0, 100}), (Ids{2, 8}));
  EXPECT_EQ(of(need::FailedMembersOf{2, 2, 100}), Ids{8});
  EXPECT_EQ(of(need::FailedMembersOf{2, 0, 1}), Ids{2});
  const auto named = [&](std::int64_t batch, const char* key) {
    return ids(load({need::MembersNamed{batch, key}}).members);
  };
  EXPECT_EQ(named(1, "a"), (Ids{1, 3, 5}));
  EXPECT_EQ(named(1, "B"), (Ids{7, 9}));
  EXPECT_EQ(named(1, "b"), Ids{});  // by bytes
  const auto both =
      load({need::MembersOf{1, 0, 3}, need::Member{3}, need::Member{2}, need::Member{99}});
  EXPECT_EQ(ids(both.members), (Ids{1, 3, 5, 2}));
}

TEST_P(RunbookStoreContract, StepsAreFoundByMemberAndPhase) {
  Writes w;
  w.members_new = {member_row(1), member_row(2), member_row(4)};
  w.phases_new = {phase_row(10), phase_row(11), phase_row(12, 9)};
  w.steps_new = {step_row(5, 10, 1, 1), step_row(6, 10, 1, 0), step_row(7, 11, 1, 0), step_row(8, 10, 2, 0),
                 step_row(9, 11, 2, 0), step_row(20, 10, 4, 2), step_row(21, 10, 4, 0), step_row(22, 10, 4, 1)};
  commit(w);
  const auto ids_of = [&](const std::vector<Need>& needs) { return ids(load(needs).steps); };
  EXPECT_EQ(ids_of({need::StepsOf{1, 10}}), (Ids{6, 5}));  // by step_index
  EXPECT_EQ(ids_of({need::StepsOf{2, 10}}), Ids{8});
  EXPECT_EQ(ids_of({need::StepsOf{2, 12}}), Ids{});
  EXPECT_EQ(ids_of({need::StepsAhead{1, 10}}), (Ids{6, 5}));
  EXPECT_EQ(ids_of({need::StepsAhead{4, 10}}), (Ids{21, 22})) << "the first ones are enough";
  EXPECT_EQ(ids_of({need::StepsOfMember{1}}), (Ids{6, 5, 7}));
  EXPECT_EQ(ids_of({need::StepsOfMember{3}}), Ids{});
  EXPECT_EQ(ids_of({need::Step{5}, need::Step{8}, need::StepsOf{1, 10}}), (Ids{6, 5, 8}));
  auto all = ids_of({need::StepsOfMember{1}, need::StepsOfMember{2}, need::StepsOf{1, 11}});
  std::ranges::sort(all);
  EXPECT_EQ(all, (Ids{5, 6, 7, 8, 9}));

  Writes done;
  done.steps_changed = {
      changed(load({need::Step{6}}).steps.at(0), [](auto& row) { row.status = StepStatus::succeeded; })};
  commit(done);
  EXPECT_EQ(ids_of({need::StepsAhead{1, 10}}), Ids{5});
}

TEST_P(RunbookStoreContract, ParkedStepsOfABatchComeByPhaseAndId) {
  Writes w;
  w.phases_new = {phase_row(10, 7), phase_row(11, 7), phase_row(12, 8)};
  for (int id = 1; id <= 6; ++id) {
    w.steps_new.push_back(step_row(id, id == 2 ? 11 : id == 6 ? 12 : 10));
    w.steps_new.back().job_state = id % 2 == 0 || id == 5 ? JobState::parked : JobState::none;
  }
  commit(w);
  const auto parked = [&](std::int64_t batch, std::int32_t limit) {
    return ids(load({need::ParkedSteps{batch, limit}}).steps);
  };
  EXPECT_EQ(parked(7, 10), (Ids{4, 5, 2}));
  EXPECT_EQ(parked(7, 1), Ids{4});
  EXPECT_EQ(parked(8, 10), Ids{6});
  EXPECT_EQ(parked(9, 10), Ids{});
}

TEST_P(RunbookStoreContract, CleanupsAreFoundByWhatCausedThem) {
  Writes w;
  const auto cleanup = [&](std::int64_t id, CleanupKind kind, StepStatus status) -> CleanupExecution& {
    CleanupExecution row = cleanup_row(id, 4);
    row.kind = kind;
    row.status = status;
    row.batch_member_id = 6;
    row.caused_by_step_id.reset();
    row.caused_by_init_id.reset();
    return w.cleanups_new.emplace_back(row);
  };
  cleanup(1, CleanupKind::rollback, StepStatus::pending).caused_by_step_id = 50;
  cleanup(2, CleanupKind::rollback, StepStatus::succeeded).caused_by_step_id = 50;
  cleanup(3, CleanupKind::rollback, StepStatus::dispatched).caused_by_init_id = 50;
  cleanup(4, CleanupKind::removal, StepStatus::polling);
  cleanup(5, CleanupKind::removal, StepStatus::failed).batch_member_id = 7;
  w.cleanups_new.back().dead_at.reset();
  cleanup(6, CleanupKind::rollback, StepStatus::failed).batch_member_id = 8;
  w.cleanups_new.back().dead_at = at(1'000);
  commit(w);
  const auto found = [&](Need need) { return ids(load({std::move(need)}).cleanups); };
  EXPECT_EQ(found(need::CleanupsOfStep{50}), (Ids{1, 2}));
  EXPECT_EQ(found(need::CleanupsOfInit{50}), Ids{3});
  EXPECT_EQ(found(need::RemovalsOf{6}), Ids{4});
  EXPECT_EQ(found(need::RemovalsOf{7}), Ids{5});
  EXPECT_EQ(found(need::OpenCleanupsOf{4}), (Ids{1, 3, 4}));
  EXPECT_EQ(found(need::OpenCleanupsOf{5}), Ids{});
  EXPECT_EQ(found(need::DeadCleanupsOf{4}), Ids{6});
  EXPECT_EQ(
      load({need::CleanupsOfStep{50}, need::OpenCleanupsOf{4}, need::Cleanup{1}}).cleanups.size(),
      4u);
}

TEST_P(RunbookStoreContract, WhatIsNotThereIsAbsentAndNoNeedsAskForNothing) {
  const std::vector<Need> needs{need::Runbook{1},
                                need::RunbookNamed{"x", 0},
                                need::RunbookNamed{"x", 1},
                                need::LatestVersion{"x"},
                                need::RunbooksOfTable{"x"},
                                need::Batch{1},
                                need::BatchOfTime{"x", at(1)},
                                need::OpenBatches{"x", 1, 1},
                                need::Phase{1},
                                need::PhasesOf{1},
                                need::Init{1},
                                need::InitsOf{1},
                                need::Member{1},
                                need::MembersOf{1, 1, 1},
                                need::FailedMembersOf{1, 1, 1},
                                need::MembersNamed{1, "x"},
                                need::Step{1},
                                need::StepsOf{1, 1},
                                need::StepsAhead{1, 1},
                                need::StepsOfMember{1},
                                need::ParkedSteps{1, 1},
                                need::Cleanup{1},
                                need::CleanupsOfStep{1},
                                need::CleanupsOfInit{1},
                                need::RemovalsOf{1},
                                need::OpenCleanupsOf{1},
                                need::DeadCleanupsOf{1},
                                need::CountsOf{1, 1},
                                need::DataRow{"x", "y"}};
  const auto l = load(needs);
  EXPECT_TRUE(l.runbooks.empty() && l.batches.empty() && l.members.empty() && l.phases.empty() &&
              l.steps.empty() && l.places.empty() && l.inits.empty() && l.cleanups.empty() && l.counts.empty() &&
              l.data_rows.empty());
  load({});
}

TEST_P(RunbookStoreContract, ReservedIdsGrowAndAreGivenOnceAlsoOverARestart) {
  Ids all;
  const auto reserve = [&](runbook::Table table, std::size_t count) {
    const auto given = store->reserve_ids(table, count);
    ASSERT_TRUE(given) << given.error().message;
    ASSERT_EQ(given->size(), count);
    all.insert(all.end(), given->begin(), given->end());
  };
  reserve(runbook::Table::step_executions, 100);
  reserve(runbook::Table::step_executions, 1);
  store.reset();
  store = database.store();
  ASSERT_TRUE(store->open(partition));
  reserve(runbook::Table::step_executions, 3);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  Writes w;
  for (const std::int64_t id : all) w.steps_new.push_back(step_row(id));
  commit(w);
  for (int table = 0; table <= static_cast<int>(runbook::Table::cleanup_executions); ++table) {
    all.clear();
    reserve(static_cast<runbook::Table>(table), 2);
    EXPECT_LT(all[0], all[1]);
  }
}

TEST_P(RunbookStoreContract, QueuedJobsAndNodesWaitInOneOrder) {
  WriteSet set;
  set.nodes_new = {node(1, "a"), node(1, "b")};
  set.nodes_new[0].queue = set.nodes_new[1].queue = "pool-1";
  set.nodes_new[0].dispatched_at = at(20), set.nodes_new[0].priority = 0;
  set.nodes_new[1].dispatched_at = at(99), set.nodes_new[1].priority = 5;
  const auto queue = [](auto row, Time when) {
    row.job_state = JobState::queued;
    row.queued_at = when;
    return row;
  };
  set.runbooks.steps_new = {queue(step_row(1), at(30)), queue(step_row(2), at(10)), step_row(3),
                            queue(step_row(4), at(5))};
  set.runbooks.steps_new[3].worker_id = "pool-2";
  set.runbooks.inits_new = {queue(init_row(1), at(20))};
  set.runbooks.cleanups_new = {queue(cleanup_row(1), at(10))};
  ASSERT_TRUE(store->commit(set, ++number));
  const auto job = [](runbook::RowType type, std::int64_t id, int when) {
    return waiting_task({type, id}, at(when));
  };
  const std::vector<WaitingTask> expected = {waiting_task({job_id(1), workflow::no_item, "b"}, 5, at(99)),
                                             job(runbook::RowType::step, 2, 10),
                                             job(runbook::RowType::cleanup, 1, 10),
                                             waiting_task({job_id(1), workflow::no_item, "a"}, 0, at(20)),
                                             job(runbook::RowType::init, 1, 20),
                                             job(runbook::RowType::step, 1, 30)};
  EXPECT_EQ(store->waiting({{"default"}, "pool-1"}, 100, {}).value(), expected);
  for (std::size_t limit = 0; limit < expected.size(); ++limit) {
    EXPECT_EQ(store->waiting({{"default"}, "pool-1"}, limit, {}).value(),
              std::vector(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(limit)));
  }
  EXPECT_EQ(store->waiting({{"default"}, "pool-2"}, 9, {}).value(), std::vector{job(runbook::RowType::step, 4, 5)});
  EXPECT_TRUE(store->waiting({{"acme"}, "pool-1"}, 9, {})->empty());
  Writes leased;
  leased.steps_changed = {{set.runbooks.steps_new[1], step_row(2)}};
  commit(leased);
  EXPECT_EQ(store->waiting({{"default"}, "pool-1"}, 2, {}).value().at(1), expected[2]);
}

TEST_P(RunbookStoreContract, PhasesWithoutATimerAreThosePendingWithATimeToBeDue) {
  Writes w;
  for (int id = 1; id <= 7; ++id) {
    w.phases_new.push_back(phase_row(id));
    w.phases_new.back().status = PhaseStatus::pending;
    w.phases_new.back().timer_due.reset();
    if (id != 7) w.phases_new.back().waits_for = PhaseWait::none;
  }
  w.phases_new[0].timer_due = at(1);
  w.phases_new[1].status = PhaseStatus::dispatched;
  w.phases_new[2].due_at.reset();
  commit(w);
  EXPECT_EQ(store->phases_without_timer(10).value(), (Ids{4, 5, 6}));
  EXPECT_EQ(store->phases_without_timer(2).value(), (Ids{4, 5}));
}

TEST_P(RunbookStoreContract, ThousandsOfStepsInRandomOrderAllArrive) {
  Writes w;
  std::vector<Need> needs;
  for (int i = 2000; i > 0; --i) {
    w.steps_new.push_back(step_row(i, 1, i));
    needs.push_back(need::Step{i});
    needs.push_back(need::StepsOf{i, 1});
  }
  commit(w);
  EXPECT_EQ(load(needs).steps.size(), 2000u);
}

TEST_P(RunbookStoreContract, NothingOfRunbooksWorksBeforeOpen) {
  store.reset();
  store = database.store();
  EXPECT_EQ(store->load(std::vector<Need>{need::Step{1}}).error().code, Code::unavailable);
  EXPECT_EQ(store->reserve_ids(runbook::Table::batches, 1).error().code, Code::unavailable);
  EXPECT_EQ(store->phases_without_timer(1).error().code, Code::unavailable);
  EXPECT_EQ(store->write_data({.table = "runbook_a_v1"}).error().code, Code::unavailable);
}

}  // namespace
}  // namespace baton::contract::runbook_store_contract_test
