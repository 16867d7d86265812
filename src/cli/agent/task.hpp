// One task as the agent sees it: read from a poll's answer, told to the program, and reported. Pure.
//
// A poll brings tasks of workflows and jobs of runbooks. To the agent they are the same: a job of a runbook
// is a task whose id is the job's, whose handler is the function, and which has a batch instead of a node.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "worker/runner.hpp"

namespace baton::cli::agent {

struct Task {
  std::string task_id, job_id, node_id, handler, queue, lease, traceparent;
  Json params;
  OptionalJson checkpoint;
  std::int64_t timeout_seconds = 0;  // 0: none
  std::int64_t retry_count = 0, delivery_count = 0;
  // Of a runbook's job only. The correlation data is handed on as it came.
  std::string batch_id, runbook;
  OptionalJson correlation;

  // One delivery: the same task may come back with another lease.
  [[nodiscard]] std::string key() const { return task_id + ' ' + lease; }
};

// The tasks of a poll's answer.
[[nodiscard]] Result<std::vector<Task>> read_tasks(std::string_view answer);

// What the program finds in its environment beside what the agent has.
[[nodiscard]] std::vector<std::string> variables_of(const Task& task, const std::string& server,
                                                    const std::string& checkpoint_file);
// The names of those.
[[nodiscard]] bool is_task_variable(std::string_view assignment);

struct Outcome {
  bool completed = false;
  Json output{"null"};
  std::string error;
};

// What a program that ended by itself has said: its output as JSON, text as {"stdout": text}, or why it
// failed.
[[nodiscard]] Outcome judge(const worker::Ending& ending, std::size_t output_bytes_max);
[[nodiscard]] Outcome timed_out(const Task& task, std::string_view error_tail);
[[nodiscard]] Outcome failure(std::string error);

// An entry of /callbacks/task-results.
[[nodiscard]] std::string render_result(const Task& task, const Outcome& outcome, std::string_view worker,
                                        std::chrono::milliseconds took);

}  // namespace baton::cli::agent
