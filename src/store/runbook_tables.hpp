// The tables of runbooks. Other programs write them too, so an update writes what was changed and nothing else:
// there is no fixed column in a row that is updated (columns.hpp).
#pragma once

#include "core/runbook/machine/rows.hpp"
#include "store/columns.hpp"

namespace baton::store {

template <>
struct Table<runbook::Runbook> {
  using Row = runbook::Runbook;
  static constexpr std::string_view name = "runbooks";
  static constexpr auto columns = std::tuple{
      key("id", &Row::id),
      live("name", &Row::name),
      live("version", &Row::version),
      live("data_table_name", &Row::data_table_name),
      live("is_active", &Row::is_active),
      live("overdue_behavior", &Row::overdue_behavior),
      live("ignore_overdue_applied", &Row::ignore_overdue_applied),
      live("rerun_init", &Row::rerun_init),
      live("created_at", &Row::created_at),
      live("automation_enabled", &Row::automation_enabled),
      live("last_error", &Row::last_error),
      live("last_error_at", &Row::last_error_at),
      live("last_synced_at", &Row::last_synced_at),
      live("transition_after", &Row::transition_after),
      live("timer_due", &Row::timer_due),
      live("held_removals", &Row::held_removals),
      live("open_batches", &Row::open_batches),
      live("yaml_content", &Row::yaml_content),
  };
};

template <>
struct Table<runbook::Batch> {
  using Row = runbook::Batch;
  static constexpr std::string_view name = "batches";
  static constexpr auto columns = std::tuple{
      key("id", &Row::id),
      live("runbook_id", &Row::runbook_id),
      live("batch_start_time", &Row::batch_start_time),
      live("status", &Row::status),
      live("detected_at", &Row::detected_at),
      live("init_dispatched_at", &Row::init_dispatched_at),
      live("is_manual", &Row::is_manual),
      live("importing", &Row::importing),
      live("created_by", &Row::created_by),
      live("completed_at", &Row::completed_at),
      live("paused_at", &Row::paused_at),
      live("paused_by", &Row::paused_by),
      live("error_message", &Row::error_message),
      live("removals_approved", &Row::removals_approved),
      live("walk", &Row::walk),
      live("walk_after", &Row::walk_after),
      live("timer_due", &Row::timer_due),
      live("paused_reason", &Row::paused_reason),
      live("phase_overlap", &Row::phase_overlap),
      live("source_time", &Row::source_time),
      live("hold_id", &Row::hold_id),
      live("failures_accepted", &Row::failures_accepted),
  };
};

template <>
struct Table<runbook::Member> {
  using Row = runbook::Member;
  static constexpr std::string_view name = "batch_members";
  static constexpr auto columns = std::tuple{
      key("id", &Row::id),
      live("batch_id", &Row::batch_id),
      live("member_key", &Row::member_key),
      live("status", &Row::status),
      live("added_at", &Row::added_at),
      live("removed_at", &Row::removed_at),
      live("removed_by", &Row::removed_by),
      live("add_dispatched_at", &Row::add_dispatched_at),
      live("remove_dispatched_at", &Row::remove_dispatched_at),
      live("failed_at", &Row::failed_at),
      live("catching_up", &Row::catching_up),
      live("counted_as", &Row::counted_as),
      live("added_by", &Row::added_by),
      live("hold_id", &Row::hold_id),
      live("moved_to", &Row::moved_to),
      live("done_json", &Row::done_json),
      document("data_json", &Row::data_json),
      document("worker_data_json", &Row::worker_data_json),
  };
};

template <>
struct Table<runbook::PhaseExecution> {
  using Row = runbook::PhaseExecution;
  static constexpr std::string_view name = "phase_executions";
  static constexpr auto columns = std::tuple{
      key("id", &Row::id),
      live("batch_id", &Row::batch_id),
      live("phase_name", &Row::phase_name),
      live("offset_minutes", &Row::offset_minutes),
      live("due_at", &Row::due_at),
      live("runbook_version", &Row::runbook_version),
      live("status", &Row::status),
      live("dispatched_at", &Row::dispatched_at),
      live("completed_at", &Row::completed_at),
      live("walk", &Row::walk),
      live("walk_after", &Row::walk_after),
      live("current_index", &Row::current_index),
      live("timer_due", &Row::timer_due),
      live("member_ids", &Row::member_ids),
      live("waits_for", &Row::waits_for),
      live("expected_at", &Row::expected_at),
  };
};

// What the three tables of jobs have in common, after the key.
constexpr auto execution_columns = std::tuple{
    live("step_name", &runbook::Execution::step_name),
    live("step_index", &runbook::Execution::step_index),
    live("worker_id", &runbook::Execution::worker_id),
    live("function_name", &runbook::Execution::function_name),
    live("status", &runbook::Execution::status),
    live("job_id", &runbook::Execution::job_id),
    live("dispatched_at", &runbook::Execution::dispatched_at),
    live("completed_at", &runbook::Execution::completed_at),
    live("is_poll_step", &runbook::Execution::is_poll_step),
    live("poll_interval_sec", &runbook::Execution::poll_interval_sec),
    live("poll_timeout_sec", &runbook::Execution::poll_timeout_sec),
    live("poll_started_at", &runbook::Execution::poll_started_at),
    live("last_polled_at", &runbook::Execution::last_polled_at),
    live("poll_count", &runbook::Execution::poll_count),
    live("max_retries", &runbook::Execution::max_retries),
    live("retry_interval_sec", &runbook::Execution::retry_interval_sec),
    live("retry_count", &runbook::Execution::retry_count),
    live("retry_after", &runbook::Execution::retry_after),
    live("retry_backoff", &runbook::Execution::retry_backoff),
    live("retry_max_interval_sec", &runbook::Execution::retry_max_interval_sec),
    live("timeout_sec", &runbook::Execution::timeout_sec),
    live("job_state", &runbook::Execution::job_state),
    live("queued_at", &runbook::Execution::queued_at),
    live("leased_by", &runbook::Execution::leased_by),
    live("leased_at", &runbook::Execution::leased_at),
    live("lease_until", &runbook::Execution::lease_until),
    live("delivery_count", &runbook::Execution::delivery_count),
    live("log_bytes", &runbook::Execution::log_bytes),
    live("dead_at", &runbook::Execution::dead_at),
    live("timer_due", &runbook::Execution::timer_due),
    live("counted_as", &runbook::Execution::counted_as),
    live("error_message", &runbook::Execution::error_message),
    document("params_json", &runbook::Execution::params_json),
    outcome("result_json", &runbook::Execution::result_json),
};

constexpr auto execution_key = std::tuple{key("id", &runbook::Execution::id)};

template <>
struct Table<runbook::StepExecution> {
  using Row = runbook::StepExecution;
  static constexpr std::string_view name = "step_executions";
  static constexpr auto columns = std::tuple_cat(inherit<Row>(execution_key),
                                                 std::tuple{
                                                     live("phase_execution_id", &Row::phase_execution_id),
                                                     live("batch_member_id", &Row::batch_member_id),
                                                     live("is_catch_up", &Row::is_catch_up),
                                                     live("has_slot", &Row::has_slot),
                                                 },
                                                 inherit<Row>(execution_columns));
};

template <>
struct Table<runbook::InitExecution> {
  using Row = runbook::InitExecution;
  static constexpr std::string_view name = "init_executions";
  static constexpr auto columns = std::tuple_cat(inherit<Row>(execution_key),
                                                 std::tuple{
                                                     live("batch_id", &Row::batch_id),
                                                     live("runbook_version", &Row::runbook_version),
                                                 },
                                                 inherit<Row>(execution_columns));
};

template <>
struct Table<runbook::CleanupExecution> {
  using Row = runbook::CleanupExecution;
  static constexpr std::string_view name = "cleanup_executions";
  static constexpr auto columns = std::tuple_cat(inherit<Row>(execution_key),
                                                 std::tuple{
                                                     live("kind", &Row::kind),
                                                     live("batch_id", &Row::batch_id),
                                                     live("runbook_version", &Row::runbook_version),
                                                     live("phase_execution_id", &Row::phase_execution_id),
                                                     live("batch_member_id", &Row::batch_member_id),
                                                     live("caused_by_step_id", &Row::caused_by_step_id),
                                                     live("caused_by_init_id", &Row::caused_by_init_id),
                                                     live("sequence", &Row::sequence),
                                                 },
                                                 inherit<Row>(execution_columns));
};

template <>
struct Table<runbook::Hold> {
  using Row = runbook::Hold;
  static constexpr std::string_view name = "holds";
  static constexpr auto columns = std::tuple{
      key("id", &Row::id),
      live("kind", &Row::kind),
      live("status", &Row::status),
      live("runbook_name", &Row::runbook_name),
      live("batch_id", &Row::batch_id),
      live("phase_execution_id", &Row::phase_execution_id),
      live("opened_at", &Row::opened_at),
      live("message", &Row::message),
      live("details_json", &Row::details_json),
      live("mark", &Row::mark),
      live("answer_by", &Row::answer_by),
      live("answer", &Row::answer),
      live("decided_by", &Row::decided_by),
      live("reason", &Row::reason),
      live("decided_at", &Row::decided_at),
  };
};

template <>
struct Table<runbook::Count> {
  using Row = runbook::Count;
  static constexpr std::string_view name = "batch_counts";
  static constexpr auto columns = std::tuple{
      key("batch_id", &Row::batch_id), key("phase_execution_id", &Row::phase_execution_id),
      key("lane", &Row::lane),         key("step_index", &Row::step_index),
      key("status", &Row::status),     live("n", &Row::n),
  };
};

template <>
struct Table<runbook::BatchEvent> {
  using Row = runbook::BatchEvent;
  static constexpr std::string_view name = "batch_events";
  static constexpr auto columns = std::tuple{
      key("batch_id", &Row::batch_id),
      key("event_id", &Row::event_id),
      fixed("created_at", &Row::created_at),
      fixed("event_type", &Row::event_type),
      fixed("batch_member_id", &Row::batch_member_id),
      fixed("job_id", &Row::job_id),
      fixed("message", &Row::message),
  };
};

}  // namespace baton::store
