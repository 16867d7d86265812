// The tables of workflows and of the server itself; those of other kinds are in the headers that it includes.
#pragma once

#include "core/workflow/machine/rows.hpp"
#include "ports/reads.hpp"
#include "store/call_tables.hpp"
#include "store/columns.hpp"
#include "store/message_tables.hpp"
#include "store/runbook_tables.hpp"

namespace baton::store {

template <>
struct Table<workflow::Job> {
  using Row = workflow::Job;
  static constexpr std::string_view name = "dag_jobs";
  static constexpr auto columns = std::tuple{
      key("job_id", &Row::job_id),
      fixed("tenant", &Row::tenant),
      fixed("workflow_id", &Row::workflow_id),
      fixed("workflow_version", &Row::workflow_version),
      live("status", &Row::status),
      fixed("priority", &Row::priority),
      fixed("tags", &Row::tags),
      fixed("rerun_of", &Row::rerun_of),
      live("error", &Row::error),
      fixed("traceparent", &Row::traceparent),
      live("nodes_active", &Row::nodes_active),
      live("nodes_failed", &Row::nodes_failed),
      fixed("created_at", &Row::created_at),
      fixed("due_at", &Row::due_at),
      live("paused_at", &Row::paused_at),
      live("paused_by", &Row::paused_by),
      live("started_at", &Row::started_at),
      live("completed_at", &Row::completed_at),
      fixed("input_data", &Row::input_data),
      live("result_data", &Row::result_data),
  };
};

template <>
struct Table<workflow::NodeState> {
  using Row = workflow::NodeState;
  static constexpr std::string_view name = "dag_node_rows";  // of those that are in no page (sql_job_pages.hpp)
  static constexpr auto columns = std::tuple{
      key("job_id", &Row::job_id),
      key("item_index", &Row::item_index),
      key("node_id", &Row::node_id),
      live("status", &Row::status),
      live("waiting_for", &Row::waiting_for),
      live("edges_fired", &Row::edges_fired),
      live("retry_count", &Row::retry_count),
      live("retry_base", &Row::retry_base),
      live("delivery_count", &Row::delivery_count),
      fixed("priority", &Row::priority),
      live("task_id", &Row::task_id),
      live("tenant", &Row::tenant),
      live("queue", &Row::queue),
      live("worker_id", &Row::worker_id),
      live("lease_until", &Row::lease_until),
      live("timer_due", &Row::timer_due),
      live("items_total", &Row::items_total),
      live("items_created", &Row::items_created),
      live("items_done", &Row::items_done),
      live("items_failed", &Row::items_failed),
      live("sweep_next", &Row::sweep_next),
      live("dispatched_at", &Row::dispatched_at),
      live("started_at", &Row::started_at),
      live("completed_at", &Row::completed_at),
      live("dead_at", &Row::dead_at),
      live("log_bytes", &Row::log_bytes),
      live("error", &Row::error),
      live("progress", &Row::progress),
      live("checkpoint", &Row::checkpoint),
      live("params", &Row::params),
      live("output", &Row::output),
  };
};

template <>
struct Table<workflow::TaskResult> {
  using Row = workflow::TaskResult;
  static constexpr std::string_view name = "dag_task_result_rows";  // the same
  static constexpr auto columns = std::tuple{
      key("task_id", &Row::task_id),       fixed("job_id", &Row::job_id),
      fixed("node_id", &Row::node_id),     fixed("status", &Row::status),
      fixed("error", &Row::error),         fixed("worker_id", &Row::worker_id),
      fixed("lease", &Row::lease),         fixed("execution_duration_ms", &Row::execution_duration_ms),
      fixed("processed", &Row::processed), fixed("received_at", &Row::received_at),
      fixed("output", &Row::output),
  };
};

template <>
struct Table<workflow::Event> {
  using Row = workflow::Event;
  static constexpr std::string_view name = "dag_job_events";
  static constexpr auto columns = std::tuple{
      key("job_id", &Row::job_id),           key("event_id", &Row::event_id),
      fixed("event_type", &Row::event_type), fixed("node_id", &Row::node_id),
      fixed("created_at", &Row::created_at), fixed("event_data", &Row::event_data),
  };
};

template <>
struct Table<workflow::JobTag> {
  using Row = workflow::JobTag;
  static constexpr std::string_view name = "dag_job_tags";
  static constexpr auto columns =
      std::tuple{key("tenant", &Row::tenant), key("tag", &Row::tag), key("job_id", &Row::job_id)};
};

template <>
struct Table<workflow::LogLine> {
  using Row = workflow::LogLine;
  static constexpr std::string_view name = "dag_task_logs";
  static constexpr auto columns = std::tuple{
      key("job_id", &Row::job_id),   key("node_id", &Row::node_id),
      key("log_id", &Row::log_id),   fixed("retry_count", &Row::retry_count),
      fixed("stream", &Row::stream), fixed("logged_at", &Row::logged_at),
      fixed("text", &Row::text),
  };
};

template <>
struct Table<workflow::Workflow> {
  using Row = workflow::Workflow;
  static constexpr std::string_view name = "dag_workflows";
  static constexpr auto columns = std::tuple{
      key("tenant", &Row::tenant),           key("workflow_id", &Row::workflow_id),
      key("version", &Row::version),         fixed("published_at", &Row::published_at),
      fixed("definition", &Row::definition),
  };
};

template <>
struct Table<workflow::IdempotencyKey> {
  using Row = workflow::IdempotencyKey;
  static constexpr std::string_view name = "dag_idempotency_keys";
  static constexpr auto columns = std::tuple{
      key("tenant", &Row::tenant),
      key("idempotency_key", &Row::idempotency_key),
      fixed("job_id", &Row::job_id),
      fixed("request_hash", &Row::request_hash),
  };
};

template <>
struct Table<Token> {
  using Row = Token;
  static constexpr std::string_view name = "access_tokens";
  static constexpr auto columns = std::tuple{
      key("token_id", &Row::token_id),      fixed("token_hash", &Row::token_hash),
      fixed("label", &Row::label),          fixed("role", &Row::role),
      fixed("tenant", &Row::tenant),        fixed("created_at", &Row::created_at),
      live("revoked_at", &Row::revoked_at), fixed("bus_key", &Row::bus_key),
  };
};

}  // namespace baton::store
