// Members that come late and members that leave (000 §3, §4 and the catch-up protocol; 002 MemberAddedHandler
// and MemberRemovedHandler).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

const std::string three_phases =
    phases({phase_of("p1", {doing("s1"), doing("s2")}, "T-2h"), phase_of("p2", {doing("s3")}, "T-1h"),
            phase_of("p3", {doing("s4")})});

class MemberAdded : public Contract {
 protected:
  // m1 has been through p1; p2 is dispatched and its job is returned; p3 is pending.
  Job half_way(const std::string& progression = "") {
    given(progression + three_phases);
    p1_ = phase("p1");
    p2_ = phase("p2");
    p3_ = phase("p3");
    tell(phase_due(p1_));
    work(2);
    expect_phase(p1_, "completed");
    tell(phase_due(p2_));
    return one();
  }
  Id p1_ = 0;
  Id p2_ = 0;
  Id p3_ = 0;
};
class MemberRemoved : public Contract {
 protected:
  std::string cleanups(const std::string& columns) {
    return "SELECT " + columns + " FROM cleanup_executions WHERE batch_id=" + std::to_string(batch_) +
           " ORDER BY id";
  }
};
ON_EACH_STORE(MemberAdded);
ON_EACH_STORE(MemberRemoved);

// 000 §3.4, 002 MemberAddedHandler 4
TEST_P(MemberAdded, CatchesUpOnADispatchedPhase) {
  const Id p1 = given_due(two_steps);
  (void)one();
  const Id late = member("late");
  tell(member_added(late));
  const Job first = one();
  EXPECT_EQ(first.function(), "Do-s1");
  EXPECT_EQ(first.parameter("Upn"), "late");
  expect_steps(p1, late, "dispatched,pending");
  succeed(first);
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-s2");
  succeed(second);
  expect_steps(p1, late, "succeeded,succeeded");
}

// Catch-up protocol 2 and 3: in the order of the phases, not all at once.
TEST_P(MemberAdded, CatchesUpStepByStepAndPhaseByPhase) {
  const Job running = half_way();
  const Id late = member("late");
  tell(member_added(late));
  for (const std::string function : {"Do-s1", "Do-s2", "Do-s3"}) {
    const Job job = one();
    EXPECT_EQ(job.function(), function);
    EXPECT_EQ(job.parameter("Upn"), "late");
    quiet();
    succeed(job);
  }
  expect_steps(p1_, late, "succeeded,succeeded");
  expect_steps(p2_, late, "succeeded");
  succeed(running);
  expect_phase(p2_, "completed");
}

TEST_P(MemberAdded, DoesNotReopenACompletedPhase) {
  half_way();
  const std::string query =
      "SELECT status, completed_at FROM phase_executions WHERE id=" + std::to_string(p1_);
  const std::string before = text(query);
  tell(member_added(member("late")));
  const Job job = one();
  EXPECT_EQ(text(query), before);
  fail(job);
  expect_member(members_[1], "failed");
  expect_steps(p1_, members_[1], "failed,cancelled");
  EXPECT_EQ(text(query), before);
}

// 000 §3.5, catch-up protocol 4
TEST_P(MemberAdded, LeavesPendingPhasesToTheScheduler) {
  const Job running = half_way();
  const Id late = member("late");
  tell(member_added(late));
  work(3);
  quiet();
  expect_steps(p3_, late, "");
  succeed(running);
  expect_phase(p3_, "pending");
  tell(phase_due(p3_));
  EXPECT_EQ(by_member(take(2)).count("late"), 1u);
}

// Catch-up protocol 2: only what is dispatched or completed.
TEST_P(MemberAdded, DoesNotCatchUpOnSkippedFailedOrSupersededPhases) {
  given(phases({phase_of("p1", {doing("s1")}), phase_of("p2", {doing("s2")}), phase_of("p3", {doing("s3")}),
                phase_of("p4", {doing("s4")})}));
  phase("p1", "skipped");
  phase("p2", "failed");
  phase("p3", "superseded");
  phase("p4", "pending");
  changes_nothing([&] { tell(member_added(members_[0])); });
}

TEST_P(MemberAdded, TwiceChangesNothing) {
  half_way();
  const Id late = member("late");
  tell(member_added(late));
  const Job first = one();
  changes_nothing([&] { tell(member_added(late)); });
  succeed(first);
  const Job second = one();
  changes_nothing([&] { tell(member_added(late)); });
  succeed(second);
  work(1);
  expect_steps(p2_, late, "succeeded");
  changes_nothing([&] { tell(member_added(late)); });
}

// Specification: a batch is held open by a catch-up.
TEST_P(MemberAdded, HoldsTheBatchOpenUntilItHasCaughtUp) {
  const Job running = half_way();
  sql().exec("UPDATE phase_executions SET status='skipped' WHERE id=" + std::to_string(p3_));
  const Id late = member("late");
  tell(member_added(late));
  const Job first = one();
  succeed(running);
  quiet();
  expect_batch("active");
  succeed(first);
  work(2);
  expect_steps(p2_, late, "succeeded");
  expect_phase(p2_, "completed");
  expect_batch("completed");
}

// The same when all phases are over and only the late member still works, in one that was completed long ago.
TEST_P(MemberAdded, HoldsTheBatchOpenAlsoWhenItWorksInACompletedPhase) {
  given(phases({phase_of("p1", {doing("s1")}, "T-1h"), phase_of("p2", {doing("s2")})}));
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  work(1);
  expect_phase(p1, "completed");
  const Id late = member("late");
  tell(member_added(late));
  const Job behind = one();
  tell(phase_due(p2, {members_[0]}));
  work(1);
  expect_phase(p2, "completed");
  quiet();
  expect_batch("active");
  succeed(behind);
  expect_steps(p1, late, "succeeded");
  for (const Job& job : poll(200))
    succeed(job);  // whether it goes on with p2, which did not name it, is open
  expect_batch("completed");
}

TEST_P(MemberAdded, CatchesUpInLockstepToo) {
  const Job running = half_way(lockstep);
  const Id late = member("late");
  tell(member_added(late));
  work(2);
  expect_steps(p1_, late, "succeeded,succeeded");
  succeed(running);
  work(1);
  expect_steps(p2_, late, "succeeded");
  expect_phase(p2_, "completed");
}

// The dispatched phase knows the late member already: what exists is used.
TEST_P(MemberAdded, UsesTheRowsThatTheSchedulerMade) {
  half_way();
  const Id late = member("late");
  const Id mine = step(p1_, late, 0, "s1", {{"params_json", R"({"Upn":"mine"})"}});
  tell(member_added(late));
  const Job job = one();
  EXPECT_EQ(job.id(), "step-" + std::to_string(mine));
  EXPECT_EQ(job.parameter("Upn"), "mine");
  succeed(job);
  EXPECT_EQ(one().function(), "Do-s2");
  expect_steps(p1_, late, "succeeded,dispatched");
}

// 000 §4.1, 002 MemberRemovedHandler 1
TEST_P(MemberRemoved, CancelsWhatIsPendingDispatchedAndPolling) {
  given(phases({phase_of("p1", {doing("s1"), doing("s2")}),
                phase_of("p2", {doing("s3", "poll: {interval: 5m, timeout: 8h}"), doing("s4")})}),
        2);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  auto jobs = by_member(take(2));
  tell(phase_due(p2));
  auto polling = by_member(take(2));
  still_polling(polling["m1"]);
  expect_steps(p2, members_[0], "polling,pending");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_steps(p1, members_[0], "cancelled,cancelled");
  expect_steps(p2, members_[0], "cancelled,cancelled");
  expect_steps(p1, members_[1], "dispatched,pending");
  expect_member(members_[0], "removed");
  quiet();
}

TEST_P(MemberRemoved, KeepsWhatSucceeded) {
  given(two_steps, 2);
  const Id p1 = phase("p1");
  tell(phase_due(p1, {members_[0]}));
  succeed(one());
  (void)one();
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_steps(p1, members_[0], "succeeded,cancelled");
}

// A job that no worker has taken yet is not handed out any more.
TEST_P(MemberRemoved, TakesBackJobsThatNobodyHasTaken) {
  const Id p1 = given_due(two_steps);
  expect_steps(p1, members_[0], "dispatched,pending");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_steps(p1, members_[0], "cancelled,cancelled");
  quiet();
}

// 003: result for an already cancelled step.
TEST_P(MemberRemoved, ResultOfACancelledStepIsIgnored) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_steps(p1, members_[0], "cancelled,cancelled");
  changes_nothing([&] {
    EXPECT_TRUE(is_ignored(report(result_of(job, "Success", json::object{}))));
    EXPECT_TRUE(is_ignored(report(result_of(job, "Failure", nullptr, "late"))));
  });
}

// 000 §4.2, 4.3; specification: in order, tracked.
TEST_P(MemberRemoved, RunsTheRemovalStepsInOrderAndTracksThem) {
  given_due(two_steps + section("on_member_removed", {doing("r1"), doing("r2")}), 2);
  (void)take(2);
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  const Job first = one();
  const Id cleanup = first.correlated("cleanupExecutionId");
  EXPECT_EQ(first.id(), "removal-" + std::to_string(cleanup));
  EXPECT_EQ(first.function(), "Do-r1");
  EXPECT_EQ(first.parameter("Upn"), "m1");
  EXPECT_EQ(first.correlated("stepExecutionId"), 0);
  EXPECT_EQ(
      text("SELECT kind, batch_member_id, runbook_version, step_name, step_index, worker_id, status, job_id "
           "FROM cleanup_executions WHERE id=" +
           std::to_string(cleanup)),
      "removal " + std::to_string(members_[0]) + " 1 r1 0 " + pool_ + " dispatched " + first.id());
  quiet();
  succeed(first, json::object{{"gone", true}});
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-r2");
  succeed(second);
  eventually(cleanups("step_name, status, " + is_set("completed_at")), "r1 succeeded set,r2 succeeded set");
  EXPECT_EQ(parsed(text("SELECT result_json FROM cleanup_executions WHERE id=" + std::to_string(cleanup))),
            (json::object{{"gone", true}}));
}

TEST_P(MemberRemoved, TwiceChangesNothing) {
  given_due(two_steps + section("on_member_removed", {doing("r1")}), 2);
  (void)take(2);
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  const Job job = one();
  changes_nothing([&] { tell(member_removed(members_[0])); });
  succeed(job);
  expect_cleanup("succeeded");
  changes_nothing([&] { tell(member_removed(members_[0])); });
}

// Specification: a failing cleanup step is recorded and the sequence goes on.
TEST_P(MemberRemoved, AFailingRemovalStepDoesNotStopTheOthers) {
  given_due(two_steps + section("on_member_removed", {doing("r1"), doing("r2")}), 2);
  (void)take(2);
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  fail(one(), "still busy");
  succeed(one());
  eventually(cleanups("status"), "failed,succeeded");
  EXPECT_NE(text(cleanups("error_message")).find("still busy"), std::string::npos);
  expect_member(members_[0], "removed");
}

TEST_P(MemberRemoved, ARemovalStepIsRetriedLikeAnyOther) {
  given_due(two_steps + section("on_member_removed", {doing("r1", "retry: {max_retries: 1, interval: 1s}")}),
            2);
  (void)take(2);
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  const Job first = one();
  fail(first);
  const Job again = one();
  EXPECT_EQ(again.id(), first.id() + "-retry-1");
  succeed(again);
  expect_cleanup("succeeded");
}

// Specification: a batch is held open by a removal; a phase only by its own steps and their rollbacks.
TEST_P(MemberRemoved, HoldsTheBatchOpenUntilTheRemovalIsDone) {
  const Id p1 = given_due(two_steps + section("on_member_removed", {doing("r1")}), 2);
  auto jobs = by_member(take(2));
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  const Job removal = one();
  succeed(jobs["m2"]);
  work(1);
  expect_phase(p1, "completed");
  quiet();
  expect_batch("active");
  succeed(removal);
  expect_batch("completed");
}

TEST_P(MemberRemoved, CompletesAPhaseThatWaitedForNobodyElse) {
  const Id p1 = given_due(two_steps, 2);
  auto jobs = by_member(take(2));
  succeed(jobs["m2"]);
  work(1);
  expect_phase(p1, "dispatched");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_phase(p1, "completed");
  expect_batch("completed");
}

TEST_P(MemberRemoved, FailsAPhaseInWhichNobodySucceeded) {
  const Id p1 = given_due(two_steps);
  (void)one();
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  expect_phase(p1, "failed");
  expect_batch("failed");
}

// The one that failed may leave as well, and what it left behind is cleared away.
TEST_P(MemberRemoved, RunsTheRemovalStepsForAFailedMemberToo) {
  const Id p1 = given_due(two_steps + section("on_member_removed", {doing("r1")}), 2);
  fail(by_member(take(2))["m1"]);
  expect_member(members_[0], "failed");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  const Job removal = one();
  EXPECT_EQ(removal.function(), "Do-r1");
  EXPECT_EQ(removal.parameter("Upn"), "m1");
  succeed(removal);
  expect_cleanup("succeeded");
  expect_steps(p1, members_[0], "failed,cancelled");
}

std::string retry_of(const Job& removal) {
  return "/cleanups/" + removal.id().substr(std::string_view("removal-").size()) + "/retry";
}

// Specification: also after the batch has ended, whose status does not change.
TEST_P(MemberRemoved, AfterTheEndRunsTheRemovalStepsAllTheSame) {
  const Id p1 = given_due(
      phases({phase_of("p1", {doing("s1")})}) +
          section("on_member_removed", {doing("r1", "retry: {max_retries: 1, interval: 1s}"), doing("r2")}),
      2);
  work(2);
  expect_batch("completed");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  fail(one());
  succeed(one());
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-r2");
  EXPECT_EQ(second.parameter("Upn"), "m1");
  changes_nothing([&] { tell(member_removed(members_[0])); });
  fail(second);
  expect_cleanup("succeeded,failed");
  ASSERT_EQ(e2e::ask(client(), "POST", retry_of(second), "{}").status, 200);
  const Job again = one();
  expect_batch("completed");
  fail(again);
  expect_cleanup("succeeded,failed");
  std::string skip = retry_of(second);
  skip.replace(skip.rfind("retry"), 5, "skip");
  ASSERT_EQ(e2e::ask(client(), "POST", skip, "{}").status, 200);
  quiet();
  expect_cleanup("succeeded,succeeded");
  expect_batch("completed");
  expect_phase(p1, "completed");
}

TEST_P(MemberRemoved, AfterACancelRunsTheRemovalStepsAllTheSame) {
  given_due(two_steps + section("on_member_removed", {doing("r1")}), 2);
  (void)take(2);
  set_removed(members_[1]);
  tell(member_removed(members_[1]));
  const Job before = one();
  const std::string batch = "/batches/" + std::to_string(batch_);
  ASSERT_EQ(e2e::ask(client(), "POST", batch + "/cancel", "{}").status, 200);
  set_removed(members_[0]);
  tell(member_removed(members_[0]));  // the cancel may still go over the members
  const Job removal = one();
  EXPECT_EQ(removal.parameter("Upn"), "m1");
  EXPECT_TRUE(is_ignored(report(result_of(before, "Success", json::object{}))));
  fail(removal);
  expect_cleanup("cancelled,failed");
  ASSERT_EQ(e2e::ask(client(), "POST", retry_of(removal), "{}").status, 200);  // it can be mended all the same
  succeed(one());
  expect_cleanup("cancelled,succeeded");
  expect_batch("cancelled");
}

// A member without any step leaves as well: it may have been there before the batch.
TEST_P(MemberRemoved, RunsTheRemovalStepsBeforeAnyPhaseToo) {
  given(two_steps + section("on_member_removed", {doing("r1")}), 2);
  phase("p1");
  set_removed(members_[0]);
  tell(member_removed(members_[0]));
  succeed(one());
  expect_cleanup("succeeded");
  expect_batch("active");
}

}  // namespace
}  // namespace baton::runbook_contract
