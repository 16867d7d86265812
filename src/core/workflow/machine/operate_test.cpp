// What people do: pause, resume, retry, approve.
#include <gtest/gtest.h>

#include "core/workflow/machine/machine_test.hpp"

namespace baton::workflow::operate_test {
namespace {

std::string task(const std::string& id, const std::string& rest) {
  return "  " + id + ": {type: task, handler: work, queue: q, " + rest + "}\n";
}
const std::string end = "  end: {type: end}\n";
std::string chain(const std::string& keys_of_b = "") {
  return "  start: {type: start, next: a}\n" + task("a", "next: b") + task("b", keys_of_b + "next: end") +
         end;
}
std::string side_by_side(const std::string& keys_of_a = "", const std::string& keys_of_b = "") {
  return "  start: {type: start, next: [a, b]}\n" + task("a", keys_of_a + "next: join") +
         task("b", keys_of_b + "next: join") + task("join", "next: end") + end;
}
std::string fan(const std::string& keys = "", const std::string& task_keys = "") {
  return "  start: {type: start, next: split}\n  split: {type: fan_out, source: '{{ inputs.list }}', " +
         keys + "task: {handler: work, queue: q" + task_keys +
         "}, next: merge}\n  merge: {type: fan_in, next: end}\n  end: {type: end}\n";
}
Machine::Options with_list(std::string list) {
  Machine::Options options{.input = "{\"list\":" + std::move(list) + "}"};
  options.policy.items_chunk = 3;
  return options;
}

bool pause(Machine& m) { return workflow::pause(m.run, "ann", "lunch", m.policy, m.now, m.decided); }
bool resume(Machine& m) { return workflow::resume(m.run, "ann", "", m.policy, m.now, m.decided); }
bool retry(Machine& m) { return workflow::retry(m.run, "ann", "", m.policy, m.now, m.decided); }

// ---- pause and resume ----

TEST(Pause, HoldsBackWhatWouldBeDispatchedAndTakesTheResultsOfWhatRuns) {
  Machine m(chain());
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(pause(m));
  EXPECT_TRUE(pause(m));  // whoever did not hear the first answer
  EXPECT_EQ(m.count(EventType::job_paused), 1);
  EXPECT_EQ(m.run.job.paused_by, "ann");
  EXPECT_EQ(m.complete("a", "5"), Verdict::accepted);
  EXPECT_EQ(m.output("a"), "5");
  EXPECT_EQ(m.status("b"), NodeStatus::ready);
  EXPECT_FALSE(m.state("b").timer_due);
  EXPECT_EQ(m.run.job.status, JobStatus::running);
  EXPECT_TRUE(resume(m));
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(m.count(EventType::job_resumed), 1);
  EXPECT_EQ(m.status("b"), NodeStatus::dispatched);
}

TEST(Pause, WhatIsDispatchedAlreadyIsNotHandedOut) {
  Machine m(chain());
  EXPECT_TRUE(pause(m));
  EXPECT_FALSE(m.give("a"));
  EXPECT_EQ(m.status("a"), NodeStatus::ready);
  EXPECT_EQ(m.state("a").delivery_count, 0);
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
}

TEST(Pause, LeasesThatAreUsedUpAreNotUsedAgainAfterResume) {
  Machine m(chain());
  ASSERT_TRUE(m.give("a"));
  const std::string zombie = lease_token(m.state("a"));
  EXPECT_TRUE(pause(m));
  m.tick("a");  // the lease runs out
  EXPECT_FALSE(m.give("a"));
  EXPECT_TRUE(resume(m));
  ASSERT_TRUE(m.give("a"));
  EXPECT_EQ(m.state("a").delivery_count, 2);
  EXPECT_EQ(m.complete("a", "1", zombie), Verdict::stale);
}

TEST(Pause, ARetryWhoseTimeComesMeanwhileWaitsForResume) {
  Machine m(chain("").replace(chain().find("next: b"), 7, "retry: {max_attempts: 2}, next: b"));
  m.finish_with_error("a");
  EXPECT_TRUE(pause(m));
  m.tick("a");
  EXPECT_EQ(m.status("a"), NodeStatus::ready);
  EXPECT_FALSE(m.state("a").timer_due);
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(*m.state("a").task_id, task_id(test_job, "a", 1));
}

TEST(Pause, ARetryWhoseTimeHasNotComeAtResumeKeepsItsTimer) {
  Machine m(chain("").replace(chain().find("next: b"), 7, "retry: {max_attempts: 2}, next: b"));
  m.finish_with_error("a");
  EXPECT_TRUE(pause(m) && resume(m));
  EXPECT_EQ(m.status("a"), NodeStatus::ready);
  EXPECT_EQ(m.state("a").timer_due, test_begin + 5s);
}

TEST(Pause, AFanOutThatWouldBeginWaitsForResume) {
  std::string nodes = fan();
  nodes.replace(nodes.find("next: split"), 11, "next: a");
  Machine m(nodes + task("a", "next: split"), with_list("[1,2]"));
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(pause(m));
  EXPECT_EQ(m.complete("a"), Verdict::accepted);
  EXPECT_EQ(m.status("split"), NodeStatus::ready);
  EXPECT_TRUE(m.run.items.empty());
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(m.dispatched(), (Names{"split_0", "split_1"}));
}

TEST(Pause, TheChildrenOfAFanOutAreHeldBackAndFoundAgainInChunks) {
  Machine m(fan(), with_list("[0,1,2,3,4,5,6,7]"));
  m.tick("split");
  m.finish("split_0");
  EXPECT_TRUE(pause(m));
  EXPECT_FALSE(m.give("split_1"));
  EXPECT_FALSE(m.give("split_5"));
  m.tick("split");  // no new chunk
  EXPECT_EQ(m.state("split").items_created, 6);
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(m.chunks(), 3);  // two over what is there, one for the rest
  EXPECT_EQ(m.dispatched(),
            (Names{"split_1", "split_2", "split_3", "split_4", "split_5", "split_6", "split_7"}));
  for (int i = 1; i < 8; ++i) m.finish("split_" + std::to_string(i));
  m.chunks();
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Pause, AFanOutWhoseLastChildEndsWhileItIsPausedCompletes) {
  Machine m(fan(), with_list("[1]"));
  ASSERT_TRUE(m.give("split_0"));
  EXPECT_TRUE(pause(m));
  m.complete("split_0");
  m.chunks();
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Pause, AnApprovalIsNotAskedForUntilResume) {
  Machine m("  start: {type: start, next: a}\n" + task("a", "next: ok") +
            "  ok: {type: approval, next: end}\n" + end);
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(pause(m));
  m.complete("a");
  EXPECT_EQ(m.status("ok"), NodeStatus::ready);
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(m.status("ok"), NodeStatus::dispatched);
}

TEST(Pause, TheTimeOfAWaitRuns) {
  Machine m("  start: {type: start, next: nap}\n  nap: {type: wait, duration: 1h, next: a}\n" +
            task("a", "next: end") + end);
  EXPECT_TRUE(pause(m));
  m.tick("nap");
  EXPECT_EQ(m.status("nap"), NodeStatus::completed);
  EXPECT_EQ(m.status("a"), NodeStatus::ready);
  EXPECT_TRUE(resume(m));
  EXPECT_EQ(m.dispatched(), Names{"a"});
}

TEST(Pause, IsRefusedWhenTheJobHasEnded) {
  Machine m(chain());
  EXPECT_TRUE(cancel(m.run, "", "", m.policy, m.now, m.decided));
  EXPECT_FALSE(pause(m));
  EXPECT_FALSE(resume(m));
}

TEST(Pause, DoesNotKeepAJobFromBeingCancelled) {
  Machine m(fan(), with_list("[0,1,2,3]"));
  EXPECT_TRUE(pause(m));
  EXPECT_TRUE(cancel(m.run, "", "", m.policy, m.now, m.decided));
  m.chunks();
  EXPECT_TRUE(m.dispatched().empty());
  EXPECT_EQ(m.status("split_2"), NodeStatus::cancelled);
}

// ---- retry from the failed node ----

TEST(Retry, GoesOnFromTheNodesThatFailedAndKeepsWhatHasCompleted) {
  Machine m(chain());
  m.finish("a", R"({"kept":1})");
  m.finish_with_error("b");
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.run.job.status, JobStatus::running);
  EXPECT_FALSE(m.run.job.error || m.run.job.completed_at);
  EXPECT_EQ(m.run.job.nodes_failed, 0);
  EXPECT_EQ(m.output("a"), R"({"kept":1})");
  EXPECT_EQ(m.dispatched(), Names{"b"});
  EXPECT_EQ(m.error("b"), "none");
  m.finish("b");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
  EXPECT_EQ(m.run.job.result_data, Json{R"({"a":{"kept":1},"b":1})"});
}

TEST(Retry, GivesTheFailedNodeAnAttemptOfItsOwnFromWhichThePolicyCounts) {
  Machine m(chain("retry: {max_attempts: 2, backoff: fixed, initial_delay_seconds: 0}, "));
  m.finish("a");
  m.finish_with_error("b");
  m.finish_with_error("b");
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.state("b").retry_count, 2);
  EXPECT_EQ(*m.state("b").task_id, task_id(test_job, "b", 2));
  m.finish_with_error("b");
  EXPECT_EQ(m.status("b"), NodeStatus::dispatched);
  EXPECT_EQ(m.state("b").retry_count, 3);
  m.finish_with_error("b");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Retry, WhoeverStillWorksOnAnAttemptFromBeforeIsRefused) {
  Machine m(side_by_side());
  ASSERT_TRUE(m.give("b"));
  const TaskReport late{
      .retry_count = 0, .completed = true, .output = Json{"1"}, .lease = lease_token(m.state("b"))};
  m.finish_with_error("a");
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.say("b", late), Verdict::stale);
  EXPECT_EQ(m.state("b").retry_count, 1);
  m.finish("a");
  m.finish("b");
  m.finish("join");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Retry, WhatWasCancelledBeforeItBeganBeginsWithItsFirstAttempt) {
  Machine m(side_by_side());
  m.finish("a");
  m.finish_with_error("b");
  EXPECT_EQ(m.status("join"), NodeStatus::cancelled);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.status("join"), NodeStatus::pending);
  EXPECT_EQ(m.state("join").waiting_for, 1);
  m.finish("b");
  EXPECT_EQ(*m.state("join").task_id, task_id(test_job, "join", 0));
}

TEST(Retry, LeavesNodesAloneThatTheWorkflowGoesOnWithout) {
  Machine m("  start: {type: start, next: [a, b]}\n" + task("a", "on_failure: continue, next: c") +
            task("b", "next: end") + task("c", "next: end") + end);
  m.finish_with_error("a", "may fail");
  m.finish("c");
  m.finish_with_error("b");
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.status("a"), NodeStatus::failed);
  EXPECT_EQ(m.error("a"), "may fail");
  EXPECT_EQ(m.dispatched(), Names{"b"});
  m.finish("b");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Retry, AfterFinishRunningStartsWhatTheFinishedOnesLedTo) {
  Machine m("  start: {type: start, next: [a, b]}\n" + task("a", "next: end") + task("b", "next: c") +
                task("c", "next: end") + end,
            {.head = "on_failure: finish_running\n"});
  ASSERT_TRUE(m.give("b"));
  m.finish_with_error("a");
  m.complete("b");
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.status("c"), NodeStatus::cancelled);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.dispatched(), (Names{"a", "c"}));
}

TEST(Retry, KeepsTheBranchesThatWereTakenAndThoseThatWereNot) {
  Machine m(
      "  start: {type: start, next: check}\n"
      "  check: {type: conditional, condition: '{{ true }}', branches: {true: a, false: b}}\n" +
      task("a", "next: join") + task("b", "next: join") + task("join", "next: end") + end);
  m.finish_with_error("a");
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.status("b"), NodeStatus::skipped);
  m.finish("a");
  EXPECT_EQ(m.dispatched(), Names{"join"});
  m.finish("join");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Retry, OfAConditionalThatFailedAsksItAgain) {
  Machine m(
      "  start: {type: start, next: check}\n"
      "  check: {type: conditional, condition: '{{ env.GO }}', branches: {true: a, false: b}}\n" +
      task("a", "next: end") + task("b", "next: end") + end);
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  m.policy.environment["GO"] = "yes";
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.dispatched(), Names{"a"});
  EXPECT_EQ(m.status("b"), NodeStatus::skipped);
}

TEST(Retry, AnAnyOfThatWasCancelledRunsForTheEdgeThatHadFired) {
  Machine m("  start: {type: start, next: [a, b, x]}\n" + task("a", "next: c") + task("b", "next: c") +
                task("x", "next: end") + task("c", "depends_on: {any_of: [a, b]}, next: end") + end,
            {.head = "on_failure: finish_running\n"});
  ASSERT_TRUE(m.give("a") && m.give("b"));
  m.finish_with_error("x");
  m.complete("a");
  m.complete("b");
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.dispatched(), (Names{"x", "c"}));
}

TEST(Retry, RevivesTheChildrenOfAFanOutInChunksAndKeepsThoseThatHaveCompleted) {
  Machine m(fan(), with_list("[0,1,2,3,4,5,6,7]"));
  m.tick("split");
  m.finish("split_0", "0");
  ASSERT_TRUE(m.give("split_1"));
  m.finish_with_error("split_4");
  m.chunks();
  EXPECT_EQ(m.status("split_1"), NodeStatus::cancelled);
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.status("split"), NodeStatus::running);
  EXPECT_EQ(m.chunks(), 3);  // two over those that are there, one for the rest
  EXPECT_EQ(m.dispatched(),
            (Names{"split_1", "split_2", "split_3", "split_4", "split_5", "split_6", "split_7"}));
  EXPECT_EQ(m.state("split_1").retry_count, 1);
  EXPECT_EQ(m.state("split_4").retry_count, 1);
  EXPECT_EQ(m.state("split_7").retry_count, 0);
  EXPECT_EQ(m.state("split").items_done, 1);
  EXPECT_EQ(m.state("split").items_failed, 0);
  for (int i = 1; i < 8; ++i) m.finish("split_" + std::to_string(i), std::to_string(i));
  m.chunks();
  EXPECT_EQ(m.output("merge"), R"({"results":[0,1,2,3,4,5,6,7],"count":8,"failed":0})");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Retry, BeforeTheWalkThatCancelsIsThereFindsChildrenStillAtWork) {
  Machine m(fan(), with_list("[0,1,2]"));
  ASSERT_TRUE(m.give("split_0"));
  m.finish_with_error("split_2");
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.complete("split_0"), Verdict::accepted);
  m.chunks();
  EXPECT_EQ(m.dispatched(), (Names{"split_1", "split_2"}));
  m.finish("split_1");
  m.finish("split_2");
  m.chunks();
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Retry, LeavesFailedItemsAloneThatTheFanOutGoesOnWithout) {
  Machine m(fan("on_item_failure: continue, ")
                    .replace(fan("on_item_failure: continue, ").find("next: split"), 11, "next: [split, x]") +
                task("x", "next: end"),
            with_list("[0,1]"));
  m.finish_with_error("split_0", "lost");
  m.finish_with_error("x");
  m.chunks();
  EXPECT_EQ(m.status("split_1"), NodeStatus::cancelled);
  EXPECT_TRUE(retry(m));
  m.chunks();
  EXPECT_EQ(m.status("split_0"), NodeStatus::failed);
  EXPECT_EQ(m.dispatched(), (Names{"x", "split_1"}));
  m.finish("split_1");
  EXPECT_EQ(m.output("split"), R"({"count":2,"failed":1})");
}

TEST(Retry, AChildWhoseParamsFailedIsEvaluatedWithItsItemAgain) {
  Machine m(fan("", ", params: {x: '{{ item }}', e: '{{ env.LATER }}'}"), with_list("[5]"));
  ASSERT_TRUE(m.error("split_0").contains("'env.LATER' is not defined")) << m.error("split_0");
  m.policy.environment["LATER"] = "now";
  EXPECT_TRUE(retry(m));
  m.chunks();
  EXPECT_EQ(m.dispatched(), Names{"split_0"}) << m.error("split_0");
}

TEST(Retry, ThatFailsAgainOnTheWayOverTheChildrenCancelsThoseItHasRevived) {
  Machine m(fan("", ", params: {x: '{{ item.url }}'}"),
            with_list(R"([{"url":1},{"url":2},{"url":3},{"url":4},{}])"));
  m.chunks();
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.dispatched(), Names{});
  EXPECT_TRUE(retry(m));
  m.chunks();
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.dispatched(), Names{});
  EXPECT_EQ(m.state("split").items_failed, 1);
}

TEST(Retry, HandsTheLastCheckpointOn) {
  Machine m(chain());
  m.finish("a");
  ASSERT_TRUE(m.give("b"));
  EXPECT_TRUE(checkpoint(m.run, m.ref("b"), m.attempt_lease("b"), Json{"42"}, m.policy, m.now, m.decided));
  m.fail("b");
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.state("b").checkpoint, Json{"42"});
}

TEST(Retry, TakesADeadLetterOffTheList) {
  Machine m(chain());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(m.give("a"));
    m.tick("a");
  }
  ASSERT_TRUE(m.state("a").dead_at);
  EXPECT_TRUE(retry(m));
  EXPECT_FALSE(m.state("a").dead_at);
  EXPECT_EQ(m.state("a").delivery_count, 0);
  m.finish("a");
  m.finish("b");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Retry, IsForFailedJobsOnly) {
  Machine m(chain());
  EXPECT_FALSE(retry(m));
  EXPECT_TRUE(cancel(m.run, "", "", m.policy, m.now, m.decided));
  EXPECT_FALSE(retry(m));
}

TEST(Retry, OfAJobThatFailedWhileItWasPausedIsNotPaused) {
  Machine m(chain());
  ASSERT_TRUE(m.give("a"));
  EXPECT_TRUE(pause(m));
  m.fail("a");
  ASSERT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_TRUE(retry(m));
  EXPECT_FALSE(m.run.job.paused_at);
  EXPECT_EQ(m.dispatched(), Names{"a"});
}

// ---- approvals ----

std::string approval(const std::string& keys = "") {
  return "  start: {type: start, next: ok}\n  ok: {type: approval, " + keys + "next: a}\n" +
         task("a", "params: {o: '{{ nodes.ok.output }}'}, next: end") + end;
}
bool decide(Machine& m, bool approved, const std::string& comment = "") {
  return decide_approval(m.run, m.ref("ok").node, approved, "ann", comment, m.policy, m.now, m.decided);
}

TEST(Approval, WaitsInAQueueThatNoWorkerCanPollWithItsMessage) {
  Machine m(approval("message: 'Pay {{ inputs.sum }}?', "), {.input = R"({"sum":12})"});
  EXPECT_EQ(m.status("ok"), NodeStatus::dispatched);
  EXPECT_EQ(m.state("ok").queue, approval_queue);
  EXPECT_EQ(m.state("ok").params, Json{R"({"message":"Pay 12?"})"});
  EXPECT_FALSE(m.state("ok").timer_due);
  EXPECT_EQ(m.run.job.status, JobStatus::running);
}

TEST(Approval, GoesOnWhenApprovedAndSaysByWhom) {
  Machine m(approval());
  EXPECT_TRUE(decide(m, true, "fine"));
  EXPECT_EQ(m.output("ok"),
            R"({"approved":true,"by":"ann","comment":"fine","timed_out":false,"at":"2027-01-15T08:00:00.000Z"})");
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
}

TEST(Approval, FailsWhenRejected) {
  Machine m(approval());
  EXPECT_TRUE(decide(m, false, "too much"));
  EXPECT_EQ(m.error("ok"), "rejected by ann: too much");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Approval, GoesOnWhenRejectedIfItSaysSo) {
  Machine m(approval("on_reject: continue, "));
  EXPECT_TRUE(decide(m, false));
  EXPECT_EQ(m.params("a"),
            R"({"o":{"approved":false,"by":"ann","comment":"","timed_out":false,"at":"2027-01-15T08:00:00.000Z"}})");
}

TEST(Approval, IsDecidedOnce) {
  Machine m(approval());
  EXPECT_TRUE(decide(m, true));
  EXPECT_FALSE(decide(m, true));
  EXPECT_FALSE(decide(m, false));
  EXPECT_FALSE(decide_approval(m.run, m.ref("a").node, true, "ann", "", m.policy, m.now, m.decided));
}

TEST(Approval, IsRejectedByTimeout) {
  Machine m(approval("timeout_seconds: 60, "));
  EXPECT_EQ(m.state("ok").timer_due, test_begin + 60s);
  m.tick("ok");
  EXPECT_EQ(m.error("ok"), "nobody decided within 60 s");
  EXPECT_EQ(m.count(EventType::node_timeout), 1);
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_FALSE(decide(m, true));
}

TEST(Approval, IsApprovedByTimeoutIfItSaysSo) {
  Machine m(approval("timeout_seconds: 60, on_timeout: approve, "));
  m.tick("ok");
  EXPECT_TRUE(m.output("ok").starts_with(R"({"approved":true,"by":null)")) << m.output("ok");
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
}

TEST(Approval, ThatWasRejectedIsAskedForAgainByARetry) {
  Machine m(approval());
  EXPECT_TRUE(decide(m, false));
  EXPECT_TRUE(retry(m));
  EXPECT_EQ(m.status("ok"), NodeStatus::dispatched);
  EXPECT_TRUE(decide(m, true));
  m.finish("a");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Approval, AMessageThatCannotBeEvaluatedFailsTheNode) {
  Machine m(approval("message: '{{ inputs.sum }}', "));
  EXPECT_TRUE(m.error("ok").starts_with("message of node 'ok': 'inputs.sum' is not defined"))
      << m.error("ok");
}

}  // namespace
}  // namespace baton::workflow::operate_test
