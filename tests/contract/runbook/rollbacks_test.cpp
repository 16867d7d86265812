// What is undone after a final failure (000 rollback protocol, 002 rollback sequences; the specification
// makes it tracked and in order, where 003 said fire and forget).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class Rollback : public Contract {
 protected:
  // Member m1 failed at its first step; the others wait with theirs.
  void given_failure(const std::string& yaml, int members = 1) {
    given(yaml, members);
    p1_ = phase("p1");
    tell(phase_due(p1_));
    jobs_ = by_member(take(static_cast<std::size_t>(members)));
    fail(jobs_["m1"]);
    failed_ = jobs_["m1"].correlated("stepExecutionId");
  }
  std::string cleanups(const std::string& columns) {
    return "SELECT " + columns + " FROM cleanup_executions WHERE batch_id=" + std::to_string(batch_) +
           " ORDER BY id";
  }
  Id p1_ = 0;
  Id failed_ = 0;
  std::map<std::string, Job> jobs_;
};
ON_EACH_STORE(Rollback);

const std::string undoing = phases({phase_of("p1", {doing("s1", "on_failure: undo"), doing("s2")})});

// 000 rollback protocol 3e and 3f
TEST_P(Rollback, RunsInOrderAndIsTracked) {
  given_failure(undoing + rollback("undo", {doing("undo1"), doing("undo2")}));
  const Job first = one();
  const Id cleanup = first.correlated("cleanupExecutionId");
  EXPECT_EQ(first.function(), "Do-undo1");
  EXPECT_EQ(first.id(), "rollback-" + std::to_string(cleanup));
  EXPECT_EQ(first.correlated("stepExecutionId"), 0);
  EXPECT_EQ(first.body.at("batchId").to_number<Id>(), batch_);
  EXPECT_EQ(first.body.at("correlationData").at("isInitStep"), json::value(false));
  EXPECT_EQ(first.body.at("correlationData").at("runbookName"), json::value(name_));
  EXPECT_EQ(
      text(
          "SELECT kind, sequence, caused_by_step_id, caused_by_init_id, batch_member_id, phase_execution_id, "
          "runbook_version, step_name, step_index, worker_id, function_name, status, job_id, " +
          is_set("dispatched_at") + " FROM cleanup_executions WHERE id=" + std::to_string(cleanup)),
      "rollback undo " + std::to_string(failed_) + " null " + std::to_string(members_[0]) + " " +
          std::to_string(p1_) + " 1 undo1 0 " + pool_ + " Do-undo1 dispatched " + first.id() + " set");
  quiet();
  expect_step(failed_, "failed");
  succeed(first, json::object{{"undone", 1}});
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-undo2");
  expect_step(failed_, "failed");
  succeed(second);
  expect_step(failed_, "rolled_back");
  eventually(cleanups("step_name, status, " + is_set("completed_at")),
             "undo1 succeeded set,undo2 succeeded set");
  EXPECT_EQ(parsed(text("SELECT result_json FROM cleanup_executions WHERE id=" + std::to_string(cleanup))),
            (json::object{{"undone", 1}}));
}

// 000 rollback protocol 3c and 3d
TEST_P(Rollback, ResolvesTheDataOfTheMemberAndOfTheBatch) {
  given_due(
      phases({phase_of("p1", {doing("s0", "output_params: {TargetId: id}"), doing("s1", "on_failure: undo")})}) +
      "rollbacks:\n  undo:\n    - name: undo1\n      worker_id: POOL\n      function: \"Undo-{{Upn}}\"\n"
      "      params: {Upn: \"{{Upn}}\", Id: \"{{TargetId}}\", Batch: \"b{{_batch_id}}\", At: "
      "\"{{_batch_start_time}}\"}\n");
  succeed(one(), json::object{{"id", "x-9"}});
  fail(one());
  const Job undo = one();
  EXPECT_EQ(undo.function(), "Undo-m1");
  EXPECT_EQ(undo.parameter("Upn"), "m1");
  EXPECT_EQ(undo.parameter("Id"), "x-9");
  EXPECT_EQ(undo.parameter("Batch"), "b" + std::to_string(batch_));
  EXPECT_TRUE(undo.parameter("At").starts_with("2025-03-15T00:00:00")) << undo.parameter("At");
}

// 002 error handling 4: log and continue.
TEST_P(Rollback, AFailingStepIsRecordedAndTheSequenceGoesOn) {
  given_failure(undoing + rollback("undo", {doing("undo1"), doing("undo2")}));
  fail(one(), "cannot undo");
  succeed(one());
  expect_step(failed_, "rolled_back");
  eventually(cleanups("status"), "failed,succeeded");
  EXPECT_NE(text(cleanups("error_message")).find("cannot undo"), std::string::npos);
}

TEST_P(Rollback, WhoseLastStepFailsIsOverToo) {
  given_failure(undoing + rollback("undo", {doing("undo1")}));
  fail(one());
  expect_step(failed_, "rolled_back");
  expect_phase(p1_, "failed");
  expect_batch("failed");
}

TEST_P(Rollback, AnUnresolvedVariableFailsOnlyThatStepOfIt) {
  given_failure(undoing +
                rollback("undo", {"{name: undo1, worker_id: POOL, function: F, params: {X: \"{{Missing}}\"}}",
                                  doing("undo2")}));
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-undo2");
  succeed(second);
  expect_step(failed_, "rolled_back");
  eventually(cleanups("status"), "failed,succeeded");
  EXPECT_NE(text(cleanups("error_message")).find("Missing"), std::string::npos);
}

// Specification: retry as for any step.
TEST_P(Rollback, ItsStepsAreRetriedLikeAnyOther) {
  given_failure(undoing + rollback("undo", {doing("undo1", "retry: {max_retries: 1, interval: 1s}")}));
  const Job first = one();
  fail(first);
  const Job again = one();
  EXPECT_EQ(again.id(), first.id() + "-retry-1");
  EXPECT_EQ(again.parameters(), first.parameters());
  expect_step(failed_, "failed");
  succeed(again);
  expect_step(failed_, "rolled_back");
  expect_cleanup("succeeded");
}

// 000 rollback protocol 4
TEST_P(Rollback, IsNotDoneWithoutOnFailure) {
  given_failure(phases({phase_of("p1", {doing("s1"), doing("s2")})}) + rollback("undo", {doing("undo1")}));
  expect_steps(p1_, members_[0], "failed,cancelled");
  expect_phase(p1_, "failed");
  quiet();
  expect_cleanup("");
}

// The YAML may come from elsewhere: a sequence that does not exist must not leave the batch hanging.
TEST_P(Rollback, OfASequenceThatDoesNotExistLeavesTheStepFailed) {
  given_failure(phases({phase_of("p1", {doing("s1", "on_failure: nowhere")})}));
  expect_step(failed_, "failed");
  expect_phase(p1_, "failed");
  expect_batch("failed");
}

// 000 rollback protocol 2: a row of the scheduler has no on_failure of its own, the YAML says it.
TEST_P(Rollback, IsFoundByTheNameOfTheStepForRowsOfTheScheduler) {
  given(undoing + rollback("undo", {doing("undo1")}));
  p1_ = phase("p1", "dispatched");
  failed_ = step(p1_, members_[0], 0, "s1");
  step(p1_, members_[0], 1, "s2");
  tell(phase_due(p1_));
  fail(one());
  const Job undo = one();
  EXPECT_EQ(undo.parameter("Upn"), "m1");
  succeed(undo);
  expect_steps(p1_, members_[0], "rolled_back,cancelled");
}

// Specification: a phase is held open by a rollback of one of its steps, and with it the batch.
TEST_P(Rollback, HoldsThePhaseOpen) {
  given_failure(undoing + rollback("undo", {doing("undo1"), doing("undo2")}), 2);
  const Job undo = one();
  succeed(jobs_["m2"]);
  succeed(one());
  expect_steps(p1_, members_[1], "succeeded,succeeded");
  quiet();
  expect_phase(p1_, "dispatched");
  expect_batch("active");
  succeed(undo);
  const Job last = one();
  expect_phase(p1_, "dispatched");
  succeed(last);
  expect_phase(p1_, "completed");
  expect_batch("completed");
  expect_member(members_[0], "failed");
}

TEST_P(Rollback, HoldsThePhaseOpenInLockstepToo) {
  given_failure(lockstep + undoing + rollback("undo", {doing("undo1")}), 2);
  const Job undo = one();
  succeed(jobs_["m2"]);
  expect_steps(p1_, members_[1], "succeeded,cancelled");
  quiet();
  expect_phase(p1_, "dispatched");
  succeed(undo);
  expect_phase(p1_, "failed");
  expect_steps(p1_, members_[0], "rolled_back,cancelled");
  expect_member(members_[0], "active");
}

TEST_P(Rollback, StopsTheMemberWhileItRuns) {
  given_failure(undoing + rollback("undo", {doing("undo1")}));
  const Job undo = one();
  changes_nothing([&] { tell(phase_due(p1_)); });
  succeed(undo);
  expect_member(members_[0], "failed");
  expect_steps(p1_, members_[0], "rolled_back,cancelled");
}

TEST_P(Rollback, IsStartedOnceForADuplicatedFailure) {
  given_failure(undoing + rollback("undo", {doing("undo1")}));
  const Job undo = one();
  changes_nothing([&] {
    const Answer answer =
        report(result_of(jobs_["m1"], "Failure", nullptr, json::object{{"message", "boom"}}));
    EXPECT_EQ(answer.status, 200);
  });
  succeed(undo);
  expect_step(failed_, "rolled_back");
  changes_nothing([&] {
    EXPECT_TRUE(is_ignored(report(result_of(jobs_["m1"], "Success", json::object{}))));
    EXPECT_TRUE(is_ignored(report(result_of(undo, "Failure", nullptr, "late"))));
  });
}

// Several members fail, each has its own.
TEST_P(Rollback, IsDoneForEachMemberOnItsOwn) {
  given_failure(undoing + rollback("undo", {doing("undo1")}), 2);
  fail(jobs_["m2"]);
  auto undos = by_member(take(2));
  succeed(undos["m2"]);
  expect_steps(p1_, members_[1], "rolled_back,cancelled");
  expect_steps(p1_, members_[0], "failed,cancelled");
  succeed(undos["m1"]);
  expect_steps(p1_, members_[0], "rolled_back,cancelled");
  expect_phase(p1_, "failed");
}

}  // namespace
}  // namespace baton::runbook_contract
