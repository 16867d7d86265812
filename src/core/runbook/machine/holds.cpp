// What a phase of ours waits for when it is due, and what waits for a person. An external scheduler decides for itself:
// what it says begins at once, whatever stands here.
#include "core/runbook/machine/holds.hpp"

#include <algorithm>

#include "base/json_write.hpp"
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {
namespace {

// In the order of time; of one time in that of their making.
bool is_before(const PhaseExecution& a, const PhaseExecution& b) {
  return std::pair(-a.offset_minutes, a.id) < std::pair(-b.offset_minutes, b.id);
}

std::string in_words(const PhaseExecution& phase) { return "phase '" + phase.phase_name + "'"; }

std::string rounded(Duration duration) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(duration).count();
  if (minutes < 120) return std::to_string(minutes) + " min";
  if (minutes < 48 * 60) return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
  return std::to_string(minutes / (24 * 60)) + " days";
}

// Of the steps of a phase, how many failed for good.
std::int64_t failed_in(const PhaseExecution& phase, Ledger& ledger) {
  std::int64_t failed = 0;
  for (const std::string_view lane : {"step", "catch_up"})
    for (std::int32_t step = 0; step <= ledger.last_index(phase.batch_id, phase.id, lane); ++step)
      for (const StepStatus status : {StepStatus::failed, StepStatus::poll_timeout, StepStatus::rolled_back})
        failed += ledger.count(phase.batch_id, phase.id, lane, step, name(status));
  return failed;
}

// Of the members that began a phase, how many came through it.
struct Came {
  std::int64_t began = 0, through = 0;
};
Came came_through(const PhaseExecution& phase, Ledger& ledger) {
  const auto last = [&](std::string_view lane) { return ledger.last_index(phase.batch_id, phase.id, lane); };
  const std::int32_t end = std::max(last("step"), last("catch_up"));
  Came came;
  if (end < 0) return came;
  for (const std::string_view lane : {"step", "catch_up"}) {
    for (const StepStatus status : {StepStatus::pending, StepStatus::dispatched, StepStatus::polling, StepStatus::succeeded,
                                    StepStatus::failed, StepStatus::poll_timeout, StepStatus::rolled_back})
      came.began += ledger.count(phase.batch_id, phase.id, lane, 0, name(status));
    came.through += ledger.count(phase.batch_id, phase.id, lane, end, name(StepStatus::succeeded));
  }
  return came;
}

}  // namespace

// ---- phases that are due

bool Decision::waits_for_phases_before(const PhaseExecution& phase, const Batch& batch, bool lockstep) {
  if (!batch.phase_overlap) return false;
  const auto is_in_the_way = [&](const Slot<PhaseExecution>* slot) {
    const PhaseExecution& other = slot->row;
    if (other.id == phase.id || is_terminal(other.status)) return false;
    const bool same = other.phase_name == phase.phase_name && other.runbook_version < phase.runbook_version;
    const bool before = batch.phase_overlap == PhaseOverlap::wait && is_before(other, phase) && other.due_at;
    if (!same && !(before && !MUTANT(phases_overlap))) return false;
    return other.status == PhaseStatus::pending || lockstep || other.walk != Walk::none;
  };
  return std::ranges::any_of(ledger.phases_of(batch.id), is_in_the_way);
}

bool Decision::is_answered(HoldKind kind, const PhaseExecution& phase) {
  return std::ranges::any_of(ledger.holds_of(phase.batch_id), [&](const Slot<Hold>* hold) {
    return hold->row.kind == kind && hold->row.phase_execution_id == phase.id && hold->row.status == HoldStatus::answered;
  });
}

// What keeps it from beginning now. Holds are opened on the way.
PhaseWait Decision::wait_of(Slot<PhaseExecution>& phase, Slot<Batch>& batch) {
  PhaseExecution& row = phase.row;
  if (batch.row.hold_id) return PhaseWait::batch_held;
  if (batch.row.paused_at && !MUTANT(paused_phase_begins)) return PhaseWait::batch_paused;
  const Definition& definition = ledger.definition(batch.row, row.runbook_version);
  // It is late if nobody was there to begin it, not if it had to wait for others.
  const bool was_its_turn = row.waits_for != PhaseWait::phases_before && row.waits_for != PhaseWait::required_phase;
  if (row.expected_at && was_its_turn && now - *row.expected_at > definition.late_after && !MUTANT(late_phase_begins)) {
    if (!find_open(HoldKind::late_phase, batch.row.id, row.id))
      open_hold(HoldKind::late_phase, batch, &row,
                in_words(row) + " should have begun " + rounded(now - *row.expected_at) + " ago, at " + to_iso(*row.expected_at));
    return PhaseWait::answer;
  }
  const bool lockstep = definition.progression == Progression::lockstep;
  if (waits_for_phases_before(row, batch.row, lockstep)) return PhaseWait::phases_before;
  const Phase* of = definition.phase(row.phase_name);
  if (of && of->required && !is_answered(HoldKind::required, row)) {
    const PhaseExecution* other = nullptr;  // of the newest version
    for (const Slot<PhaseExecution>* each : ledger.phases_of(row.batch_id))
      if (each->row.phase_name == of->required->phase && each->row.status != PhaseStatus::superseded &&
          (!other || other->runbook_version < each->row.runbook_version))
        other = &each->row;
    if (other && !is_terminal(other->status)) return PhaseWait::required_phase;
    const Came came = other ? came_through(*other, ledger) : Came{};
    const bool is_met = came.began > 0 && came.through * 100 >= of->required->succeeded_percent * came.began;
    if (!is_met && !MUTANT(requirement_ignored)) {
      if (!find_open(HoldKind::required, batch.row.id, row.id))
        open_hold(HoldKind::required, batch, &row,
                  in_words(row) + " requires that " + std::to_string(of->required->succeeded_percent) +
                      " % come through phase '" + of->required->phase + "': " + std::to_string(came.through) + " of " +
                      std::to_string(came.began) + " did");
      return PhaseWait::answer;
    }
  }
  if (of && of->gate && !is_answered(HoldKind::gate, row) && !MUTANT(gate_ignored)) {
    if (!find_open(HoldKind::gate, batch.row.id, row.id)) {
      auto& hold = open_hold(HoldKind::gate, batch, &row, in_words(row) + " is due and waits for go or no-go");
      if (of->gate->timeout) hold.row.answer_by = row.timer_due = now + *of->gate->timeout;
    }
    return PhaseWait::answer;
  }
  return PhaseWait::none;
}

void Decision::consider(Slot<PhaseExecution>& phase, Slot<Batch>& batch) {
  PhaseExecution& row = phase.row;
  if (row.status != PhaseStatus::pending || is_terminal(batch.row.status)) return;
  if (!row.due_at || *row.due_at > now) return;
  const PhaseWait wait = wait_of(phase, batch);
  if (wait == PhaseWait::none) {
    phase_due(phase, batch);
    return consider_waiting(batch);  // those behind it may wait for nothing else
  }
  if (row.waits_for == wait) return;
  row.waits_for = wait;
  phase.changed = true;
  if (wait == PhaseWait::phases_before || wait == PhaseWait::required_phase)
    event(batch.row.id, "phase_waits", in_words(row) + " is due and waits for the phases before it");
}

void Decision::consider_waiting(Slot<Batch>& batch) {
  auto phases = ledger.phases_of(batch.row.id);
  std::erase_if(phases, [](const auto* phase) { return phase->row.waits_for == PhaseWait::none; });
  std::ranges::sort(phases, [](const auto* a, const auto* b) { return is_before(a->row, b->row); });
  for (Slot<PhaseExecution>* phase : phases)
    if (phase->row.waits_for != PhaseWait::none) consider(*phase, batch);
}

// Nobody has answered in time.
void Decision::gate_timed_out(Slot<PhaseExecution>& phase, Slot<Batch>& batch) {
  auto* hold = find_open(HoldKind::gate, batch.row.id, phase.row.id);
  if (!hold || !hold->row.answer_by) return consider(phase, batch);
  if (*hold->row.answer_by > now) {
    phase.row.timer_due = hold->row.answer_by;
    return;
  }
  const Phase* of = ledger.definition(batch.row, phase.row.runbook_version).phase(phase.row.phase_name);
  const auto on_timeout = of && of->gate ? of->gate->on_timeout : Gate::OnTimeout::hold;
  if (on_timeout == Gate::OnTimeout::hold)
    event(batch.row.id, "gate_timed_out", in_words(phase.row) + ": nobody has answered in time; it goes on waiting");
  else
    decide(*hold, on_timeout == Gate::OnTimeout::go ? "go" : "skip", "timeout", "nobody has answered in time");
}

bool Decision::may_begin(const Member& member, const PhaseExecution& phase) {
  if (member.hold_id) return false;
  const Batch& batch = ledger.existing_batch(phase.batch_id).row;
  if (!batch.phase_overlap) return true;
  for (const Slot<PhaseExecution>* slot : ledger.phases_of(batch.id)) {
    const PhaseExecution& other = slot->row;
    if (other.id == phase.id || other.status != PhaseStatus::dispatched) continue;
    const bool same = other.phase_name == phase.phase_name && other.runbook_version < phase.runbook_version;
    const bool before = batch.phase_overlap == PhaseOverlap::wait && is_before(other, phase);
    if (!same && !(before && !MUTANT(members_overlap))) continue;
    const auto steps = ledger.steps_of(member.id, other.id);
    if (std::ranges::any_of(steps, [](const auto* step) { return !is_terminal(step->row.status); })) return false;
  }
  return true;
}

// A step of it has ended: what waited for that goes on.
void Decision::settle_member(std::int64_t member_id) {
  auto* member = ledger.member(member_id);
  if (!member || member->row.status != MemberStatus::active || member->row.catching_up) return;
  const Batch& batch = ledger.existing_batch(member->row.batch_id).row;
  if (!batch.phase_overlap || is_terminal(batch.status)) return;
  auto phases = ledger.phases_of(batch.id);
  std::erase_if(phases, [](const auto* phase) { return phase->row.status != PhaseStatus::dispatched || phase->row.walk == Walk::held; });
  if (phases.size() < 2) return;
  std::ranges::sort(phases, [](const auto* a, const auto* b) { return is_before(a->row, b->row); });
  for (Slot<PhaseExecution>* phase : phases)
    if (ledger.definition(batch, phase->row.runbook_version).progression == Progression::per_member)
      advance_member(*member, phase->row);
}

// ---- thresholds

void Decision::check_threshold(Slot<Batch>& batch, const PhaseExecution& phase) {
  if (is_terminal(batch.row.status) || batch.row.paused_at || MUTANT(threshold_ignored)) return;
  const Definition& definition = ledger.definition(batch.row, phase.runbook_version);
  const Phase* of = definition.phase(phase.phase_name);
  const std::int64_t accepted = batch.row.failures_accepted;
  const auto check = [&](const std::optional<Threshold>& threshold, std::int64_t failed, std::int64_t all, const std::string& where) {
    failed -= accepted, all -= accepted;
    if (!threshold || failed < threshold->min_failed || failed * 100 <= threshold->max_failed_percent * all) return false;
    const std::string said = std::to_string(failed) + " of " + std::to_string(all) + " members failed" + where + ", more than " +
                             std::to_string(threshold->max_failed_percent) + " %";
    pause(batch, "baton", said);
    open_hold(HoldKind::threshold, batch, nullptr, said + ": the batch is paused");
    return true;
  };
  const bool lockstep = definition.progression == Progression::lockstep;
  if (!lockstep) {
    const auto members = [&](MemberStatus status) { return ledger.count(batch.row.id, 0, "member", 0, name(status)); };
    const std::int64_t failed = members(MemberStatus::failed);
    if (check(definition.threshold, failed, failed + members(MemberStatus::active), "")) return;
  }
  std::optional<Threshold> threshold = of ? of->threshold : std::nullopt;
  if (!threshold && lockstep) threshold = definition.threshold;
  if (threshold) (void)check(threshold, failed_in(phase, ledger), came_through(phase, ledger).began, " in " + in_words(phase));
}

// ---- holds

Slot<Hold>* Decision::find_open(HoldKind kind, std::int64_t batch_id, std::int64_t phase_id) {
  for (Slot<Hold>* hold : ledger.holds_of(batch_id))
    if (hold->row.status == HoldStatus::open && hold->row.kind == kind && hold->row.phase_execution_id.value_or(0) == phase_id)
      return hold;
  return nullptr;
}

Slot<Hold>& Decision::open_hold(HoldKind kind, Slot<Batch>& batch, const PhaseExecution* phase, std::string message,
                                OptionalJson details) {
  Hold row;
  row.kind = kind;
  row.runbook_name = ledger.existing_runbook(batch.row.runbook_id).row.name;
  row.batch_id = batch.row.id;
  if (phase) row.phase_execution_id = phase->id;
  row.opened_at = now;
  row.message = clean_text(message, 4 << 10);
  if (!details) {
    details = Json{""};
    append_object(details->text, "members", ledger.count(batch.row.id, 0, "member", 0, name(MemberStatus::active)));
  }
  row.details_json = std::move(details);
  event(batch.row.id, "hold_opened", row.message);
  return ledger.create(std::move(row));
}

void Decision::close_holds(std::int64_t batch_id, std::int64_t phase_id, std::string_view why) {
  for (Slot<Hold>* hold : ledger.holds_of(batch_id)) {
    if (hold->row.status != HoldStatus::open) continue;
    if (phase_id != 0 && hold->row.phase_execution_id != phase_id) continue;
    change(*hold, hold_transition::withdraw);
    hold->row.reason = std::string(why);
    hold->row.decided_at = now;
  }
}

void Decision::skip(Slot<PhaseExecution>& phase, Slot<Batch>& batch, const std::string& why) {
  change(phase, phase_transition::skip);
  event(batch.row.id, "phase_skipped", in_words(phase.row) + " was skipped: " + why);
  batch_touched(batch.row.id);
}

void Decision::decide_phase(Slot<Hold>& hold, Slot<PhaseExecution>& phase, Slot<Batch>& batch) {
  if (phase.row.status != PhaseStatus::pending) return;
  phase.changed = true;
  if (hold.row.answer == "go") {
    if (phase.row.expected_at) phase.row.expected_at = now;  // somebody knows how late it is
    phase.row.waits_for = PhaseWait::none;
    phase.row.timer_due.reset();
    consider(phase, batch);
  } else {
    skip(phase, batch, hold.row.message);
  }
  consider_waiting(batch);
}

void Decision::decide_batch(Slot<Hold>& hold, Slot<Batch>& batch) {
  batch.row.hold_id.reset();
  batch.changed = true;
  for (Slot<PhaseExecution>* phase : ledger.phases_of(batch.row.id)) {
    if (phase->row.status != PhaseStatus::pending || !phase->row.due_at || *phase->row.due_at > now) continue;
    if (hold.row.answer == "skip")
      skip(*phase, batch, hold.row.message);
    else
      phase->row.expected_at.reset(), phase->changed = true;  // somebody knows that it is late
  }
  if (!batch.row.importing) begin_batch(batch);
  consider_waiting(batch);
}

void Decision::decide(Slot<Hold>& hold, const std::string& answer, const std::string& by, const std::string& reason) {
  change(hold, hold_transition::answer);
  hold.row.answer = answer;
  hold.row.decided_by = by.empty() ? "somebody" : by;
  if (!reason.empty()) hold.row.reason = reason;
  hold.row.decided_at = now;
  auto& batch = ledger.existing_batch(hold.row.batch_id);
  event(batch.row.id, "hold_answered",
        hold.row.message + ": " + answer + " by " + *hold.row.decided_by + (reason.empty() ? "" : ": " + reason));
  if (answer == "cancel") return cancel(batch, by, reason.empty() ? hold.row.message : reason);
  switch (hold.row.kind) {
    case HoldKind::late_phase:
    case HoldKind::required:
    case HoldKind::gate:
      if (auto* phase = ledger.phase(hold.row.phase_execution_id.value_or(0))) decide_phase(hold, *phase, batch);
      return;
    case HoldKind::late_batch: return decide_batch(hold, batch);
    case HoldKind::threshold: {
      std::int64_t failed = ledger.count(batch.row.id, 0, "member", 0, name(MemberStatus::failed));
      for (const Slot<PhaseExecution>* phase : ledger.phases_of(batch.row.id)) failed = std::max(failed, failed_in(phase->row, ledger));
      batch.row.failures_accepted = static_cast<std::int32_t>(failed);
      return resume(batch, by, reason);
    }
    case HoldKind::removals:
    case HoldKind::moves: return;
  }
}

std::vector<Answer> answers_of(HoldKind kind) {
  const Answer cancel{"cancel", "the whole batch is cancelled; nothing more of it is handed out"};
  switch (kind) {
    case HoldKind::late_phase:
    case HoldKind::required:
    case HoldKind::gate:
      return {{"go", "the phase begins now"}, {"skip", "the phase is skipped; later ones begin when they are due"}, cancel};
    case HoldKind::late_batch:
      return {{"go", "the batch begins now, with the phases that are overdue, one after the other"},
              {"skip", "the phases that are overdue are skipped; the others begin when they are due"},
              cancel};
    case HoldKind::threshold: return {{"go", "the batch goes on; those who failed so far do not count any more"}, cancel};
    case HoldKind::removals:
      return {{"remove", "they are removed, and on_member_removed runs for them"}, {"keep", "they stay in the batch"}};
    case HoldKind::moves:
      return {{"move", "they go to the batch of the new time, with what they have done"}, {"stay", "they stay where they are"}};
  }
  return {};
}

Outcome answer_hold(std::int64_t batch_id, std::int64_t id, const std::string& said, const std::string& by,
                    const std::string& reason, Context context) {
  auto* hold = context.ledger.hold(id);
  if (!hold || hold->row.batch_id != batch_id) return wrong(Problem::hold_not_found, "there is no hold " + std::to_string(id));
  const std::string answer = said == "no-go" ? "skip" : said;
  const Hold& row = hold->row;
  if (row.status == HoldStatus::answered) {
    if (row.answer == answer && row.decided_by == by) return {.problem = Problem::none, .why = "", .changed = false};
    return wrong(Problem::already_decided, "hold " + std::to_string(id) + " was decided before, by " +
                                               row.decided_by.value_or("somebody") + " at " +
                                               to_iso(row.decided_at.value_or(row.opened_at)) + ": " + row.answer.value_or(""));
  }
  if (row.status == HoldStatus::obsolete)
    return wrong(Problem::already_decided,
                 "hold " + std::to_string(id) + " needs no answer any more: " + row.reason.value_or("what it was about is over"));
  std::string known;
  for (const Answer& each : answers_of(row.kind)) known += (known.empty() ? "" : ", ") + std::string(each.word);
  if (std::ranges::none_of(answers_of(row.kind), [&](const Answer& each) { return each.word == answer; }))
    return wrong(Problem::no_such_answer, "hold " + std::to_string(id) + " may be answered by: " + known);
  Decision decision(context);
  decision.decide(*hold, answer, by, reason);
  decision.settle();
  return {.problem = Problem::none, .why = answer, .changed = true};
}

}  // namespace baton::runbook
