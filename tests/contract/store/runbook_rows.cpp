#include "tests/contract/store/runbook_rows.hpp"

namespace baton::contract {

runbook::Runbook runbook_row(std::int64_t id, const std::string& name, std::int32_t version) {
  runbook::Runbook row;
  row.id = id;
  row.name = name;
  row.version = version;
  row.yaml_content = "name: " + name + "\n";
  row.data_table_name = "runbook_" + name + "_v" + std::to_string(version);
  row.is_active = false;
  row.overdue_behavior = "ignore";
  row.ignore_overdue_applied = true;
  row.rerun_init = true;
  row.created_at = at(id);
  row.automation_enabled = false;
  row.last_error = "the source is away";
  row.last_error_at = at(id + 1);
  row.last_synced_at = at(id + 2);
  row.held_removals = Json{R"([{"batch_id":1}])"};
  row.transition_after = 17;
  row.open_batches = runbook::OpenBatches::keep;
  row.timer_due = at(id + 3);
  return row;
}

runbook::Batch batch_row(std::int64_t id, std::int64_t runbook_id) {
  runbook::Batch row;
  row.id = id;
  row.runbook_id = runbook_id;
  row.batch_start_time = at(1000);
  row.status = runbook::BatchStatus::active;
  row.detected_at = at(id);
  row.init_dispatched_at = at(id + 1);
  row.is_manual = true;
  row.importing = true;
  row.created_by = "ann";
  row.completed_at = at(id + 2);
  row.paused_at = at(id + 3);
  row.paused_by = "bob";
  row.error_message = "no";
  row.removals_approved = "7-12345";
  row.paused_reason = "lunch";
  row.phase_overlap = runbook::PhaseOverlap::wait;
  row.source_time = at(1001);
  row.hold_id = 5;
  row.failures_accepted = 3;
  row.walk = runbook::Walk::cancel;
  row.walk_after = 99;
  row.timer_due = at(id + 4);
  return row;
}

runbook::Member member_row(std::int64_t id, std::int64_t batch_id) {
  runbook::Member row;
  row.id = id;
  row.batch_id = batch_id;
  row.member_key = "user" + std::to_string(id) + "@contoso.com";
  row.added_at = at(id);
  row.removed_at = at(id + 1);
  row.add_dispatched_at = at(id + 2);
  row.remove_dispatched_at = at(id + 3);
  row.failed_at = at(id + 4);
  row.data_json = Json{R"({"A":"1"})"};
  row.worker_data_json = Json{R"({"B":"2"})"};
  row.catching_up = true;
  row.counted_as = runbook::MemberStatus::failed;
  row.added_by = "eve";
  row.hold_id = 5;
  row.moved_to = 9;
  row.done_json = Json{R"({"prepare":["a"]})"};
  return row;
}

runbook::PhaseExecution phase_row(std::int64_t id, std::int64_t batch_id) {
  runbook::PhaseExecution row;
  row.id = id;
  row.batch_id = batch_id;
  row.phase_name = "prepare";
  row.offset_minutes = -120;
  row.due_at = at(id);
  row.runbook_version = 3;
  row.status = runbook::PhaseStatus::dispatched;
  row.dispatched_at = at(id + 1);
  row.completed_at = at(id + 2);
  row.walk = runbook::Walk::held;
  row.walk_after = 7;
  row.current_index = 2;
  row.member_ids = Json{"[1,2]"};
  row.waits_for = runbook::PhaseWait::answer;
  row.expected_at = at(id + 4);
  row.timer_due = at(id + 3);
  return row;
}

namespace {

void fill_execution(runbook::Execution& row, std::int64_t id, std::int32_t index) {
  row.id = id;
  row.step_name = "create-user";
  row.step_index = index;
  row.worker_id = "pool-1";
  row.function_name = "New-User";
  row.params_json = Json{R"({"Upn": "a"})"};
  row.status = runbook::StepStatus::dispatched;
  row.job_id = "step-" + std::to_string(id);
  row.error_message = "not yet";
  row.dispatched_at = at(id);
  row.completed_at = at(id + 1);
  row.is_poll_step = true;
  row.poll_interval_sec = 300;
  row.poll_timeout_sec = 3600;
  row.poll_started_at = at(id + 2);
  row.last_polled_at = at(id + 3);
  row.poll_count = 4;
  row.max_retries = 2;
  row.retry_interval_sec = 60;
  row.retry_count = 1;
  row.retry_after = at(id + 4);
  row.retry_backoff = "exponential";
  row.retry_max_interval_sec = 600;
  row.timeout_sec = 1800;
  row.job_state = runbook::JobState::leased;
  row.queued_at = at(id + 5);
  row.leased_by = "w-1";
  row.leased_at = at(id + 6);
  row.lease_until = at(id + 7);
  row.delivery_count = 3;
  row.log_bytes = 1234;
  row.dead_at = at(id + 8);
  row.timer_due = at(id + 9);
  row.counted_as = runbook::StepStatus::pending;
}

}  // namespace

runbook::StepExecution step_row(std::int64_t id, std::int64_t phase, std::int64_t member, std::int32_t index) {
  runbook::StepExecution row;
  fill_execution(row, id, index);
  row.phase_execution_id = phase;
  row.batch_member_id = member;
  row.is_catch_up = true;
  row.has_slot = true;
  return row;
}

runbook::InitExecution init_row(std::int64_t id, std::int64_t batch_id) {
  runbook::InitExecution row;
  fill_execution(row, id, 0);
  row.batch_id = batch_id;
  row.runbook_version = 3;
  return row;
}

runbook::CleanupExecution cleanup_row(std::int64_t id, std::int64_t batch_id) {
  runbook::CleanupExecution row;
  fill_execution(row, id, 0);
  row.kind = runbook::CleanupKind::removal;
  row.batch_id = batch_id;
  row.runbook_version = 3;
  row.phase_execution_id = 5;
  row.batch_member_id = 6;
  row.caused_by_step_id = 7;
  row.caused_by_init_id = 8;
  row.sequence = "on_member_removed";
  return row;
}

runbook::Hold hold_row(std::int64_t id, std::int64_t batch_id) {
  runbook::Hold row;
  row.id = id;
  row.kind = runbook::HoldKind::gate;
  row.status = runbook::HoldStatus::answered;
  row.runbook_name = "waves";
  row.batch_id = batch_id;
  row.phase_execution_id = 4;
  row.opened_at = at(id);
  row.message = "go or no-go";
  row.details_json = Json{R"({"members":30})"};
  row.mark = "30-1";
  row.answer_by = at(id + 1);
  row.answer = "go";
  row.decided_by = "ann";
  row.reason = "it is time";
  row.decided_at = at(id + 2);
  return row;
}

runbook::BatchEvent batch_event_row(std::int64_t batch_id, std::int64_t event_id) {
  return {batch_id, event_id, at(event_id), "batch_paused", 5, "step-1", "paused by ann"};
}

}  // namespace baton::contract
