// Tasks and their workers: leases, retries, results, what a worker says while it works.
#include "core/workflow/machine/machine.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/workflow/machine/machine_test.hpp"

namespace baton::workflow {
namespace {

std::string two_and_a_join(const std::string& keys_of_a = "") {
  return "  start: {type: start, next: [a, b]}\n"
         "  a: {type: task, handler: work, queue: q" +
         keys_of_a +
         ", next: join}\n"
         "  b: {type: task, handler: work, queue: q, next: join}\n"
         "  join: {type: task, handler: work, queue: q, next: end}\n"
         "  end: {type: end}\n";
}

std::string one(const std::string& keys = "") {
  return "  start: {type: start, next: a}\n  a: {type: task, handler: work, queue: q" + keys +
         ", next: end}\n  end: {type: end}\n";
}

TEST(Machine, AJoinWaitsForAllItsDependencies) {
  Machine m(two_and_a_join());
  m.finish("a");
  EXPECT_EQ(m.status("join"), NodeStatus::pending);
  m.finish("b");
  EXPECT_EQ(m.status("join"), NodeStatus::dispatched);
}

TEST(Machine, TheResultOfAJobMapsNodesToTheirOutputs) {
  Machine m(two_and_a_join());
  m.finish("a", R"({"x":1})");
  m.finish("b", "null");
  m.finish("join", "[]");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
  EXPECT_EQ(m.run.job.result_data, Json{R"({"a":{"x":1},"b":null,"join":[]})"});
  EXPECT_EQ(m.count(EventType::job_completed), 1);
}

TEST(Machine, ALeaseThatRunsOutMakesTheTaskAvailableAgainAndTheZombieIsRefused) {
  Machine m(one());
  ASSERT_TRUE(m.give("a"));
  const std::string old_lease = lease_token(m.state("a"));
  m.now += 29s;
  timer_fired(m.run, m.ref("a"), m.policy, m.now, m.decided);
  EXPECT_EQ(m.status("a"), NodeStatus::running);
  m.tick("a");
  EXPECT_EQ(m.now, test_begin + 30s);
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
  ASSERT_TRUE(m.give("a"));
  EXPECT_EQ(m.complete("a", "1", old_lease), Verdict::stale);
  EXPECT_EQ(m.complete("a", "1", lease_token(m.state("a"))), Verdict::accepted);
}

TEST(Machine, AHeartbeatKeepsTheLeaseButNotBeyondTheTimeout) {
  Machine m(one(", timeout_seconds: 45"));
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(renew(m.run, m.ref("a"), lease_token(m.state("a")), m.policy.short_lease, m.now + 20s));
  EXPECT_EQ(*m.state("a").lease_until, test_begin + 45s);
  m.tick("a");
  EXPECT_EQ(m.status("a"), NodeStatus::running);
  m.tick("a");
  EXPECT_EQ(m.now, test_begin + 45s);
  EXPECT_EQ(m.count(EventType::node_timeout), 1);
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Machine, AWorkerThatDoesNotHeartbeatHasALeaseAsLongAsTheTimeout) {
  Machine m(one());
  ASSERT_TRUE(m.give("a", false));
  EXPECT_EQ(*m.state("a").lease_until, test_begin + 300s);
}

TEST(Machine, TenSilentWorkersMakeATaskADeadOne) {
  Machine m(two_and_a_join(", retry: {max_attempts: 3}"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(m.state("a").dead_at);
    ASSERT_TRUE(m.give("a")) << i;
    m.tick("a");
  }
  EXPECT_EQ(m.status("a"), NodeStatus::failed);
  EXPECT_EQ(m.state("a").dead_at, m.now);
  EXPECT_EQ(m.error("a"), "given up after 10 deliveries, each of whose workers went silent");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.status("b"), NodeStatus::cancelled);
}

TEST(Machine, ATaskThatFailedByItselfIsNoDeadLetter) {
  Machine m(one());
  m.finish_with_error("a");
  EXPECT_EQ(m.status("a"), NodeStatus::failed);
  EXPECT_FALSE(m.state("a").dead_at);
}

TEST(Machine, ATaskGivenBackIsADeliveryButNeverMakesItADeadOne) {
  Machine m(one());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(m.give("a"));
    EXPECT_FALSE(give_back(m.run, m.ref("a"), "0.99", "gone", m.policy, m.now, m.decided));
    ASSERT_TRUE(give_back(m.run, m.ref("a"), lease_token(m.state("a")), "gone", m.policy, m.now, m.decided));
  }
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
  EXPECT_EQ(m.state("a").delivery_count, 20);
}

TEST(Machine, ARetryWaitsForItsBackoffAndCountsAnAttempt) {
  Machine m(one(", retry: {max_attempts: 2, backoff: fixed, initial_delay_seconds: 7}"));
  m.finish_with_error("a");
  EXPECT_EQ(m.status("a"), NodeStatus::ready);
  EXPECT_EQ(m.state("a").timer_due, test_begin + 7s);
  m.tick("a");
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
  EXPECT_EQ(*m.state("a").task_id, task_id(test_job, "a", 1));
  m.finish_with_error("a", "twice");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.run.job.error, "node 'a' failed: twice");
}

TEST(Machine, FinishRunningLetsTheOthersFinishAndBeginsNothingNew) {
  Machine m(two_and_a_join(), {.head = "on_failure: finish_running\n"});
  ASSERT_TRUE(m.give("b"));
  m.finish_with_error("a");
  EXPECT_EQ(m.run.job.status, JobStatus::running);
  EXPECT_EQ(m.complete("b"), Verdict::accepted);
  EXPECT_EQ(m.status("join"), NodeStatus::cancelled);
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Machine, CancelEndsEverythingAndOnlyOnce) {
  Machine m(two_and_a_join());
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(cancel(m.run, "", "enough", m.policy, m.now, m.decided));
  EXPECT_FALSE(cancel(m.run, "", "enough", m.policy, m.now, m.decided));
  EXPECT_EQ(m.complete("a"), Verdict::stale);
  EXPECT_EQ(m.run.job.nodes_active, 0);
  EXPECT_EQ(m.count(EventType::job_cancelled), 1);
}

TEST(Machine, AResultIsTakenOnceAndItsExactRepetitionIsADuplicate) {
  Machine m(two_and_a_join());
  ASSERT_TRUE(m.give("a"));
  const TaskReport said{.completed = true, .output = Json{"1"}, .lease = lease_token(m.state("a"))};
  EXPECT_EQ(m.say("a", said), Verdict::accepted);
  const std::size_t events = m.decided.events.size();
  EXPECT_EQ(m.say("a", said), Verdict::duplicate);
  TaskReport other = said;
  other.output = Json{"2"};
  EXPECT_EQ(m.say("a", other), Verdict::stale);
  EXPECT_EQ(m.output("a"), "1");
  EXPECT_EQ(m.decided.events.size(), events);
  EXPECT_EQ(m.run.results.size(), 1u);
}

TEST(Machine, AWorkerThatWasNotHandedTheTaskByUsMayReportItAllTheSame) {
  Machine m(one());
  EXPECT_EQ(m.complete("a"), Verdict::accepted);
  EXPECT_EQ(m.count(EventType::node_started), 1);
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Machine, NobodyCanReportWhatIsNoTask) {
  Machine m("  start: {type: start, next: a}\n  a: {type: approval, next: end}\n  end: {type: end}\n");
  EXPECT_EQ(m.complete("a"), Verdict::stale);
  EXPECT_EQ(m.complete("start"), Verdict::stale);
}

// ---- params ----

TEST(Machine, ATaskWithoutParamsGetsTheInputAndOneWithConstantOnesThose) {
  Machine m(
      "  start: {type: start, next: [a, b]}\n  a: {type: task, handler: work, next: end}\n"
      "  b: {type: task, handler: work, params: {x: 1}, next: end}\n  end: {type: end}\n",
      {.input = R"({"n":7})"});
  EXPECT_EQ(m.params("a"), R"({"n":7})");
  EXPECT_EQ(m.params("b"), R"({"x":1})");
  EXPECT_FALSE(m.state("a").params || m.state("b").params);  // nothing is stored twice
}

TEST(Machine, ParamsAreEvaluatedOnceAndKeepTheTypesOfTheirValues) {
  Machine m(two_and_a_join().insert(two_and_a_join().find("next: end"),
                                    "params: {all: '{{ nodes.a.output }}', n: '{{ inputs.n + 1 }}', "
                                    "text: 'n is {{ inputs.n }}'}, "),
            {.input = R"({"n":7})"});
  m.finish("a", "[1,2]");
  m.finish("b");
  EXPECT_EQ(m.params("join"), R"({"all":[1,2],"n":8,"text":"n is 7"})");
}

TEST(Machine, AParamThatIsNotDefinedFailsTheNodeAndNamesPathAndNode) {
  Machine m(one(", params: {x: '{{ inputs.user.name }}'}"), {.input = R"({"user":{}})"});
  EXPECT_EQ(m.status("a"), NodeStatus::failed);
  EXPECT_TRUE(m.error("a").starts_with("params of node 'a': 'inputs.user.name' is not defined"))
      << m.error("a");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Machine, ExpressionsSeeOnlyTheEnvironmentThatThePolicyNames) {
  Policy policy;
  policy.environment = {{"REGION", "eu"}};
  Machine m(one(", params: {r: '{{ env.REGION }}', h: '{{ env.HOME | default(1) }}'}"), {.policy = policy});
  EXPECT_EQ(m.params("a"), R"({"r":"eu","h":1})");
}

TEST(Machine, ANodeThatMayFailIsGoneOnWithoutAndLeavesItsStatusAndErrorToExpressions) {
  Machine m(
      "  start: {type: start, next: a}\n"
      "  a: {type: task, handler: work, on_failure: continue, next: b}\n"
      "  b: {type: task, handler: work, params: {s: '{{ nodes.a.status }}', e: '{{ nodes.a.error }}', o: '{{ "
      "nodes.a.output | default(0) }}'}, next: end}\n"
      "  end: {type: end}\n");
  m.finish_with_error("a", "no luck");
  EXPECT_EQ(m.run.job.nodes_failed, 0);
  EXPECT_EQ(m.params("b"), R"({"s":"FAILED","e":"no luck","o":0})");
  m.finish("b");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

// ---- what a worker says ----

TEST(Machine, TheLastCheckpointIsHandedToTheNextAttempt) {
  Machine m(one(", retry: {max_attempts: 2, initial_delay_seconds: 0}"));
  ASSERT_TRUE(m.give("a"));
  for (const char* data : {"1", R"({"row":17})"})
    EXPECT_TRUE(checkpoint(m.run, m.ref("a"), m.attempt_lease("a"), Json{data}, m.policy, m.now, m.decided));
  EXPECT_EQ(m.count(EventType::checkpoint), 2);
  EXPECT_EQ(m.fail("a"), Verdict::accepted);
  ASSERT_TRUE(m.give("a"));
  EXPECT_EQ(m.state("a").retry_count, 1);
  EXPECT_EQ(m.state("a").checkpoint, Json{R"({"row":17})"});
}

TEST(Machine, ProgressIsThatOfTheAttemptAndClearedWithANewOne) {
  Machine m(one(", retry: {max_attempts: 2, initial_delay_seconds: 0}"));
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(progress(m.run, m.ref("a"), m.attempt_lease("a"), Json{"0.5"}));
  m.tick("a");  // another delivery of the same attempt
  ASSERT_TRUE(m.give("a"));
  EXPECT_EQ(m.state("a").progress, Json{"0.5"});
  EXPECT_EQ(m.fail("a"), Verdict::accepted);
  EXPECT_FALSE(m.state("a").progress);
}

TEST(Machine, WhoSpeaksOfAnOldAttemptOrUnderAnOldLeaseIsRefused) {
  Machine m(one(", retry: {max_attempts: 2, initial_delay_seconds: 0}"));
  ASSERT_TRUE(m.give("a"));
  const AttemptLease first = m.attempt_lease("a");
  m.tick("a");
  const auto all_refused = [&](const AttemptLease& who) {
    return !progress(m.run, m.ref("a"), who, Json{"1"}) &&
           !checkpoint(m.run, m.ref("a"), who, Json{"1"}, m.policy, m.now, m.decided) &&
           !log(m.run, m.ref("a"), who, {{"stdout", m.now, "x"}}, m.policy).accepted;
  };
  EXPECT_TRUE(all_refused(first));  // it waits for another worker
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(all_refused(first));
  const AttemptLease second = m.attempt_lease("a");
  EXPECT_EQ(m.fail("a"), Verdict::accepted);
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(all_refused(second));
  EXPECT_TRUE(all_refused({.retry_count = 0, .lease = {}}));
  EXPECT_FALSE(all_refused({.retry_count = 1, .lease = {}}));  // who knows no lease is known by the attempt
  m.complete("a");
  EXPECT_TRUE(all_refused(m.attempt_lease("a")));
}

TEST(Machine, TheLogOfAnAttemptIsCutAtItsLimitAndANewAttemptHasALogOfItsOwn) {
  Policy policy;
  policy.log_bytes_max = 100;
  Machine m(one(", retry: {max_attempts: 2, initial_delay_seconds: 0}"), {.policy = policy});
  ASSERT_TRUE(m.give("a"));
  const std::vector<delivery::LogText> lines(3, {"stdout", m.now, "0123456789"});  // each counts 42 bytes
  const LogVerdict verdict = log(m.run, m.ref("a"), m.attempt_lease("a"), lines, m.policy);
  EXPECT_TRUE(verdict.accepted);
  EXPECT_EQ(verdict.stored, 2u);
  EXPECT_EQ(log(m.run, m.ref("a"), m.attempt_lease("a"), lines, m.policy).stored, 0u);
  ASSERT_EQ(m.run.logs.size(), 2u);
  EXPECT_EQ(m.run.logs[0].text, "0123456789");
  EXPECT_EQ(m.run.logs[0].retry_count, 0);
  m.fail("a");
  ASSERT_TRUE(m.give("a"));
  EXPECT_EQ(log(m.run, m.ref("a"), m.attempt_lease("a"), lines, m.policy).stored, 2u);
  EXPECT_EQ(m.run.logs.back().retry_count, 1);
}

// ---- due time ----

TEST(Machine, AJobThatIsDueLaterBeginsAtItsTime) {
  Machine m(one(), {.due_at = test_begin + 1h});
  EXPECT_EQ(m.run.job.status, JobStatus::pending);
  EXPECT_EQ(m.status("a"), NodeStatus::pending);
  EXPECT_EQ(m.state("start").timer_due, test_begin + 1h);
  timer_fired(m.run, m.ref("start"), m.policy, test_begin + 59min, m.decided);
  EXPECT_EQ(m.status("a"), NodeStatus::pending);
  m.tick("start");
  EXPECT_EQ(m.now, test_begin + 1h);
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
  EXPECT_EQ(m.run.job.status, JobStatus::running);
}

TEST(Machine, AJobWhoseTimeIsPastBeginsAtOnce) {
  Machine m(one(), {.due_at = test_begin});
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
}

TEST(Machine, AJobCanBeCancelledBeforeItIsDue) {
  Machine m(one(), {.due_at = test_begin + 1h});
  EXPECT_TRUE(cancel(m.run, "", "", m.policy, m.now, m.decided));
  EXPECT_EQ(m.status("start"), NodeStatus::cancelled);
  EXPECT_FALSE(m.state("start").timer_due);
}

TEST(Machine, TaskIdsAreReadAsTheyAreWrittenAndNothingElseIs) {
  EXPECT_TRUE(rc::check([] {
    const std::string node =
        *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab_-.9"))));
    const auto attempt = *rc::gen::inRange<std::int32_t>(0, 1'000'000);
    const std::string text = task_id(test_job, node, attempt);
    const auto name = parse_task_id(text);
    RC_ASSERT(name && name->job_id == test_job.value && name->node_id == node && name->retry_count == attempt);
  }));
  for (const char* wrong :
       {"", "_", "x_a_0", "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_", "01a3185c-8f0a-7b0c-a1b0-83be19ecabac__",
        "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_-1", "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_00",
        "01a3185c-8f0a-7b0c-a1b0-83be19ecabac_a_99999999999"})
    EXPECT_FALSE(parse_task_id(wrong)) << wrong;
}

TEST(Machine, TheJobAndTheNodeOfAResultAreThoseOfItsTaskOrAreNotTold) {
  const std::string text = task_id(test_job, "a", 0);
  const auto name = parse_task_id(text);
  ASSERT_TRUE(name);
  EXPECT_TRUE(agrees(*name, "", ""));
  EXPECT_TRUE(agrees(*name, test_job.value, "a"));
  EXPECT_FALSE(agrees(*name, "01a3185c-8f0a-7b0c-a1b0-83be19ecabad", "a"));
  EXPECT_FALSE(agrees(*name, "", "b"));
}

}  // namespace
}  // namespace baton::workflow
