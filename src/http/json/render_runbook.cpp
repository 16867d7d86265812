#include "http/json/render_runbook.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/json_document.hpp"
#include "core/runbook/machine/holds.hpp"

namespace baton::http {

namespace {

constexpr std::string_view completed_with_failures = "completed_with_failures";

void append_stored(std::string& out, std::string_view key, const OptionalJson& stored) {
  if (!stored) return append_member(out, key, OptionalJson{});
  if (const auto document = JsonDocument::parse(stored->text))
    return append_member(out, key, OptionalJson{document->root().json()});
  append_member(out, key, stored->text);
}

}  // namespace

void append_runbook(std::string& out, const runbook::Runbook& row, Documents documents, ObjectEnd ending) {
  out += '{';
  append_member(out, "id", row.id);
  append_member(out, "name", row.name);
  append_member(out, "version", row.version);
  append_member(out, "is_active", row.is_active);
  append_member(out, "data_table_name", row.data_table_name);
  append_member(out, "overdue_behavior", row.overdue_behavior);
  append_member(out, "ignore_overdue_applied", row.ignore_overdue_applied);
  append_member(out, "rerun_init", row.rerun_init);
  append_member(out, "created_at", row.created_at);
  append_member(out, "automation_enabled", row.automation_enabled);
  append_member(out, "last_error", row.last_error);
  append_member(out, "last_error_at", row.last_error_at);
  append_member(out, "last_synced_at", row.last_synced_at);
  append_stored(out, "held_removals", row.held_removals);
  append_member(out, "in_transition", row.transition_after.has_value());
  append_member(out, "open_batches", row.open_batches ? std::optional(name(*row.open_batches)) : std::nullopt);
  if (documents == Documents::all) append_member(out, "yaml_content", row.yaml_content);
  if (ending == ObjectEnd::closed) out += '}';
}

void append_batch(std::string& out, const runbook::Batch& batch, ObjectEnd ending) {
  out += '{';
  append_member(out, "id", batch.id);
  append_member(out, "runbook_id", batch.runbook_id);
  append_member(out, "batch_start_time", batch.batch_start_time);
  append_member(out, "status", name(batch.status));
  append_member(out, "detected_at", batch.detected_at);
  append_member(out, "init_dispatched_at", batch.init_dispatched_at);
  append_member(out, "is_manual", batch.is_manual);
  append_member(out, "importing", batch.importing);
  append_member(out, "created_by", batch.created_by);
  append_member(out, "completed_at", batch.completed_at);
  append_member(out, "paused_at", batch.paused_at);
  append_member(out, "paused_by", batch.paused_by);
  append_member(out, "paused_reason", batch.paused_reason);
  append_member(out, "hold_id", batch.hold_id);
  append_member(out, "phase_overlap", name(batch.phase_overlap.value_or(runbook::PhaseOverlap::allow)));
  append_member(out, "error_message", batch.error_message);
  append_member(out, "removals_approved", batch.removals_approved.has_value());
  append_member(out, "walk", name(batch.walk));
  if (ending == ObjectEnd::closed) out += '}';
}

std::string_view outcome_of(const BatchSummary& summary) {
  const bool with_failures = summary.batch.status == runbook::BatchStatus::completed && summary.has_failures;
  return with_failures ? completed_with_failures : name(summary.batch.status);
}

std::string_view outcome_of(const runbook::PhaseExecution& phase, const std::vector<runbook::Count>& counts) {
  const bool has_failures = std::ranges::any_of(counts, [&](const runbook::Count& count) {
    const auto status = runbook::step_status(count.status);
    return count.phase_execution_id == phase.id && count.n > 0 && (count.lane == "step" || count.lane == "catch_up") &&
           status && is_failure(*status);
  });
  return phase.status == runbook::PhaseStatus::completed && has_failures ? completed_with_failures : name(phase.status);
}

void append_batch(std::string& out, const BatchSummary& summary, ObjectEnd ending) {
  append_batch(out, summary.batch, ObjectEnd::open);
  append_member(out, "runbook_name", summary.runbook_name);
  append_member(out, "runbook_version", summary.runbook_version);
  append_member(out, "outcome", outcome_of(summary));
  if (ending == ObjectEnd::closed) out += '}';
}

void append_batch_event(std::string& out, const runbook::BatchEvent& event) {
  out += '{';
  append_member(out, "event_id", event.event_id);
  append_member(out, "event_type", event.event_type);
  append_member(out, "created_at", event.created_at);
  append_member(out, "batch_member_id", event.batch_member_id);
  append_member(out, "job_id", event.job_id);
  append_member(out, "message", event.message);
  out += '}';
}

void append_phase(std::string& out, const runbook::PhaseExecution& phase, ObjectEnd ending) {
  out += '{';
  append_member(out, "id", phase.id);
  append_member(out, "batch_id", phase.batch_id);
  append_member(out, "phase_name", phase.phase_name);
  append_member(out, "offset_minutes", phase.offset_minutes);
  append_member(out, "due_at", phase.due_at);
  append_member(out, "runbook_version", phase.runbook_version);
  append_member(out, "status", name(phase.status));
  append_member(out, "dispatched_at", phase.dispatched_at);
  append_member(out, "completed_at", phase.completed_at);
  append_member(out, "walk", name(phase.walk));
  append_member(out, "waits_for", name(phase.waits_for));
  append_member(out, "current_index", phase.current_index);
  if (ending == ObjectEnd::closed) out += '}';
}

void append_batch_member(std::string& out, const runbook::Member& member, Documents documents,
                         ObjectEnd ending) {
  out += '{';
  append_member(out, "id", member.id);
  append_member(out, "batch_id", member.batch_id);
  append_member(out, "member_key", member.member_key);
  append_member(out, "status", name(member.status));
  append_member(out, "added_at", member.added_at);
  append_member(out, "removed_at", member.removed_at);
  append_member(out, "failed_at", member.failed_at);
  append_member(out, "add_dispatched_at", member.add_dispatched_at);
  append_member(out, "remove_dispatched_at", member.remove_dispatched_at);
  append_member(out, "catching_up", member.catching_up);
  if (documents == Documents::all) {
    append_stored(out, "data_json", member.data_json);
    append_stored(out, "worker_data_json", member.worker_data_json);
  }
  if (ending == ObjectEnd::closed) out += '}';
}

namespace {

void append_place(std::string& out, const ExecutionView& view) {
  append_member(out, "type", name(view.ref.type));
  append_member(out, "batch_id", view.batch_id);
  append_member(out, "runbook_version", view.runbook_version);
  if (view.ref.type != runbook::RowType::init) {
    append_member(out, "phase_execution_id", view.phase_execution_id);
    append_member(out, "batch_member_id", view.batch_member_id);
  }
  if (view.ref.type == runbook::RowType::step) append_member(out, "is_catch_up", view.is_catch_up);
  if (!view.cleanup_kind) return;
  append_member(out, "kind", name(*view.cleanup_kind));
  append_member(out, "sequence", view.sequence);
  append_member(out, "caused_by_step_id", view.caused_by_step_id);
  append_member(out, "caused_by_init_id", view.caused_by_init_id);
}

void append_polls_and_retries(std::string& out, const runbook::Execution& row) {
  append_member(out, "is_poll_step", row.is_poll_step);
  if (row.is_poll_step) {
    append_member(out, "poll_interval_sec", row.poll_interval_sec);
    append_member(out, "poll_timeout_sec", row.poll_timeout_sec);
    append_member(out, "poll_started_at", row.poll_started_at);
    append_member(out, "last_polled_at", row.last_polled_at);
  }
  append_member(out, "poll_count", row.poll_count);
  append_member(out, "max_retries", row.max_retries);
  append_member(out, "retry_interval_sec", row.retry_interval_sec);
  append_member(out, "retry_backoff", row.retry_backoff);
  append_member(out, "retry_count", row.retry_count);
  append_member(out, "retry_after", row.retry_after);
}

}  // namespace

void append_execution(std::string& out, const ExecutionView& view, Documents documents, ObjectEnd ending) {
  const runbook::Execution& row = view.execution;
  out += '{';
  append_member(out, "id", view.ref.id);
  append_place(out, view);
  append_member(out, "step_name", row.step_name);
  append_member(out, "step_index", row.step_index);
  append_member(out, "status", name(row.status));
  append_member(out, "skipped", is_skipped(row));
  append_member(out, "worker_id", row.worker_id);
  append_member(out, "function_name", row.function_name);
  append_member(out, "job_id", row.job_id);
  append_member(out, "error_message", row.error_message);
  append_member(out, "dispatched_at", row.dispatched_at);
  append_member(out, "completed_at", row.completed_at);
  append_polls_and_retries(out, row);
  append_member(out, "timeout_sec", row.timeout_sec);
  append_member(out, "job_state", name(row.job_state));
  append_member(out, "queued_at", row.queued_at);
  append_member(out, "leased_by", row.leased_by);
  append_member(out, "leased_at", row.leased_at);
  append_member(out, "lease_until", row.lease_until);
  append_member(out, "delivery_count", row.delivery_count);
  append_member(out, "dead_at", row.dead_at);
  if (documents == Documents::all) {
    append_stored(out, "params_json", row.params_json);
    append_stored(out, "result_json", row.result_json);
  }
  if (ending == ObjectEnd::closed) out += '}';
}

void append_hold(std::string& out, const runbook::Hold& hold, const std::optional<std::string>& phase_name) {
  out += '{';
  append_members(out, "id", "hold-" + std::to_string(hold.id), "kind", name(hold.kind), "runbook", hold.runbook_name,
                 "batch_id", hold.batch_id, "phase_execution_id", hold.phase_execution_id, "phase", phase_name, "message",
                 hold.message, "since", hold.opened_at);
  append_stored(out, "details", hold.details_json);
  const auto answers = hold.status == runbook::HoldStatus::open ? answers_of(hold.kind) : std::vector<runbook::Answer>{};
  append_list(out, "answers", answers, [](std::string& to, const runbook::Answer& answer) {
    append_object(to, "answer", answer.word, "does", answer.does);
  });
  append_member(out, "answer_by", hold.answer_by);
  out += '}';
}

void append_step_reply(std::string& out, const StepReply& reply) {
  out += '{';
  append_member(out, "id", reply.ref.id);
  append_member(out, "type", name(reply.ref.type));
  append_member(out, "status", name(reply.status));
  out += '}';
}

void append_failure(std::string& out, const Failure& failure) {
  append_execution(out, failure.step, Documents::none, ObjectEnd::open);
  append_member(out, "member_key", failure.member_key);
  append_member(out, "phase_name", failure.phase_name);
  out += '}';
}

void append_counts(std::string& out, std::string_view key, const std::vector<runbook::Count>& counts,
                   CountFilter filter) {
  std::map<std::string_view, std::int64_t> sums;
  for (const auto& count : counts) {
    if (count.lane != filter.name || count.phase_execution_id != filter.phase_execution_id) continue;
    if (filter.step_index != any_step && count.step_index != filter.step_index) continue;
    if (count.n != 0) sums[count.status] += count.n;
  }
  append_member(out, key, sums);
}

namespace {

// How many members have begun the phase, came through it, or failed in it, those who catch up too.
void append_members_of(std::string& out, const runbook::PhaseExecution& phase, const std::vector<runbook::Count>& counts) {
  const auto is_of_members = [&](const runbook::Count& count) {
    return count.phase_execution_id == phase.id && (count.lane == "step" || count.lane == "catch_up");
  };
  std::int32_t last = 0;
  for (const auto& count : counts)
    if (is_of_members(count)) last = std::max(last, count.step_index);
  std::int64_t all = 0, done = 0, failed = 0;
  for (const auto& count : counts) {
    const auto status = is_of_members(count) ? runbook::step_status(count.status) : std::nullopt;
    if (!status) continue;
    if (count.step_index == 0) all += count.n;
    if (count.step_index == last && *status == runbook::StepStatus::succeeded) done += count.n;
    if (is_failure(*status)) failed += count.n;
  }
  append_key(out, "members");
  append_object(out, "all", all, "done", done, "failed", failed);
}

}  // namespace

void append_phase_counts(std::string& out, const runbook::PhaseExecution& phase,
                         const std::vector<runbook::Count>& counts) {
  append_member(out, "outcome", outcome_of(phase, counts));
  append_members_of(out, phase, counts);
  append_counts(out, "counts", counts, {"step", phase.id});
  std::set<std::int32_t> indices;
  for (const auto& count : counts)
    if (count.lane == "step" && count.phase_execution_id == phase.id) indices.insert(count.step_index);
  append_list(out, "steps", indices, [&](std::string& to, std::int32_t index) {
    to += '{';
    append_member(to, "step_index", index);
    append_counts(to, "counts", counts, {"step", phase.id, index});
    append_counts(to, "skipped", counts, {"skipped", phase.id, index});
    to += '}';
  });
  append_counts(out, "rollbacks", counts, {"rollback", phase.id});
  append_counts(out, "catch_up", counts, {"catch_up", phase.id});
  append_counts(out, "skipped", counts, {"skipped", phase.id});
}

void append_members_reply(std::string& out, const MembersReply& reply) {
  out += '{';
  append_member(out, "count", reply.member_ids.size());
  append_member(out, "left_out", count_of(reply.left_out));
  append_list(out, "left_out_because", reply.left_out, [](std::string& to, const runbook::LeftOut& each) {
    append_object(to, "reason", each.reason, "message", each.message, "count", each.count, "member_keys",
                  each.member_keys);
  });
  append_member(out, "note", reply.note);
  append_member(out, "member_ids", reply.member_ids);
  append_member(out, "phases", reply.phases);
  out += '}';
}

}  // namespace baton::http
