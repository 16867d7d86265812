// What the commands and timers of one batch may cost: the rest waits for the next turn of the writer.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"

namespace baton::engine::runbook_turn_test {
namespace {

using namespace std::chrono_literals;
using runbook::StepStatus;

struct TestClock final : Clock {
  Time time = from_millis(1'800'000'000'000);
  [[nodiscard]] Time now() const override { return time; }
};

struct Answer final : Waiter {
  std::optional<Reply> reply;
  void deliver(Reply r) override { reply = std::move(r); }
};
using Answers = std::vector<std::shared_ptr<Answer>>;

// Counts whose steps are loaded at once, and notes how many members a chunk is given.
class CountingStore final : public store::MemoryStore {
 public:
  using MemoryStore::load;
  using MemoryStore::MemoryStore;
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override {
    const auto members = std::ranges::count_if(
        needs, [](const runbook::Need& need) { return std::holds_alternative<runbook::need::StepsOfMember>(need); });
    members_at_once = std::max(members_at_once, static_cast<std::size_t>(members));
    for (const runbook::Need& need : needs)
      if (const auto* chunk = std::get_if<runbook::need::MembersOf>(&need)) members_in_chunk = chunk->limit;
    return MemoryStore::load(needs);
  }
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override {
    ++reservations[table];
    return MemoryStore::reserve_ids(table, count);
  }
  std::size_t members_at_once = 0;
  std::int32_t members_in_chunk = 0;  // at most
  std::map<runbook::Table, int> reservations;
};

constexpr std::string_view text = R"(
name: waves
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - name: work
    offset: T-0
    steps: [{name: one, worker_id: pool, function: One, params: {Key: "{{Key}}"}, timeout: 1m, on_failure: undo}]
rollbacks: {undo: [{name: back, worker_id: pool, function: Back, params: {Key: "{{Key}}"}}]}
)";

class RunbookTurn : public testing::Test {
 protected:
  void open(runbook::Policy policy) {
    writer_ = std::make_unique<Writer>(store_, clock_, make_kinds({.runbooks = {.policy = policy}}));
    ASSERT_TRUE(writer_->open());
    (void)run({PublishRunbook{runbook::parse(text).definition, std::string(text)}});
  }
  Answers run(std::vector<Command> commands) {
    std::vector<Item> items;
    Answers answers;
    for (Command& command : commands) {
      answers.push_back(std::make_shared<Answer>());
      items.push_back({std::move(command), answers.back()});
    }
    writer_->run(std::move(items));
    return answers;
  }
  bool has_more() { return writer_->next_wake() && *writer_->next_wake() <= clock_.now(); }
  void settle() {
    for (int i = 0; i < 100 && has_more(); ++i) (void)run({});
  }
  static AddMembers add(std::int64_t batch_id, const std::vector<std::string>& keys) {
    AddMembers command{.batch_id = batch_id, .members = {}};
    for (const std::string& key : keys) command.members.push_back({key, {}, Json{"{\"Key\":\"" + key + "\"}"}});
    return command;
  }
  static std::vector<std::string> keys(const std::string& prefix, int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
    return all;
  }
  // A manual batch; its phase is begun by advance().
  std::int64_t open_batch(int members) {
    const Answers opened = run({OpenBatch{.runbook_name = "waves"}});
    const std::int64_t id = std::get<BatchReply>(opened.front()->reply.value()).batch.id;
    if (members > 0) (void)run({add(id, keys("m", members))});
    (void)run({StartBatch{.batch_id = id}});
    settle();
    return id;
  }
  void advance(std::int64_t batch_id) {
    (void)run({ChangeBatch{.batch_id = batch_id, .what = ChangeBatch::What::advance}});
    settle();
  }
  static std::size_t answered(const Answers& answers) {
    return static_cast<std::size_t>(
        std::ranges::count_if(answers, [](const auto& answer) { return answer->reply.has_value(); }));
  }
  static void expect_members(const Answers& answers, std::size_t each) {
    for (const auto& answer : answers) {
      ASSERT_TRUE(answer->reply && std::holds_alternative<MembersReply>(*answer->reply));
      EXPECT_EQ(std::get<MembersReply>(*answer->reply).member_ids.size(), each);
    }
  }
  std::size_t steps_in(StepStatus status) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        database_.runbooks.steps, [&](const auto& entry) { return entry.second.status == status; }));
  }

  store::MemoryDatabase database_;
  TestClock clock_;
  CountingStore store_{database_};
  std::unique_ptr<Writer> writer_;
};

TEST_F(RunbookTurn, gives_ids_that_do_not_jump_after_a_restart) {
  using runbook::Table;
  std::vector<std::int64_t> batches, runbooks, last_members, last_steps;
  for (int start = 0; start < 3; ++start) {
    open({});
    batches.push_back(open_batch(0));
    (void)run({PublishRunbook{runbook::parse(text).definition, std::string(text) + "# " + std::to_string(start)}});
    runbooks.push_back(database_.runbooks.runbooks.rbegin()->first);
    (void)run({add(batches.back(), keys("m", 50))});
    advance(batches.back());
    last_members.push_back(database_.runbooks.members.rbegin()->first);
    last_steps.push_back(database_.runbooks.steps.rbegin()->first);
  }
  EXPECT_EQ(batches, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(runbooks[2] - runbooks[1], runbooks[1] - runbooks[0]);
  EXPECT_EQ(last_members, (std::vector<std::int64_t>{50, 100, 150}));
  EXPECT_LE(last_steps.back(), 300) << "of steps the gaps are no larger than what was used";
  EXPECT_EQ(store_.reservations[Table::batch_members], 3) << "how many members come is known before";
}

TEST_F(RunbookTurn, reserves_many_ids_at_a_time_where_many_are_used) {
  open({});
  const auto batch = open_batch(1'000);
  advance(batch);
  ASSERT_EQ(database_.runbooks.steps.size(), 1'000U);
  EXPECT_LT(store_.reservations[runbook::Table::step_executions], 10);
}

TEST_F(RunbookTurn, takes_commands_as_far_as_their_members_are_few_enough) {
  open({.members_named = 20});
  const auto batch = open_batch(40);
  advance(batch);
  ASSERT_EQ(steps_in(StepStatus::dispatched), 40U);
  std::vector<Command> commands;
  auto member = database_.runbooks.members.begin();
  for (int i = 0; i < 4; ++i) {
    RemoveMembers remove{.batch_id = batch, .by = "ada"};
    for (int n = 0; n < 10; ++n, ++member) remove.member_ids.push_back(member->first);
    commands.emplace_back(std::move(remove));
  }
  store_.members_at_once = 0;
  const Answers answers = run(std::move(commands));
  EXPECT_EQ(answered(answers), 2U);
  EXPECT_EQ(store_.members_at_once, 20U) << "nothing is loaded for those that wait";
  EXPECT_TRUE(has_more());
  (void)run({});
  EXPECT_EQ(answered(answers), 4U);
  expect_members(answers, 10);
  EXPECT_EQ(steps_in(StepStatus::cancelled), 40U);
}

TEST_F(RunbookTurn, takes_one_command_whatever_it_names) {
  open({.members_named = 3});
  const auto batch = open_batch(0);
  const Answers answers = run({add(batch, keys("a", 10)), add(batch, keys("b", 10))});
  EXPECT_EQ(answered(answers), 1U);
  (void)run({});
  expect_members(answers, 10);
}

// What comes behind a command that waits keeps its order; a heartbeat waits for nobody.
TEST_F(RunbookTurn, leaves_what_comes_behind_for_the_next_one_but_for_heartbeats) {
  open({.members_named = 3});
  const auto batch = open_batch(1);
  advance(batch);
  const Answers polled = run({Poll{.tenant = {"default"}, .queue = "pool", .worker = "w", .heartbeats = true}});
  const Handout job = std::get<PollReply>(polled.front()->reply.value()).jobs.at(0);
  clock_.time += 10s;
  const Answers answers = run({add(batch, keys("a", 3)), add(batch, keys("b", 3)),
                               ChangeBatch{.batch_id = batch, .what = ChangeBatch::What::pause},
                               Heartbeat{.worker = "w", .tasks = {{job.task_id, job.lease}}}});
  EXPECT_TRUE(answers[0]->reply);
  EXPECT_FALSE(answers[1]->reply || answers[2]->reply);
  ASSERT_TRUE(answers[3]->reply);
  EXPECT_TRUE(std::get<HeartbeatReply>(*answers[3]->reply).cancelled.empty());
  settle();
  EXPECT_EQ(answered(answers), 4U);
  EXPECT_TRUE(database_.runbooks.batches.at(batch).paused_at);
}

TEST_F(RunbookTurn, takes_no_more_commands_when_enough_rows_have_changed) {
  open({.batch_rows = 5});
  const auto batch = open_batch(0);
  const Answers answers = run({add(batch, keys("a", 3)), add(batch, keys("b", 3)), add(batch, keys("c", 3))});
  EXPECT_EQ(answered(answers), 2U);
  (void)run({});
  expect_members(answers, 3);
}

// Members that come late are given a step at once.
TEST_F(RunbookTurn, takes_no_more_commands_when_enough_params_are_rendered) {
  open({.batch_bytes = 1});
  const auto batch = open_batch(1);
  advance(batch);
  const Answers answers = run({add(batch, keys("a", 2)), add(batch, keys("b", 2)), add(batch, keys("c", 2))});
  EXPECT_EQ(answered(answers), 1U);
  (void)run({});
  EXPECT_EQ(answered(answers), 2U);
  (void)run({});
  expect_members(answers, 2);
  EXPECT_EQ(steps_in(StepStatus::dispatched), 7U);
}

// A walk that uses up its budget in every turn does not keep messages from being decided.
TEST_F(RunbookTurn, has_room_for_commands_whatever_timers_have_cost) {
  open({.chunk_bytes = 1, .batch_bytes = 1});
  const auto walked = open_batch(5), other = open_batch(0);
  (void)run({ChangeBatch{.batch_id = walked, .what = ChangeBatch::What::advance}});
  for (std::size_t i = 0; i < 5; ++i) {
    const std::size_t before = steps_in(StepStatus::dispatched);
    const Answers answers = run({add(other, {"x" + std::to_string(i)})});
    EXPECT_EQ(answered(answers), 1U) << i;
    EXPECT_EQ(steps_in(StepStatus::dispatched), before + 1) << i;
  }
}

// Members that a chunk has no budget for are loaded once more by the next one.
TEST_F(RunbookTurn, gives_a_chunk_no_more_members_than_twice_what_the_last_one_had_budget_for) {
  open({.chunk_members = 10, .chunk_bytes = 1});
  const auto walked = open_batch(6);
  (void)run({ChangeBatch{.batch_id = walked, .what = ChangeBatch::What::advance}});
  (void)run({});
  EXPECT_EQ(store_.members_in_chunk, 10);
  (void)run({});
  EXPECT_EQ(store_.members_in_chunk, 2);
  settle();
  EXPECT_EQ(steps_in(StepStatus::dispatched), 6U);
  std::vector<std::int32_t> grows;
  for (int i = 0; i < 4; ++i) {  // walks over nobody, which cost nothing
    advance(open_batch(0));
    grows.push_back(store_.members_in_chunk);
  }
  EXPECT_EQ(grows.back(), 10);
  EXPECT_TRUE(std::ranges::is_sorted(grows));
}

// Three jobs time out at the same moment, and each is rolled back.
TEST_F(RunbookTurn, leaves_timers_due_when_enough_params_are_rendered) {
  open({.batch_bytes = 1});
  advance(open_batch(3));
  const Answers polled = run({Poll{.tenant = {"default"}, .queue = "pool", .worker = "w", .max = 3}});
  ASSERT_EQ(std::get<PollReply>(polled.front()->reply.value()).jobs.size(), 3U);
  clock_.time += 1min;
  for (std::size_t failed = 1; failed <= 3; ++failed) {
    (void)run({});
    EXPECT_EQ(database_.runbooks.cleanups.size(), failed);
    EXPECT_EQ(steps_in(StepStatus::failed), failed);
    EXPECT_EQ(steps_in(StepStatus::dispatched), 3 - failed);
    EXPECT_TRUE(failed == 3 || has_more()) << failed;
  }
}

}  // namespace
}  // namespace baton::engine::runbook_turn_test
