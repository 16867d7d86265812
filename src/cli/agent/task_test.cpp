#include "cli/agent/task.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

namespace baton::cli::agent {
namespace {

TEST(WorkerTask, IsReadWithItsNumbersAsTheyWere) {
  const auto tasks = read_tasks(
      R"({"jobs":[{"task_id":"j_n_0","job_id":"j","node_id":"n","handler":"h","params":{"x":1.50},"queue":"q",
      "timeout_seconds":60,"retry_count":2,"delivery_count":3,"lease":"2.3","lease_until":"2026-01-01T00:00:00Z",
      "checkpoint":{"page":[1,{"a":2}]},"new_field":[]}]})");
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 1u);
  const Task& task = tasks->front();
  EXPECT_EQ(task.key(), "j_n_0 2.3");
  EXPECT_EQ(task.params.text, R"({"x":1.50})");
  EXPECT_EQ(task.checkpoint->text, R"({"page":[1,{"a":2}]})");
  EXPECT_EQ(task.timeout_seconds, 60);
  const auto variables = variables_of(task, "http://s", "/tmp/c");
  for (const auto* expected :
       {"BATON_TASK_ID=j_n_0", "BATON_RETRY_COUNT=2", "BATON_DELIVERY_COUNT=3", "BATON_LEASE=2.3",
        "BATON_SERVER=http://s", "BATON_CHECKPOINT=/tmp/c", "BATON_PROGRESS_FD=3"})
    EXPECT_TRUE(std::ranges::find(variables, expected) != variables.end()) << expected;
  for (const auto& variable : variables) EXPECT_TRUE(is_task_variable(variable)) << variable;
}

TEST(WorkerTask, MayBeAJobOfARunbook) {
  const auto tasks = read_tasks(
      R"({"jobs":[{"jobId":"step-12-retry-1","batchId":42,"workerId":"pool-1","functionName":"New-User",
      "parameters":{"Upn":"ada@contoso.com","Aliases":["a","b"],"Size":1.50},
      "correlationData":{"stepExecutionId":12,"isInitStep":false,"runbookName":"mail","runbookVersion":3},
      "lease":"2","lease_until":"2026-01-01T00:00:00Z","timeout_seconds":60,"delivery_count":2,"retry_count":1},
      {"task_id":"j_n_0","job_id":"j","handler":"h","lease":"0.1"}]})");
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 2u);
  const Task& job = tasks->front();
  EXPECT_EQ(job.key(), "step-12-retry-1 2");
  EXPECT_EQ(job.handler, "New-User");
  EXPECT_EQ(job.params.text, R"({"Upn":"ada@contoso.com","Aliases":["a","b"],"Size":1.50})");
  EXPECT_FALSE(job.checkpoint);
  EXPECT_EQ(job.timeout_seconds, 60);
  const auto variables = variables_of(job, "http://s", "");
  for (
      const auto* expected :
      {"BATON_TASK_ID=step-12-retry-1", "BATON_JOB_ID=step-12-retry-1",
       "BATON_NODE_ID=", "BATON_HANDLER=New-User", "BATON_QUEUE=pool-1", "BATON_RETRY_COUNT=1",
       "BATON_DELIVERY_COUNT=2", "BATON_LEASE=2", "BATON_BATCH_ID=42", "BATON_RUNBOOK=mail",
       R"(BATON_CORRELATION={"stepExecutionId":12,"isInitStep":false,"runbookName":"mail","runbookVersion":3})"})
    EXPECT_TRUE(std::ranges::find(variables, expected) != variables.end()) << expected;
  for (const auto& variable : variables) EXPECT_TRUE(is_task_variable(variable)) << variable;
  EXPECT_EQ(render_result(job, {.completed = true, .output = {R"({"complete":false})"}}, "w",
                          std::chrono::milliseconds{5}),
            R"({"task_id":"step-12-retry-1","lease":"2","status":"completed","output":{"complete":false},)"
            R"("worker_id":"w","execution_duration_ms":5})");
  for (const auto& variable : variables_of(tasks->back(), "http://s", ""))
    EXPECT_FALSE(variable.starts_with("BATON_BATCH_ID")) << "a task of a workflow has no batch";
}

TEST(WorkerTask, OfARunbookMayLackWhatIsNotNeeded) {
  const auto tasks = read_tasks(
      R"({"jobs":[{"jobId":"init-1","batchId":"7","functionName":"F","parameters":null,"lease":"1"}]})");
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->at(0).params.text, "{}");
  EXPECT_EQ(tasks->at(0).timeout_seconds, 0);
  const auto variables = variables_of(tasks->at(0), "", "");
  for (const auto* expected : {"BATON_BATCH_ID=7", "BATON_RUNBOOK=", "BATON_CORRELATION={}"})
    EXPECT_TRUE(std::ranges::find(variables, expected) != variables.end()) << expected;
}

TEST(WorkerTask, IsNotReadFromSomethingElse) {
  EXPECT_FALSE(read_tasks("<html>"));
  EXPECT_FALSE(read_tasks("[]"));
  EXPECT_FALSE(read_tasks(R"({"jobs":1})"));
  EXPECT_TRUE(read_tasks(R"({"jobs":[]})")->empty());
}

TEST(WorkerTask, CompletesWithJsonWithTextOrWithNothing) {
  const auto output = [](std::string text) { return judge({.output = std::move(text)}, 100).output.text; };
  EXPECT_EQ(output("{\"a\": 1.0}\n"), R"({"a":1.0})");
  EXPECT_EQ(output("17"), "17");
  EXPECT_EQ(output(" \n"), "null");
  EXPECT_EQ(output("hello\n"), R"({"stdout":"hello\n"})");
  EXPECT_EQ(output("1 2"), R"({"stdout":"1 2"})");
  EXPECT_EQ(output("\"\xff\""), "{\"stdout\":\"\\\"\xEF\xBF\xBD\\\"\"}");
}

TEST(WorkerTask, FailsWithTheReasonAndTheEndOfTheLog) {
  EXPECT_EQ(judge({.exit_code = 3, .error_tail = "first\nlast\n"}, 100).error, "exit code 3: first\nlast");
  EXPECT_EQ(judge({.exit_code = 1}, 100).error, "exit code 1");
  EXPECT_EQ(judge({.signal = SIGSEGV}, 100).error, "killed by SIGSEGV");
  EXPECT_EQ(judge({.too_much_output = true}, 100).error, "more than 100 bytes of output");
  EXPECT_EQ(timed_out({.timeout_seconds = 5}, "busy").error, "timed out after 5 s: busy");
}

}  // namespace
}  // namespace baton::cli::agent
