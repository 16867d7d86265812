#include "core/workflow/machine.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace baton::workflow {
namespace {

using namespace std::chrono_literals;

const JobId id{"01a3185c-8f0a-7b0c-a1b0-83be19ecabac"};
const Time begin = from_millis(1'800'000'000'000);
const Policy policy;

std::shared_ptr<const Definition> definition(const std::string& task_keys = "") {
  const auto parsed = parse(
      "workflow_id: w\nnodes:\n  start: {type: start, next: [a, b]}\n  a: {type: task, handler: work, queue: "
      "q" +
      task_keys +
      ", next: join}\n  b: {type: task, handler: work, queue: q, next: join}\n  join: {type: task, handler: "
      "work, queue: q, next: "
      "end}\n  end: {type: end}\n");
  EXPECT_TRUE(parsed.definition);
  return parsed.definition;
}

struct Machine {
  explicit Machine(const std::string& task_keys = "")
      : run(create({id, {"default"}, 1, Json{"{}"}, std::nullopt}, definition(task_keys), policy, begin,
                   journal)) {}

  NodeIndex index(std::string_view node) const { return *run.definition->find(node); }
  NodeState& state(std::string_view node) { return run.at(index(node)).state; }
  bool give(std::string_view node, bool heartbeats = true, Time now = begin) {
    return hand_out(run, index(node), "w1", heartbeats, policy, now, journal);
  }
  Verdict say(std::string_view node, bool completed, std::optional<std::string> lease = {},
              Time now = begin) {
    const NodeState& s = state(node);
    Report r{.retry_count = s.retry_count,
             .completed = completed,
             .output = Json{"1"},
             .error = {},
             .lease = std::move(lease),
             .worker = {},
             .execution_duration_ms = {}};
    if (!completed) r.output.reset(), r.error = "no";
    return report(run, index(node), r, nullptr, policy, now, journal);
  }
  void tick(std::string_view node, Time now) { timer_fired(run, index(node), policy, now, journal); }
  int count(EventType type) const {
    return static_cast<int>(std::ranges::count(journal.events, type, &Event::event_type));
  }

  Journal journal;
  Run run;
};

TEST(Machine, AJoinWaitsForAllItsDependencies) {
  Machine m;
  ASSERT_TRUE(m.give("a") && m.give("b"));
  EXPECT_EQ(m.say("a", true), Verdict::accepted);
  EXPECT_EQ(m.state("join").status, NodeStatus::pending);
  EXPECT_EQ(m.say("b", true), Verdict::accepted);
  EXPECT_EQ(m.state("join").status, NodeStatus::dispatched);
}

TEST(Machine, ALeaseThatRunsOutMakesTheTaskAvailableAgainAndTheZombieIsRefused) {
  Machine m;
  ASSERT_TRUE(m.give("a"));
  const std::string old_lease = lease_token(m.state("a"));
  m.tick("a", begin + 29s);
  EXPECT_EQ(m.state("a").status, NodeStatus::running);
  m.tick("a", begin + 30s);
  EXPECT_EQ(m.state("a").status, NodeStatus::dispatched);
  ASSERT_TRUE(m.give("a", true, begin + 31s));
  EXPECT_EQ(m.say("a", true, old_lease, begin + 32s), Verdict::stale);
  EXPECT_EQ(m.say("a", true, lease_token(m.state("a")), begin + 33s), Verdict::accepted);
}

TEST(Machine, AHeartbeatKeepsTheLeaseButNotBeyondTheTimeout) {
  Machine m(", timeout_seconds: 45");
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(renew(m.run, m.index("a"), lease_token(m.state("a")), policy, begin + 20s));
  EXPECT_EQ(*m.state("a").lease_until, begin + 45s);
  m.tick("a", begin + 30s);
  EXPECT_EQ(m.state("a").status, NodeStatus::running);
  m.tick("a", begin + 45s);
  EXPECT_EQ(m.count(EventType::node_timeout), 1);
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Machine, AWorkerThatDoesNotHeartbeatHasALeaseAsLongAsTheTimeout) {
  Machine m;
  ASSERT_TRUE(m.give("a", false));
  EXPECT_EQ(*m.state("a").lease_until, begin + 300s);
}

TEST(Machine, TenSilentWorkersMakeATaskADeadOne) {
  Machine m(", retry: {max_attempts: 3}");
  Time now = begin;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(m.give("a", true, now)) << i;
    now += 30s;
    m.tick("a", now);
  }
  EXPECT_EQ(m.state("a").status, NodeStatus::failed);
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.state("b").status, NodeStatus::cancelled);
}

TEST(Machine, ARetryWaitsForItsBackoffAndCountsAnAttempt) {
  Machine m(", retry: {max_attempts: 2, backoff: fixed, initial_delay_seconds: 7}");
  ASSERT_TRUE(m.give("a"));
  EXPECT_EQ(m.say("a", false), Verdict::accepted);
  EXPECT_EQ(m.state("a").status, NodeStatus::ready);
  EXPECT_EQ(m.state("a").timer_due, begin + 7s);
  m.tick("a", begin + 7s);
  EXPECT_EQ(m.state("a").status, NodeStatus::dispatched);
  EXPECT_EQ(*m.state("a").task_id, task_id(id, "a", 1));
}

TEST(Machine, CancelEndsEverythingAndOnlyOnce) {
  Machine m;
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(cancel(m.run, "enough", begin, m.journal));
  EXPECT_FALSE(cancel(m.run, "enough", begin, m.journal));
  EXPECT_EQ(m.say("a", true), Verdict::stale);
  EXPECT_EQ(m.run.job.nodes_active, 0);
  EXPECT_EQ(m.count(EventType::job_cancelled), 1);
}

TEST(Machine, TaskIdsAreReadAsTheyAreWrittenAndNothingElseIs) {
  EXPECT_TRUE(rc::check([] {
    const std::string node =
        *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab_-.9"))));
    const auto attempt = *rc::gen::inRange<std::int32_t>(0, 1'000'000);
    const auto name = parse_task_id(task_id(id, node, attempt));
    RC_ASSERT(name && name->job_id == id && name->node_id == node && name->retry_count == attempt);
  }));
  for (const char* wrong :
       {"", "_", "x_a_0", "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_", "01a3185c-8f0a-7b0c-a1b0-83be19ecabac__",
        "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_-1", "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_00",
        "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_99999999999"})
    EXPECT_FALSE(parse_task_id(wrong)) << wrong;
}

}  // namespace
}  // namespace baton::workflow
