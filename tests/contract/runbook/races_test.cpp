// What happens at the same time, in the wrong order, behind the server's back, or while it is dead (003 race
// condition safety; specification: "others write these tables too").
#include <atomic>
#include <set>
#include <thread>

#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class Races : public Contract {
 protected:
  static int post(http::Client& client, const std::string& target, const json::value& body) {
    return e2e::ask(client, "POST", target, json::serialize(body)).status;
  }
};
class ChangesBySql : public Contract {};
class Crash : public Contract {};
ON_EACH_STORE(Races);
ON_EACH_STORE(ChangesBySql);
ON_EACH_STORE(Crash);

// 003: two results arrive simultaneously for the same phase.
TEST_P(Races, TwoResultsAtOnceCompleteThePhaseOnce) {
  const Id p1 = given_due(one_step, 4);
  std::vector<std::function<void(http::Client&)>> acts;
  for (const Job& job : take(4))
    acts.push_back([job](http::Client& client) {
      EXPECT_EQ(post(client, "/callbacks/worker-result", result_of(job, "Success", json::object{})), 200);
    });
  both_at_once(acts);
  expect_phase(p1, "completed");
  expect_batch("completed");
}

TEST_P(Races, TheSameResultAtOnceAdvancesTheMemberOnce) {
  const Id p1 = given_due(two_steps);
  const json::object result = result_of(one(), "Success", json::object{});
  both_at_once(std::vector<std::function<void(http::Client&)>>(
      4, [&](http::Client& client) { EXPECT_EQ(post(client, "/callbacks/worker-result", result), 200); }));
  EXPECT_EQ(one().function(), "Do-s2");
  quiet();
  expect_steps(p1, members_[0], "succeeded,dispatched");
}

TEST_P(Races, SuccessAndFailureOfOneJobAtOnceLeaveOneOfThem) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  both_at_once(
      {[&](http::Client& client) {
         EXPECT_EQ(post(client, "/callbacks/worker-result", result_of(job, "Success", json::object{})), 200);
       },
       [&](http::Client& client) {
         EXPECT_EQ(post(client, "/callbacks/worker-result", result_of(job, "Failure", nullptr, "x")), 200);
       }});
  const std::string first = text(
      "SELECT status FROM step_executions WHERE step_index=0 AND phase_execution_id=" + std::to_string(p1));
  if (first == "succeeded") {
    expect_steps(p1, members_[0], "succeeded,dispatched");
    expect_member(members_[0], "active");
  } else {
    expect_steps(p1, members_[0], "failed,cancelled");
    expect_member(members_[0], "failed");
  }
}

// 003: duplicate phase-due messages.
TEST_P(Races, PhaseDueAtOnceCreatesAndSendsEachStepOnce) {
  given(two_steps, 5);
  const Id p1 = phase("p1");
  const json::object message = phase_due(p1);
  both_at_once(std::vector<std::function<void(http::Client&)>>(
      4, [&](http::Client& client) { EXPECT_LT(post(client, "/events", message), 300); }));
  EXPECT_EQ(by_member(take(5)).size(), 5u);
  quiet();
  eventually("SELECT count(*) FROM step_executions WHERE phase_execution_id=" + std::to_string(p1), "10");
}

TEST_P(Races, BatchInitAtOnceCreatesAndSendsEachStepOnce) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_step, 1, "init_dispatched");
  const json::object message = batch_init();
  both_at_once(std::vector<std::function<void(http::Client&)>>(
      4, [&](http::Client& client) { EXPECT_LT(post(client, "/events", message), 300); }));
  (void)one();
  quiet();
  expect_init("dispatched,pending");
}

// 003: member failure + step success for the same member.
TEST_P(Races, FailureAndSuccessOfOneMemberAtOnceKeepTheSuccessOrCancelIt) {
  given(phases({phase_of("p1", {doing("s1")}), phase_of("p2", {doing("s2")})}));
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(json::array{phase_due(p1), phase_due(p2)});
  std::map<std::string, Job> jobs;
  for (const Job& job : take(2)) jobs[job.function()] = job;
  both_at_once({[&](http::Client& client) {
                  EXPECT_EQ(post(client, "/callbacks/worker-result",
                                 result_of(jobs["Do-s1"], "Failure", nullptr, "x")),
                            200);
                },
                [&](http::Client& client) {
                  EXPECT_EQ(post(client, "/callbacks/worker-result",
                                 result_of(jobs["Do-s2"], "Success", json::object{})),
                            200);
                }});
  expect_member(members_[0], "failed");
  expect_phase(p1, "failed");
  const bool kept = text("SELECT status FROM step_executions WHERE phase_execution_id=" +
                         std::to_string(p2)) == "succeeded";
  expect_phase(p2, kept ? "completed" : "failed");
  expect_batch(kept ? "completed" : "failed");
}

TEST_P(Races, ResultAndRemovalAtOnceLeaveNothingRunning) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  set_removed(members_[0]);
  const json::object removal = member_removed(members_[0]);
  both_at_once(
      {[&](http::Client& client) {
         EXPECT_EQ(post(client, "/callbacks/worker-result", result_of(job, "Success", json::object{})), 200);
       },
       [&](http::Client& client) { EXPECT_LT(post(client, "/events", removal), 300); }});
  eventually(
      "SELECT status FROM step_executions WHERE step_index=1 AND phase_execution_id=" + std::to_string(p1),
      "cancelled");
  quiet();
  expect_phase(p1, "failed");
}

// More members than one commit takes: nobody is forgotten and nobody is served twice.
TEST_P(Races, ALargePhaseIsDoneInPartsAndEachStepOnce) {
  given(one_step, 0);
  many_members(2'500);
  const Id p1 = phase("p1");
  json::object message = phase_due(p1);
  message.erase("memberIds");  // then it is for all
  tell(message);
  tell(message);
  const std::string count = " FROM step_executions WHERE phase_execution_id=" + std::to_string(p1);
  eventually("SELECT count(*), count(DISTINCT batch_member_id)" + count + " AND status='dispatched'",
             "2500 2500");
  EXPECT_EQ(text("SELECT count(*)" + count), "2500");
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i)
    for (const Job& job : poll(0)) EXPECT_TRUE(seen.insert(job.id()).second) << job.id();
  EXPECT_GT(seen.size(), 0u);
}

// ---- behind the server's back

// 000 §4.4: the row was changed before the message; a result may come in between.
TEST_P(ChangesBySql, AMemberThatWasSetRemovedGetsNoFurtherJob) {
  const Id p1 = given_due(two_steps, 2);
  auto jobs = by_member(take(2));
  set_removed(members_[0]);
  succeed(jobs["m1"]);
  quiet();
  tell(member_removed(members_[0]));
  expect_steps(p1, members_[0], "succeeded,cancelled");
  expect_steps(p1, members_[1], "dispatched,pending");
  expect_member(members_[0], "removed");
}

TEST_P(ChangesBySql, AStepThatWasCancelledBySqlIsNotSent) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  sql().exec("UPDATE step_executions SET status='cancelled' WHERE step_index=1 AND phase_execution_id=" +
             std::to_string(p1));
  succeed(job);
  quiet();
  expect_steps(p1, members_[0], "succeeded,cancelled");
}

TEST_P(ChangesBySql, ParametersThatWereChangedBySqlAreSent) {
  given(two_steps);
  const Id p1 = phase("p1", "dispatched");
  step(p1, members_[0], 0, "s1");
  const Id second = step(p1, members_[0], 1, "s2");
  tell(phase_due(p1));
  const Job job = one();
  sql().exec("UPDATE step_executions SET params_json='{\"v\":2}' WHERE id=" + std::to_string(second));
  succeed(job);
  EXPECT_EQ(one().parameters(), R"({"v":2})");
}

TEST_P(ChangesBySql, AnotherWriterInTheMiddleOfItsTransactionIsWaitedFor) {
  given_due(two_steps);
  const Job job = one();
  const auto other = another_connection();
  other->exec(GetParam() == StoreType::sqlite ? "BEGIN IMMEDIATE" : "BEGIN");
  other->exec("UPDATE batch_members SET data_json='{\"Upn\":\"new\"}' WHERE id=" +
              std::to_string(members_[0]));
  std::jthread commits([&] {
    std::this_thread::sleep_for(300ms);  // long enough that the result comes into the open transaction
    other->exec("COMMIT");
  });
  succeed(job);
  EXPECT_EQ(one().function(), "Do-s2");
}

// The scheduler's transaction is open while the server loads the rows of a result, and ends before the server can
// commit: what the one wrote and what the other decided are both there.
TEST_P(ChangesBySql, ASchedulerThatRefreshesRowsDuringAResultKeepsWhatItWrote) {
  const Id p1 = given_due(phases({phase_of("p1", {doing("s1", "output_params: {Target: id}")})}));
  const Job job = one();
  const std::string step = " WHERE id=" + std::to_string(step_id(p1, members_[0], 0));
  const std::string member = " WHERE id=" + std::to_string(members_[0]);
  const std::string phase = " WHERE id=" + std::to_string(p1);
  const auto other = another_connection();
  other->exec(GetParam() == StoreType::sqlite ? "BEGIN IMMEDIATE" : "BEGIN");
  other->exec("UPDATE batch_members SET data_json='{\"Upn\":\"fresh\"}'" + member);
  other->exec("UPDATE step_executions SET params_json='{\"fresh\":1}', max_retries=7" + step);
  other->exec("UPDATE phase_executions SET due_at='2031-01-01T00:00:00Z', offset_minutes=5" + phase);
  std::jthread commits([&] {
    std::this_thread::sleep_for(300ms);  // the server has loaded what is committed, and waits to write
    other->exec("COMMIT");
  });
  succeed(job, json::object{{"id", "t-1"}});
  commits.join();
  expect_batch("completed");
  EXPECT_EQ(text("SELECT data_json, worker_data_json FROM batch_members" + member),
            R"({"Upn":"fresh"} {"Target":"t-1"})");
  EXPECT_EQ(text("SELECT status, params_json, max_retries FROM step_executions" + step), R"(succeeded {"fresh":1} 7)");
  EXPECT_EQ(text("SELECT status, offset_minutes FROM phase_executions" + phase +
                 " AND due_at='2031-01-01T00:00:00Z'"), "completed 5");
}

// ---- kill -9

TEST_P(Crash, BetweenMessageAndPollLosesNoJob) {
  const Id p1 = given_due(two_steps, 2);
  restart();
  work(4);
  expect_phase(p1, "completed");
  expect_batch("completed");
}

TEST_P(Crash, BetweenPollAndResultKeepsTheJobWithItsWorker) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  restart();
  quiet();  // it is out, and the new server knows
  json::object result = result_of(job, "Success", json::object{});
  result["lease"] = job.text("lease");
  EXPECT_TRUE(is_accepted(report(result)));
  work(1);
  expect_phase(p1, "completed");
}

TEST_P(Crash, BetweenResultAndNextPollGoesOn) {
  given(section("init", {preparing("i1"), preparing("i2")}) + two_steps, 1, "init_dispatched");
  tell(batch_init());
  succeed(one());
  restart();
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-i2");
  const Id p1 = phase("p1");
  tell(phase_due(p1));  // held
  restart();
  succeed(second);
  work(2);
  expect_phase(p1, "completed");
}

TEST_P(Crash, KeepsRetriesPollsAndRollbacks) {
  given(phases({phase_of("p1", {doing("s1", "retry: {max_retries: 1, interval: 1s}, on_failure: undo")}),
                phase_of("p2", {doing("s2", "poll: {interval: 5m, timeout: 8h}")})}) +
            rollback("undo", {doing("undo1"), doing("undo2")}),
        1);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p2));
  const Job watch = one();
  still_polling(watch);
  expect_steps(p2, members_[0], "polling");
  tell(phase_due(p1));
  fail(one());
  expect_steps(p1, members_[0], "pending");
  restart();
  expect_steps(p2, members_[0], "polling");
  tell(poll_check(watch.correlated("stepExecutionId"), "s2", 1));
  Job retry;
  for (const Job& job : take(2)) {
    if (job.function() == "Do-s1") retry = job;
    if (job.function() == "Do-s2") succeed(job, json::object{{"complete", true}});
  }
  expect_phase(p2, "completed");
  fail(retry);
  succeed(one());
  restart();
  succeed(one());
  expect_steps(p1, members_[0], "rolled_back");
  expect_cleanup("succeeded,succeeded");
  expect_phase(p1, "failed");
  expect_batch("completed");
}

// Killed while it works a large phase off: the cursor is durable.
TEST_P(Crash, InTheMiddleOfALargePhaseForgetsNobody) {
  given(one_step, 0);
  many_members(2'500);
  const Id p1 = phase("p1");
  json::object message = phase_due(p1);
  message.erase("memberIds");
  tell(message);
  restart();
  eventually(
      "SELECT count(*), count(DISTINCT batch_member_id) FROM step_executions WHERE status='dispatched' AND "
      "phase_execution_id=" +
          std::to_string(p1),
      "2500 2500");
}

}  // namespace
}  // namespace baton::runbook_contract
