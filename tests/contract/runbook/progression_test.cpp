// How members go through the steps of a phase, and how phases and batches end, in both progressions (000 §2.2
// and 2.4 to 2.6, 002 execution model, 003 per-member progression; the specification's table says which
// holds).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

const std::string two_phases =
    phases({phase_of("p1", {doing("s1"), doing("s2")}, "T-1h"), phase_of("p2", {doing("s3")})});

class PerMember : public Contract {};
class Lockstep : public Contract {};
ON_EACH_STORE(PerMember);
ON_EACH_STORE(Lockstep);

// 003 CheckMemberProgressionAsync
TEST_P(PerMember, EachGoesOnAtItsOwnPace) {
  const Id p1 = given_due(two_steps, 2);
  auto jobs = by_member(take(2));
  succeed(jobs["m1"]);
  const Job next = one();
  EXPECT_EQ(next.function(), "Do-s2");
  EXPECT_EQ(next.parameter("Upn"), "m1");
  succeed(next);
  expect_steps(p1, members_[0], "succeeded,succeeded");
  expect_steps(p1, members_[1], "dispatched,pending");
  expect_phase(p1, "dispatched");
}

// 000 §2.4, 2.6
TEST_P(PerMember, PhaseAndBatchCompleteWhenAllSucceeded) {
  const Id p1 = given_due(two_steps, 2);
  work(4);
  eventually(
      "SELECT status, " + is_set("completed_at") + " FROM phase_executions WHERE id=" + std::to_string(p1),
      "completed set");
  expect_batch("completed");
  expect_member(members_[0], "active");
}

TEST_P(PerMember, BatchStaysActiveWhileAPhaseIsPending) {
  given(two_phases);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  work(2);
  expect_phase(p1, "completed");
  quiet();
  expect_batch("active");
  tell(phase_due(p2));
  work(1);
  expect_phase(p2, "completed");
  expect_batch("completed");
}

// 003 member isolation, HandleMemberFailureAsync
TEST_P(PerMember, AFailedMemberIsIsolatedAndTheOthersGoOn) {
  given(two_phases, 2);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  for (const Id member : members_) step(p2, member, 0, "s3");  // the scheduler was early
  tell(phase_due(p1));
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  expect_member(members_[0], "failed");
  EXPECT_EQ(
      text("SELECT " + is_set("failed_at") + " FROM batch_members WHERE id=" + std::to_string(members_[0])),
      "set");
  expect_steps(p1, members_[0], "failed,cancelled");
  expect_steps(p2, members_[0], "cancelled");
  succeed(jobs["m2"]);
  work(1);
  expect_phase(p1, "completed");
  tell(phase_due(p2));
  succeed(one());
  quiet();
  expect_steps(p2, members_[1], "succeeded");
  expect_batch("completed");
  expect_member(members_[1], "active");
}

// 003: what has succeeded is not cancelled.
TEST_P(PerMember, AFailedMemberKeepsWhatItHasDone) {
  const Id p1 = given_due(two_steps);
  succeed(one());
  fail(one());
  expect_steps(p1, members_[0], "succeeded,failed");
  expect_member(members_[0], "failed");
}

// 003: jobs of the failed member that are out in other phases are cancelled too.
TEST_P(PerMember, AFailedMemberIsStoppedInAllPhases) {
  given(two_phases, 2);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  tell(phase_due(p2, {members_[0]}));
  Job failing;
  Job other;
  for (const Job& job : take(3)) {
    if (job.parameter("Upn") == "m2") continue;
    (job.function() == "Do-s1" ? failing : other) = job;
  }
  fail(failing);
  expect_steps(p2, members_[0], "cancelled");
  EXPECT_TRUE(is_ignored(report(result_of(other, "Success", json::object{}))));
  expect_steps(p2, members_[0], "cancelled");
  expect_phase(p2, "failed");  // no member of it succeeded
  expect_steps(p1, members_[1], "dispatched,pending");
}

// 003 CheckPhaseCompletionAsync
TEST_P(PerMember, PhaseCompletesIfOneMemberSucceeded) {
  const Id p1 = given_due(two_steps, 3);
  auto jobs = by_member(take(3));
  fail(jobs["m1"]);
  fail(jobs["m2"]);
  expect_phase(p1, "dispatched");
  succeed(jobs["m3"]);
  work(1);
  expect_phase(p1, "completed");
  expect_batch("completed");
}

TEST_P(PerMember, PhaseAndBatchFailIfNobodySucceeded) {
  const Id p1 = given_due(two_steps, 2);
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  succeed(jobs["m2"]);
  fail(one());
  eventually(
      "SELECT status, " + is_set("completed_at") + " FROM phase_executions WHERE id=" + std::to_string(p1),
      "failed set");
  expect_batch("failed");
}

// 003 CheckBatchCompletionAsync
TEST_P(PerMember, BatchCompletesIfOnePhaseCompleted) {
  given(two_phases);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  work(2);
  tell(phase_due(p2));
  fail(one());
  expect_phase(p2, "failed");
  expect_batch("completed");
}

TEST_P(PerMember, SkippedAndSupersededPhasesDoNotHoldTheBatch) {
  given(two_phases + phase_of("p3", {doing("s4")}));
  const Id p1 = phase("p1");
  phase("p2", "skipped");
  phase("p3", "superseded");
  tell(phase_due(p1));
  work(2);
  expect_batch("completed");
}

// When nobody is left, a later phase has nothing to do, and must not hold the batch for ever.
TEST_P(PerMember, APhaseWithoutMembersLeftFails) {
  given(two_phases);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  fail(one());
  expect_phase(p1, "failed");
  tell(phase_due(p2));
  expect_phase(p2, "failed");
  expect_batch("failed");
}

// 000 §2.2: step 0 for all members, then step 1.
TEST_P(Lockstep, GoesIndexByIndex) {
  const Id p1 = given_due(lockstep + two_steps, 3);
  auto jobs = by_member(take(3));
  succeed(jobs["m1"]);
  succeed(jobs["m2"]);
  quiet();
  expect_steps(p1, members_[0], "succeeded,pending");
  succeed(jobs["m3"]);
  for (const Job& job : take(3)) {
    EXPECT_EQ(job.function(), "Do-s2");
    succeed(job);
  }
  expect_phase(p1, "completed");
  expect_batch("completed");
}

// 000 §2.5, 002 PhaseDueHandler 2: "if any failed: stop".
TEST_P(Lockstep, TheFirstFailingIndexStopsThePhaseAndMembersStayActive) {
  const Id p1 = given_due(lockstep + two_steps, 2);
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  expect_steps(p1, members_[0], "failed,pending");  // the index is not over: somebody may retry it
  succeed(jobs["m2"]);
  expect_steps(p1, members_[0], "failed,cancelled");
  expect_steps(p1, members_[1], "succeeded,cancelled");
  expect_phase(p1, "failed");
  quiet();
  expect_member(members_[0], "active");
  expect_member(members_[1], "active");
}

TEST_P(Lockstep, AFailedPhaseDoesNotKeepLaterOnesFromFiring) {
  given(lockstep + two_phases, 2);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  succeed(jobs["m2"]);
  expect_phase(p1, "failed");
  expect_batch("active");
  tell(phase_due(p2));
  work(2);
  expect_phase(p2, "completed");
  expect_batch("failed");  // completed only if all phases completed
}

TEST_P(Lockstep, BatchCompletesWhenAllPhasesCompleted) {
  given(lockstep + two_phases, 2);
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  tell(phase_due(p1));
  work(4);
  tell(phase_due(p2));
  work(2);
  expect_phase(p1, "completed");
  expect_phase(p2, "completed");
  expect_batch("completed");
}

TEST_P(Lockstep, ARetryHoldsTheIndexAndIsNoFailure) {
  const Id p1 = given_due(lockstep + "retry: {max_retries: 1, interval: 1s}\n" + two_steps, 2);
  auto jobs = by_member(take(2));
  fail(jobs["m1"]);
  succeed(jobs["m2"]);
  expect_steps(p1, members_[0], "pending,pending");
  const Job again = one();
  EXPECT_EQ(again.id(), jobs["m1"].id() + "-retry-1");
  succeed(again);
  work(2);
  expect_phase(p1, "completed");
}

TEST_P(Lockstep, APollHoldsTheIndex) {
  const Id p1 = given_due(
      lockstep + phases({phase_of("p1", {doing("s1", "poll: {interval: 5m, timeout: 8h}"), doing("s2")})}), 2);
  auto jobs = by_member(take(2));
  still_polling(jobs["m1"]);
  succeed(jobs["m2"], json::object{{"complete", true}});
  expect_steps(p1, members_[0], "polling,pending");
  quiet();
  tell(poll_check(jobs["m1"].correlated("stepExecutionId"), "s1", 1));
  succeed(one(), json::object{{"complete", true}});
  work(2);
  expect_phase(p1, "completed");
}

TEST_P(Lockstep, TwiceDueChangesNothing) {
  const Id p1 = given_due(lockstep + two_steps, 2);
  auto jobs = by_member(take(2));
  succeed(jobs["m1"]);
  changes_nothing([&] { tell(phase_due(p1)); });
  succeed(jobs["m2"]);
  work(2);
  expect_phase(p1, "completed");
}

// Somebody who left is no failure of those who stay.
TEST_P(Lockstep, AMemberThatLeavesDoesNotHoldTheIndex) {
  const Id p1 = given_due(lockstep + two_steps, 2);
  auto jobs = by_member(take(2));
  succeed(jobs["m1"]);
  set_removed(members_[1]);
  tell(member_removed(members_[1]));
  const Job next = one();
  EXPECT_EQ(next.function(), "Do-s2");
  EXPECT_EQ(next.parameter("Upn"), "m1");
  succeed(next);
  expect_steps(p1, members_[1], "cancelled,cancelled");
  expect_phase(p1, "completed");
  expect_batch("completed");
}

}  // namespace
}  // namespace baton::runbook_contract
