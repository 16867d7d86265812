// A turn of the writer has a budget, shared fairly between tenants, and no timer overtakes a message.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"
#include "tests/support/kept_reply.hpp"

namespace baton::engine::budget_test {
namespace {

using namespace std::chrono_literals;
using support::KeptReply;
using workflow::JobId;
using workflow::NodeStatus;

constexpr std::string_view plain = R"(
workflow_id: plain
nodes:
  start: {type: start, next: a}
  a: {type: task, handler: work, queue: q, timeout_seconds: 20, params: {n: '{{ inputs.u | length }}'}, next: end}
  end: {type: end}
)";
constexpr std::string_view costly = R"(
workflow_id: costly
nodes:
  start: {type: start, next: split}
  split: {type: fan_out, source: '{{ inputs.u }}',
          task: {handler: work, queue: q, params: {n: '{{ inputs.u | sum + item }}'}}, next: end}
  end: {type: end}
)";

JobId job_id(int n) { return {uuid7(from_millis(1'800'000'000'000), 1, static_cast<std::uint64_t>(n))}; }

std::string list_of(int count) {
  std::string list = "{\"u\":[";
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
  return list + "]}";
}

class TurnTest : public testing::Test {
 protected:
  static KindsOptions kinds() { return {.workflows = {.steps_max = 2'000, .steps_share = 200}}; }
  static WriterOptions options() { return {.short_lease = 5s}; }
  void SetUp() override {
    ASSERT_TRUE(writer_.open());
    for (const char* tenant : {"greedy", "small"})
      for (const std::string_view text : {plain, costly})
        (void)run({PublishWorkflow{{tenant}, workflow::parse(text).definition, std::string(text)}});
  }
  std::vector<std::shared_ptr<KeptReply>> run(std::vector<Command> commands) { return run(std::move(commands), clock_.time); }
  std::vector<std::shared_ptr<KeptReply>> run(std::vector<Command> commands, Time received) {
    std::vector<Item> items;
    std::vector<std::shared_ptr<KeptReply>> answers;
    for (Command& command : commands) {
      answers.push_back(std::make_shared<KeptReply>());
      items.push_back({std::move(command), answers.back(), received});
    }
    writer_.run(std::move(items));
    return answers;
  }
  static SubmitJob job(int n, std::string tenant, std::string workflow, int list) {
    return {.job_id = job_id(n), .tenant = {std::move(tenant)}, .workflow_id = std::move(workflow), .input_data = {list_of(list)}};
  }
  Poll poll(std::string tenant) const {
    return {.tenant = {std::move(tenant)}, .queue = "q", .worker = "w", .wait_until = clock_.time + 1h};
  }
  Handout take(const std::string& tenant) {
    const auto answer = run({poll(tenant)});
    return std::get<PollReply>(answer.front()->reply.value()).jobs.at(0);
  }
  static ReportResult result(const Handout& task, std::string tenant) {
    return {.tenant = workflow::Tenant{std::move(tenant)},
            .task_id = task.task_id,
            .job_id = {},
            .node_id = {},
            .completed = true,
            .lease = task.lease};
  }
  std::int32_t created(int n) { return database_.nodes.at({job_id(n), workflow::no_item, "split"}).items_created; }
  NodeStatus status(int n, const std::string& node) {
    return database_.nodes.at({job_id(n), workflow::no_item, node}).status;
  }

  support::ManualClock clock_;
  store::MemoryDatabase database_;
  store::MemoryStore store_{database_};
  Writer writer_{store_, clock_, make_kinds(kinds()), options()};
};

TEST_F(TurnTest, AResultThatCameBeforeTheTimeoutCountsHoweverLateItIsDecided) {
  run({job(1, "small", "plain", 3)});
  const Handout task = take("small");
  const Time received = clock_.time + 1s;
  clock_.time += 67s;  // the engine was busy
  const auto answer = run({result(task, "small")}, received);
  EXPECT_TRUE(std::holds_alternative<ResultReply>(answer.front()->reply.value()));
  run({});
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::completed);
}

TEST_F(TurnTest, AResultThatCameAfterTheTimeoutDoesNot) {
  run({job(1, "small", "plain", 3)});
  const Handout task = take("small");
  const Time received = clock_.time + 21s;
  clock_.time += 67s;
  const auto answer = run({result(task, "small")}, received);
  EXPECT_TRUE(std::holds_alternative<Refused>(answer.front()->reply.value()));
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::failed);
}

// The timer was set for the first lease, and fires in the middle of the second; meanwhile the timeout has passed.
TEST_F(TurnTest, ARenewedLeaseIsJudgedAsOfTheOldestMessageToo) {
  run({job(1, "small", "plain", 3)});
  Poll asks = poll("small");
  asks.heartbeats = true;
  const auto given = run({asks});
  const Handout task = std::get<PollReply>(given.front()->reply.value()).jobs.at(0);
  clock_.time += 4s;
  run({Heartbeat{.tenant = workflow::Tenant{"small"}, .worker = "w", .tasks = {{task.task_id, task.lease}}}});
  const Time received = clock_.time + 4s;  // the second lease ends a second later
  clock_.time += 60s;
  const auto answer = run({result(task, "small")}, received);
  EXPECT_TRUE(std::holds_alternative<ResultReply>(answer.front()->reply.value()));
}

TEST_F(TurnTest, TimersThatWereDueBeforeTheMessageAreDecidedBeforeIt) {
  run({job(1, "small", "plain", 3)});
  (void)take("small");
  clock_.time += 67s;
  run({job(2, "small", "plain", 3)});
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::failed);
}

TEST_F(TurnTest, ALargeFanOutTakesManyTurns) {
  run({job(1, "greedy", "costly", 100)});  // more than a hundred steps for each item
  EXPECT_LT(created(1), 40);
  int turns = 0;
  for (; created(1) < 100; ++turns) {
    ASSERT_LT(turns, 100);
    run({});
  }
  EXPECT_GE(turns, 4);
}

TEST_F(TurnTest, WhoeverSpentMoreThanItsShareWaitsWhileOthersHaveSomethingToDo) {
  run({job(1, "greedy", "costly", 300)});
  const std::int32_t before = created(1);
  for (int n = 10; n < 14; ++n) {
    run({job(n, "small", "plain", 5)});
    EXPECT_EQ(status(n, "a"), NodeStatus::dispatched) << "at once, in the same turn";
  }
  EXPECT_EQ(created(1), before) << "it pays for what it spent before";
  run({});
  EXPECT_GT(created(1), before) << "nobody else has anything to do";
}

TEST_F(TurnTest, WhoeverIsInDebtGoesOnInTheEnd) {
  run({job(1, "greedy", "costly", 300)});
  int n = 10;
  for (const std::int32_t before = created(1); created(1) == before; ++n) {
    ASSERT_LT(n, 100);
    run({job(n, "small", "plain", 5)});
  }
  EXPECT_GT(n, 15);
}

TEST_F(TurnTest, WaitsThatRunOutInEachTurnPayNoDebt) {
  run({job(1, "greedy", "costly", 300)});
  int n = 10;
  for (const std::int32_t before = created(1); created(1) == before; ++n) {
    ASSERT_LT(n, 100);
    run({job(n, "small", "plain", 5), AwaitJob{{"greedy"}, job_id(1), clock_.time + 1ms}});
    clock_.time += 1ms;
  }
  EXPECT_GT(n, 15);
}

TEST_F(TurnTest, ChunksTakeTurnsBetweenTenants) {
  for (int n = 0; n < 8; ++n) run({job(n, "greedy", "costly", 300)});
  run({job(20, "small", "costly", 300)});
  const std::int32_t before = created(20);
  for (int i = 0; i < 3 && created(20) == before; ++i) run({});
  EXPECT_GT(created(20), before);
}

TEST_F(TurnTest, ACancelIsDecidedAtOnceWhateverTheJobCosts) {
  run({job(1, "greedy", "costly", 300)});
  const auto answer = run({ChangeJob{{"greedy"}, job_id(1), ChangeJob::What::cancel, "", ""}, job(2, "small", "plain", 5)});
  EXPECT_TRUE(std::holds_alternative<JobReply>(answer.front()->reply.value()));
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::cancelled);
}

// More timers than a turn takes, all of which have to wait: somebody else's is found all the same.
TEST_F(TurnTest, TimersThatWaitForTheirTurnDoNotHideThoseOfOthers) {
  WriterOptions narrow = options();
  narrow.timers_max = 10;
  KindsOptions one_chunk = kinds();
  one_chunk.workflows.chunks_max = 1;
  Writer writer(store_, clock_, make_kinds(one_chunk), narrow);
  ASSERT_TRUE(writer.open());
  const auto submit = [&](SubmitJob command) {
    std::vector<Item> items;
    items.push_back({std::move(command), std::make_shared<KeptReply>(), clock_.time});
    writer.run(std::move(items));
  };
  for (int n = 0; n < 30; ++n) submit(job(n, "greedy", "costly", 300));
  SubmitJob delayed = job(50, "small", "plain", 3);
  delayed.delay = 1s;
  submit(delayed);
  clock_.time += 2s;
  int turns = 0;
  for (; status(50, "a") != NodeStatus::dispatched; ++turns) {
    ASSERT_LT(turns, 20);
    writer.run({});
  }
  EXPECT_LT(turns, 15);
}

}  // namespace
}  // namespace baton::engine::budget_test
