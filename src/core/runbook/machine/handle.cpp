// The messages of a scheduler, and timers.
#include <algorithm>

#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {
namespace {

Outcome ignored(std::string why) {
  return {.problem = Problem::none, .why = std::move(why), .changed = false};
}
Outcome done() { return {.problem = Problem::none, .why = "", .changed = true}; }

std::string batch_name(const SchedulerMessage& message) {
  return "batch " + std::to_string(message.batch_id);
}

Outcome on(const BatchInit&, const SchedulerMessage& message, Slot<Batch>& batch, Decision& decision) {
  if (is_terminal(batch.row.status))
    return ignored(batch_name(message) + " is " + std::string(name(batch.row.status)));
  if (batch.row.status == BatchStatus::active && !decision.reruns_init(batch, message.runbook_version))
    return ignored(batch_name(message) + " is active, and version " +
                   std::to_string(message.runbook_version) + " does not run init steps again");
  decision.begin_init(batch, message.runbook_version);
  return done();
}

// Notes for whom the phase is: those that the message names and those that one before it named; all, when it names
// nobody. A phase that was begun for all stays so. True: somebody is new.
bool list_members(const PhaseDue& due, PhaseExecution& phase) {
  const bool begun_for_all = phase.walk_after != 0 && !phase.member_ids;
  if (begun_for_all) return false;
  if (due.member_ids.empty()) return std::exchange(phase.member_ids, std::nullopt).has_value();
  return list_also(phase, due.member_ids);
}

Outcome on(const PhaseDue& due, const SchedulerMessage& message, Slot<Batch>& batch, Decision& decision) {
  auto* phase = decision.ledger.phase(due.phase_execution_id);
  if (!phase || phase->row.batch_id != batch.row.id)
    return wrong(Problem::phase_not_found,
                 batch_name(message) + " has no phase execution " + std::to_string(due.phase_execution_id));
  if (is_terminal(phase->row.status))
    return ignored("phase '" + phase->row.phase_name + "' is " + std::string(name(phase->row.status)));
  if (is_terminal(batch.row.status))
    return ignored(batch_name(message) + " is " + std::string(name(batch.row.status)));
  if (list_members(due, phase->row) && phase->row.walk == Walk::start) phase->row.walk_after = 0;
  decision.phase_due(*phase, batch);
  return done();
}

Slot<Member>* member_of(std::int64_t id, const Batch& batch, Decision& decision) {
  auto* member = decision.ledger.member(id);
  return member && member->row.batch_id == batch.id ? member : nullptr;
}

Outcome no_member(const SchedulerMessage& message, std::int64_t id) {
  return wrong(Problem::member_not_found, batch_name(message) + " has no member " + std::to_string(id));
}

Outcome on(const MemberAdded& added, const SchedulerMessage& message, Slot<Batch>& batch,
           Decision& decision) {
  auto* member = member_of(added.batch_member_id, batch.row, decision);
  if (!member) return no_member(message, added.batch_member_id);
  decision.adopt(*member);
  if (member->row.status != MemberStatus::active)
    return ignored("member '" + member->row.member_key + "' is " + std::string(name(member->row.status)));
  if (is_terminal(batch.row.status))
    return ignored(batch_name(message) + " is " + std::string(name(batch.row.status)));
  if (!member->row.add_dispatched_at) member->row.add_dispatched_at = decision.now;
  member->changed = true;
  decision.catch_up(*member, batch);
  return done();
}

Outcome on(const MemberRemoved& removed, const SchedulerMessage& message, Slot<Batch>& batch,
           Decision& decision) {
  auto* member = member_of(removed.batch_member_id, batch.row, decision);
  if (!member) return no_member(message, removed.batch_member_id);
  decision.remove(*member, batch, message.runbook_version);
  return done();
}

// Which of the two tables an id means that may stand in both.
std::optional<Job> find_job(const std::optional<std::int64_t>& step_id,
                            const std::optional<std::int64_t>& init_id, const std::string& step_name,
                            const Batch& batch, Decision& decision) {
  const auto fits = [&](const std::optional<Job>& job) {
    if (!job) return false;
    if (job->step && !decision.ledger.phase(job->step->phase_execution_id)) return false;
    return decision.batch_of(*job).id == batch.id;
  };
  std::optional<Job> step = step_id ? decision.ledger.job({RowType::step, *step_id}) : std::nullopt;
  std::optional<Job> init = init_id ? decision.ledger.job({RowType::init, *init_id}) : std::nullopt;
  if (!fits(step)) step.reset();
  if (!fits(init)) init.reset();
  if (step && init && !step_name.empty())
    return step->row->step_name == step_name || init->row->step_name != step_name ? step : init;
  return step ? step : init;
}

Outcome on(const PollCheck& check, const SchedulerMessage&, Slot<Batch>& batch, Decision& decision) {
  const auto job =
      find_job(check.step_execution_id, check.init_execution_id, check.step_name, batch.row, decision);
  if (!job) return wrong(Problem::step_not_found, "the batch has no such step");
  decision.adopt(*job);
  if (job->row->status != StepStatus::polling)
    return ignored("the step is " + std::string(name(job->row->status)) + ", not polling");
  const bool timed_out =
      decision.poll_deadline(*job->row) && *decision.poll_deadline(*job->row) <= decision.now;
  if (job->row->job_state != JobState::none && !timed_out) return ignored("a poll is under way");
  if (timed_out)
    decision.fail(*job, step_transition::time_out,
                  "polling timed out after " + std::to_string(*job->row->poll_timeout_sec) + " s");
  else
    decision.poll(*job);
  return done();
}

Outcome on(const RetryCheck& check, const SchedulerMessage&, Slot<Batch>& batch, Decision& decision) {
  const auto job = find_job(check.step_execution_id, check.init_execution_id, "", batch.row, decision);
  if (!job) return wrong(Problem::step_not_found, "the batch has no such step");
  const Execution& row = *job->row;
  if (row.status != StepStatus::pending || row.retry_count == 0 || !row.retry_after)
    return ignored("the step is " + std::string(name(row.status)) + " and waits for no retry");
  if (check.retry_count && *check.retry_count != row.retry_count)
    return ignored("it is of retry " + std::to_string(*check.retry_count) + ", the step waits for retry " +
                   std::to_string(row.retry_count));
  decision.retry(*job);
  return done();
}

}  // namespace

Outcome handle(const SchedulerMessage& message, Context context) {
  Decision decision(context);
  auto* book = context.ledger.runbook(message.runbook_name, message.runbook_version);
  if (!book)
    return wrong(Problem::runbook_not_found, "there is no version " +
                                                 std::to_string(message.runbook_version) + " of runbook '" +
                                                 message.runbook_name + "'");
  auto* batch = context.ledger.batch(message.batch_id);
  const auto* of = batch ? context.ledger.runbook(batch->row.runbook_id) : nullptr;
  if (!batch || !of || of->row.name != message.runbook_name)
    return wrong(Problem::batch_not_found,
                 "runbook '" + message.runbook_name + "' has no " + batch_name(message));
  Outcome outcome =
      std::visit([&](const auto& what) { return on(what, message, *batch, decision); }, message.what);
  if (outcome.problem == Problem::none) decision.settle();
  return outcome;
}

// --- timers

bool is_chunk(Ref ref, Ledger& ledger) {
  if (ref.type == RowType::batch || ref.type == RowType::runbook) return true;
  if (ref.type != RowType::phase) return false;
  const auto* phase = ledger.phase(ref.id);
  return phase && phase->row.walk != Walk::none && phase->row.walk != Walk::held;
}

namespace {

template <class SlotType>
bool is_due(SlotType& slot, Time now) {
  return slot.row.timer_due && *slot.row.timer_due <= now;
}

void phase_timer_fired(Slot<PhaseExecution>& phase, Decision& decision) {
  if (!is_due(phase, decision.now)) return;
  if (phase.row.walk != Walk::none && phase.row.walk != Walk::held) return decision.walk(phase);
  phase.changed = true;
  if (phase.row.due_at && *phase.row.due_at > decision.now) {  // somebody has put it off
    phase.row.timer_due = phase.row.due_at;
    phase.row.waits_for = PhaseWait::none;
    return;
  }
  phase.row.timer_due.reset();
  auto* batch = decision.ledger.batch(phase.row.batch_id);
  if (!batch || !decision.policy.scheduler || phase.row.status != PhaseStatus::pending) return;
  if (phase.row.waits_for == PhaseWait::answer)
    decision.gate_timed_out(phase, *batch);
  else
    decision.consider(phase, *batch);
}

}  // namespace

void timer_fired(Ref ref, Context context) {
  Decision decision(context);
  Ledger& ledger = context.ledger;
  switch (ref.type) {
    case RowType::phase:
      if (auto* phase = ledger.phase(ref.id)) phase_timer_fired(*phase, decision);
      break;
    case RowType::batch:
      if (auto* batch = ledger.batch(ref.id); batch && is_due(*batch, context.now)) decision.walk(*batch);
      break;
    case RowType::runbook:
      if (auto* book = ledger.runbook(ref.id); book && is_due(*book, context.now))
        decision.transition_chunk(*book);
      break;
    default:
      if (const auto job = ledger.job(ref)) job_timer_fired(*job, decision);
  }
  decision.settle();
}

bool put_behind(const RowTimer& chunk, Time at, Ledger& ledger) {
  const auto move = [&](auto* slot) {
    if (!slot || slot->stored_timer != chunk.due || slot->row.timer_due != chunk.due) return false;
    slot->row.timer_due = at;
    slot->changed = true;
    return true;
  };
  switch (chunk.type) {
    case RowType::phase: return move(ledger.phase(chunk.id));
    case RowType::batch: return move(ledger.batch(chunk.id));
    case RowType::runbook: return move(ledger.runbook(chunk.id));
    default: return false;
  }
}

void adopt_phase(std::int64_t phase_id, Context context) {
  Slot<PhaseExecution>* phase = nullptr;
  try {
    phase = context.ledger.phase(phase_id);
  } catch (const Unreadable&) {  // one of many: it is told when it is asked for by itself
  }
  if (!phase || phase->row.status != PhaseStatus::pending || !phase->row.due_at) return;
  if (phase->row.waits_for != PhaseWait::none) return;  // it is looked at when that is over
  phase->row.timer_due = phase->row.due_at;
  phase->changed = true;
}

}  // namespace baton::runbook
