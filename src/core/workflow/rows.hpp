// The stored shape of a job: one struct per table, one field per column, the names are the contract. What
// each status means and which may follow which is in machine.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace baton::workflow {

using JobId = Id<struct JobTag>;
using Tenant = Id<struct TenantTag>;  // every row belongs to one; "default" where nobody cares

enum class JobStatus { pending, running, completed, failed, cancelled };
enum class NodeStatus { pending, ready, dispatched, running, completed, failed, skipped, cancelled };
enum class EventType {
  job_created,
  job_started,
  job_completed,
  job_failed,
  job_cancelled,
  node_ready,
  node_dispatched,
  node_started,
  node_completed,
  node_failed,
  node_retry,
  node_timeout,
  node_lease_expired,
  node_cancelled,
};

// PENDING, node_ready, …: the words of the tables and of the API.
[[nodiscard]] std::string_view name(JobStatus status);
[[nodiscard]] std::string_view name(NodeStatus status);
[[nodiscard]] std::string_view name(EventType type);
[[nodiscard]] std::optional<JobStatus> job_status(std::string_view name);
[[nodiscard]] std::optional<NodeStatus> node_status(std::string_view name);
[[nodiscard]] std::optional<EventType> event_type(std::string_view name);

[[nodiscard]] constexpr bool is_terminal(JobStatus s) { return s >= JobStatus::completed; }
[[nodiscard]] constexpr bool is_terminal(NodeStatus s) { return s >= NodeStatus::completed; }

// dag_jobs
struct Job {
  JobId job_id;
  Tenant tenant;
  std::string workflow_id;
  std::int32_t workflow_version = 0;
  JobStatus status = JobStatus::pending;
  Json input_data;
  OptionalJson result_data;
  std::optional<std::string> error;
  std::optional<std::string> traceparent;
  std::int32_t nodes_active = 0;  // nodes READY, DISPATCHED or RUNNING: the job ends when this is zero
  std::int32_t nodes_failed = 0;
  Time created_at{};
  std::optional<Time> started_at;
  std::optional<Time> completed_at;
};

// dag_node_states, key (job_id, node_id)
struct NodeState {
  JobId job_id;
  std::string node_id;
  NodeStatus status = NodeStatus::pending;
  std::int32_t waiting_for = 0;     // incoming edges that have not fired yet
  std::int32_t retry_count = 0;     // the current attempt, from 0
  std::int32_t delivery_count = 0;  // how often this attempt was handed to a worker
  std::optional<std::string> task_id;
  Tenant tenant;  // with queue: where a DISPATCHED row waits for a worker
  std::optional<std::string> queue;
  std::optional<std::string> worker_id;
  std::optional<Time> lease_until;  // RUNNING: when the worker is given up
  std::optional<Time> timer_due;    // the one timer of this row, if it has one (its key in the timers table)
  OptionalJson output;
  std::optional<std::string> error;
  std::optional<Time> dispatched_at;
  std::optional<Time> started_at;
  std::optional<Time> completed_at;
};

// dag_task_results, key task_id: the one accepted result of an attempt.
struct TaskResult {
  std::string task_id;
  JobId job_id;
  std::string node_id;
  std::string status;  // "completed" or "failed"
  OptionalJson output;
  std::optional<std::string> error;
  std::optional<std::string> worker_id;
  std::optional<std::string> lease;
  std::optional<std::int64_t> execution_duration_ms;
  bool processed = true;
  Time received_at{};
};

// dag_job_events, key (job_id, event_id); event_id grows with each commit.
struct Event {
  JobId job_id;
  std::int64_t event_id = 0;
  EventType event_type{};
  std::optional<std::string> node_id;
  OptionalJson event_data;
  Time created_at{};
};

// dag_timers, key (due, job_id, node_id). One per node at most; the row's timer_due names it. due is Unix
// milliseconds.
struct Timer {
  Time due{};
  JobId job_id;
  std::string node_id;
  friend auto operator<=>(const Timer&, const Timer&) = default;
};

// dag_workflows, key (tenant, workflow_id, version). The text is what was published, byte for byte.
struct Workflow {
  Tenant tenant;
  std::string workflow_id;
  std::int32_t version = 0;
  std::string definition;
  Time published_at{};
};

// dag_idempotency_keys, key (tenant, idempotency_key)
struct IdempotencyKey {
  Tenant tenant;
  std::string idempotency_key;
  JobId job_id;
  std::string request_hash;  // of what was asked for: the same key with another request is a mistake
};

}  // namespace baton::workflow
