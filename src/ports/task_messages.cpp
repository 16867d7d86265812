#include "ports/task_messages.hpp"

#include <limits>

#include "base/json_write.hpp"
#include "core/runbook/machine/messages.hpp"

namespace baton {
namespace {

void append_lease(std::string& out, const Handout& task) {
  if (task.lease.empty()) return;
  append_member(out, "lease", task.lease);
  append_member(out, "lease_until", task.lease_until);
}

// A job of a runbook is what the contract with its workers says; the rest is ours.
void append_runbook_job(std::string& out, const Handout& task, const RunbookJob& job) {
  const bool is_init = job.ref.type == runbook::RowType::init;
  out += '{';
  append_member(out, "jobId", task.task_id);
  append_member(out, "batchId", job.batch_id);
  append_member(out, "workerId", task.queue);
  append_member(out, "functionName", task.handler);
  append_member(out, "parameters", task.params);
  append_key(out, "correlationData");
  out += '{';
  append_member(out,
                is_init                                  ? "initExecutionId"
                : job.ref.type == runbook::RowType::cleanup ? "cleanupExecutionId"
                                                         : "stepExecutionId",
                job.ref.id);
  append_member(out, "isInitStep", is_init);
  append_member(out, "runbookName", job.runbook_name);
  append_member(out, "runbookVersion", job.runbook_version);
  out += '}';
  append_lease(out, task);
  append_member(out, "timeout_seconds", task.timeout.count());
  append_member(out, "delivery_count", task.delivery_count);
  append_member(out, "retry_count", task.retry_count);
  out += '}';
}

}  // namespace

void append_handout(std::string& out, const Handout& task) {
  if (task.runbook) return append_runbook_job(out, task, *task.runbook);
  out += '{';
  append_member(out, "task_id", task.task_id);
  append_member(out, "job_id", task.job_id.value);
  append_member(out, "node_id", task.node_id);
  append_member(out, "handler", task.handler);
  append_member(out, "params", task.params);
  append_member(out, "queue", task.queue);
  append_member(out, "timeout_seconds", task.timeout.count());
  append_member(out, "retry_count", task.retry_count);
  append_member(out, "delivery_count", task.delivery_count);
  append_lease(out, task);
  if (task.traceparent) append_member(out, "traceparent", *task.traceparent);
  if (task.checkpoint) append_member(out, "checkpoint", task.checkpoint);
  out += '}';
}

ReportResult read_task_result(JsonView body, std::string prefix, std::vector<FieldError>& errors) {
  Fields fields(body, std::move(prefix), errors);
  ReportResult result;
  result.task_id = fields.required_text("task_id", 600);
  result.job_id.value = fields.text("job_id", 200).value_or("");
  result.node_id = fields.text("node_id", 400).value_or("");
  const auto status = fields.required_text("status", 20);
  result.completed = status == "completed";
  if (!status.empty() && status != "completed" && status != "failed")
    fields.wrong("status", "must be 'completed' or 'failed'");
  result.output = fields.any("output");
  result.error = fields.prose("error");
  if (!result.error) result.error = fields.prose("error_message");
  result.lease = fields.text("lease", 200);
  result.worker = fields.text("worker_id", 200);
  result.execution_duration_ms = fields.integer("execution_duration_ms", {0, std::numeric_limits<std::int64_t>::max()});
  return result;
}

std::expected<ReportResult, std::string> parse_runbook_result(std::string_view document) {
  auto result = runbook::parse_worker_result(document);
  if (!result) return std::unexpected(std::move(result.error()));
  return ReportResult{.tenant = std::nullopt,
                      .task_id = std::move(result->job_id),
                      .correlated = result->correlated,
                      .completed = result->success,
                      .output = std::move(result->result),
                      .error = std::move(result->error),
                      .lease = std::move(result->lease),
                      .worker = std::move(result->worker),
                      .execution_duration_ms = result->duration_ms};
}

std::expected<ReportResult, std::string> parse_any_result(std::string_view document) {
  const auto read = JsonDocument::parse(document);
  if (!read) return std::unexpected(read.error().message);
  if (!read->root().find("task_id")) return parse_runbook_result(document);
  std::vector<FieldError> errors;
  ReportResult result = read_task_result(read->root(), "", errors);
  if (!errors.empty()) return std::unexpected(errors.front().field + " " + errors.front().message);
  return result;
}

}  // namespace baton
