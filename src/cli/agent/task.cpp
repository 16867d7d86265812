#include "cli/agent/task.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>

#include "base/json_write.hpp"
#include "base/text.hpp"
#include "http/json/json_body.hpp"

namespace baton::cli::agent {
namespace {

std::string text_of(http::JsonView object, std::string_view key) {
  const auto value = object.find(key);
  return value && value.kind() == http::JsonKind::string ? std::string(value.string()) : "";
}

std::int64_t integer_of(http::JsonView object, std::string_view key) {
  const auto value = object.find(key);
  return value && value.kind() == http::JsonKind::integer ? value.integer() : 0;
}

// An id that may be a number, as the ids of batches are.
std::string id_of(http::JsonView object, std::string_view key) {
  const auto value = object.find(key);
  return value && value.kind() == http::JsonKind::integer ? std::to_string(value.integer())
                                                          : text_of(object, key);
}

Task read_runbook_job(http::JsonView object) {
  Task task{.task_id = text_of(object, "jobId"),
            .job_id = text_of(object, "jobId"),
            .handler = text_of(object, "functionName"),
            .queue = text_of(object, "workerId"),
            .lease = text_of(object, "lease"),
            .traceparent = text_of(object, "traceparent"),
            .params = {"{}"},
            .timeout_seconds = integer_of(object, "timeout_seconds"),
            .retry_count = integer_of(object, "retry_count"),
            .delivery_count = integer_of(object, "delivery_count"),
            .batch_id = id_of(object, "batchId")};
  if (const auto parameters = object.find("parameters"); parameters && !parameters.is_null())
    task.params = parameters.json();
  if (const auto correlation = object.find("correlationData");
      correlation && correlation.kind() == http::JsonKind::object) {
    task.correlation = correlation.json();  // looked into on its own: the document is open three levels deep
    if (const auto document = http::JsonDocument::parse(task.correlation->text))
      task.runbook = text_of(document->root(), "runbookName");
  }
  return task;
}

Task read_task(http::JsonView object) {
  if (object.find("jobId")) return read_runbook_job(object);
  Task task{.task_id = text_of(object, "task_id"),
            .job_id = text_of(object, "job_id"),
            .node_id = text_of(object, "node_id"),
            .handler = text_of(object, "handler"),
            .queue = text_of(object, "queue"),
            .lease = text_of(object, "lease"),
            .traceparent = text_of(object, "traceparent"),
            .params = {"null"},
            .timeout_seconds = integer_of(object, "timeout_seconds"),
            .retry_count = integer_of(object, "retry_count"),
            .delivery_count = integer_of(object, "delivery_count")};
  if (const auto params = object.find("params")) task.params = params.json();
  if (const auto checkpoint = object.find("checkpoint"); checkpoint && !checkpoint.is_null())
    task.checkpoint = checkpoint.json();
  return task;
}

// The tail may begin in the middle of a line, even of a character; from the next line on it is whole.
std::string with_tail(std::string error, std::string_view tail, std::size_t tail_is_cut_at = 4 * 1024) {
  if (tail.size() >= tail_is_cut_at)
    if (const auto line = tail.find('\n'); line != std::string_view::npos && line + 1 < tail.size())
      tail.remove_prefix(line + 1);
  tail = trimmed(tail);
  return tail.empty() ? error : fmt::format("{}: {}", error, tail);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

constexpr std::array task_variables{
    "BATON_TASK_ID",  "BATON_JOB_ID",      "BATON_NODE_ID",        "BATON_HANDLER",
    "BATON_QUEUE",    "BATON_RETRY_COUNT", "BATON_DELIVERY_COUNT", "BATON_TIMEOUT_SECONDS",
    "BATON_SERVER",   "BATON_LEASE",       "BATON_CHECKPOINT",     "BATON_PROGRESS_FD",
    "BATON_BATCH_ID", "BATON_RUNBOOK",     "BATON_CORRELATION",    "TRACEPARENT"};

}  // namespace

Result<std::vector<Task>> read_tasks(std::string_view answer) {
  TRY_ASSIGN(const auto document, http::JsonDocument::parse(answer));
  const auto jobs =
      document.root().kind() == http::JsonKind::object ? document.root().find("jobs") : http::JsonView{};
  if (!jobs || jobs.kind() != http::JsonKind::array) return fail(Code::invalid, "the answer has no 'jobs'");
  std::vector<Task> tasks;
  for (const auto& item : jobs.items())
    if (item.kind() == http::JsonKind::object) tasks.push_back(read_task(item));
  return tasks;
}

std::vector<std::string> variables_of(const Task& task, const std::string& server,
                                      const std::string& checkpoint_file) {
  std::vector<std::string> all{"BATON_TASK_ID=" + task.task_id,
                               "BATON_JOB_ID=" + task.job_id,
                               "BATON_NODE_ID=" + task.node_id,
                               "BATON_HANDLER=" + task.handler,
                               "BATON_QUEUE=" + task.queue,
                               fmt::format("BATON_RETRY_COUNT={}", task.retry_count),
                               fmt::format("BATON_DELIVERY_COUNT={}", task.delivery_count),
                               fmt::format("BATON_TIMEOUT_SECONDS={}", task.timeout_seconds),
                               "BATON_SERVER=" + server,
                               "BATON_LEASE=" + task.lease,
                               "BATON_CHECKPOINT=" + checkpoint_file,
                               fmt::format("BATON_PROGRESS_FD={}", worker::report_fd)};
  if (!task.batch_id.empty()) {
    all.push_back("BATON_BATCH_ID=" + task.batch_id);
    all.push_back("BATON_RUNBOOK=" + task.runbook);
    all.push_back("BATON_CORRELATION=" + (task.correlation ? task.correlation->text : "{}"));
  }
  if (!task.traceparent.empty()) all.push_back("TRACEPARENT=" + task.traceparent);
  return all;
}

bool is_task_variable(std::string_view assignment) {
  const auto name = assignment.substr(0, assignment.find('='));
  return std::ranges::find(task_variables, name) != task_variables.end();
}

Outcome failure(std::string error) { return {.error = std::move(error)}; }

Outcome timed_out(const Task& task, std::string_view error_tail) {
  return failure(with_tail(fmt::format("timed out after {} s", task.timeout_seconds), error_tail));
}

Outcome judge(const worker::Ending& ending, std::size_t output_bytes_max) {
  if (ending.too_much_output)
    return failure(
        with_tail(fmt::format("more than {} bytes of output", output_bytes_max), ending.error_tail));
  if (ending.signal != 0)
    return failure(with_tail("killed by " + signal_name(ending.signal), ending.error_tail));
  if (ending.exit_code != 0)
    return failure(with_tail(fmt::format("exit code {}", ending.exit_code), ending.error_tail));
  if (trimmed(ending.output).empty()) return {.completed = true};
  if (const auto document = http::JsonDocument::parse(ending.output))
    return {.completed = true, .output = document->root().json()};
  return {.completed = true, .output = json_object("stdout", ending.output)};
}

std::string render_result(const Task& task, const Outcome& outcome, std::string_view worker,
                          std::chrono::milliseconds took) {
  std::string out = "{";
  append_members(out, "task_id", task.task_id, "lease", task.lease);
  if (outcome.completed)
    append_members(out, "status", "completed", "output", outcome.output);
  else
    append_members(out, "status", "failed", "error", outcome.error);
  append_members(out, "worker_id", worker, "execution_duration_ms", took.count());
  return out + '}';
}

}  // namespace baton::cli::agent
