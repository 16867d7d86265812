#include "http/render.hpp"

#include <charconv>

namespace baton::http {

namespace {

void append_key(std::string& out, std::string_view key) {
  if (!out.empty() && out.back() != '{') out += ',';
  out += '"';
  out += key;  // our own words, which need no escapes
  out += "\":";
}

}  // namespace

void append_member(std::string& out, std::string_view key, std::string_view text) {
  append_key(out, key);
  append_quoted(out, text);
}

void append_member(std::string& out, std::string_view key, const std::optional<std::string>& text) {
  append_key(out, key);
  if (text) {
    append_quoted(out, *text);
  } else {
    out += "null";
  }
}

void append_member(std::string& out, std::string_view key, std::int64_t number) {
  append_key(out, key);
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void append_member(std::string& out, std::string_view key, Time time) {
  append_key(out, key);
  out += '"';
  out += to_iso(time);
  out += '"';
}

void append_member(std::string& out, std::string_view key, const std::optional<Time>& time) {
  if (time) {
    append_member(out, key, *time);
  } else {
    append_key(out, key);
    out += "null";
  }
}

void append_member(std::string& out, std::string_view key, const OptionalJson& json) {
  append_key(out, key);
  out += json && !json->text.empty() ? std::string_view(json->text) : std::string_view("null");
}

void append_flag(std::string& out, std::string_view key, bool truth) {
  append_key(out, key);
  out += truth ? "true" : "false";
}

void append_job(std::string& out, const workflow::Job& job, bool with_data, Ending ending) {
  out += '{';
  append_member(out, "job_id", job.job_id.value);
  append_member(out, "tenant", job.tenant.value);
  append_member(out, "workflow_id", job.workflow_id);
  append_member(out, "workflow_version", job.workflow_version);
  append_member(out, "status", name(job.status));
  if (with_data) {
    append_member(out, "input_data", OptionalJson(job.input_data));
    append_member(out, "result_data", job.result_data);
  }
  append_member(out, "error", job.error);
  append_member(out, "traceparent", job.traceparent);
  append_member(out, "created_at", job.created_at);
  append_member(out, "started_at", job.started_at);
  append_member(out, "completed_at", job.completed_at);
  if (ending == Ending::closed) out += '}';
}

void append_nodes(std::string& out, const std::vector<workflow::NodeState>& nodes, std::size_t nodes_max) {
  append_key(out, "nodes");
  out += '{';
  std::size_t shown = 0;
  for (const auto& node : nodes) {
    if (shown++ == nodes_max) break;
    if (shown > 1) out += ',';
    append_quoted(out, node.node_id);
    out += ":{";
    append_member(out, "status", name(node.status));
    append_member(out, "retry_count", node.retry_count);
    append_member(out, "delivery_count", node.delivery_count);
    append_member(out, "task_id", node.task_id);
    append_member(out, "queue", node.queue);
    append_member(out, "worker_id", node.worker_id);
    append_member(out, "lease_until", node.lease_until);
    append_member(out, "output", node.output);
    append_member(out, "error", node.error);
    append_member(out, "dispatched_at", node.dispatched_at);
    append_member(out, "started_at", node.started_at);
    append_member(out, "completed_at", node.completed_at);
    out += '}';
  }
  out += '}';
  append_flag(out, "nodes_truncated", nodes.size() > nodes_max);
}

void append_event(std::string& out, const workflow::Event& event) {
  out += '{';
  append_member(out, "event_id", event.event_id);
  append_member(out, "event_type", name(event.event_type));
  append_member(out, "job_id", event.job_id.value);
  append_member(out, "node_id", event.node_id);
  append_member(out, "created_at", event.created_at);
  append_member(out, "event_data", event.event_data);
  out += '}';
}

void append_handout(std::string& out, const Handout& task) {
  out += '{';
  append_member(out, "task_id", task.task_id);
  append_member(out, "job_id", task.job_id.value);
  append_member(out, "node_id", task.node_id);
  append_member(out, "handler", task.handler);
  append_member(out, "params", OptionalJson(task.params));
  append_member(out, "queue", task.queue);
  append_member(out, "timeout_seconds", task.timeout.count());
  append_member(out, "retry_count", task.retry_count);
  append_member(out, "delivery_count", task.delivery_count);
  append_member(out, "lease", task.lease);
  append_member(out, "lease_until", task.lease_until);
  if (task.traceparent) append_member(out, "traceparent", *task.traceparent);
  out += '}';
}

}  // namespace baton::http
