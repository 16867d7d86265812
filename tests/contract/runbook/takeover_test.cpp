// Rows that another orchestrator has left dispatched or polling: whoever has its jobs reports to us, and what it would
// have timed and retried is ours. Its job ids are its own.
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

const std::string job_of_another = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
const std::string timed_and_retried =
    phases({phase_of("p1", {doing("s1", "timeout: 20m, retry: {max_retries: 1, interval: 1s}"), doing("s2")})});
const std::string polled_step =
    phases({phase_of("p1", {doing("s1", "poll: {interval: 5m, timeout: 8h}"), doing("s2")})});

class TakenOver : public Contract {
 protected:
  // A phase that has begun; the first step of each member is `status`.
  void given_left(const std::string& yaml, const std::string& status, const Cells& more = {}, int members = 1) {
    given(yaml, members);
    p1_ = phase("p1", "dispatched");
    for (const Id member : members_) {
      Cells cells{{"status", status}, {"job_id", job_of_another}, {"dispatched_at", timestamp(-60s)}};
      cells.insert(more.begin(), more.end());
      step_ = step(p1_, member, 0, "s1", cells);
      step(p1_, member, 1, "s2");
    }
  }
  json::object result(const std::string& status, const json::value& result) {
    return {{"jobId", job_of_another},
            {"status", status},
            {"result", result},
            {"correlationData", {{"stepExecutionId", step_}, {"isInitStep", false}, {"runbookName", name_}}}};
  }
  std::string row(const std::string& columns) {
    return "SELECT " + columns + " FROM step_executions WHERE id=" + std::to_string(step_);
  }
  Id p1_ = 0;
  Id step_ = 0;
};
ON_EACH_STORE(TakenOver);

TEST_P(TakenOver, ResultOfADispatchedStepIsAccepted) {
  given_left(timed_and_retried, "dispatched");
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{{"ok", true}}))));
  expect_steps(p1_, members_[0], "succeeded,dispatched");
  changes_nothing([&] {
    EXPECT_EQ(one().function(), "Do-s2");
    EXPECT_TRUE(is_ignored(report(result("Success", json::object{{"ok", true}}))));
  });
}

// Its own retry is used up by now, and its job is of an old attempt.
TEST_P(TakenOver, FailureOfADispatchedStepIsRetriedAsTheRunbookSays) {
  given_left(timed_and_retried, "dispatched");
  EXPECT_TRUE(is_accepted(report(result("Failure", nullptr))));
  eventually(row("retry_count, max_retries, retry_interval_sec"), "1 1 1");
  EXPECT_EQ(report(result("Failure", nullptr)).status, 409);
  const Job again = one();
  EXPECT_EQ(again.id(), "step-" + std::to_string(step_) + "-retry-1");
  fail(again);
  expect_steps(p1_, members_[0], "failed,cancelled");
}

TEST_P(TakenOver, ColumnsOfTheRowWinOverTheRunbook) {
  given_left(timed_and_retried, "dispatched", {{"max_retries", 0}, {"retry_interval_sec", 7}});
  EXPECT_TRUE(is_accepted(report(result("Failure", nullptr))));
  expect_steps(p1_, members_[0], "failed,cancelled");
}

TEST_P(TakenOver, JobIdsThatLookLikeAnotherStepsAreAcceptedToo) {
  given_left(timed_and_retried, "dispatched");
  json::object said = result("Success", json::object{});
  said["jobId"] = "step-" + std::to_string(step_ + 1'000);
  EXPECT_TRUE(is_accepted(report(said)));
  expect_steps(p1_, members_[0], "succeeded,dispatched");
}

TEST_P(TakenOver, ByPhaseDueADispatchedStepGetsALeaseAndATimeout) {
  given_left(timed_and_retried, "dispatched", {}, 2);
  tell(phase_due(p1_));
  eventually(row("job_state, timeout_sec, max_retries, " + is_set("lease_until") + ", " + is_set("timer_due")),
             "leased 1200 1 set set");
  quiet();
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  expect_steps(p1_, members_[1], "succeeded,dispatched");
  expect_steps(p1_, members_[0], "dispatched,pending");
}

TEST_P(TakenOver, ByPollCheckAPollingStepIsAskedAgain) {
  given_left(polled_step, "polling", {{"is_poll_step", true}, {"poll_count", 3}, {"poll_started_at", timestamp(-900s)}});
  tell(poll_check(step_, "s1", 4));
  const Job poll = one();
  EXPECT_EQ(poll.id(), "step-" + std::to_string(step_) + "-poll-4");
  changes_nothing([&] { EXPECT_EQ(report(result("Success", json::object{{"complete", true}})).status, 409); });
  succeed(poll, json::object{{"complete", true}});
  expect_steps(p1_, members_[0], "succeeded,dispatched");
}

TEST_P(TakenOver, AnswerToItsPollIsAccepted) {
  given_left(polled_step, "polling", {{"is_poll_step", true}, {"poll_count", 3}, {"poll_started_at", timestamp(-900s)}});
  tell(phase_due(p1_));
  eventually(row("poll_timeout_sec, " + is_set("timer_due")), "28800 set");
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{{"complete", false}}))));
  eventually(row("status, poll_count"), "polling 3");
  tell(poll_check(step_, "s1", 4));
  still_polling(one());
}

TEST_P(TakenOver, InitStepGoesOnToo) {
  given(section("init", {preparing("i1"), preparing("i2")}) + timed_and_retried, 1, "init_dispatched");
  const Id init = init_step(0, "i1", {{"status", "dispatched"}, {"job_id", job_of_another}, {"dispatched_at", timestamp()}});
  json::object said = result("Success", json::object{});
  said["correlationData"] = json::object{{"stepExecutionId", init}, {"isInitStep", true}};
  init_step(1, "i2");
  EXPECT_TRUE(is_accepted(report(said)));
  succeed(one());
  expect_init("succeeded,succeeded");
  expect_batch("active");
}

// Nobody has told that the phase is due: the others in it are seen all the same, and it ends when they have.
TEST_P(TakenOver, PhaseGoesOnWithAllOfItsMembersAfterTheFirstResult) {
  given_left(timed_and_retried, "dispatched", {}, 2);
  const Id silent = step_id(p1_, members_[0], 0);
  const Id late = member("m3");  // it has no rows yet: whether it is in the phase, nobody has said
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  succeed(one());  // s2 of m2
  expect_steps(p1_, members_[1], "succeeded,succeeded");
  quiet();
  tell(phase_due(p1_));
  succeed(one());
  succeed(one());
  expect_steps(p1_, late, "succeeded,succeeded");
  expect_steps(p1_, members_[0], "dispatched,pending");
  expect_phase(p1_, "dispatched");
  expect_batch("active");
  step_ = silent;
  EXPECT_TRUE(is_accepted(report(result("Failure", nullptr))));
  eventually(row("retry_count, " + is_set("timer_due")), "1 set");
  succeed(one());
  succeed(one());
  expect_phase(p1_, "completed");
}

TEST_P(TakenOver, PhaseIsForThoseThatAPhaseDueNamesAfterwards) {
  given_left(timed_and_retried, "dispatched");
  const Id named = member("m2"), other = member("m3");
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  const Job second = one();
  tell(phase_due(p1_, {named}));
  EXPECT_EQ(one().parameter("Upn"), "m2");
  succeed(second);
  quiet();
  expect_steps(p1_, other, "");
}

TEST_P(TakenOver, LockstepPhaseGoesOnToItsLastStep) {
  given_left(lockstep + timed_and_retried, "dispatched", {}, 2);
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  quiet();  // the other member is still at its first step
  expect_phase(p1_, "dispatched");
  step_ = step_id(p1_, members_[0], 0);
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  for (const Job& job : take(2)) {
    EXPECT_EQ(job.function(), "Do-s2");
    succeed(job);
  }
  expect_phase(p1_, "completed");
}

TEST_P(TakenOver, NothingFurtherBeginsBeforeInitIsOver) {
  given(section("init", {preparing("i1")}) + timed_and_retried, 1, "init_dispatched");
  init_step(0, "i1");
  p1_ = phase("p1", "dispatched");
  step_ = step(p1_, members_[0], 0, "s1", {{"status", "dispatched"}, {"job_id", job_of_another}});
  step(p1_, members_[0], 1, "s2");
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  expect_steps(p1_, members_[0], "succeeded,pending");
  quiet();
  tell(batch_init());
  const Job init = one();
  EXPECT_EQ(init.function(), "Do-i1");
  succeed(init);
  EXPECT_EQ(one().function(), "Do-s2");
}

TEST_P(TakenOver, ARetryWaitsForInitAndEndsWithItWhenThatFails) {
  given(section("init", {preparing("i1")}) + timed_and_retried, 1, "init_dispatched");
  init_step(0, "i1", {{"max_retries", 0}});
  p1_ = phase("p1", "dispatched");
  step_ = step(p1_, members_[0], 0, "s1", {{"status", "dispatched"}, {"job_id", job_of_another}});
  EXPECT_TRUE(is_accepted(report(result("Failure", nullptr))));  // it is to be retried a second later
  eventually(row("status, " + is_set("retry_after")), "pending unset");
  quiet();
  tell(batch_init());
  fail(one());
  expect_batch("failed");
  expect_steps(p1_, members_[0], "cancelled");
}

TEST_P(TakenOver, ResultOfAnEarlierAttemptIsRefused) {
  given_left(timed_and_retried, "dispatched");
  const std::string own = "step-" + std::to_string(step_);
  sql().exec("UPDATE step_executions SET retry_count=1, job_id='" + own + "-retry-1' WHERE id=" + std::to_string(step_));
  json::object late = result("Failure", nullptr);
  late["jobId"] = own;
  changes_nothing([&] {
    EXPECT_EQ(report(late).status, 409);  // by correlation
    late.erase("correlationData");
    EXPECT_EQ(report(late).status, 409);  // by the id alone
  });
  late["jobId"] = own + "-retry-1";
  late["status"] = "Success";
  EXPECT_TRUE(is_accepted(report(late)));
  expect_steps(p1_, members_[0], "succeeded,dispatched");
}

// At start, without any message: whoever is never touched would wait for ever.
TEST_P(TakenOver, AtStartWithAdopt) {
  given_left(timed_and_retried, "dispatched", {}, 3);
  const Id polled = step(p1_, members_[0], 2, "s3", {{"status", "polling"}, {"is_poll_step", true}, {"poll_timeout_sec", 60}});
  restart();
  quiet();
  EXPECT_EQ(text(row("coalesce(job_state,'none'), " + is_set("timer_due"))), "none unset");
  restart({"--adopt"});
  eventually("SELECT count(*) FROM step_executions WHERE job_state='leased' AND lease_until IS NOT NULL AND "
             "timer_due IS NOT NULL AND phase_execution_id=" + std::to_string(p1_), "3");
  eventually("SELECT " + is_set("timer_due") + " FROM step_executions WHERE id=" + std::to_string(polled), "set");
  EXPECT_TRUE(is_accepted(report(result("Success", json::object{}))));
  expect_steps(p1_, members_[2], "succeeded,dispatched");
  restart();
}

// Words as another writes them, a phase in which nobody is under way, and one row among them that nobody can read.
TEST_P(TakenOver, AtStartWithAdoptWhateverElseIsThere) {
  given_left(timed_and_retried, "Dispatched", {}, 2);
  sql().exec("UPDATE step_executions SET status='what' WHERE id=" + std::to_string(step_id(p1_, members_[0], 0)));
  const Id waiting = phase("p2", "dispatched");
  const Id first = step(waiting, members_[1], 0, "s1");
  restart({"--adopt"});
  eventually(row("job_state, " + is_set("timer_due")), "leased set");
  expect_step(first, "dispatched");
  restart();
}

}  // namespace
}  // namespace baton::runbook_contract
