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
using baton::Tenant;

enum class JobStatus { pending, running, completed, failed, cancelled };
enum class NodeStatus { pending, ready, dispatched, running, completed, failed, skipped, cancelled };
enum class EventType {
  job_created,
  job_started,
  job_completed,
  job_failed,
  job_cancelled,
  job_paused,
  job_resumed,
  job_retried,
  node_ready,
  node_dispatched,
  node_started,
  node_completed,
  node_failed,
  node_retry,
  node_timeout,
  node_lease_expired,
  node_cancelled,
  node_skipped,
  checkpoint,
};

// PENDING, node_ready, …: the words of the tables and of the API.
[[nodiscard]] std::string_view name(JobStatus status);
[[nodiscard]] std::string_view name(NodeStatus status);
[[nodiscard]] std::string_view name(EventType type);
[[nodiscard]] std::optional<JobStatus> job_status(std::string_view name);
[[nodiscard]] std::optional<NodeStatus> node_status(std::string_view name);
[[nodiscard]] std::optional<EventType> event_type(std::string_view name);

// The item of a node that is none: only the children of a fan-out have one.
inline constexpr std::int32_t no_item = -1;

[[nodiscard]] constexpr bool is_terminal(JobStatus s) { return s >= JobStatus::completed; }
[[nodiscard]] constexpr bool is_terminal(NodeStatus s) { return s >= NodeStatus::completed; }

// dag_jobs
struct Job {
  JobId job_id;
  Tenant tenant;
  std::string workflow_id;
  std::int32_t workflow_version = 0;
  JobStatus status = JobStatus::pending;
  std::int32_t priority = 0;            // of its tasks in their queues: higher first
  std::optional<std::string> tags;      // a JSON array of strings
  std::optional<std::string> rerun_of;  // a job id
  Json input_data;  // empty: not loaded; documents may be large, and most messages do not need them
  OptionalJson result_data;
  std::optional<std::string> error;
  std::optional<std::string> traceparent;
  std::int32_t nodes_active = 0;  // nodes READY, DISPATCHED or RUNNING: the job ends when this is zero
  std::int32_t nodes_failed = 0;  // those that make the job fail
  Time created_at{};
  std::optional<Time> due_at;     // not before
  std::optional<Time> paused_at;  // nothing of it is dispatched while this is set
  std::optional<std::string> paused_by;
  std::optional<Time> started_at;
  std::optional<Time> completed_at;
};

// dag_node_states, key (job_id, item_index, node_id): the nodes of the definition first, then the children of
// fan-outs by their index.
struct NodeState {
  JobId job_id;
  std::int32_t item_index = no_item;
  std::string node_id;  // of a child: the fan-out's, '_' and the index
  NodeStatus status = NodeStatus::pending;
  std::int32_t waiting_for = 0;  // incoming edges that are neither fired nor dead
  std::int32_t edges_fired = 0;  // the others are dead: their branch was not taken
  std::int32_t retry_count = 0;  // the current attempt, from 0
  std::int32_t retry_base =
      0;  // the attempt from which the retry policy counts; later ones: asked for by hand
  std::int32_t delivery_count = 0;  // how often this attempt was handed to a worker
  std::int32_t priority = 0;        // the job's
  std::optional<std::string> task_id;
  Tenant tenant;  // with queue: where a DISPATCHED row waits for a worker
  std::optional<std::string> queue;
  std::optional<std::string> worker_id;
  std::optional<Time> lease_until;  // RUNNING: when the worker is given up
  std::optional<Time> timer_due;    // the one timer of this row, if it has one (its key in the timers table)
  // A fan-out's items: how many there are (none: not known yet), have a row, have ended and have failed.
  std::optional<std::int32_t> items_total;
  std::int32_t items_created = 0;
  std::int32_t items_done = 0;
  std::int32_t items_failed = 0;
  std::optional<std::int32_t> sweep_next;  // a walk over its children is at this one
  std::optional<Time> dispatched_at;
  std::optional<Time> started_at;
  std::optional<Time> completed_at;
  std::optional<Time> dead_at;  // FAILED because worker after worker went silent
  std::int32_t log_bytes = 0;   // stored of this attempt
  std::optional<std::string> error;
  OptionalJson progress;
  OptionalJson checkpoint;  // the last one, for the next attempt
  OptionalJson params;      // as evaluated; none: those of the definition
  OptionalJson output;
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
  Tenant tenant;  // not a column: of the job, for the feed
};

// dag_job_tags, key (tenant, tag, job_id): jobs by tag.
struct JobTag {
  Tenant tenant;
  std::string tag;
  JobId job_id;
};

// dag_task_logs, key (job_id, node_id, log_id): what a task said while it ran; log_id grows with each commit.
struct LogLine {
  JobId job_id;
  std::string node_id;
  std::int64_t log_id = 0;
  std::int32_t retry_count = 0;
  std::string stream;
  Time logged_at{};
  std::string text;
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
