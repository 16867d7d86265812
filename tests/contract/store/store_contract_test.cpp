// The contract of ports/store.hpp, on every adapter.
#include <unistd.h>

#include <algorithm>
#include <random>

#include "tests/contract/store/fixture.hpp"

namespace baton::contract::store_contract_test {
namespace {

using namespace workflow;

INSTANTIATE_TEST_SUITE_P(All, StoreContract, every_store(), name_of);

// What only a commit that is written to the tables at once can tell; of the others see JournalContract.
class TablesContract : public StoreContract {};
INSTANTIATE_TEST_SUITE_P(All, TablesContract, ::testing::Values(StoreType::memory, StoreType::sqlite, StoreType::postgres),
                         name_of);

WriteSet with_tags_and_logs() {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.tags_new = {{{"default"}, "eu", job_id(1)}, {{"default"}, "nightly", job_id(1)}};
  w.logs_new = {{job_id(1), "a", 1, 0, "stdout", at(1), "hello"},
                {job_id(1), "a", 2, 0, "stderr", at(1), ""}};
  return w;
}

TEST_P(StoreContract, ANewDatabaseHasCommittedNothing) {
  EXPECT_EQ(first.last_commit, 0);
  EXPECT_GT(first.term, 0);
  EXPECT_EQ(store->next_timer().value(), std::nullopt);
  EXPECT_TRUE(store->timers_due(at(1'000'000), 10)->empty());
  EXPECT_TRUE(store->waiting({{"default"}, "worker"}, 10, {})->empty());
}

TEST_P(StoreContract, EveryColumnComesBackAsItWasWritten) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.jobs_new[0].result_data = Json{"[1, 2]"};
  w.jobs_new[0].error = "went wrong";
  w.jobs_new[0].completed_at = at(99);
  w.nodes_new = {node(1, "a")};
  w.nodes_new[0].output = Json{"null"};
  w.nodes_new[0].error = "no";
  w.nodes_new[0].started_at = at(7);
  w.nodes_new[0].completed_at = at(8);
  w.nodes_new[0].dead_at = at(9);
  w.nodes_new.push_back(child(1, "split", 99'999));
  w.task_results_new = {task_result(1)};
  w.task_results_new[0].error = "late";
  w.task_results_new[0].processed = false;
  w.workflows_new = {{{"default"}, "order-flow", 3, "name: x\n", at(5)}};
  w.idempotency_keys_new = {{{"default"}, "key", job_id(1), "hash"}};
  commit(w);
  const auto l = load({.jobs_whole = {job_id(1)},
                       .nodes = {key_of(w.nodes_new[0]), key_of(w.nodes_new[1])},
                       .task_results = {"task-1"},
                       .workflows = {{{"default"}, "order-flow", 3}},
                       .idempotency_keys = {{{"default"}, "key", {}, ""}}});
  ASSERT_EQ(l.jobs.size(), 1u);
  EXPECT_TRUE(same(w.jobs_new[0], l.jobs[0]));
  ASSERT_EQ(l.nodes.size(), 2u);
  EXPECT_TRUE(same(w.nodes_new[0], l.nodes[0]));
  EXPECT_TRUE(same(w.nodes_new[1], l.nodes[1]));
  ASSERT_EQ(l.task_results.size(), 1u);
  EXPECT_TRUE(same(w.task_results_new[0], l.task_results[0]));
  ASSERT_EQ(l.workflows.size(), 1u);
  EXPECT_TRUE(same(w.workflows_new[0], l.workflows[0]));
  ASSERT_EQ(l.idempotency_keys.size(), 1u);
  EXPECT_TRUE(same(w.idempotency_keys_new[0], l.idempotency_keys[0]));
}

TEST_P(StoreContract, AbsentValuesStayAbsentAndEmptyOnesEmpty) {
  WriteSet w;
  Job bare;
  bare.job_id = job_id(1);
  bare.input_data = {"{}"};
  bare.error = "";
  NodeState absent;
  absent.job_id = job_id(1);
  NodeState empty = absent;
  empty.node_id = "b";
  empty.error = empty.queue = empty.task_id = "";
  empty.output = Json{"null"};
  w.jobs_new = {bare};
  w.nodes_new = {absent, empty};
  commit(w);
  const auto l = load({.jobs_whole = {job_id(1)}, .nodes = {key_of(absent), key_of(empty)}});
  EXPECT_TRUE(same(bare, l.jobs.at(0)));
  EXPECT_TRUE(same(absent, l.nodes.at(0)));
  EXPECT_TRUE(same(empty, l.nodes.at(1)));
}

TEST_P(StoreContract, AwkwardTextIsKeptByteForByte) {
  const std::string texts[] = {"'",           "\"",
                               "\\",          "\\\\'\"",
                               "{}",          "{\"a\",NULL}",
                               "NULL",        "null",
                               "a\nb\r\n",    "\t\b\x01",
                               "äöü €  𝄞 字", "%s ?1 $1 :x",
                               "--;/*",       " ",
                               ",",           std::string(1 << 20, 'x')};
  WriteSet w;
  LoadRequest request;
  for (int i = 0; const std::string& text : texts) {
    Job row = job(i);
    row.error = text;
    row.workflow_id = text.substr(0, 100);
    row.tenant = {text.substr(0, 100)};
    row.input_data = {"{\"a\" :  \"\\u00e4\\\\ \\\" 'x'\", \"a\":1e400}"};  // not normalised
    w.jobs_new.push_back(row);
    w.nodes_new.push_back(node(i, text.substr(0, 100)));
    request.jobs_whole.push_back(job_id(i));
    request.nodes.push_back({job_id(i), no_item, text.substr(0, 100)});
    w.nodes_new.back().worker_id = text;
    w.jobs_new.back().tags = text;
    w.tags_new.push_back({{text.substr(0, 100)}, text.substr(0, 100), job_id(i)});
    w.logs_new.push_back({job_id(i), text.substr(0, 100), 1, 0, "stdout", at(i), text});
    w.idempotency_keys_new.push_back({{"t"}, text.substr(0, 1000), job_id(i), text});
    request.idempotency_keys.push_back(w.idempotency_keys_new.back());
    ++i;
  }
  commit(w);
  const auto l = load(request);
  ASSERT_EQ(l.jobs.size(), std::size(texts));
  ASSERT_EQ(l.nodes.size(), std::size(texts));
  EXPECT_EQ(l.idempotency_keys.size(), std::size(texts));
  for (const Job& row : l.jobs) {
    const auto expected = std::ranges::find(w.jobs_new, row.job_id, &Job::job_id);
    ASSERT_NE(expected, w.jobs_new.end());
    EXPECT_TRUE(same(*expected, row));
  }
  for (const NodeState& row : l.nodes) {
    const auto expected =
        std::ranges::find(w.nodes_new, key_of(row), [](const NodeState& n) { return key_of(n); });
    ASSERT_NE(expected, w.nodes_new.end());
    EXPECT_TRUE(same(*expected, row));
  }
}

TEST_P(StoreContract, ManyMegabytesFitInOneCommit) {
  WriteSet w;
  for (int i = 0; i < 40; ++i) {
    w.jobs_new.push_back(job(i));
    w.jobs_new.back().input_data.text = "\"" + std::string(1'000'000, static_cast<char>('a' + i % 26)) + "\"";
  }
  commit(w);
  LoadRequest request;
  for (const Job& row : w.jobs_new) request.jobs_whole.push_back(row.job_id);
  const auto l = load(request);
  ASSERT_EQ(l.jobs.size(), 40u);
  for (const Job& row : l.jobs) EXPECT_EQ(row.input_data.text.size(), 1'000'002u);
}

TEST_P(StoreContract, AnUpdateWritesTheChangeableColumnsOfItsRowOnly) {
  WriteSet w;
  w.jobs_new = {job(1), job(2)};
  w.nodes_new = {node(1, "a"), node(1, "b")};
  commit(w);
  Job changed = job(1);
  changed.status = JobStatus::failed;
  changed.error = "x";
  changed.result_data = Json{"{}"};
  changed.nodes_active = 0;
  changed.nodes_failed = 9;
  changed.started_at = std::nullopt;
  changed.completed_at = at(50);
  Job asked = changed;
  asked.tenant = {"other"};  // fixed: not written
  asked.input_data = {"[]"};
  asked.created_at = at(77);
  asked.priority = 99;
  asked.tags = "[]";
  asked.due_at = at(78);
  asked.rerun_of = "x";
  changed.paused_at = asked.paused_at = std::nullopt;
  changed.paused_by = asked.paused_by = "bob";
  NodeState done;
  done.job_id = job_id(1);
  done.node_id = "b";
  done.tenant = {"default"};
  done.status = NodeStatus::skipped;
  WriteSet u;
  u.jobs_changed = {asked};
  u.nodes_changed = {done};
  done.priority = 5;  // fixed
  commit(u);
  const auto l =
      load({.jobs_whole = {job_id(1), job_id(2)}, .nodes = {key_of(done), {job_id(1), no_item, "a"}}});
  EXPECT_TRUE(same(changed, l.jobs.at(0)));
  EXPECT_TRUE(same(job(2), l.jobs.at(1)));
  const auto find = [&](const char* id) { return *std::ranges::find(l.nodes, id, &NodeState::node_id); };
  EXPECT_TRUE(same(node(1, "a"), find("a")));
  EXPECT_TRUE(same(done, find("b")));
}

TEST_P(StoreContract, AJobComesWithoutItsDocumentsUnlessItIsAskedForWhole) {
  WriteSet w;
  w.jobs_new = {job(1), job(2)};
  w.jobs_new[0].result_data = w.jobs_new[1].result_data = Json{"[1]"};
  commit(w);
  Job summary = w.jobs_new[0];
  summary.input_data = {};
  summary.result_data.reset();
  const auto l =
      load({.jobs = {job_id(1), job_id(2)}, .jobs_whole = {job_id(2)}});  // the whole one once, and whole
  ASSERT_EQ(l.jobs.size(), 2u);
  const auto find = [&](int n) { return *std::ranges::find(l.jobs, job_id(n), &Job::job_id); };
  EXPECT_TRUE(same(summary, find(1)));
  EXPECT_TRUE(same(w.jobs_new[1], find(2)));
}

TEST_P(StoreContract, AnUpdateOfASummaryLeavesTheInputAlone) {
  WriteSet w;
  w.jobs_new = {job(1)};
  commit(w);
  WriteSet u;
  u.jobs_changed = load({.jobs = {job_id(1)}}).jobs;
  ASSERT_EQ(u.jobs_changed.size(), 1u);
  u.jobs_changed[0].nodes_active = 9;
  commit(u);
  Job expected = job(1);
  expected.nodes_active = 9;
  EXPECT_TRUE(same(expected, load(for_jobs({job_id(1)})).jobs.at(0)));
}

TEST_P(StoreContract, ChildrenAreKnownByTheirItemAndANodeOfTheSameNameIsAnother) {
  WriteSet w;
  w.nodes_new = {node(1, "split_7"), child(1, "split", 7), child(1, "split", 10), child(1, "split", 9),
                 child(2, "split", 7)};
  w.nodes_new[1].error = "the child";
  w.nodes_new[1].status = NodeStatus::running;
  commit(w);
  const auto l =
      load({.nodes = {{job_id(1), 10, "split_10"}, {job_id(1), 7, "split_7"}, {job_id(1), 9, "split_9"}}});
  ASSERT_EQ(l.nodes.size(), 3u);
  const auto found = std::ranges::find(l.nodes, 7, &NodeState::item_index);
  ASSERT_NE(found, l.nodes.end());
  EXPECT_TRUE(same(w.nodes_new[1], *found));
  WriteSet u;
  u.nodes_changed = {w.nodes_new[1]};
  u.nodes_changed[0].status = NodeStatus::completed;
  u.nodes_changed[0].output = Json{"7"};
  commit(u);
  const auto after = load(
      {.nodes = {{job_id(1), no_item, "split_7"}, {job_id(1), 7, "split_7"}, {job_id(2), 7, "split_7"}}});
  ASSERT_EQ(after.nodes.size(), 3u);
  EXPECT_EQ(std::ranges::count(after.nodes, NodeStatus::completed, &NodeState::status), 1);
  EXPECT_EQ(store->waiting({{"default"}, "worker"}, 10, {})->size(), 4u);
}

TEST_P(StoreContract, TagsAndLogsAloneAreSomethingToWrite) {
  const WriteSet w = with_tags_and_logs();
  commit(w);
  for (const WriteSet& some : {w, WriteSet{.tags_new = w.tags_new}, WriteSet{.logs_new = w.logs_new}})
    EXPECT_FALSE(some.empty());
}

TEST_P(TablesContract, TagsAndLogsAreWrittenWithTheRestOrNotAtAll) {
  const WriteSet w = with_tags_and_logs();
  commit(w);
  WriteSet again;
  again.jobs_new = {job(2)};
  again.logs_new = {w.logs_new[0]};
  const auto done = store->commit(again, number + 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  EXPECT_TRUE(load(for_jobs({job_id(2)})).jobs.empty());
}

TEST_P(StoreContract, UnknownKeysAreAbsentAndRepeatedKeysGiveOneRow) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.nodes_new = {node(1, "a"), node(1, "b")};
  w.workflows_new = {
      {{"t"}, "w", 1, "one", at(1)}, {{"t"}, "w", 2, "two", at(2)}, {{"t"}, "w2", 9, "other", at(2)}};
  commit(w);
  LoadRequest r;
  r.jobs = {job_id(1), job_id(2), job_id(1)};
  r.jobs_whole = {job_id(9), job_id(1)};
  r.nodes = {{job_id(1), no_item, "a"}, {job_id(1), no_item, "zz"}, {job_id(3), no_item, "a"},
             {job_id(1), no_item, "a"}, {job_id(1), 0, "a"},        {job_id(1), no_item, "b"}};
  r.task_results = {"none"};
  r.workflows = {{{"t"}, "w", 0}, {{"t"}, "w", 2}, {{"t"}, "w", 1}, {{"t"}, "w", 7}, {{"u"}, "w", 0}};
  const auto l = load(r);
  EXPECT_EQ(l.jobs.size(), 1u);
  EXPECT_EQ(l.nodes.size(), 2u);
  EXPECT_TRUE(l.task_results.empty());
  ASSERT_EQ(l.workflows.size(), 2u);
  const auto latest = load({.workflows = {{{"t"}, "w", 0}}});
  ASSERT_EQ(latest.workflows.size(), 1u);
  EXPECT_EQ(latest.workflows[0].definition, "two");
  EXPECT_TRUE(load({}).jobs.empty());
}

TEST_P(TablesContract, ACommitThatFailsChangesNothing) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.idempotency_keys_new = {{{"t"}, "key", job_id(1), "h"}};
  commit(w);
  WriteSet twice;
  twice.jobs_new = {job(2)};
  twice.events_new = {event(2, 1)};
  twice.timers_new = {node_timer(at(5), 2, "a")};
  twice.idempotency_keys_new = {{{"t"}, "key", job_id(2), "h"}};
  auto done = store->commit(twice, number + 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  WriteSet missing;
  missing.jobs_new = {job(2)};
  missing.nodes_changed = {node(2, "a")};
  done = store->commit(missing, number + 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict) << done.error().message;
  EXPECT_TRUE(load(for_jobs({job_id(2)})).jobs.empty());
  EXPECT_EQ(store->next_timer().value(), std::nullopt);
  w = {};
  w.jobs_new = {job(2)};
  commit(w);  // the writer goes on with the same number
  EXPECT_EQ(store->open(partition)->last_commit, number);
}

TEST_P(StoreContract, AnEmptyWriteSetOnlyCountsTheCommit) {
  ASSERT_TRUE(WriteSet{}.empty());
  commit({});
  commit({});
  EXPECT_EQ(store->open(partition)->last_commit, 2);
}

TEST_P(StoreContract, ReopeningTakesANewTermAndTellsTheLastCommit) {
  WriteSet w;
  w.jobs_new = {job(1)};
  EXPECT_FALSE(w.empty());
  commit(w);
  const auto again = store->open(partition);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_GT(again->term, first.term);
  EXPECT_EQ(again->last_commit, 1);
  EXPECT_EQ(load(for_jobs({job_id(1)})).jobs.size(), 1u);
  commit({});
  store.reset();
  store = database.store();
  EXPECT_EQ(store->open(partition)->last_commit, 2);
  EXPECT_EQ(load(for_jobs({job_id(1)})).jobs.size(), 1u);
}

TEST_P(StoreContract, AWriterWhoseTermWasTakenIsFencedAndHasChangedNothing) {
  database.take_term();
  WriteSet w;
  w.jobs_new = {job(1)};
  const auto done = store->commit(w, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::fenced);
  EXPECT_EQ(store->open(partition).error().code,
            Code::fenced);  // for good: what it believes may be wrong by now
  store.reset();
  store = database.store();
  ASSERT_TRUE(store->open(partition));
  EXPECT_TRUE(load(for_jobs({job_id(1)})).jobs.empty());
}

TEST_P(StoreContract, ASecondWriterIsRefusedWhileTheFirstIsAlive) {
  auto second = database.store();
  const auto opened = second->open(partition);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::conflict);
  const std::string who =
      database.type() == StoreType::sqlite ? "process " + std::to_string(::getpid()) : "another baton";
  EXPECT_TRUE(opened.error().message.contains(who)) << opened.error().message;
  commit({});
  store.reset();
  EXPECT_TRUE(second->open(partition));
}

TEST_P(StoreContract, APartitionHasItsOwnTermAndCommitNumbers) {
  constexpr Partition other{1};
  commit({});
  commit({});
  store.reset();
  store = database.store();
  const auto fresh = store->open(other);
  ASSERT_TRUE(fresh) << fresh.error().message;
  EXPECT_EQ(fresh->term, 1);
  EXPECT_EQ(fresh->last_commit, 0);
  EXPECT_TRUE(store->commit({}, 1));
  store.reset();
  store = database.store();
  const auto first_again = store->open(partition);
  ASSERT_TRUE(first_again) << first_again.error().message;
  EXPECT_EQ(first_again->term, first.term + 1);
  EXPECT_EQ(first_again->last_commit, 2);
  store.reset();
  store = database.store();
  EXPECT_EQ(store->open(other)->last_commit, 1);
}

TEST_P(StoreContract, WritersOfTwoPartitionsDoNotFenceEachOther) {
  if (database.type() == StoreType::sqlite) GTEST_SKIP() << "a file has one writer, whatever its partition";
  auto second = database.store();
  const auto opened = second->open({1});
  ASSERT_TRUE(opened) << opened.error().message;
  commit({});
  EXPECT_TRUE(second->commit({}, 1));
  EXPECT_EQ(database.store()->open({1}).error().code, Code::conflict);
  EXPECT_EQ(store->open(partition)->last_commit, 1);
}

TEST_P(StoreContract, AnUpdateOfANodeMovesItToAnotherQueueOfAnotherTenant) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.nodes_new = {node(1, "a")};
  commit(w);
  WriteSet moved;
  moved.nodes_changed = {node(1, "a")};
  moved.nodes_changed[0].status = NodeStatus::running;
  moved.nodes_changed[0].tenant = {};
  moved.nodes_changed[0].queue = "builtin";
  commit(moved);
  const auto running = store->running_builtin(10);
  ASSERT_TRUE(running);
  ASSERT_EQ(running->size(), 1u);
  EXPECT_EQ(running->front(), (NodeKey{job_id(1), no_item, "a"}));
}

TEST_P(StoreContract, NothingWorksBeforeOpen) {
  store.reset();
  store = database.store();
  EXPECT_EQ(store->commit({}, 1).error().code, Code::unavailable);
  EXPECT_EQ(store->load(for_jobs({job_id(1)})).error().code, Code::unavailable);
}

TEST_P(StoreContract, WaitingNodesComeByPriorityThenOldestFirstAndOnlyFromTheirQueue) {
  WriteSet w;
  std::vector<WaitingTask> expected;
  for (int i = 0; i < 40; ++i) {
    NodeState row = i % 3 == 0 ? child(i % 5, "split", i * 7 % 40) : node(i % 5, "n" + std::to_string(i));
    row.dispatched_at = at(1000 - i / 8 * 100);
    row.priority = i % 4 - 1;
    w.nodes_new.push_back(row);
  }
  auto sorted = w.nodes_new;
  std::ranges::sort(sorted, {}, [](const NodeState& n) {
    return std::tuple(-n.priority, n.dispatched_at, n.job_id, n.item_index, n.node_id);
  });
  for (const auto& row : sorted) expected.push_back(waiting_task(key_of(row), row.priority, *row.dispatched_at));
  NodeState other = node(1, "x");
  other.queue = "another";
  NodeState foreign = node(1, "y");
  foreign.tenant = {"t2"};
  NodeState running = node(1, "z");
  running.status = NodeStatus::running;
  w.nodes_new.insert(w.nodes_new.end(), {other, foreign, running});
  commit(w);
  EXPECT_EQ(store->waiting({{"default"}, "worker"}, 100, {}).value(), expected);
  EXPECT_EQ(store->waiting({{"default"}, "worker"}, 3, {}).value(),
            std::vector(expected.begin(), expected.begin() + 3));
  WriteSet taken;
  taken.nodes_changed = {sorted[0]};
  taken.nodes_changed[0].status = NodeStatus::running;
  commit(taken);
  EXPECT_EQ(store->waiting({{"default"}, "worker"}, 1, {}).value().at(0), expected[1]);
  EXPECT_EQ(store->waiting({{"t2"}, "worker"}, 9, {})->size(), 1u);
}

TEST_P(StoreContract, TimersComeEarliestFirstUntilTheyAreGone) {
  const Timer early = node_timer(at(10), 2, "a"), same_due = node_timer(at(10), 3, "a"),
              late = node_timer(at(20), 1, "a");
  WriteSet w;
  w.timers_new = {late, same_due, early};
  commit(w);
  EXPECT_EQ(store->next_timer().value(), at(10));
  EXPECT_TRUE(store->timers_due(at(9), 10)->empty());
  EXPECT_EQ(store->timers_due(at(10), 10).value(), (std::vector{early, same_due}));
  EXPECT_EQ(store->timers_due(at(20), 10).value(), (std::vector{early, same_due, late}));
  EXPECT_EQ(store->timers_due(at(20), 1).value(), (std::vector{early}));
  WriteSet gone;
  gone.timers_gone = {early, same_due, node_timer(at(99), 1, "never")};
  gone.timers_new = {early};  // moved away and back within a commit
  commit(gone);
  EXPECT_EQ(store->timers_due(at(20), 10).value(), (std::vector{early, late}));
}

TEST_P(StoreContract, ATimerOfWhatNobodyKnowsIsGivenAndWrittenAsItIs) {
  WriteSet writes;
  const Timer strange{at(5), {Subject::Type::none, "sprocket 7"}, "x"};
  writes.timers_new = {strange, node_timer(at(6), 1, "a")};
  commit(writes);
  EXPECT_EQ(store->timers_due(at(10), 10).value(), writes.timers_new);
  WriteSet gone;
  gone.timers_gone = {strange};
  commit(gone);
  EXPECT_EQ(store->timers_due(at(10), 10).value(), std::vector{node_timer(at(6), 1, "a")});
}

TEST_P(StoreContract, TimersOfAllKindsAreInOneLineAndDifferBySubjectAndWhat) {
  using runbook::RowType;
  const std::vector all{
      node_timer(at(1), 2, "split_7"),
      node_timer(at(2), 1, "a"),
      node_timer(at(2), 1, "b"),
      runbook_timer(at(3), RowType::runbook, 7),
      runbook_timer(at(4), RowType::batch, 7),
      runbook_timer(at(5), RowType::phase, 7),
      runbook_timer(at(6), RowType::step, 7),
      runbook_timer(at(7), RowType::init, 7),
      runbook_timer(at(8), RowType::cleanup, 9'000'000'000'000'000'000),
  };
  WriteSet w;
  w.timers_new = all;
  std::ranges::reverse(w.timers_new);
  for (const RowType type : {RowType::step, RowType::init, RowType::cleanup, RowType::phase, RowType::batch, RowType::runbook})
    w.timers_new.push_back(runbook_timer(at(9), type, 1));  // at one time, of one id
  commit(w);
  EXPECT_EQ(store->next_timer().value(), at(1));
  EXPECT_EQ(store->timers_due(at(8), 100).value(), all);
  EXPECT_EQ(store->timers_due(at(9), 100)->size(), all.size() + 6);
  WriteSet gone;
  gone.timers_gone = {all.begin(), all.end() - 1};
  commit(gone);
  EXPECT_EQ(store->next_timer().value(), at(8));
  EXPECT_EQ(store->timers_due(at(8), 100).value(), std::vector{all.back()});
  for (const Timer& there : {all.back(), runbook_timer(at(9), RowType::step, 1)}) {
    WriteSet again;
    again.timers_new = {there};
    commit(again);  // each is there once
  }
  EXPECT_EQ(store->timers_due(at(9), 100)->size(), 7u);
}

TEST_P(StoreContract, RowsInsertedAndUpdatedInOneCommitEndUpdated) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.jobs_changed = {job(1)};
  w.jobs_changed[0].status = JobStatus::completed;
  commit(w);
  EXPECT_EQ(load(for_jobs({job_id(1)})).jobs.at(0).status, JobStatus::completed);
}

TEST_P(StoreContract, ThousandsOfRowsInRandomOrderAllArrive) {
  WriteSet w;
  LoadRequest r;
  for (int i = 0; i < 3000; ++i) {
    w.jobs_new.push_back(job(i));
    w.nodes_new.push_back(node(i, "a"));
    w.events_new.push_back(event(i, i));
    r.jobs.push_back(job_id(i));
    r.nodes.push_back({job_id(i), no_item, "a"});
  }
  std::ranges::shuffle(w.jobs_new, std::mt19937(1));
  std::ranges::shuffle(w.nodes_new, std::mt19937(2));
  commit(w);
  const auto l = load(r);
  EXPECT_EQ(l.jobs.size(), 3000u);
  EXPECT_EQ(l.nodes.size(), 3000u);
}

}  // namespace
}  // namespace baton::contract::store_contract_test
