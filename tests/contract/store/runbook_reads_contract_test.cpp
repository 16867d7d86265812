// The contract of ports/runbook_reads.hpp.
#include <algorithm>

#include "core/runbook/members/members.hpp"
#include "tests/contract/store/runbook_fixture.hpp"

namespace baton::contract::runbook_reads_contract_test {
namespace {

using namespace runbook;

class RunbookReadsContract : public RunbookStoreContract {
 protected:
  void SetUp() override {
    RunbookStoreContract::SetUp();
    auto made = database.reads();
    ASSERT_TRUE(made) << made.error().message;
    reads = std::move(*made);
  }

  std::unique_ptr<Reads> reads;
};

INSTANTIATE_TEST_SUITE_P(All, RunbookReadsContract,
                         ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres), name_of);

using contract::ids;
Ids ids(const std::vector<BatchSummary>& rows) {
  Ids list;
  for (const BatchSummary& row : rows) list.push_back(row.batch.id);
  return list;
}
Ids ids(const std::vector<ExecutionView>& rows) {
  Ids list;
  for (const ExecutionView& row : rows) {
    EXPECT_EQ(row.ref.id, row.execution.id);
    list.push_back(row.ref.id);
  }
  return list;
}

// All pages of a list that goes on after (or before) the last id of a page.
template <class Page>
Ids pages(Page&& page) {
  Ids all;
  while (true) {
    const Ids next = page(all.empty() ? 0 : all.back());
    if (next.empty()) return all;
    all.insert(all.end(), next.begin(), next.end());
    if (all.size() > 1000) return all;
  }
}

TEST_P(RunbookReadsContract, WhatWaitsInAQueueAndIsDeadThereIsCountedUpToALimit) {
  WriteSet set;
  const auto task = [](const std::string& id, const std::string& queue, const std::string& tenant = "default") {
    workflow::NodeState row = node(1, id);
    row.queue = queue;
    row.tenant = {tenant};
    return row;
  };
  const auto dead = [](auto row) {
    row.status = {};
    row.dead_at = at(7);
    return row;
  };
  set.nodes_new = {task("a", "pool-1"), task("b", "pool-1"), task("c", "pool-2"), task("d", "pool-1", "acme"), dead(task("e", "pool-1")), dead(task("f", "pool-1", "acme"))};
  const auto in = [](auto row, JobState state, const std::string& pool = "pool-1") {
    row.job_state = state;
    row.worker_id = pool;
    return row;
  };
  set.runbooks.steps_new = {in(step_row(1), JobState::queued), in(step_row(2), JobState::leased), in(step_row(3), JobState::queued, "pool-2"),
                            dead(in(step_row(4), JobState::none))};
  set.runbooks.inits_new = {in(init_row(1), JobState::queued), dead(in(init_row(2), JobState::none, "pool-2"))};
  set.runbooks.cleanups_new = {in(cleanup_row(1), JobState::queued), dead(in(cleanup_row(2), JobState::none))};
  for (auto* row : {&set.runbooks.steps_new[0], &set.runbooks.steps_new[1], &set.runbooks.steps_new[2]}) row->dead_at.reset();
  set.runbooks.inits_new[0].dead_at.reset();
  set.runbooks.cleanups_new[0].dead_at.reset();
  for (auto& row : set.nodes_new)
    if (row.node_id < "e") row.dead_at.reset();
  ASSERT_TRUE(store->commit(set, ++number));
  const auto counts = [&](const std::string& tenant, const std::string& queue, std::size_t limit) {
    const auto found = reads->queue_counts({tenant}, {queue, "empty"}, limit).value();
    EXPECT_EQ(found.size(), 2U);
    EXPECT_EQ(found.at("empty").waiting + found.at("empty").dead, 0);
    const QueueCounts& of = found.at(queue);
    return std::tuple(of.waiting, of.dead, of.is_at_least);
  };
  EXPECT_EQ(counts("default", "pool-1", 100), std::tuple(5, 3, false));
  EXPECT_EQ(counts("default", "pool-2", 100), std::tuple(2, 1, false));
  EXPECT_EQ(counts("acme", "pool-1", 100), std::tuple(1, 1, false)) << "runbooks are in one tenant";
  EXPECT_EQ(counts("default", "pool-1", 3), std::tuple(5, 3, false));
  EXPECT_EQ(counts("default", "pool-1", 2), std::tuple(5, 3, true));
  EXPECT_TRUE(reads->queue_counts({"default"}, {}, 10)->empty());
}

TEST_P(RunbookReadsContract, RunbooksAreListedByNameWithTheirNewestVersion) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "b", 1), runbook_row(2, "b", 10), runbook_row(3, "b", 9),
                    runbook_row(4, "a", 1), runbook_row(5, "c", 1)};
  w.runbooks_new[2].is_active = w.runbooks_new[4].is_active = true;
  commit(w);
  const auto page = reads->runbooks("", 2).value();
  EXPECT_EQ(ids(page), (Ids{4, 2}));
  EXPECT_TRUE(same(w.runbooks_new[1], page[1]));
  EXPECT_EQ(ids(reads->runbooks("b", 2).value()), Ids{5});
  EXPECT_EQ(ids(reads->versions("b").value()), (Ids{2, 3, 1}));
  EXPECT_EQ(ids(reads->active_runbooks().value()), (Ids{3, 5}));
  EXPECT_EQ(reads->runbook("b", 0).value()->id, 3);
  EXPECT_EQ(reads->runbook("a", 0).value()->id, 4);
  EXPECT_EQ(reads->runbook("b", 1).value()->id, 1);
  EXPECT_FALSE(reads->runbook("b", 2).value());
  EXPECT_FALSE(reads->runbook("d", 0).value());
}

TEST_P(RunbookReadsContract, BatchesComeNewestFirstByEveryFilter) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1), runbook_row(2, "waves", 2), runbook_row(3, "other", 7)};
  for (int id = 1; id <= 30; ++id) {
    w.batches_new.push_back(batch_row(id, id % 3 + 1));
    w.batches_new.back().status = static_cast<BatchStatus>(id % 6);
  }
  commit(w);
  for (int mask = 0; mask < 4; ++mask) {
    BatchFilter filter;
    if (mask & 1) filter.runbook_name = "waves";
    if (mask & 2) filter.status = BatchStatus::active;
    Ids expected;
    for (int id = 30; id > 0; --id) {
      if ((!(mask & 1) || id % 3 != 2) && (!(mask & 2) || id % 6 == 2)) expected.push_back(id);
    }
    for (const std::size_t size : {1u, 4u, 100u}) {
      EXPECT_EQ(pages([&](std::int64_t before) { return ids(reads->batches(filter, before, size).value()); }),
                expected)
          << mask;
    }
  }
  EXPECT_TRUE(reads->batches({.runbook_name = "none", .status = {}}, 0, 10)->empty());
  const auto one = reads->batch(2).value();
  ASSERT_TRUE(one);
  EXPECT_TRUE(same(w.batches_new[1], one->batch));
  EXPECT_EQ(one->runbook_name, "other");
  EXPECT_EQ(one->runbook_version, 7);
  EXPECT_FALSE(reads->batch(99).value());
}

TEST_P(RunbookReadsContract, WhatABatchConsistsOf) {
  Writes w;
  w.phases_new = {phase_row(2), phase_row(1), phase_row(3, 9)};
  w.inits_new = {init_row(1), init_row(2, 9)};
  w.inits_new[0].result_json = Json{"[1]"};
  w.counts = {
      {1, 2, "step", 0, "failed", 3}, {1, 0, "member", 0, "active", 4}, {9, 0, "member", 0, "active", 5}};
  w.events_new = {batch_event_row(1, 30), batch_event_row(1, 10), batch_event_row(9, 20)};
  w.events_new[0].batch_member_id.reset();
  w.events_new[0].job_id.reset();
  commit(w);
  EXPECT_EQ(ids(reads->phases(1).value()), (Ids{1, 2}));
  EXPECT_TRUE(same(w.phases_new[0], reads->phases(1)->at(1)));
  const auto inits = reads->inits(1).value();
  EXPECT_EQ(ids(inits), Ids{1});
  EXPECT_EQ(inits[0].ref.type, runbook::RowType::init);
  EXPECT_EQ(inits[0].batch_id, 1);
  EXPECT_EQ(inits[0].runbook_version, 3);
  EXPECT_EQ(inits[0].execution.result_json, Json{"[1]"});
  const auto counts = reads->counts(1).value();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_TRUE(same(w.counts[1], counts[0]));
  EXPECT_TRUE(same(w.counts[0], counts[1]));
  const auto events = reads->batch_events(1, 0, 10).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(same(w.events_new[1], events[0]));
  EXPECT_TRUE(same(w.events_new[0], events[1]));
  EXPECT_EQ(reads->batch_events(1, 10, 10)->size(), 1u);
  EXPECT_EQ(reads->batch_events(1, 0, 1)->size(), 1u);
}

TEST_P(RunbookReadsContract, MembersComeInPagesByEveryStatus) {
  Writes w;
  for (int id = 1; id <= 30; ++id) {
    w.members_new.push_back(member_row(id, id % 2 + 1));
    w.members_new.back().status = static_cast<MemberStatus>(id % 3);
  }
  commit(w);
  for (int status = -1; status < 3; ++status) {
    const auto asked = status < 0 ? std::nullopt : std::optional(static_cast<MemberStatus>(status));
    Ids expected;
    for (int id = 2; id <= 30; id += 2)
      if (status < 0 || id % 3 == status) expected.push_back(id);
    for (const std::size_t size : {1u, 4u, 100u}) {
      EXPECT_EQ(pages([&](std::int64_t after) {
                  return ids(reads->members(1, asked, after, size).value());
                }),
                expected)
          << status;
    }
  }
  EXPECT_TRUE(same(w.members_new[4], reads->member(5).value().value()));
  EXPECT_FALSE(reads->member(99).value());
}

TEST_P(RunbookReadsContract, AMemberOfAKeyIsTheActiveOneElseTheNewest) {
  Writes w;
  const auto add = [&](std::int64_t id, const char* key, MemberStatus status) {
    w.members_new.push_back(member_row(id));
    w.members_new.back().member_key = key;
    w.members_new.back().status = status;
  };
  add(1, "a", MemberStatus::removed);
  add(2, "a", MemberStatus::active);
  add(3, "a", MemberStatus::removed);
  add(4, "b", MemberStatus::removed);
  add(5, "b", MemberStatus::failed);
  commit(w);
  EXPECT_EQ(reads->member_by_key(1, "a").value()->id, 2);
  EXPECT_EQ(reads->member_by_key(1, "b").value()->id, 5);
  EXPECT_FALSE(reads->member_by_key(1, "c").value());
  EXPECT_FALSE(reads->member_by_key(2, "a").value());
}

class RunbookStepsRead : public RunbookReadsContract {
 protected:
  // Two members, two phases, three steps in each; ids grow against the order of members.
  void SetUp() override {
    RunbookReadsContract::SetUp();
    w.members_new = {member_row(1), member_row(2)};
    w.phases_new = {phase_row(10), phase_row(11)};
    std::int64_t id = 100;
    for (const int index : {2, 0, 1})
      for (const std::int64_t member : {2, 1})
        for (const std::int64_t phase : {11, 10}) w.steps_new.push_back(step_row(id++, phase, member, index));
    for (std::size_t i = 0; i < w.steps_new.size(); ++i) {
      StepExecution& step = w.steps_new[i];
      step.result_json = Json{std::to_string(i)};
      if (i % 2 == 0) continue;
      step.status = i % 4 == 1 ? StepStatus::failed : StepStatus::rolled_back;
    }
    commit(w);
  }
  Writes w;
};
INSTANTIATE_TEST_SUITE_P(All, RunbookStepsRead,
                         ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres), name_of);

TEST_P(RunbookStepsRead, CellsAreThoseOfTheMembersByPhaseAndStep) {
  const auto cells = reads->cells({2, 1, 77}).value();
  ASSERT_EQ(cells.size(), 12u);
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int32_t>> keys;
  for (const MatrixCell& cell : cells)
    keys.emplace_back(cell.batch_member_id, cell.phase_execution_id, cell.step_index);
  auto of_two = keys;
  std::erase_if(of_two, [](const auto& key) { return std::get<0>(key) != 2; });
  EXPECT_TRUE(std::ranges::is_sorted(of_two));
  EXPECT_EQ(of_two.size(), 6u);
  const auto& cell = *std::ranges::find(cells, 101, &MatrixCell::step_id);
  EXPECT_EQ(cell.batch_member_id, 2);
  EXPECT_EQ(cell.phase_execution_id, 10);
  EXPECT_EQ(cell.step_index, 2);
  EXPECT_EQ(cell.step_name, "create-user");
  EXPECT_EQ(cell.status, StepStatus::failed);
  EXPECT_EQ(cell.retry_count, 1);
  EXPECT_EQ(cell.poll_count, 4);
  EXPECT_TRUE(cell.is_catch_up);
  EXPECT_FALSE(cell.is_skipped);
  EXPECT_TRUE(reads->cells({})->empty());
}

TEST_P(RunbookStepsRead, CellsOfStepsThatAPersonSkippedSayIt) {
  Writes skip;
  for (int i = 0; i < 4; ++i) {
    StepExecution& step = skip.steps_new.emplace_back(w.steps_new.front());
    step.id = 900 + i;
    step.batch_member_id = 77;
    step.step_index = i;
    step.status = i < 3 ? StepStatus::succeeded : StepStatus::cancelled;
    step.result_json = i == 2 ? Json{R"({"skipped":"no"})"} : result_of_skip("ada", i == 1);
  }
  skip.members_new = {w.members_new.front()};
  skip.members_new.front().id = 77;
  commit(skip);
  const auto cells = reads->cells({77}).value();
  ASSERT_EQ(cells.size(), 4u);
  for (const MatrixCell& cell : cells) EXPECT_EQ(cell.is_skipped, cell.step_index < 2) << cell.step_index;
}

TEST_P(RunbookStepsRead, StepsOfAMemberComeByPhaseAndIndexWithTheirResults) {
  const auto steps = reads->steps_of_member(1).value();
  EXPECT_EQ(ids(steps), (Ids{107, 111, 103, 106, 110, 102}));
  EXPECT_EQ(steps[0].ref.type, runbook::RowType::step);
  EXPECT_EQ(steps[0].batch_id, 1);
  EXPECT_EQ(steps[0].phase_execution_id, 10);
  EXPECT_EQ(steps[0].batch_member_id, 1);
  EXPECT_EQ(steps[0].runbook_version, 3);
  EXPECT_TRUE(steps[0].is_catch_up);
  EXPECT_EQ(steps[0].execution.result_json, Json{"7"});
  EXPECT_EQ(steps[0].execution.params_json, step_row(1).params_json);
}

// All pages of failures, as ids.
template <class Page>
Ids failure_pages(Page&& page) {
  Ids all;
  FailedBefore before;
  while (all.size() < 1000) {
    const std::vector<Failure> some = page(before);
    if (some.empty()) break;
    for (const Failure& failure : some) all.push_back(failure.step.ref.id);
    before = {some.back().step.execution.completed_at.value_or(Time{}), all.back()};
  }
  return all;
}

TEST_P(RunbookStepsRead, FailuresOfAPhaseComeTheLastToFailFirst) {
  Writes u;
  const auto complete = [&](std::size_t i, Time at) {
    u.steps_changed.push_back(changed(w.steps_new[i], [&](auto& row) { row.completed_at = at; }));
  };
  complete(1, at(9'000));                         // 101
  complete(3, *w.steps_new[9].completed_at);      // 103, with 109
  commit(u);
  // Another program wrote one without a time.
  if (GetParam() == StoreType::memory)
    database.memory().runbooks.steps.change(105, [](StepExecution& row) { row.completed_at.reset(); });
  else
    database.execute("UPDATE step_executions SET completed_at=NULL WHERE id=105");
  for (const std::size_t size : {1u, 2u, 100u}) {
    EXPECT_EQ(failure_pages([&](const FailedBefore& b) { return reads->failures(10, b, size).value(); }),
              (Ids{101, 111, 109, 103, 107, 105}))
        << size;
  }
  const auto second = reads->failures(10, {}, 2)->at(1);
  EXPECT_EQ(second.member_key, member_row(1).member_key);
  EXPECT_EQ(second.phase_name, "prepare");
  EXPECT_EQ(second.step.batch_id, 1);
  EXPECT_TRUE(reads->failures(11, {}, 10)->empty());
}

TEST_P(RunbookStepsRead, StepsOfAPhaseComeByMemberInPages) {
  for (const std::size_t size : {1u, 2u, 4u, 100u}) {
    EXPECT_EQ(pages([&](std::int64_t after) { return ids(reads->steps_of_phase(11, after, size).value()); }),
              (Ids{106, 110, 102, 104, 108, 100}));
  }
  EXPECT_TRUE(reads->steps_of_phase(99, 0, 10)->empty());
}

TEST_P(RunbookStepsRead, AnExecutionIsFoundByItsTypeAndId) {
  Writes more;
  more.inits_new = {init_row(100)};
  more.cleanups_new = {cleanup_row(100)};
  commit(more);
  const auto of = [&](runbook::RowType type, std::int64_t id) { return reads->execution({type, id}).value(); };
  EXPECT_EQ(of(runbook::RowType::step, 100)->batch_member_id, 2);
  EXPECT_EQ(of(runbook::RowType::init, 100)->batch_id, 1);
  const auto cleanup = of(runbook::RowType::cleanup, 100);
  ASSERT_TRUE(cleanup);
  EXPECT_EQ(cleanup->cleanup_kind, CleanupKind::removal);
  EXPECT_EQ(cleanup->caused_by_step_id, 7);
  EXPECT_EQ(cleanup->caused_by_init_id, 8);
  EXPECT_EQ(cleanup->sequence, "on_member_removed");
  EXPECT_EQ(cleanup->execution.job_id, "step-100");
  EXPECT_FALSE(of(runbook::RowType::step, 1));
  EXPECT_FALSE(of(runbook::RowType::batch, 1));
}

// A load does not give results.
TEST_P(RunbookStepsRead, AResultStaysWhenAnUpdateBringsNone) {
  StepExecution loaded = w.steps_new[0];
  loaded.result_json.reset();
  Writes u;
  u.steps_changed = {changed(loaded, [](auto& row) { row.error_message = "changed"; })};
  commit(u);
  const auto step = reads->execution({runbook::RowType::step, 100}).value().value();
  EXPECT_EQ(step.execution.result_json, Json{"0"});
  EXPECT_EQ(step.execution.params_json, step_row(1).params_json);
  EXPECT_EQ(step.execution.error_message, "changed");
  u.steps_changed = {changed(loaded, [](auto& row) { row.result_json = Json{"9"}; })};
  commit(u);
  EXPECT_EQ(reads->execution({runbook::RowType::step, 100}).value()->execution.result_json, Json{"9"});
}

TEST_P(RunbookReadsContract, CleanupsOfABatchComeInPages) {
  Writes w;
  for (int id = 1; id <= 9; ++id) w.cleanups_new.push_back(cleanup_row(id, id % 2 + 1));
  commit(w);
  EXPECT_EQ(pages([&](std::int64_t after) { return ids(reads->cleanups(2, after, 2).value()); }),
            (Ids{1, 3, 5, 7, 9}));
}

TEST_P(RunbookReadsContract, CleanupsAreFoundByWhatCausedThemAndByWhetherTheyAreOpen) {
  Writes w;
  w.members_new = {member_row(1)};
  w.phases_new = {phase_row(10)};
  for (int id = 1; id <= 8; ++id) {
    w.cleanups_new.push_back(cleanup_row(id, id == 8 ? 2 : 1));
    CleanupExecution& row = w.cleanups_new.back();
    row.kind = id % 2 == 0 ? CleanupKind::removal : CleanupKind::rollback;
    row.batch_member_id = id < 5 ? 1 : 2;
    row.phase_execution_id = 10;
    row.caused_by_step_id.reset();
    if (row.kind == CleanupKind::rollback) row.caused_by_step_id = 100 + id;
    row.status = id <= 3 ? StepStatus::failed : id <= 5 ? StepStatus::succeeded : StepStatus::pending;
    row.completed_at = at(100 - id);
  }
  commit(w);
  EXPECT_EQ(ids(reads->cleanups_of_member(1, {101, 105, 105, 999}).value()), (Ids{1, 2, 4, 5}));
  EXPECT_EQ(ids(reads->cleanups_of_member(1, {}).value()), (Ids{2, 4}));
  EXPECT_EQ(ids(reads->open_cleanups(1, 10).value()), (Ids{6, 7}));
  EXPECT_EQ(ids(reads->open_cleanups(1, 1).value()), (Ids{6}));
  EXPECT_EQ(failure_pages([&](const FailedBefore& b) { return reads->cleanup_failures(1, b, 2).value(); }),
            (Ids{1, 2, 3}));
  const auto failure = reads->cleanup_failures(1, {}, 1)->at(0);
  EXPECT_EQ(failure.member_key, member_row(1).member_key);
  EXPECT_EQ(failure.phase_name, "prepare");
  EXPECT_EQ(failure.step.sequence, "on_member_removed");
  EXPECT_TRUE(reads->phase(10).value());
  EXPECT_FALSE(reads->phase(99).value());
}

TEST_P(RunbookReadsContract, KnownMembersAreThoseOfAllBatchesOfAllVersions) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1), runbook_row(2, "waves", 2), runbook_row(3, "other", 1)};
  w.batches_new = {batch_row(1, 1), batch_row(2, 2), batch_row(3, 3), batch_row(4, 1), batch_row(5, 2)};
  w.batches_new[0].status = BatchStatus::completed;
  w.batches_new[1].batch_start_time.reset();
  w.batches_new[3].is_manual = false;
  Ids expected;
  for (int id = 1; id <= 23; ++id) w.members_new.push_back(member_row(id, id % 5 + 1));
  for (const int batch : {1, 2, 4, 5})
    for (int id = 1; id <= 23; ++id)
      if (id % 5 + 1 == batch) expected.push_back(id);
  w.members_new[4].status = MemberStatus::removed;
  w.members_new[4].data_json.reset();
  commit(w);
  for (const std::size_t size : {1u, 3u, 5u, 100u}) {
    const auto found = pages([&](std::int64_t after) {
      const auto page = reads->known_members("waves", after, size).value();
      EXPECT_LE(page.size(), size);
      return ids(page);
    });
    EXPECT_EQ(found, expected) << size;
  }
  const auto all = reads->known_members("waves", 0, 100).value();
  const auto& removed = *std::ranges::find(all, 5, &KnownMember::id);
  EXPECT_EQ(removed.batch_id, 1);
  EXPECT_EQ(removed.member_key, member_row(5).member_key);
  EXPECT_EQ(removed.status, "removed");
  EXPECT_FALSE(removed.batch_open);
  EXPECT_TRUE(removed.batch_manual);
  EXPECT_EQ(removed.batch_time, at(1000));
  EXPECT_EQ(removed.data_hash, 0u);
  const auto& open = *std::ranges::find(all, 1, &KnownMember::id);
  EXPECT_TRUE(open.batch_open);
  EXPECT_EQ(open.batch_time, std::nullopt);
  EXPECT_EQ(open.data_hash, hash_data(member_row(1).data_json->text));
  EXPECT_FALSE(std::ranges::find(all, 3, &KnownMember::id)->batch_manual);
  EXPECT_TRUE(reads->known_members("none", 0, 10)->empty());
}

TEST_P(RunbookReadsContract, MovedPhasesArePendingOnesWithAnotherTimeThanTheirTimerOrNoTimer) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1)};
  w.batches_new = {batch_row(1, 1), batch_row(2, 1)};
  w.batches_new[0].status = BatchStatus::active;
  w.batches_new[1].status = BatchStatus::completed;
  for (int id = 1; id <= 8; ++id) {
    w.phases_new.push_back(phase_row(id));
    w.phases_new.back().batch_id = id == 8 ? 2 : 1;
    w.phases_new.back().status = id == 7 ? PhaseStatus::dispatched : PhaseStatus::pending;
    w.phases_new.back().due_at = at(1'000);
    w.phases_new.back().timer_due = at(2'000);
    if (id != 8) w.phases_new.back().waits_for = PhaseWait::none;
  }
  w.phases_new[1].timer_due = at(500);
  w.phases_new[2].timer_due = at(1'000);
  w.phases_new[3].timer_due.reset();
  w.phases_new[4].due_at.reset();
  commit(w);
  EXPECT_EQ(reads->moved_phases(0, 10).value(), (Ids{1, 2, 4, 6})) << "4 was added without a timer";
  EXPECT_EQ(reads->moved_phases(0, 2).value(), (Ids{1, 2}));
  EXPECT_EQ(reads->moved_phases(2, 2).value(), (Ids{4, 6})) << "the next page";
  EXPECT_EQ(reads->moved_phases(3, 10).value(), (Ids{4, 6}));
  EXPECT_EQ(reads->moved_phases(6, 2).value(), Ids{});
}

TEST_P(RunbookReadsContract, WhatWaitsInQueuesAndForAnotherAttemptIsCounted) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1)};
  w.batches_new = {batch_row(1, 1), batch_row(2, 1)};
  w.phases_new = {phase_row(11, 1), phase_row(12, 2)};
  w.members_new = {member_row(21, 1), member_row(22, 2)};
  const auto queued = [&](auto row, const std::string& queue, std::int64_t at_second) {
    row.worker_id = queue;
    row.job_state = JobState::queued;
    row.queued_at = from_millis(at_second * 1000);
    return row;
  };
  w.steps_new = {queued(step_row(31, 11, 21), "b", 7), queued(step_row(32, 12, 22), "b", 5), step_row(33, 11, 21, 1)};
  w.steps_new[2].job_state = JobState::none;
  w.steps_new[2].status = StepStatus::pending;
  w.steps_new[2].retry_after = from_millis(9000);
  w.steps_new[0].retry_after.reset();
  w.steps_new[1].retry_after.reset();
  w.inits_new = {queued(init_row(41, 1), "a", 3)};
  w.cleanups_new = {queued(cleanup_row(51, 1), "b", 9)};
  w.counts = {{1, 11, "step", 0, "rolled_back", 1}, {1, 11, "init", 0, "failed", 0}, {2, 12, "step", 0, "failed", 0}};
  commit(w);
  const auto all = reads->job_backlogs().value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].queue, "a");
  EXPECT_EQ(all[1].waiting, 3);
  EXPECT_EQ(all[1].since, from_millis(5000));
  const auto of_one = reads->backlog_of_batch(1, "b").value();
  EXPECT_EQ(of_one.waiting, 2);
  EXPECT_EQ(of_one.since, from_millis(7000));
  EXPECT_EQ(reads->backlog_of_batch(2, "a").value().waiting, 0);
  const auto retrying = reads->retrying(1).value();
  ASSERT_EQ(retrying.size(), 1U);
  EXPECT_EQ(retrying[0].phase_execution_id, 11);
  EXPECT_EQ(retrying[0].n, 1);
  EXPECT_EQ(retrying[0].next, from_millis(9000));
  EXPECT_TRUE(reads->retrying(2).value().empty());
  EXPECT_TRUE(reads->batch(1).value()->has_failures);
  EXPECT_FALSE(reads->batch(2).value()->has_failures);
  EXPECT_TRUE(reads->task_backlogs({"default"}).value().empty());
}

TEST_P(RunbookReadsContract, ApprovedRemovalsAndImportsAreFound) {
  Writes w;
  w.runbooks_new = {runbook_row(1, "waves", 1), runbook_row(2, "other", 1)};
  w.batches_new = {batch_row(1, 1), batch_row(2, 1), batch_row(3, 2), batch_row(4, 1)};
  w.batches_new[1].removals_approved.reset();
  w.batches_new[3].importing = false;
  commit(w);
  EXPECT_EQ(reads->approved_removals("waves").value(),
            (std::vector<ApprovedRemovals>{{1, "7-12345"}, {4, "7-12345"}}));
  EXPECT_TRUE(reads->approved_removals("none")->empty());
  EXPECT_EQ(ids(reads->importing().value()), (Ids{1, 2, 3}));
  EXPECT_EQ(reads->importing()->at(2).runbook_name, "other");
}

}  // namespace
}  // namespace baton::contract::runbook_reads_contract_test
