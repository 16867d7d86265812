#include "http/render_runbook.hpp"

namespace baton::http {

void append_runbook(std::string& out, const runbook::Runbook& row, Documents documents, Ending ending) {
  out += '{';
  append_member(out, "id", row.id);
  append_member(out, "name", row.name);
  append_member(out, "version", row.version);
  append_flag(out, "is_active", row.is_active);
  append_member(out, "data_table_name", row.data_table_name);
  append_member(out, "overdue_behavior", row.overdue_behavior);
  append_flag(out, "ignore_overdue_applied", row.ignore_overdue_applied);
  append_flag(out, "rerun_init", row.rerun_init);
  append_member(out, "created_at", row.created_at);
  append_flag(out, "automation_enabled", row.automation_enabled);
  append_member(out, "last_error", row.last_error);
  append_member(out, "last_error_at", row.last_error_at);
  append_member(out, "last_synced_at", row.last_synced_at);
  append_member(out, "held_removals", row.held_removals);
  append_flag(out, "in_transition", row.transition_after.has_value());
  if (documents == Documents::all) append_member(out, "yaml_content", row.yaml_content);
  if (ending == Ending::closed) out += '}';
}

void append_batch(std::string& out, const runbook::Batch& batch, Ending ending) {
  out += '{';
  append_member(out, "id", batch.id);
  append_member(out, "runbook_id", batch.runbook_id);
  append_member(out, "batch_start_time", batch.batch_start_time);
  append_member(out, "status", name(batch.status));
  append_member(out, "detected_at", batch.detected_at);
  append_member(out, "init_dispatched_at", batch.init_dispatched_at);
  append_flag(out, "is_manual", batch.is_manual);
  append_flag(out, "importing", batch.importing);
  append_member(out, "created_by", batch.created_by);
  append_member(out, "completed_at", batch.completed_at);
  append_member(out, "paused_at", batch.paused_at);
  append_member(out, "paused_by", batch.paused_by);
  append_member(out, "error_message", batch.error_message);
  append_flag(out, "removals_approved", batch.removals_approved);
  append_member(out, "walk", name(batch.walk));
  if (ending == Ending::closed) out += '}';
}

void append_batch(std::string& out, const BatchSummary& summary, Ending ending) {
  append_batch(out, summary.batch, Ending::open);
  append_member(out, "runbook_name", summary.runbook_name);
  append_member(out, "runbook_version", summary.runbook_version);
  if (ending == Ending::closed) out += '}';
}

}  // namespace baton::http
