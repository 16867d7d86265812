#include "cli/terminal/batch_view.hpp"

#include <algorithm>

namespace baton::cli {
namespace {

// {"succeeded":12,"pending":3}, and how many of the lane were skipped: {"step":2}
Tally read_tally(const Fields& fields, std::string_view key, std::string_view lane) {
  Tally tally;
  const Fields counts(fields.document(key));
  for (const auto& [status, number] : fields.members(key)) tally.add(status, counts.number(status));
  tally.skipped = std::min(Fields(fields.document("skipped")).number(lane), tally.succeeded);
  return tally;
}

PhaseView read_phase(const Fields& phase) {
  return {.name = phase.text("phase_name"),
          .status = phase.text("status"),
          .offset_minutes = phase.number("offset_minutes"),
          .version = phase.number("runbook_version"),
          .due_at = time_of(phase, "due_at"),
          .is_walking = phase.text("walk") == "start",
          .steps = read_tally(phase, "counts", "step")};
}

}  // namespace

bool PhaseView::has_ended() const { return status != "pending" && status != "dispatched"; }

bool BatchView::has_ended() const {
  return status == "completed" || status == "failed" || status == "cancelled";
}

Tally BatchView::steps() const {
  Tally all = init;
  for (const PhaseView& phase : phases) all += phase.steps;
  for (const Tally& beside : {catch_up, rollbacks, removals}) all += beside;
  return all;
}

std::optional<Time> time_of(const Fields& fields, std::string_view key) { return from_iso(fields.text(key)); }

BatchView read_batch(const Fields& batch) {
  BatchView view{.id = batch.number("id"),
                 .runbook = batch.text("runbook_name"),
                 .status = batch.text("status"),
                 .version = batch.number("runbook_version"),
                 .start = time_of(batch, "batch_start_time"),
                 .is_manual = batch.flag("is_manual"),
                 .is_importing = batch.flag("importing"),
                 .paused_at = time_of(batch, "paused_at"),
                 .completed_at = time_of(batch, "completed_at"),
                 .paused_by = batch.text("paused_by"),
                 .error = batch.text("error_message")};
  const Fields members(batch.document("members"));
  view.active = members.number("active");
  view.failed = members.number("failed");
  view.removed = members.number("removed");
  view.held_removals = Fields(batch.document("held_removals")).number("leaving");
  for (const Fields& step : batch.items("init_steps")) {
    view.init.add(step.text("status"), 1);
    if (step.flag("skipped")) ++view.init.skipped;
  }
  for (const Fields& phase : batch.items("phases")) view.phases.push_back(read_phase(phase));
  std::ranges::stable_sort(view.phases, std::ranges::greater{}, &PhaseView::offset_minutes);
  view.catch_up = read_tally(batch, "catch_up", "catch_up");
  view.rollbacks = read_tally(batch, "rollbacks", "rollback");
  view.removals = read_tally(batch, "removals", "removal");
  return view;
}

}  // namespace baton::cli
