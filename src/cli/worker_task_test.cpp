#include "cli/worker_task.hpp"

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
