// What is tried again, when, and what happens when that was in vain (003 step retry).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class Retry : public Contract {
 protected:
  void given_dispatched(const std::string& yaml, int members = 1) {
    given(yaml, members);
    p1_ = phase("p1");
    tell(phase_due(p1_));
  }
  std::string row(const Job& job, const std::string& columns) {
    return "SELECT " + columns +
           " FROM step_executions WHERE id=" + std::to_string(job.correlated("stepExecutionId"));
  }
  static std::string retrying(int times, const std::string& interval) {
    return "retry: {max_retries: " + std::to_string(times) + ", interval: " + interval + "}\n";
  }
  Id p1_ = 0;
};
ON_EACH_STORE(Retry);

// 003 retry flow 1 to 4 and the job id; the timer is the server's own.
TEST_P(Retry, PutsTheStepBackAndSendsItAgainAfterTheInterval) {
  given_dispatched(retrying(1, "1s") + two_steps);
  const Job first = one();
  const auto failed = std::chrono::steady_clock::now();
  fail(first);
  eventually(row(first, "status, retry_count, job_id, completed_at, " + is_set("retry_after")),
             "pending 1 null null set");
  const Job again = one();
  EXPECT_GE(std::chrono::steady_clock::now() - failed, 900ms);
  EXPECT_EQ(again.id(), first.id() + "-retry-1");
  EXPECT_EQ(again.function(), first.function());
  EXPECT_EQ(again.parameters(), first.parameters());
  EXPECT_EQ(again.correlated("stepExecutionId"), first.correlated("stepExecutionId"));
  eventually(row(first, "status, job_id"), "dispatched " + again.id());
  succeed(again);
  EXPECT_EQ(one().function(), "Do-s2");
  expect_member(members_[0], "active");
}

TEST_P(Retry, SaysWhenInRetryAfter) {
  given_dispatched(retrying(1, "2h") + two_steps);
  const Job first = one();
  fail(first);
  eventually(row(first, "status"), "pending");
  const std::string soon = timestamp(7200s - 60s);
  const std::string late = timestamp(7200s + 60s);
  // As numbers of seconds in both databases, whatever the precision of the text.
  const std::string inside = GetParam() == StoreType::sqlite
                                 ? "strftime('%s', retry_after) BETWEEN strftime('%s', '" + soon +
                                       "') AND strftime('%s', '" + late + "')"
                                 : "retry_after BETWEEN '" + soon + "' AND '" + late + "'";
  EXPECT_EQ(text(row(first, "CASE WHEN " + inside + " THEN 'due' ELSE 'wrong' END")), "due");
  quiet();
}

// 003 resolution: the step's replaces the global one whole; stored on the row at creation.
TEST_P(Retry, IsResolvedAtCreationAndStoredOnTheRow) {
  given_dispatched(retrying(2, "1m") +
                   phases({phase_of("p1", {doing("s1"), doing("s2", "retry: {max_retries: 5, interval: 30s}"),
                                           doing("s3", "retry: {max_retries: 0}")})}));
  (void)one();
  const std::string of_phase = " FROM step_executions WHERE phase_execution_id=" + std::to_string(p1_);
  eventually("SELECT max_retries" + of_phase + " ORDER BY step_index", "2,5,0");
  eventually("SELECT retry_interval_sec" + of_phase + " AND step_index<2 ORDER BY step_index", "60,30");
  eventually("SELECT coalesce(retry_count, 0)" + of_phase + " ORDER BY step_index", "0,0,0");
}

// What is stored holds, also when the runbook says something else by now.
TEST_P(Retry, FollowsTheColumnsOfTheRow) {
  given(two_steps);
  p1_ = phase("p1", "dispatched");
  const Id id = step(p1_, members_[0], 0, "s1", {{"max_retries", 1}, {"retry_interval_sec", 1}});
  tell(phase_due(p1_));
  fail(one());
  const Job again = one();
  EXPECT_EQ(again.id(), "step-" + std::to_string(id) + "-retry-1");
  fail(again);
  expect_steps(p1_, members_[0], "failed,cancelled");
}

// 003 "what does not retry"
TEST_P(Retry, MaxRetriesZeroSwitchesTheGlobalOneOff) {
  given_dispatched(retrying(3, "1s") + phases({phase_of("p1", {doing("s1", "retry: {max_retries: 0}")})}));
  fail(one());
  expect_steps(p1_, members_[0], "failed");
  expect_member(members_[0], "failed");
  expect_phase(p1_, "failed");
}

TEST_P(Retry, IsNotDoneWithoutConfiguration) {
  given_dispatched(two_steps);
  fail(one());
  expect_steps(p1_, members_[0], "failed,cancelled");
  expect_member(members_[0], "failed");
}

// 003: only with the last attempt, and in this order: rollback, member failed, the rest cancelled, others go
// on.
TEST_P(Retry, ExhaustedRollsBackAndIsolatesTheMember) {
  given(phases({phase_of("p1", {doing("s1", "on_failure: undo, retry: {max_retries: 1, interval: 1s}"),
                                doing("s2")}),
                phase_of("p2", {doing("s3")})}) +
            rollback("undo", {doing("undo1")}),
        2);
  p1_ = phase("p1");
  const Id p2 = phase("p2");
  for (const Id member : members_) step(p2, member, 0, "s3");
  tell(phase_due(p1_));
  auto jobs = by_member(take(2));
  fail(jobs["m1"], "first");
  succeed(jobs["m2"]);
  succeed(one());  // m2 does not wait for the retry of m1
  expect_steps(p1_, members_[1], "succeeded,succeeded");
  EXPECT_EQ(text("SELECT count(*) FROM cleanup_executions WHERE batch_id=" + std::to_string(batch_)), "0");
  expect_member(members_[0], "active");
  const Job again = one();
  EXPECT_EQ(again.id(), jobs["m1"].id() + "-retry-1");
  fail(again, "second");
  const Job undo = one();
  EXPECT_EQ(undo.function(), "Do-undo1");
  expect_step(jobs["m1"].correlated("stepExecutionId"), "failed");
  EXPECT_NE(text(row(again, "error_message")).find("second"), std::string::npos);
  succeed(undo);
  expect_steps(p1_, members_[0], "rolled_back,cancelled");
  expect_steps(p2, members_[0], "cancelled");
  expect_member(members_[0], "failed");
  expect_phase(p1_, "completed");
  expect_steps(p2, members_[1], "pending");
}

// Specification: retries reuse what is stored.
TEST_P(Retry, UsesTheParametersOfTheFirstAttempt) {
  given_dispatched(retrying(1, "1s") + two_steps);
  const Job first = one();
  sql().exec("UPDATE batch_members SET data_json='{\"Upn\":\"other\"}' WHERE id=" +
             std::to_string(members_[0]));
  fail(first);
  const Job again = one();
  EXPECT_EQ(again.parameters(), first.parameters());
  succeed(again);
  EXPECT_EQ(one().parameter("Upn"), "other");  // a later step is resolved later
}

// Specification: a result of an old attempt is refused (409); for a step that is over it is ignored (200).
TEST_P(Retry, ResultOfTheFirstAttemptIsRefusedThen) {
  given_dispatched(retrying(1, "1h") + two_steps);
  const Job first = one();
  fail(first);
  changes_nothing([&] { EXPECT_EQ(report(result_of(first, "Success", json::object{})).status, 409); });
  tell(retry_check(first.correlated("stepExecutionId"), 1));
  const Job again = one();
  changes_nothing([&] {
    EXPECT_EQ(report(result_of(first, "Success", json::object{})).status, 409);
    EXPECT_EQ(report(result_of(first, "Failure", nullptr, "late")).status, 409);
  });
  succeed(again);
  EXPECT_EQ(one().function(), "Do-s2");
  changes_nothing([&] { EXPECT_TRUE(is_ignored(report(result_of(first, "Failure", nullptr, "late")))); });
}

// 003 RetryCheckHandler: it verifies that the step is pending and sends it.
TEST_P(Retry, CheckIsHonoured) {
  given_dispatched(retrying(1, "1h") + two_steps);
  const Job first = one();
  fail(first);
  eventually(row(first, "status"), "pending");
  tell(retry_check(first.correlated("stepExecutionId"), 1));
  EXPECT_EQ(one().id(), first.id() + "-retry-1");
  changes_nothing([&] { tell(retry_check(first.correlated("stepExecutionId"), 1)); });  // it is out
}

TEST_P(Retry, CheckOfAnInitStepIsHonoured) {
  given(section("init", {preparing("i1", "retry: {max_retries: 1, interval: 1h}")}) + two_steps, 1,
        "init_dispatched");
  tell(batch_init());
  const Job first = one();
  fail(first);
  expect_init("pending");
  tell(event(
      "retry-check",
      {{"initExecutionId", first.correlated("initExecutionId")}, {"isInitStep", true}, {"retryCount", 1}}));
  const Job again = one();
  EXPECT_EQ(again.id(), first.id() + "-retry-1");
  succeed(again);
  expect_batch("active");
}

TEST_P(Retry, CheckOfAnEarlierAttemptIsIgnored) {
  given_dispatched(retrying(2, "1h") + two_steps);
  const Job first = one();
  const Id id = first.correlated("stepExecutionId");
  changes_nothing([&] { tell(retry_check(id, 1)); });  // it has not even failed
  fail(first);
  eventually(row(first, "status"), "pending");
  tell(retry_check(id, 1));
  fail(one());
  eventually(row(first, "status, retry_count"), "pending 2");
  changes_nothing([&] { tell(retry_check(id, 1)); });
  tell(retry_check(id, 2));
  succeed(one());
  expect_steps(p1_, members_[0], "succeeded,dispatched");
}

// 003 race: a retry-check after the step was cancelled; and the server's own timer, too.
TEST_P(Retry, OfAStepThatWasCancelledMeanwhileIsNotDone) {
  given_dispatched(retrying(1, "1s") + two_steps);
  const Job first = one();
  fail(first);
  eventually(row(first, "status"), "pending");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_steps(p1_, members_[0], "cancelled,cancelled");
  changes_nothing([&] { tell(retry_check(first.correlated("stepExecutionId"), 1)); });
  EXPECT_EQ(poll(1'300).size(), 0u);  // past the interval
  expect_steps(p1_, members_[0], "cancelled,cancelled");
}

TEST_P(Retry, CountsEachAttempt) {
  given_dispatched(retrying(3, "1h") + phases({phase_of("p1", {doing("s1")})}));
  Job job = one();
  const std::string id = job.id();
  for (int n = 1; n <= 3; ++n) {
    fail(job);
    eventually(row(job, "status, retry_count"), "pending " + std::to_string(n));
    tell(retry_check(job.correlated("stepExecutionId"), n));
    job = one();
    EXPECT_EQ(job.id(), id + "-retry-" + std::to_string(n));
  }
  fail(job, "for good");
  eventually(row(job, "status, retry_count"), "failed 3");
  EXPECT_NE(text(row(job, "error_message")).find("for good"), std::string::npos);
  expect_phase(p1_, "failed");
}

// A duplicate of the failure must not use up a second attempt.
TEST_P(Retry, IsCountedOnceForADuplicatedFailure) {
  given_dispatched(retrying(2, "1h") + two_steps);
  const Job first = one();
  fail(first);
  eventually(row(first, "status, retry_count"), "pending 1");
  changes_nothing([&] {
    EXPECT_TRUE(is_ignored(report(result_of(first, "Failure", nullptr, json::object{{"message", "boom"}}))));
    EXPECT_EQ(report(result_of(first, "Failure", nullptr, json::object{{"message", "bang"}})).status, 409);
    EXPECT_EQ(report(result_of(first, "Success", nullptr)).status, 409);
  });
}

// A worker that never answers must not hold its member for ever: the step is offered again or it fails.
TEST_P(Retry, OrFailureFollowsWhenAWorkerNeverAnswers) {
  given_dispatched(phases({phase_of("p1", {doing("s1", "timeout: 1s")})}));
  const Job taken = one();
  const auto deadline = std::chrono::steady_clock::now() + 8s;
  bool moved = false;
  while (!moved && std::chrono::steady_clock::now() < deadline)
    moved = !poll(500).empty() || text(row(taken, "status")) != "dispatched";
  EXPECT_TRUE(moved);
}

}  // namespace
}  // namespace baton::runbook_contract
