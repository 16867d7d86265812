// Rows that other programs have left in a state that makes no sense, and thousands of members to whom the same
// misfortune happens: whoever is not concerned goes on, and nothing takes for ever.
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class StrangeRows : public Contract {
 protected:
  // Another runbook of this server, from its beginning to its end.
  void others_go_on() {
    const std::string kept_name = name_, kept_pool = pool_;
    const Id kept_batch = batch_;
    name_ += "-other", pool_ += "-other";
    given_due(one_step);
    work(1);
    expect_batch("completed");
    name_ = kept_name, pool_ = kept_pool, batch_ = kept_batch;
  }
  void work_through(std::size_t count, std::string_view status) {
    for (int round = 0; round < 100 && count > 0; ++round) {
      json::array results;
      for (const Job& job : poll(1'000)) results.push_back(result_of(job, status, json::object{}, json::object{{"message", "boom"}}));
      count -= std::min(count, results.size());
      if (!results.empty()) {
        EXPECT_EQ(report(results).status, 200);
      }
    }
    EXPECT_EQ(count, 0U) << "so many jobs did not come";
  }
  Answer retry(const std::string& body = R"({"all":true})") {
    return e2e::ask(client(), "POST", "/batches/" + std::to_string(batch_) + "/members:retry", body);
  }
};
class ManyMembers : public StrangeRows {};
ON_EACH_STORE(StrangeRows);
ON_EACH_STORE(ManyMembers);

TEST_P(StrangeRows, ABatchWithAStatusOfAnotherWorldStopsNobodyElse) {
  const Id p1 = given_due(one_step, 2);
  eventually("SELECT count(*) FROM step_executions WHERE job_state='queued' AND phase_execution_id=" +
                 std::to_string(p1), "2");
  sql().exec("UPDATE batches SET status='on_holiday' WHERE id=" + std::to_string(batch_));
  EXPECT_TRUE(poll(300).empty());  // its jobs are not given
  others_go_on();
  sql().exec("UPDATE batches SET status='active' WHERE id=" + std::to_string(batch_));
  work(2);
  expect_batch("completed");
}

TEST_P(StrangeRows, AStepOfAPhaseThatIsGoneIsRefusedAndTheServerLives) {
  const Id p1 = given_due(one_step, 2);
  const auto jobs = take(2);
  sql().exec("DELETE FROM phase_executions WHERE id=" + std::to_string(p1));
  const Answer answer = report(result_of(jobs[0], "Success", json::object{}));
  EXPECT_EQ(answer.status, 422) << answer.body;
  EXPECT_EQ(text("SELECT status FROM step_executions WHERE id=" + std::to_string(jobs[0].correlated("stepExecutionId"))),
            "dispatched");
  others_go_on();
}

TEST_P(StrangeRows, AQueuedJobOfAPhaseThatIsGoneIsNotGivenAndTheServerLives) {
  const Id p1 = given_due(one_step, 2);
  eventually("SELECT count(*) FROM step_executions WHERE job_state='queued' AND phase_execution_id=" +
                 std::to_string(p1), "2");
  sql().exec("DELETE FROM phase_executions WHERE id=" + std::to_string(p1));
  const double before = metric("baton_engine_batches_redecided_total");
  EXPECT_TRUE(poll(300).empty());
  others_go_on();
  EXPECT_LT(metric("baton_engine_batches_redecided_total") - before, 100);
}

TEST_P(StrangeRows, APhaseWhoseRowCannotBeReadIsTriedAgainWhenItCan) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  sql().exec("UPDATE phase_executions SET status='asleep' WHERE id=" + std::to_string(p1));
  EXPECT_EQ(report(result_of(job, "Success", json::object{})).status, 422);
  others_go_on();
  sql().exec("UPDATE phase_executions SET status='dispatched' WHERE id=" + std::to_string(p1));
  succeed(job);
  work(1);
  expect_batch("completed");
}

TEST_P(ManyMembers, WhoseParamsCannotBeResolvedFailTogether) {
  given(replaced(one_step, "{{Upn}}", "{{Typo}}"), 0);
  many_members(1'500);
  const Id p1 = phase("p1");
  const double before = metric("baton_engine_batches_redecided_total");
  tell(phase_due(p1));
  expect_phase(p1, "failed");
  EXPECT_EQ(text("SELECT count(*) FROM batch_members WHERE status='failed' AND batch_id=" + std::to_string(batch_)),
            "1500");
  EXPECT_LT(metric("baton_engine_batches_redecided_total") - before, 50);
}

TEST_P(ManyMembers, WhoFailedAreRetriedTogether) {
  given(one_step, 0);
  many_members(1'200);
  const Id p1 = phase("p1");
  tell(phase_due(p1));
  work_through(1'200, "Failure");
  expect_batch("failed");
  const double before = metric("baton_engine_batches_redecided_total");
  const Answer answer = retry();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body.at("count").as_int64(), 1'200);
  EXPECT_LT(metric("baton_engine_batches_redecided_total") - before, 100);
  work_through(1'200, "Success");
  expect_batch("completed");
}

TEST_P(ManyMembers, AreRemovedByKeyTogether) {
  given(one_step, 0);
  many_members(1'000);
  const Id p1 = phase("p1");
  tell(phase_due(p1));
  eventually("SELECT count(*) FROM step_executions WHERE phase_execution_id=" + std::to_string(p1), "1000");
  json::array keys;
  for (int i = 1; i <= 1'000; ++i) keys.push_back(json::value("m" + std::to_string(i)));
  const Answer answer = e2e::ask(client(), "POST", "/batches/" + std::to_string(batch_) + "/members:remove",
                                 json::serialize(json::object{{"member_keys", keys}}));
  EXPECT_EQ(answer.status, 200) << answer.body;
  eventually("SELECT count(*) FROM step_executions WHERE status='cancelled' AND phase_execution_id=" +
                 std::to_string(p1), "1000");
}

// --- what somebody does about a failure in lockstep

class LockstepRetry : public StrangeRows {
 protected:
  Answer retry_step(Id step) {
    return e2e::ask(client(), "POST", "/steps/" + std::to_string(step) + "/retry", "{}");
  }
};
ON_EACH_STORE(LockstepRetry);

TEST_P(LockstepRetry, InTimeLetsThePhaseGoOnWithEverybody) {
  const Id p1 = given_due(lockstep + two_steps, 2);
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  ASSERT_EQ(retry_step(step_id(p1, members_[0], 0)).status, 200);
  succeed(jobs["m2"]);
  succeed(one());
  work(2);
  expect_steps(p1, members_[0], "succeeded,succeeded");
  expect_steps(p1, members_[1], "succeeded,succeeded");
  expect_batch("completed");
}

TEST_P(LockstepRetry, OfAPhaseThatFailedRunsItFromWhereItStopped) {
  const Id p1 = given_due(lockstep + two_steps, 3);
  auto jobs = by_member(take(3));
  fail(jobs["m1"]);
  succeed(jobs["m2"]);
  fail(jobs["m3"]);
  expect_batch("failed");
  const Answer answer = retry();
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json::serialize(answer.body.at("phases")), R"(["p1"])");
  expect_phase(p1, "dispatched");
  work(2);
  work(3);
  for (const Id member : members_) expect_steps(p1, member, "succeeded,succeeded");
  expect_batch("completed");
}

TEST_P(LockstepRetry, OfOneStepBringsBackWhatCameAfterIt) {
  const Id p1 = given_due(lockstep + two_steps, 2);
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  succeed(jobs["m2"]);
  expect_phase(p1, "failed");
  ASSERT_EQ(retry_step(step_id(p1, members_[0], 0)).status, 200);
  work(2);
  expect_steps(p1, members_[0], "succeeded,succeeded");
  expect_steps(p1, members_[1], "succeeded,cancelled");
  ASSERT_EQ(retry_step(step_id(p1, members_[1], 1)).status, 200);
  work(1);
  expect_steps(p1, members_[1], "succeeded,succeeded");
}

TEST_P(LockstepRetry, NamesNoMembers) {
  given(lockstep + two_steps, 1);
  phase("p1");
  EXPECT_EQ(retry(R"({"member_keys":["m1"]})").status, 409);
}

}  // namespace
}  // namespace baton::runbook_contract
