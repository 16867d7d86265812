// phase-due: which steps exist, and what a worker gets (000 §2, 002 PhaseDueHandler). How they go on and how
// phases end is in progression_test.cpp.
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class PhaseDue : public Contract {
 protected:
  std::string rows(Id phase, const std::string& columns) {
    return "SELECT " + columns + " FROM step_executions WHERE phase_execution_id=" + std::to_string(phase) +
           " ORDER BY batch_member_id, step_index";
  }
};
ON_EACH_STORE(PhaseDue);

// 000 §2.1, 2.3a: worker_id, function_name and params_json are the row's, whatever the runbook says now.
TEST_P(PhaseDue, SendsTheRowsOfTheSchedulerAsTheyAre) {
  given(two_steps);
  const Id p1 = phase("p1", "dispatched");
  const Id first =
      step(p1, members_[0], 0, "s1",
           {{"function_name", "Other"}, {"params_json", R"({"a":[1,{"b":"{{Upn}}"}],"n":null})"}});
  step(p1, members_[0], 1, "s2");
  tell(phase_due(p1));
  const Job job = one();
  EXPECT_EQ(job.id(), "step-" + std::to_string(first));
  EXPECT_EQ(job.function(), "Other");
  EXPECT_EQ(job.body.at("parameters"), parsed(R"({"a":[1,{"b":"{{Upn}}"}],"n":null})"));
  succeed(job);
  EXPECT_EQ(one().function(), "Do-s2");
  EXPECT_EQ(text("SELECT count(*) FROM step_executions WHERE phase_execution_id=" + std::to_string(p1)), "2");
}

// 000 §2.3b
TEST_P(PhaseDue, MarksTheStepDispatchedWithItsJob) {
  given(two_steps);
  const Id p1 = phase("p1");
  const Id first = step(p1, members_[0], 0, "s1");
  const Id second = step(p1, members_[0], 1, "s2");
  tell(phase_due(p1));
  eventually(rows(p1, "id, status, job_id, " + is_set("dispatched_at") + ", " + is_set("completed_at")),
             std::to_string(first) + " dispatched step-" + std::to_string(first) + " set unset," +
                 std::to_string(second) + " pending null unset unset");
}

// 000 §2.3c, 2.3d
TEST_P(PhaseDue, StoresTheResultOfASuccess) {
  const Id p1 = given_due(two_steps);
  const json::object result{{"Id", "x-1"}, {"nested", {{"list", {1, 2}}}}};
  succeed(one(), result);
  expect_steps(p1, members_[0], "succeeded,dispatched");
  const std::string first = std::to_string(step_id(p1, members_[0], 0));
  EXPECT_EQ(parsed(text("SELECT result_json FROM step_executions WHERE id=" + first)), result);
  EXPECT_EQ(text("SELECT " + is_set("completed_at") + ", " + is_set("error_message") +
                 " FROM step_executions WHERE id=" + first),
            "set unset");
}

// 000 §2.3f; the error is an object, a string or nothing.
TEST_P(PhaseDue, StoresTheErrorOfAFailureInAnyOfItsShapes) {
  const Id p1 = given_due(phases({phase_of("p1", {doing("s1")})}), 3);
  auto jobs = by_member(take(3));
  EXPECT_TRUE(
      is_accepted(report(result_of(jobs["m1"], "Failure", nullptr, json::object{{"message", "quota"}}))));
  EXPECT_TRUE(is_accepted(report(result_of(jobs["m2"], "Failure", nullptr, "throttled"))));
  EXPECT_TRUE(is_accepted(report(result_of(jobs["m3"], "Failure", nullptr, nullptr))));
  eventually(rows(p1, "status, " + is_set("completed_at")), "failed set,failed set,failed set");
  EXPECT_NE(text(rows(p1, "error_message")).find("quota"), std::string::npos);
  EXPECT_NE(text(rows(p1, "error_message")).find("throttled"), std::string::npos);
}

// Specification: on demand, exactly what is missing, with the columns of the runbook.
TEST_P(PhaseDue, CreatesTheStepsThatTheSchedulerDidNot) {
  const Id p1 = given_due(
      "retry: {max_retries: 2, interval: 1m}\n" +
          phases({phase_of("p1", {doing("s1"), doing("s2",
                                                     "poll: {interval: 30s, timeout: 2h}, "
                                                     "retry: {max_retries: 0}")})}),
      2);
  const auto jobs = by_member(take(2));
  EXPECT_EQ(jobs.at("m1").function(), "Do-s1");
  EXPECT_EQ(jobs.at("m2").function(), "Do-s1");
  const std::string of_one =
      "s1 0 " + pool_ + " Do-s1 dispatched 2 once 0 0,s2 1 " + pool_ + " Do-s2 pending 0 polls 30 7200";
  eventually(rows(p1,
                  "step_name, step_index, worker_id, function_name, status, max_retries, "
                  "CASE WHEN is_poll_step=1 THEN 'polls' ELSE 'once' END, coalesce(poll_interval_sec, 0), "
                  "coalesce(poll_timeout_sec, 0)"),
             of_one + "," + of_one);
  EXPECT_EQ(parsed(text("SELECT params_json FROM step_executions WHERE id=" +
                        std::to_string(step_id(p1, members_[1], 0)))),
            (json::object{{"Upn", "m2"}}));
}

TEST_P(PhaseDue, CreatesOnlyTheMissingSteps) {
  given(two_steps, 2);
  const Id p1 = phase("p1");
  const Id mine = step(p1, members_[0], 0, "s1", {{"params_json", R"({"Upn":"mine"})"}});
  tell(phase_due(p1));
  auto jobs = by_member(take(2));
  EXPECT_EQ(jobs["mine"].id(), "step-" + std::to_string(mine));
  EXPECT_EQ(jobs["m2"].function(), "Do-s1");
  succeed(jobs["mine"]);
  succeed(jobs["m2"]);
  work(2);
  eventually(rows(p1, "step_name, status"), "s1 succeeded,s2 succeeded,s1 succeeded,s2 succeeded");
}

// A row of the scheduler without parameters is resolved like one of ours.
TEST_P(PhaseDue, ResolvesARowThatCameWithoutParameters) {
  given(two_steps);
  const Id p1 = phase("p1", "dispatched");
  const Id first = step(p1, members_[0], 0, "s1", {{"params_json", nullptr}});
  tell(phase_due(p1));
  const Job job = one();
  EXPECT_EQ(job.id(), "step-" + std::to_string(first));
  EXPECT_EQ(job.parameter("Upn"), "m1");
}

// 000 §2.1: what the rows say is run; the runbook is read for what they do not say.
TEST_P(PhaseDue, RunsRowsThatTheRunbookDoesNotKnow) {
  given(phases({phase_of("p1", {doing("s1")})}));
  const Id p1 = phase("p1", "dispatched");
  step(p1, members_[0], 0, "s1");
  step(p1, members_[0], 1, "extra", {{"params_json", R"({"x":1})"}});
  tell(phase_due(p1));
  succeed(one());
  const Job extra = one();
  EXPECT_EQ(extra.function(), "Do-extra");
  EXPECT_EQ(extra.parameters(), R"({"x":1})");
  succeed(extra);
  expect_phase(p1, "completed");
}

// Columns that the seeds do not give a default for may come as NULL.
TEST_P(PhaseDue, TakesRowsWithNothingButWhatIsNeeded) {
  given(two_steps);
  const Id p1 = phase("p1", "dispatched");
  const Id bare = step(p1, members_[0], 0, "s1",
                       {{"poll_count", nullptr},
                        {"poll_interval_sec", nullptr},
                        {"poll_timeout_sec", nullptr},
                        {"max_retries", nullptr},
                        {"retry_interval_sec", nullptr},
                        {"retry_count", nullptr},
                        {"retry_after", nullptr}});
  step(p1, members_[0], 1, "s2");
  tell(phase_due(p1));
  const Job job = one();
  EXPECT_EQ(job.id(), "step-" + std::to_string(bare));
  fail(job);
  expect_steps(p1, members_[0], "failed,cancelled");
}

TEST_P(PhaseDue, ServesOnlyTheMembersThatItNames) {
  given(two_steps, 3);
  const Id p1 = phase("p1");
  tell(phase_due(p1, {members_[0], members_[2]}));
  const auto jobs = by_member(take(2));
  EXPECT_TRUE(jobs.contains("m1") && jobs.contains("m3"));
  quiet();
  expect_steps(p1, members_[1], "");
}

TEST_P(PhaseDue, LeavesOutMembersThatAreNotActive) {
  given(two_steps, 3);
  sql().exec("UPDATE batch_members SET status='failed' WHERE id=" + std::to_string(members_[1]));
  set_removed(members_[2]);
  const Id p1 = phase("p1");
  tell(phase_due(p1));
  EXPECT_EQ(one().parameter("Upn"), "m1");
  quiet();
  expect_steps(p1, members_[1], "");
  expect_steps(p1, members_[2], "");
}

// 003 phase transitions: pending → dispatched.
TEST_P(PhaseDue, DispatchesAPendingPhase) {
  given(two_steps);
  const Id p1 = phase("p1", "pending");
  tell(phase_due(p1));
  (void)one();
  eventually(
      "SELECT status, " + is_set("dispatched_at") + " FROM phase_executions WHERE id=" + std::to_string(p1),
      "dispatched set");
}

// 000: dispatched_at is "when the scheduler dispatched this phase", and it may have written that before.
TEST_P(PhaseDue, TakesAPhaseThatTheSchedulerHasMarkedDispatched) {
  given(two_steps);
  const Id p1 = phase("p1", "dispatched", {{"dispatched_at", "2025-03-15T00:00:01Z"}});
  tell(phase_due(p1));
  work(2);
  expect_phase(p1, "completed");
  EXPECT_NE(
      text("SELECT dispatched_at FROM phase_executions WHERE id=" + std::to_string(p1)).find("00:00:01"),
      std::string::npos);
}

TEST_P(PhaseDue, TwiceChangesNothing) {
  const Id p1 = given_due(two_steps, 2);
  auto jobs = by_member(take(2));
  changes_nothing([&] { tell(phase_due(p1)); });
  succeed(jobs["m1"]);
  const Job next = one();
  changes_nothing([&] { tell(phase_due(p1)); });
  succeed(next);
  succeed(jobs["m2"]);
  work(1);
  expect_phase(p1, "completed");
  changes_nothing([&] { tell(phase_due(p1)); });
}

// A message whose answer was lost comes again with more members: what is missing is added, what is there
// stays.
TEST_P(PhaseDue, AgainWithMoreMembersAddsThem) {
  given(two_steps, 2);
  const Id p1 = phase("p1");
  tell(phase_due(p1, {members_[0]}));
  EXPECT_EQ(one().parameter("Upn"), "m1");
  tell(phase_due(p1, members_));
  EXPECT_EQ(one().parameter("Upn"), "m2");
  expect_steps(p1, members_[0], "dispatched,pending");
}

// 003 PhaseDueHandler: mixed progress.
TEST_P(PhaseDue, GoesOnWhereEachMemberIs) {
  given(two_steps, 2);
  const Id p1 = phase("p1", "dispatched");
  step(p1, members_[0], 0, "s1", {{"status", "succeeded"}, {"completed_at", timestamp(-5s)}});
  const Id next = step(p1, members_[0], 1, "s2");
  const Id first = step(p1, members_[1], 0, "s1");
  step(p1, members_[1], 1, "s2");
  tell(phase_due(p1));
  std::map<std::string, int> ids;
  for (const Job& job : take(2)) ++ids[job.id()];
  EXPECT_EQ(ids.count("step-" + std::to_string(next)), 1u);
  EXPECT_EQ(ids.count("step-" + std::to_string(first)), 1u);
}

TEST_P(PhaseDue, LeavesAFinishedPhaseAsItIs) {
  given(phases({phase_of("completed", {doing("s1")}), phase_of("failed", {doing("s1")}),
                phase_of("skipped", {doing("s1")}), phase_of("superseded", {doing("s1")}),
                phase_of("later", {doing("s1")})}));
  phase("later");
  for (const std::string status : {"completed", "failed", "skipped", "superseded"}) {
    const Id done = phase(status, status);
    changes_nothing([&] { (void)send(phase_due(done)); });
    EXPECT_EQ(text("SELECT count(*) FROM step_executions WHERE phase_execution_id=" + std::to_string(done)),
              "0");
  }
}

TEST_P(PhaseDue, LeavesAFinishedBatchAsItIs) {
  runbook(two_steps);
  for (const std::string status : {"completed", "failed", "cancelled"}) {
    batch(runbook_, status);
    member("m1");
    const Id p1 = phase("p1");
    changes_nothing([&] { (void)send(phase_due(p1)); });
  }
}

// A batch of a runbook without init has nothing to wait for.
TEST_P(PhaseDue, DoesNotWaitWhereThereIsNoInit) {
  given(two_steps, 1, "detected");
  const Id p1 = phase("p1");
  tell(phase_due(p1));
  work(2);
  expect_phase(p1, "completed");
  expect_batch("completed");
}

// 000 §1: init runs "before allowing phase processing for this batch"; nobody sends the message again.
TEST_P(PhaseDue, WaitsForInitAndThenGoesOnByItself) {
  given(section("init", {preparing("i1"), preparing("i2")}) + two_steps, 2, "init_dispatched");
  tell(batch_init());
  const Job init = one();
  const Id p1 = phase("p1", "dispatched");
  tell(phase_due(p1));
  quiet();
  succeed(init);
  const Job second = one();
  EXPECT_EQ(second.function(), "Do-i2");
  succeed(second);
  const auto jobs = by_member(take(2));
  EXPECT_EQ(jobs.at("m1").function(), "Do-s1");
  expect_batch("active");
}

// Reordered on the way. Whether init begins with this message or with its own is open; it runs once, and
// first.
TEST_P(PhaseDue, ThatComesBeforeBatchInitWaitsToo) {
  given(section("init", {preparing("i1")}) + two_steps, 1, "detected");
  const Id p1 = phase("p1");
  tell(phase_due(p1));
  tell(batch_init());
  const Job init = one();
  EXPECT_EQ(init.function(), "Do-i1");
  quiet();
  succeed(init);
  EXPECT_EQ(one().function(), "Do-s1");
  expect_init("succeeded");
  expect_batch("active");
}

TEST_P(PhaseDue, NeverRunsWhenInitFailed) {
  given(section("init", {preparing("i1")}) + two_steps, 1, "init_dispatched");
  tell(batch_init());
  const Job init = one();
  const Id p1 = phase("p1", "dispatched");
  tell(phase_due(p1));
  fail(init);
  expect_batch("failed");
  quiet();
  EXPECT_EQ(text("SELECT count(*) FROM step_executions WHERE status<>'cancelled' AND status<>'pending' AND "
                 "phase_execution_id=" +
                 std::to_string(p1)),
            "0");
}

// 002: the job's fields; specification: correlationData.
TEST_P(PhaseDue, JobsHaveTheFieldsOfTheContract) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  const Id id = step_id(p1, members_[0], 0);
  EXPECT_EQ(job.id(), "step-" + std::to_string(id));
  EXPECT_EQ(job.body.at("batchId").to_number<Id>(), batch_);
  EXPECT_EQ(job.text("workerId"), pool_);
  EXPECT_EQ(job.function(), "Do-s1");
  EXPECT_EQ(job.parameters(), R"({"Upn":"m1"})");
  const json::object& correlation = job.body.at("correlationData").as_object();
  EXPECT_EQ(job.correlated("stepExecutionId"), id);
  EXPECT_EQ(job.correlated("initExecutionId"), 0);
  EXPECT_EQ(correlation.at("isInitStep"), json::value(false));
  EXPECT_EQ(correlation.at("runbookName"), json::value(name_));
  EXPECT_EQ(correlation.at("runbookVersion").to_number<Id>(), 1);
  EXPECT_FALSE(job.text("lease").empty());
  EXPECT_TRUE(job.body.contains("lease_until"));
}

// 000 §2.3a: worker_id says which pool.
TEST_P(PhaseDue, JobsGoToThePoolOfTheirStep) {
  const Id p1 = given_due(
      phases({phase_of("p1", {doing("s1"), "{name: s2, worker_id: POOL-b, function: F2, params: {}}"})}));
  succeed(one());
  const Job other = one(pool_ + "-b");
  EXPECT_EQ(other.function(), "F2");
  EXPECT_EQ(other.text("workerId"), pool_ + "-b");
  quiet();
  succeed(other);
  expect_phase(p1, "completed");
}

// The message names a version, and a batch in flight may be of an older one.
TEST_P(PhaseDue, ReadsTheRunbookOfTheVersionInTheMessage) {
  given(phases({phase_of("p1", {doing("old")})}));
  const Id old_batch = batch_;
  const Id p1 = phase("p1");
  runbook(phases({phase_of("p1", {doing("new")})}), 2);
  sql().exec("UPDATE runbooks SET is_active='0' WHERE version=1 AND name='" + name_ + "'");
  batch_ = old_batch;
  version_ = 1;
  tell(phase_due(p1));
  EXPECT_EQ(one().function(), "Do-old");
}

// What others read: UTC, near now, in a form that the database understands.
TEST_P(PhaseDue, WritesTimestampsThatSqlUnderstands) {
  const Id p1 = given_due(phases({phase_of("p1", {doing("s1")})}));
  work(1);
  expect_phase(p1, "completed");
  const std::string age =
      GetParam() == StoreType::sqlite
          ? "CASE WHEN abs(strftime('%s', 'now') - strftime('%s', C)) < 60 THEN 'near' END"
          : "CASE WHEN abs(extract(epoch FROM now() - C)) < 60 THEN 'near' END";
  for (const std::string column : {"dispatched_at", "completed_at"}) {
    std::string expression = age;
    expression.replace(expression.find(" C)") + 1, 1, column);
    EXPECT_EQ(text("SELECT " + expression + " FROM phase_executions WHERE id=" + std::to_string(p1)), "near");
    EXPECT_EQ(text(rows(p1, expression)), "near");
  }
}

}  // namespace
}  // namespace baton::runbook_contract
