// Steps that are asked again until they are done (000 §5 and the polling protocol, 002 PollCheckHandler, 003
// polling convention).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

const std::string polls = "poll: {interval: 5m, timeout: 8h}";
const std::string watching = phases({phase_of("p1", {doing("watch", polls), doing("after")})});
const std::string long_ago = "2020-01-01T00:00:00Z";

class PollCheck : public Contract {
 protected:
  // A member whose first step polls.
  void given_polling(const std::string& yaml, int members = 1) {
    given(yaml, members);
    p1_ = phase("p1");
    tell(phase_due(p1_));
    for (const Job& job : take(static_cast<std::size_t>(members))) {
      if (job.parameter("Upn") == "m1") first_ = job;
      still_polling(job);
    }
    step_ = first_.correlated("stepExecutionId");
    expect_step(step_, "polling");
  }
  std::string row(const std::string& columns) {
    return "SELECT " + columns + " FROM step_executions WHERE id=" + std::to_string(step_);
  }
  void time_out() {
    sql().exec("UPDATE step_executions SET poll_started_at='" + long_ago +
               "' WHERE id=" + std::to_string(step_));
    tell(poll_check(step_, "watch", 1));
  }
  Id p1_ = 0;
  Id step_ = 0;
  Job first_;
};
ON_EACH_STORE(PollCheck);

// 000 §2.3e, polling protocol 1 and 2
TEST_P(PollCheck, IsWhatAStepWaitsForThatIsNotComplete) {
  given_polling(watching);
  EXPECT_EQ(text(row(is_set("poll_started_at") + ", " + is_set("last_polled_at") +
                     ", coalesce(poll_count, 0), " + is_set("completed_at"))),
            "set set 0 unset");
  quiet();
  expect_phase(p1_, "dispatched");
}

// 000 §5.3a, polling protocol 4b and 4c
TEST_P(PollCheck, SendsTheSameJobAgain) {
  given_polling(watching);
  sql().exec("UPDATE step_executions SET last_polled_at='" + long_ago +
             "' WHERE id=" + std::to_string(step_));
  tell(poll_check(step_, "watch", 1));
  const Job again = one();
  EXPECT_EQ(again.id(), first_.id() + "-poll-1");
  EXPECT_EQ(again.function(), first_.function());
  EXPECT_EQ(again.parameters(), first_.parameters());
  EXPECT_EQ(again.correlated("stepExecutionId"), step_);
  eventually(row("poll_count"), "1");
  EXPECT_EQ(text(row("last_polled_at")).find("2020"), std::string::npos);
}

// Specification: honoured when it comes early.
TEST_P(PollCheck, IsHonouredBeforeItsInterval) {
  given_polling(watching);
  tell(poll_check(step_, "watch", 1));  // five minutes early
  EXPECT_EQ(one().id(), first_.id() + "-poll-1");
}

// 000 §5.3e
TEST_P(PollCheck, LeavesItPollingWhenTheWorkerSaysSo) {
  given_polling(watching);
  const std::string started = text(row("poll_started_at"));
  for (int n = 1; n <= 3; ++n) {
    tell(poll_check(step_, "watch", n));
    const Job job = one();
    EXPECT_EQ(job.id(), first_.id() + "-poll-" + std::to_string(n));
    still_polling(job);
    eventually(row("status, poll_count"), "polling " + std::to_string(n));
  }
  EXPECT_EQ(text(row("poll_started_at")), started);
}

// 000 §5.3c
TEST_P(PollCheck, FindsSuccessAndTheMemberGoesOn) {
  given_polling(watching);
  tell(poll_check(step_, "watch", 1));
  const json::object result{{"complete", true}, {"data", {{"moved", 17}}}};
  succeed(one(), result);
  EXPECT_EQ(one().function(), "Do-after");
  expect_steps(p1_, members_[0], "succeeded,dispatched");
  EXPECT_EQ(parsed(text(row("result_json"))), result);
  EXPECT_EQ(text(row(is_set("completed_at"))), "set");
}

// 000 §5.3d
TEST_P(PollCheck, FindsFailureAndTheMemberFails) {
  given_polling(watching, 2);
  tell(poll_check(step_, "watch", 1));
  fail(one(), "move failed");
  expect_steps(p1_, members_[0], "failed,cancelled");
  EXPECT_NE(text(row("error_message")).find("move failed"), std::string::npos);
  expect_member(members_[0], "failed");
  expect_steps(p1_, members_[1], "polling,pending");
}

TEST_P(PollCheck, IsIgnoredWhileAPollJobIsOut) {
  given_polling(watching);
  tell(poll_check(step_, "watch", 1));
  const Job out = one();
  changes_nothing([&] { tell(poll_check(step_, "watch", 1)); });
  changes_nothing([&] { tell(poll_check(step_, "watch", 2)); });
  still_polling(out);
  eventually(row("status, poll_count"), "polling 1");
}

TEST_P(PollCheck, IsIgnoredWhileThePollJobWaitsForAWorker) {
  given_polling(watching);
  tell(poll_check(step_, "watch", 1));
  eventually(row("poll_count"), "1");
  tell(poll_check(step_, "watch", 1));
  EXPECT_EQ(one().id(), first_.id() + "-poll-1");
  quiet();
}

TEST_P(PollCheck, OfAStepThatDoesNotPollIsIgnored) {
  given_due(watching);
  const Job job = one();
  const Id id = job.correlated("stepExecutionId");
  changes_nothing([&] { tell(poll_check(id, "watch", 1)); });  // dispatched, and not heard of yet
  succeed(job, json::object{{"complete", true}});
  const Job last = one();
  changes_nothing([&] { tell(poll_check(id, "watch", 1)); });  // succeeded
  succeed(last);
  expect_batch("completed");
  changes_nothing([&] { tell(poll_check(id, "watch", 1)); });
}

// 000 §5.2, polling protocol 4a; the row says when it began, whatever the server remembers.
TEST_P(PollCheck, AfterTheTimeoutFailsTheMember) {
  given_polling(watching, 2);
  time_out();
  expect_steps(p1_, members_[0], "poll_timeout,cancelled");
  expect_member(members_[0], "failed");
  expect_steps(p1_, members_[1], "polling,pending");
  quiet();
}

// Both ways to write a time: the scheduler may have touched these columns.
TEST_P(PollCheck, UnderstandsTimesOfOthers) {
  given_polling(watching);
  std::string now = timestamp();
  now[10] = ' ';
  now.pop_back();  // YYYY-MM-DD HH:MM:SS
  sql().exec("UPDATE step_executions SET poll_started_at='" + now + "', last_polled_at='" + now +
             "' WHERE id=" + std::to_string(step_));
  tell(poll_check(step_, "watch", 1));
  still_polling(one());
  eventually(row("status, poll_count"), "polling 1");
  sql().exec("UPDATE step_executions SET poll_started_at='2020-01-01 00:00:00' WHERE id=" +
             std::to_string(step_));
  tell(poll_check(step_, "watch", 2));
  expect_step(step_, "poll_timeout");
}

// 002 rollback "triggered on poll timeout"
TEST_P(PollCheck, AfterTheTimeoutRollsBack) {
  given_polling(phases({phase_of("p1", {doing("watch", polls + ", on_failure: undo")})}) +
                rollback("undo", {doing("undo1")}));
  time_out();
  const Job undo = one();
  EXPECT_EQ(undo.function(), "Do-undo1");
  expect_step(step_, "poll_timeout");
  succeed(undo);
  expect_step(step_, "rolled_back");
  expect_phase(p1_, "failed");
}

// 003 "what does not retry"
TEST_P(PollCheck, AfterTheTimeoutIsNeverRetried) {
  given_polling("retry: {max_retries: 3, interval: 1s}\n" + watching);
  time_out();
  expect_steps(p1_, members_[0], "poll_timeout,cancelled");
  expect_member(members_[0], "failed");
  expect_phase(p1_, "failed");
  EXPECT_EQ(text(row("coalesce(retry_count, 0)")), "0");
}

// Specification: timeouts are the orchestrator's own, also when polls come from outside.
TEST_P(PollCheck, IsNotNeededForTheTimeout) {
  given(watching);
  p1_ = phase("p1", "dispatched");
  step_ = step(p1_, members_[0], 0, "watch",
               {{"is_poll_step", true}, {"poll_interval_sec", 1}, {"poll_timeout_sec", 1}});
  tell(phase_due(p1_));
  still_polling(one());
  expect_step(step_, "poll_timeout");
  expect_member(members_[0], "failed");
}

TEST_P(PollCheck, AfterTheTimeoutMakesLateResultsChangeNothing) {
  given_polling(watching);
  time_out();
  expect_step(step_, "poll_timeout");
  expect_phase(p1_, "failed");
  changes_nothing([&] {
    EXPECT_TRUE(is_ignored(report(result_of(first_, "Success", json::object{{"complete", true}}))));
    EXPECT_TRUE(is_ignored(report(result_of(first_, "Failure", nullptr, "late"))));
    tell(poll_check(step_, "watch", 2));
  });
}

// A failure between polls is a failure as any other: only the timeout is not retried.
TEST_P(PollCheck, FailureIsRetriedAndPollsOfTheRetrySayBoth) {
  given_polling(phases(
      {phase_of("p1", {doing("watch", polls + ", retry: {max_retries: 1, interval: 1s}"), doing("after")})}));
  tell(poll_check(step_, "watch", 1));
  fail(one());
  eventually(row("status, retry_count, job_id"), "pending 1 null");
  const Job again = one();
  EXPECT_EQ(again.id(), first_.id() + "-retry-1");
  still_polling(again);
  expect_step(step_, "polling");
  tell(poll_check(step_, "watch", 1));
  const Job poll = one();
  EXPECT_EQ(poll.id(), first_.id() + "-retry-1-poll-" + text(row("poll_count")));
  succeed(poll, json::object{{"complete", true}});
  expect_steps(p1_, members_[0], "succeeded,dispatched");
}

// Specification: any other success is a success; workers that exist leave `complete` out.
TEST_P(PollCheck, IsOverWithAnyOtherSuccessAndTheBatchIsWarned) {
  p1_ = given_due(watching, 3);
  auto jobs = by_member(take(3));
  succeed(jobs["m1"], json::object{{"moved", 17}});
  succeed(jobs["m2"], nullptr);
  succeed(jobs["m3"], json::object{{"complete", true}});
  for (const Id member : members_) expect_steps(p1_, member, "succeeded,dispatched");
  eventually("SELECT job_id FROM batch_events WHERE event_type='poll_answer_unclear' AND batch_id=" +
                 std::to_string(batch_) + " ORDER BY event_id",
             jobs["m1"].id() + "," + jobs["m2"].id());
}

TEST_P(PollCheck, IsStrictWhenTheRunbookSaysSo) {
  p1_ = given_due(phases({phase_of("p1", {doing("watch", "poll: {interval: 5m, timeout: 8h, strict: true}, "
                                                         "retry: {max_retries: 1, interval: 1h}")})}),
                  2);
  auto jobs = by_member(take(2));
  succeed(jobs["m1"], json::object{{"moved", 17}});
  succeed(jobs["m2"], json::object{{"complete", true}});
  expect_steps(p1_, members_[1], "succeeded");
  step_ = jobs["m1"].correlated("stepExecutionId");
  eventually(row("status, retry_count"), "pending 1");
  EXPECT_NE(text(row("error_message")).find("strict"), std::string::npos);
}

TEST_P(PollCheck, IsNotForAStepWithoutPoll) {
  p1_ = given_due(phases({phase_of("p1", {doing("s1", "retry: {max_retries: 1, interval: 1h}")})}));
  const Job job = one();
  step_ = job.correlated("stepExecutionId");
  succeed(job, json::object{{"complete", false}});
  eventually(row("status, retry_count"), "pending 1");
  EXPECT_NE(text(row("error_message")).find("has no 'poll'"), std::string::npos);
}

TEST_P(PollCheck, ResultOfAnOlderPollIsIgnored) {
  given_polling(watching);
  tell(poll_check(step_, "watch", 1));
  const Job first = one();
  still_polling(first);
  expect_step(step_, "polling");
  tell(poll_check(step_, "watch", 2));
  const Job second = one();
  changes_nothing([&] {
    EXPECT_TRUE(is_ignored(report(result_of(first, "Success", json::object{{"complete", true}}))));
    EXPECT_TRUE(is_ignored(report(result_of(first_, "Failure", nullptr, "late"))));
  });
  succeed(second, json::object{{"complete", true}});
  expect_steps(p1_, members_[0], "succeeded,dispatched");
}

// Incoming field names match without regard to case.
TEST_P(PollCheck, UnderstandsCompleteInAnyCase) {
  p1_ = given_due(watching);
  succeed(one(), json::object{{"Complete", false}});
  expect_steps(p1_, members_[0], "polling,pending");
  tell(poll_check(step_id(p1_, members_[0], 0), "watch", 1));
  succeed(one(), json::object{{"COMPLETE", false}});
  expect_steps(p1_, members_[0], "polling,pending");
}

// 000 §1.2e
TEST_P(PollCheck, HoldsTheInitStepsThatFollow) {
  given(section("init", {preparing("wait", polls), preparing("next")}) + watching, 1, "init_dispatched");
  tell(batch_init());
  const Job first = one();
  still_polling(first);
  eventually("SELECT status, " + is_set("poll_started_at") + ", " + is_set("last_polled_at") +
                 " FROM init_executions WHERE step_index=0 AND batch_id=" + std::to_string(batch_),
             "polling set set");
  quiet();
  json::object check = poll_check(first.correlated("initExecutionId"), "wait", 1);
  check["isInitStep"] = true;
  tell(check);
  const Job poll = one();
  EXPECT_EQ(poll.id(), first.id() + "-poll-1");
  EXPECT_EQ(poll.parameters(), first.parameters());
  succeed(poll, json::object{{"complete", true}});
  EXPECT_EQ(one().function(), "Do-next");
}

TEST_P(PollCheck, AfterTheTimeoutOfAnInitStepFailsTheBatch) {
  given(section("init", {preparing("wait", polls + ", on_failure: drop")}) + watching +
            rollback("drop", {preparing("undo1")}),
        1, "init_dispatched");
  tell(batch_init());
  const Job first = one();
  still_polling(first);
  expect_init("polling");
  sql().exec("UPDATE init_executions SET poll_started_at='" + long_ago +
             "' WHERE batch_id=" + std::to_string(batch_));
  tell(poll_check(first.correlated("initExecutionId"), "wait", 1));
  const Job undo = one();
  EXPECT_EQ(undo.function(), "Do-undo1");
  expect_init("poll_timeout");
  succeed(undo);
  expect_init("rolled_back");
  expect_batch("failed");
}

// Both tables issue their own ids: batch and step name tell a step from an init step, isInitStep wins when
// present.
TEST_P(PollCheck, TellsAnInitStepFromAStepWithTheSameId) {
  static Id shared = 1'000'000;
  ++shared;
  const std::string job = std::to_string(shared);
  const Cells cells = {
      {"id", shared}, {"is_poll_step", true}, {"poll_interval_sec", 300}, {"poll_timeout_sec", 28800}};
  given(section("init", {preparing("wait", polls)}) + watching, 1, "init_dispatched");
  const Id in_init = batch_;
  init_step(0, "wait", cells);
  tell(batch_init());
  const Job init = one();
  EXPECT_EQ(init.id(), "init-" + job);
  still_polling(init);
  expect_init("polling");
  batch(runbook_, "active");
  const Id m1 = member("m1");
  const Id in_phase = batch_;
  const Id p1 = phase("p1", "dispatched");
  step(p1, m1, 0, "watch", cells);
  tell(phase_due(p1));
  const Job step = one();
  EXPECT_EQ(step.id(), "step-" + job);
  still_polling(step);
  expect_steps(p1, m1, "polling,pending");

  batch_ = in_init;
  tell(poll_check(shared, "wait", 1));
  const Job of_init = one();
  EXPECT_EQ(of_init.id(), "init-" + job + "-poll-1");
  still_polling(of_init);
  expect_init("polling");
  json::object check = poll_check(shared, "wait", 2);
  check["isInitStep"] = true;
  tell(check);
  EXPECT_EQ(one().id(), "init-" + job + "-poll-2");

  batch_ = in_phase;
  tell(poll_check(shared, "watch", 1));
  const Job of_step = one();
  EXPECT_EQ(of_step.id(), "step-" + job + "-poll-1");
  still_polling(of_step);
  expect_steps(p1, m1, "polling,pending");
  check = poll_check(shared, "watch", 2);
  check["isInitStep"] = false;
  tell(check);
  EXPECT_EQ(one().id(), "step-" + job + "-poll-2");
}

}  // namespace
}  // namespace baton::runbook_contract
