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

std::string in_words(const Fields& phase) {
  if (phase.text("status") == "dispatched" && phase.text("walk") == "held") return "the init steps";
  const std::string waits_for = phase.text("waits_for");
  if (waits_for == "phases_before") return "the phases before it to end";
  if (waits_for == "required_phase") return "the phase that it requires";
  if (waits_for == "answer") return "an answer";
  if (waits_for == "batch_held") return "an answer for the batch";
  if (waits_for == "batch_paused") return "the batch, which is paused";
  return "";
}

// Of several versions of a phase each says which it is.
void label(std::vector<PhaseView>& phases) {
  for (PhaseView& phase : phases) {
    const bool alone = std::ranges::count(phases, phase.name, &PhaseView::name) == 1;
    phase.label = alone ? phase.name : phase.name + " v" + std::to_string(phase.version);
  }
}

HoldView read_hold(const Fields& hold) {
  HoldView view{.id = hold.text("id"), .kind = hold.text("kind"), .message = hold.text("message"), .phase = hold.text("phase"), .answers = {}};
  for (const Fields& answer : hold.items("answers")) view.answers.push_back(answer.text("answer"));
  return view;
}

PhaseView read_phase(const Fields& phase) {
  PhaseView view{.name = phase.text("phase_name"),
                 .status = phase.text("status"),
                 .outcome = phase.text("outcome"),
                 .label = "",
                 .waits_for = in_words(phase),
                 .offset_minutes = phase.number("offset_minutes"),
                 .version = phase.number("runbook_version"),
                 .due_at = time_of(phase, "due_at"),
                 .is_walking = phase.text("walk") == "start",
                 .steps = read_tally(phase, "counts", "step")};
  if (view.outcome.empty()) view.outcome = view.status;
  const Fields members(phase.document("members"));
  view.members = members.number("all");
  view.members_done = members.number("done");
  const Fields retrying(phase.document("retrying"));
  view.steps.retrying = std::min(retrying.number("count"), view.steps.pending);
  view.steps.pending -= view.steps.retrying;
  view.next_retry = time_of(retrying, "next_at");
  return view;
}

}  // namespace

std::string HoldView::command() const {
  std::string words;
  for (const std::string& answer : answers) words += (words.empty() ? "" : "|") + answer;
  return "baton needs-you answer " + id + " " + words;
}

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
                 .outcome = batch.text("outcome"),
                 .version = batch.number("runbook_version"),
                 .start = time_of(batch, "batch_start_time"),
                 .is_manual = batch.flag("is_manual"),
                 .is_importing = batch.flag("importing"),
                 .paused_at = time_of(batch, "paused_at"),
                 .completed_at = time_of(batch, "completed_at"),
                 .paused_by = batch.text("paused_by"),
                 .paused_reason = batch.text("paused_reason"),
                 .error = batch.text("error_message"),
                 .is_held = batch.has("hold_id"),
                 .holds = {},
                 .no_worker = {}};
  if (view.outcome.empty()) view.outcome = view.status;
  for (const Fields& hold : batch.items("holds")) view.holds.push_back(read_hold(hold));
  for (const Fields& queue : batch.items("no_worker")) view.no_worker.push_back(queue.text("message"));
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
  label(view.phases);
  view.catch_up = read_tally(batch, "catch_up", "catch_up");
  view.rollbacks = read_tally(batch, "rollbacks", "rollback");
  view.removals = read_tally(batch, "removals", "removal");
  return view;
}

}  // namespace baton::cli
