// batch-init: what runs once for a batch, before its phases (000 §1, 002 BatchInitHandler, 003 init steps).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

const std::string one_phase = phases({phase_of("p1", {doing("s1")})});

class BatchInit : public Contract {
 protected:
  std::string inits(const std::string& columns) {
    return "SELECT " + columns + " FROM init_executions WHERE batch_id=" + std::to_string(batch_) +
           " ORDER BY runbook_version, step_index";
  }
};
ON_EACH_STORE(BatchInit);

// 000 §1.1, 1.2a, 1.2b: the scheduler's rows, ordered by step_index and not by id.
TEST_P(BatchInit, DispatchesTheRowsOfTheSchedulerInOrderOneAtATime) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_phase, 1, "init_dispatched");
  const Id second = init_step(1, "i2", {{"params_json", R"({"n":2})"}});
  const Id first = init_step(0, "i1", {{"params_json", R"({"n":1})"}});
  tell(batch_init());
  const Job job = one();
  EXPECT_EQ(job.id(), "init-" + std::to_string(first));
  EXPECT_EQ(job.function(), "Do-i1");
  EXPECT_EQ(job.parameters(), R"({"n":1})");  // a row that comes with parameters is used as it is
  eventually(inits("status, job_id, " + is_set("dispatched_at") + ", " + is_set("completed_at")),
             "dispatched init-" + std::to_string(first) + " set unset,pending null unset unset");
  quiet();
  succeed(job);
  EXPECT_EQ(one().id(), "init-" + std::to_string(second));
}

// 000 §1.2d, 1.3
TEST_P(BatchInit, StoresResultsAndActivatesTheBatchWhenAllSucceeded) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_phase, 1, "init_dispatched");
  tell(batch_init());
  succeed(one(), json::object{{"group", "g-1"}});
  const Job last = one();
  EXPECT_EQ(text(inits("status")), "succeeded,dispatched");
  EXPECT_EQ(text("SELECT status FROM batches WHERE id=" + std::to_string(batch_)), "init_dispatched");
  EXPECT_EQ(parsed(text("SELECT result_json FROM init_executions WHERE step_index=0 AND batch_id=" +
                        std::to_string(batch_))),
            (json::object{{"group", "g-1"}}));
  succeed(last);
  expect_batch("active");
  eventually(inits("status"), "succeeded,succeeded");
  EXPECT_EQ(text(inits(is_set("completed_at"))), "set,set");
}

// 003: created on demand, with the columns of the runbook.
TEST_P(BatchInit, CreatesTheRowsThatTheSchedulerDidNot) {
  given("retry: {max_retries: 2, interval: 1m}\n" +
            section("init", {preparing("i1"), preparing("i2",
                                                        "poll: {interval: 5m, timeout: 8h}, retry: "
                                                        "{max_retries: 0}")}) +
            one_phase,
        1, "init_dispatched");
  tell(batch_init());
  EXPECT_EQ(one().function(), "Do-i1");
  eventually(inits("step_name, step_index, runbook_version, worker_id, function_name, status, max_retries"),
             "i1 0 1 " + pool_ + " Do-i1 dispatched 2,i2 1 1 " + pool_ + " Do-i2 pending 0");
  EXPECT_EQ(text(inits("CASE WHEN is_poll_step=1 THEN 'polls' ELSE 'once' END, coalesce(poll_interval_sec, 0), "
                       "coalesce(poll_timeout_sec, 0)")),
            "once 0 0,polls 300 28800");
  EXPECT_EQ(text("SELECT retry_interval_sec FROM init_executions WHERE step_index=0 AND batch_id=" +
                 std::to_string(batch_)),
            "60");
}

TEST_P(BatchInit, CreatesOnlyTheMissingRows) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_phase, 1, "init_dispatched");
  const Id first = init_step(0, "i1", {{"params_json", R"({"mine":true})"}});
  tell(batch_init());
  const Job job = one();
  EXPECT_EQ(job.id(), "init-" + std::to_string(first));
  EXPECT_EQ(job.parameters(), R"({"mine":true})");
  succeed(job);
  succeed(one());
  expect_batch("active");
  expect_init("succeeded,succeeded");
}

// 002 BatchInitHandler 1 and 2: it loads what is pending.
TEST_P(BatchInit, GoesOnAfterTheRowsThatAreDone) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_phase, 1, "init_dispatched");
  init_step(0, "i1", {{"status", "succeeded"}, {"completed_at", timestamp(-5s)}});
  const Id second = init_step(1, "i2");
  tell(batch_init());
  const Job job = one();
  EXPECT_EQ(job.id(), "init-" + std::to_string(second));
  succeed(job);
  expect_batch("active");
}

// 003 template resolution: batch variables, in parameters however deep and in the name of the function.
TEST_P(BatchInit, ResolvesBatchVariables) {
  given(
      "init:\n"
      "  - name: i1\n"
      "    worker_id: POOL\n"
      "    function: \"New-{{_batch_id}}\"\n"
      "    params: {Name: \"wave-{{_batch_id}}\", At: {Start: \"{{_batch_start_time}}\"}}\n" +
          one_phase,
      1, "init_dispatched");
  tell(batch_init());
  const Job job = one();
  const std::string id = std::to_string(batch_);
  EXPECT_EQ(job.function(), "New-" + id);
  EXPECT_EQ(job.parameter("Name"), "wave-" + id);
  const std::string start(job.body.at("parameters").at("At").at("Start").as_string());
  EXPECT_TRUE(start.starts_with("2025-03-15T00:00:00")) << start;
}

TEST_P(BatchInit, KnowsNoMemberVariablesAndSaysWhichOneItMissed) {
  given("init:\n  - {name: bad-init, worker_id: POOL, function: F, params: {X: \"{{Upn}}\"}}\n" + one_phase,
        1, "init_dispatched");
  (void)send(batch_init());
  quiet();
  expect_batch("failed");
  expect_init("failed");
  const std::string message = text(inits("error_message"));
  EXPECT_NE(message.find("Upn"), std::string::npos) << message;
  EXPECT_NE(message.find("bad-init"), std::string::npos) << message;
}

// 000 §1.2f, 1.4
TEST_P(BatchInit, FailureFailsTheBatchAndNothingFollows) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_phase, 1, "init_dispatched");
  tell(batch_init());
  fail(one(), "no such tenant");
  expect_batch("failed");
  quiet();
  EXPECT_EQ(text("SELECT status, " + is_set("completed_at") +
                 " FROM init_executions WHERE step_index=0 AND batch_id=" + std::to_string(batch_)),
            "failed set");
  EXPECT_NE(text(inits("error_message")).find("no such tenant"), std::string::npos);
  EXPECT_EQ(text(inits(is_set("job_id"))), "set,unset");
}

// 002 BatchInitHandler 5, with the specification's reading: tracked, with batch variables only.
TEST_P(BatchInit, FailureIsRolledBackWithBatchVariables) {
  given(section("init", {preparing("i1", "on_failure: drop")}) + one_phase +
            rollback("drop", {preparing("undo1"), preparing("undo2")}),
        1, "init_dispatched");
  tell(batch_init());
  const Job init = one();
  fail(init);
  const Job undo = one();
  const Id cleanup = undo.correlated("cleanupExecutionId");
  EXPECT_EQ(undo.id(), "rollback-" + std::to_string(cleanup));
  EXPECT_EQ(undo.function(), "Do-undo1");
  EXPECT_EQ(undo.parameter("Batch"), std::to_string(batch_));
  EXPECT_EQ(
      text("SELECT kind, sequence, caused_by_init_id, caused_by_step_id, phase_execution_id, "
           "batch_member_id, status FROM cleanup_executions WHERE id=" +
           std::to_string(cleanup)),
      "rollback drop " + std::to_string(init.correlated("initExecutionId")) + " null null null dispatched");
  expect_init("failed");
  succeed(undo);
  succeed(one());
  expect_init("rolled_back");
  expect_cleanup("succeeded,succeeded");
  expect_batch("failed");
}

// 003 retry: the same rules as for any step.
TEST_P(BatchInit, FailureIsRetriedFirst) {
  given(section("init", {preparing("i1", "retry: {max_retries: 1, interval: 1s}")}) + one_phase, 1,
        "init_dispatched");
  tell(batch_init());
  const Job first = one();
  fail(first);
  eventually(inits("status, retry_count, job_id, completed_at"), "pending 1 null null");
  const Job again = one();
  EXPECT_EQ(again.id(), first.id() + "-retry-1");
  EXPECT_EQ(again.parameters(), first.parameters());
  EXPECT_EQ(text("SELECT status FROM batches WHERE id=" + std::to_string(batch_)), "init_dispatched");
  succeed(again);
  expect_batch("active");
}

TEST_P(BatchInit, FailsTheBatchWhenTheRetriesAreUsedUp) {
  given(section("init", {preparing("i1", "retry: {max_retries: 1, interval: 1s}")}) + one_phase, 1,
        "init_dispatched");
  tell(batch_init());
  fail(one());
  fail(one());
  expect_batch("failed");
  expect_init("failed");
}

TEST_P(BatchInit, TwiceChangesNothing) {
  given(section("init", {preparing("i1"), preparing("i2")}) + one_phase, 1, "init_dispatched");
  tell(batch_init());
  const Job first = one();
  changes_nothing([&] { tell(batch_init()); });
  succeed(first);
  const Job second = one();
  changes_nothing([&] { tell(batch_init()); });
  succeed(second);
  expect_batch("active");
  changes_nothing([&] { tell(batch_init()); });
}

TEST_P(BatchInit, ThatWaitsForARetryIsNotHurriedByADuplicate) {
  given(section("init", {preparing("i1", "retry: {max_retries: 1, interval: 1h}")}) + one_phase, 1,
        "init_dispatched");
  tell(batch_init());
  fail(one());
  expect_init("pending");
  changes_nothing([&] { tell(batch_init()); });
}

// 003: version-aware idempotency.
TEST_P(BatchInit, OfANewVersionRunsTheInitOfThatVersionOnce) {
  given(section("init", {preparing("old")}) + one_phase, 1, "active");
  init_step(0, "old", {{"status", "succeeded"}, {"completed_at", timestamp(-5s)}});
  runbook(section("init", {preparing("new")}) + one_phase, 2);
  sql().exec("UPDATE batches SET status='init_dispatched', runbook_id=" + std::to_string(runbook_) +
             " WHERE id=" + std::to_string(batch_));
  tell(batch_init());
  const Job job = one();
  EXPECT_EQ(job.function(), "Do-new");
  eventually(inits("runbook_version, step_name, status"), "1 old succeeded,2 new dispatched");
  changes_nothing([&] { tell(batch_init()); });
  succeed(job);
  expect_batch("active");
  eventually(inits("status"), "succeeded,succeeded");
}

// 000 §1: sent only "if the runbook has init steps"; if it comes all the same there is nothing to wait for.
TEST_P(BatchInit, OfARunbookWithoutInitActivatesTheBatch) {
  given(one_phase, 1, "detected");
  tell(batch_init());
  expect_batch("active");
  quiet();
}

// 003 status transitions: detected → init_dispatched → active.
TEST_P(BatchInit, TakesABatchThatIsOnlyDetected) {
  given(section("init", {preparing("i1")}) + one_phase, 1, "detected");
  tell(batch_init());
  const Job job = one();
  expect_batch("init_dispatched");
  succeed(job);
  expect_batch("active");
}

TEST_P(BatchInit, LeavesAFinishedBatchAsItIs) {
  for (const std::string status : {"completed", "failed", "cancelled"}) {
    given(section("init", {preparing("i1")}) + one_phase, 1, status);
    version_ = 1;
    changes_nothing([&] { (void)send(batch_init()); });
    name_ += "x";  // the next runbook has a name of its own
  }
}

// 002: the job's fields; specification: correlationData.
TEST_P(BatchInit, JobsHaveTheFieldsOfTheContract) {
  given(section("init", {preparing("i1")}) + one_phase, 1, "init_dispatched");
  tell(batch_init());
  const Job job = one();
  const Id init = number(inits("id"));
  EXPECT_EQ(job.id(), "init-" + std::to_string(init));
  EXPECT_EQ(job.body.at("batchId").to_number<Id>(), batch_);
  EXPECT_EQ(job.text("workerId"), pool_);
  EXPECT_EQ(job.function(), "Do-i1");
  const json::object& correlation = job.body.at("correlationData").as_object();
  EXPECT_EQ(job.correlated("initExecutionId"), init);
  EXPECT_EQ(job.correlated("stepExecutionId"), 0);
  EXPECT_EQ(correlation.at("isInitStep"), json::value(true));
  EXPECT_EQ(correlation.at("runbookName"), json::value(name_));
  EXPECT_EQ(correlation.at("runbookVersion").to_number<Id>(), 1);
  EXPECT_FALSE(job.text("lease").empty());
  EXPECT_TRUE(job.body.contains("lease_until"));
}

}  // namespace
}  // namespace baton::runbook_contract
