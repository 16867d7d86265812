#include "http/json/render.hpp"

namespace baton::http {

namespace {

constexpr std::size_t brief_bytes_max = 64 << 10;

void append_document(std::string& out, std::string_view key, const OptionalJson& json, Documents documents) {
  if (documents == Documents::brief && json && json->text.size() > brief_bytes_max) {
    append_member(out, std::string(key) + "_bytes", static_cast<std::int64_t>(json->text.size()));
    return append_member(out, key, OptionalJson{});
  }
  append_member(out, key, json);
}

}  // namespace

void append_job(std::string& out, const workflow::Job& job, Documents documents, ObjectEnd ending) {
  out += '{';
  append_member(out, "job_id", job.job_id.value);
  append_member(out, "tenant", job.tenant.value);
  append_member(out, "workflow_id", job.workflow_id);
  append_member(out, "workflow_version", job.workflow_version);
  append_member(out, "status", name(job.status));
  append_member(out, "priority", job.priority);
  append_member(out, "tags", Json{job.tags.value_or("[]")});
  if (documents != Documents::none) {
    append_document(out, "input_data", job.input_data, documents);
    append_document(out, "result_data", job.result_data, documents);
  }
  append_member(out, "error", job.error);
  append_member(out, "traceparent", job.traceparent);
  append_member(out, "created_at", job.created_at);
  append_member(out, "due_at", job.due_at);
  append_member(out, "started_at", job.started_at);
  append_member(out, "completed_at", job.completed_at);
  append_member(out, "paused_at", job.paused_at);
  append_member(out, "paused_by", job.paused_by);
  append_member(out, "rerun_of", job.rerun_of);
  if (ending == ObjectEnd::closed) out += '}';
}

void append_node(std::string& out, const workflow::NodeState& node, Documents documents, ObjectEnd ending) {
  out += '{';
  append_member(out, "status", name(node.status));
  append_member(out, "retry_count", node.retry_count);
  append_member(out, "delivery_count", node.delivery_count);
  append_member(out, "task_id", node.task_id);
  append_member(out, "queue", node.queue);
  append_member(out, "worker_id", node.worker_id);
  append_member(out, "lease_until", node.lease_until);
  if (node.items_total) {
    append_key(out, "items");
    out += '{';
    append_member(out, "total", *node.items_total);
    append_member(out, "created", node.items_created);
    append_member(out, "done", node.items_done);
    append_member(out, "failed", node.items_failed);
    out += '}';
  }
  if (node.item_index != workflow::no_item) append_member(out, "item_index", node.item_index);
  if (node.progress) append_member(out, "progress", node.progress);
  if (node.params) append_document(out, "params", node.params, documents);
  if (node.checkpoint) append_document(out, "checkpoint", node.checkpoint, documents);
  append_document(out, "output", node.output, documents);
  append_member(out, "error", node.error);
  append_member(out, "dispatched_at", node.dispatched_at);
  append_member(out, "started_at", node.started_at);
  append_member(out, "completed_at", node.completed_at);
  if (node.timer_due) append_member(out, "timer_due", node.timer_due);
  if (node.dead_at) append_member(out, "dead_at", node.dead_at);
  if (ending == ObjectEnd::closed) out += '}';
}

void append_nodes(std::string& out, const std::vector<workflow::NodeState>& nodes, std::size_t nodes_max,
                  Documents documents) {
  append_key(out, "nodes");
  out += '{';
  std::size_t shown = 0;
  for (const auto& node : nodes) {
    if (shown++ == nodes_max) break;
    append_key(out, node.node_id);
    append_node(out, node, documents);
  }
  out += '}';
  append_member(out, "nodes_truncated", nodes.size() > nodes_max);
}

void append_log_line(std::string& out, const workflow::LogLine& line) {
  out += '{';
  append_member(out, "log_id", line.log_id);
  append_member(out, "node_id", line.node_id);
  append_member(out, "retry_count", line.retry_count);
  append_member(out, "stream", line.stream);
  append_member(out, "at", line.logged_at);
  append_member(out, "text", line.text);
  out += '}';
}

void append_explanation(std::string& out, const ExplainReply& reply) {
  out += '{';
  append_member(out, "job_id", reply.job.job_id.value);
  append_member(out, "workflow_id", reply.job.workflow_id);
  append_member(out, "status", name(reply.job.status));
  append_member(out, "reason", reply.reason);
  append_member(out, "summary", reply.summary);
  append_list(out, "waiting", reply.waiting, [](std::string& to, const workflow::WaitingNode& node) {
    to += '{';
    append_member(to, "node_id", node.node_id);
    append_member(to, "status", name(node.status));
    append_member(to, "reason", node.reason);
    append_member(to, "message", node.message);
    append_member(to, "since", node.since);
    append_member(to, "until", node.until);
    append_member(to, "queue", node.queue);
    append_member(to, "held_by", node.held_by);
    to += '}';
  });
  out += '}';
}

void append_worker(std::string& out, const WorkerInfo& worker) {
  out += '{';
  append_member(out, "worker", worker.worker);
  append_member(out, "tenant", worker.tenant.value);
  append_member(out, "queues", worker.queues);
  append_member(out, "first_seen_at", worker.first_seen_at);
  append_member(out, "last_seen_at", worker.last_seen_at);
  append_member(out, "polling", worker.polling);
  append_member(out, "running_count", worker.running_count);
  append_member(out, "running", worker.running);
  append_member(out, "completed", worker.completed);
  append_member(out, "failed", worker.failed);
  append_member(out, "results_last_minute", worker.last_minute);
  out += '}';
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

void append_outcome(std::string& out, const ResultReply& reply) {
  append_member(out, "accepted", reply.ignored.empty());
  append_member(out, "duplicate", reply.duplicate);
  if (reply.ignored.empty()) return;
  append_member(out, "ignored", reply.ignored);
  append_member(out, "code", "ignored");
}

void append_refusal(std::string& out, const Refused* refused) {
  append_member(out, "code", name(refused == nullptr ? Refusal::stopping : refused->refusal));
  append_member(out, "message",
                refused == nullptr ? std::string_view("the server is stopping") : refused->message);
}

void append_outcomes(std::string& out, std::string_view key, const std::vector<std::string>& ids,
                     const std::vector<std::optional<Reply>>& replies) {
  std::size_t index = 0;
  append_list(out, "results", replies, [&](std::string& to, const std::optional<Reply>& reply) {
    to += '{';
    append_member(to, key, ids[index++]);
    const auto* result = reply ? std::get_if<ResultReply>(&*reply) : nullptr;
    if (result != nullptr) {
      append_outcome(to, *result);
    } else {
      append_member(to, "accepted", false);
      append_member(to, "duplicate", false);
      append_refusal(to, reply ? std::get_if<Refused>(&*reply) : nullptr);
    }
    to += '}';
  });
}

}  // namespace baton::http
