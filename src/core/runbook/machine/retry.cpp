// By hand: members, phases and steps are retried, a step is skipped or cancelled.
#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/operate.hpp"

namespace baton::runbook {

namespace {

// A batch that has ended goes on because somebody retries a part of it.
void reopen(Slot<Batch>& batch, const Transition<BatchStatus>& how, const By& by,
            Decision& decision) {
  if (!is_terminal(batch.row.status)) return;
  decision.change(batch, how);
  batch.row.error_message.reset();
  decision.event(batch.row.id, "batch_reopened", "the batch goes on: a retry" + by_whom(by));
}

// No step of a member begins before the init steps are over.
bool is_in_init(const Batch& batch) {
  return batch.status == BatchStatus::detected || batch.status == BatchStatus::init_dispatched;
}
Outcome init_comes_first(const Batch& batch) {
  return wrong(Problem::not_possible, "the init steps of batch " + std::to_string(batch.id) +
                                          " are not over: those that failed are retried first");
}

// A step is not tried again while the hands of its rollback are on it.
bool is_rolled_back_now(const Job& job, Decision& decision) {
  if (job.row->status != StepStatus::failed && job.row->status != StepStatus::poll_timeout) return false;
  return std::ranges::any_of(decision.ledger.cleanups_of(job),
                             [](const auto* c) { return !is_terminal(c->row.status); });
}

bool is_rolled_back_now(const Slot<Member>& member, Decision& decision) {
  return std::ranges::any_of(decision.ledger.steps_of_member(member.row.id),
                             [&](auto* step) { return is_rolled_back_now(job_of(*step), decision); });
}

// The phase has begun in a newer version: what the older one left undone is not done any more. Null: it has not.
const PhaseExecution* begun_anew(const PhaseExecution& phase, Ledger& ledger) {
  if (!ledger.existing_batch(phase.batch_id).row.phase_overlap) return nullptr;  // another scheduler's
  for (const Slot<PhaseExecution>* other : ledger.phases_of(phase.batch_id))
    if (other->row.phase_name == phase.phase_name && other->row.runbook_version > phase.runbook_version &&
        has_begun(other->row))
      return &other->row;
  return nullptr;
}

// What failed, and what was cancelled because of it, is to run again, beside the phases.
void retry_member(Slot<Member>& member, Slot<Batch>& batch, const By& by, Decision& decision) {
  reopen(batch, batch_transition::reopen, by, decision);
  decision.change(member, member_transition::retry);
  for (Slot<StepExecution>* step : decision.ledger.steps_of_member(member.row.id)) {
    const Job job = job_of(*step);
    const auto* phase = decision.ledger.phase(step->row.phase_execution_id);
    if (phase && begun_anew(phase->row, decision.ledger)) continue;  // catch_up() does those of the newer version
    if (!decision.make_again(job, by.who)) continue;
    if (phase && phase->row.status == PhaseStatus::pending) continue;  // it is still to come
    decision.set_catch_up(job);
    member.row.catching_up = true;
  }
  decision.event(batch.row.id, "member_retried",
                 "member '" + member.row.member_key + "' is retried" + by_whom(by), member.row.id);
  decision.catch_up(member, batch, true);
}

// In lockstep members do not fail, phases do: of each name the newest.
Joined retry_phases(Slot<Batch>& batch, const By& by, Decision& decision) {
  std::map<std::string, Slot<PhaseExecution>*> newest;
  for (Slot<PhaseExecution>* phase : decision.ledger.phases_of(batch.row.id)) {
    if (phase->row.status == PhaseStatus::superseded || phase->row.status == PhaseStatus::skipped) continue;
    auto& slot = newest[phase->row.phase_name];
    if (!slot || slot->row.runbook_version <= phase->row.runbook_version) slot = phase;
  }
  Joined retried{.outcome = changed()};
  for (const auto& [phase_name, phase] : newest) {
    if (phase->row.status != PhaseStatus::failed) continue;
    reopen(batch, batch_transition::reopen, by, decision);
    decision.run_again(*phase, by.who);
    retried.phases.push_back(phase_name);
  }
  if (retried.phases.empty()) retried.note = "no phase of batch " + std::to_string(batch.row.id) + " has failed";
  decision.settle();
  return retried;
}

}  // namespace

Joined retry_members(std::int64_t batch_id, const std::vector<std::int64_t>& ids,
                     const std::vector<std::string>& keys, const By& by, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return {.outcome = no_batch(batch_id)};
  if (batch->row.status == BatchStatus::cancelled) return {.outcome = ended(batch->row)};
  const bool all = ids.empty() && keys.empty();
  Decision decision(context);
  const auto* book = context.ledger.runbook(batch->row.runbook_id);
  if (book && context.ledger.definition(book->row).progression == Progression::lockstep) {
    if (all) return retry_phases(*batch, by, decision);
    return {.outcome = wrong(Problem::not_possible,
                             "in lockstep a phase is retried as a whole: name no members, or "
                             "retry one step")};
  }
  if (is_in_init(batch->row)) return {.outcome = init_comes_first(batch->row)};
  std::vector<std::string> missing;
  const auto members = all ? context.ledger.failed_members_of(batch_id, retried_at_once)
                           : named_members(batch_id, ids, keys, context.ledger, missing);
  if (!missing.empty()) return {.outcome = no_members(batch_id, missing)};
  Joined retried{.outcome = changed(), .more = all && members.size() == retried_at_once};
  if (all && members.empty()) retried.note = "no member of batch " + std::to_string(batch_id) + " has failed";
  for_all(members, [&](Slot<Member>* member) {
    const std::string& key = member->row.member_key;
    if (member->row.status == MemberStatus::removed) return leave_out(retried.left_out, "removed", "removed", key);
    if (member->row.status != MemberStatus::failed)
      return leave_out(retried.left_out, "not_failed", "not failed", key);
    if (is_rolled_back_now(*member, decision))
      return leave_out(retried.left_out, "rolling_back", "failed, and its rollback still runs", key);
    retry_member(*member, *batch, by, decision);
    retried.member_ids.push_back(member->row.id);
  });
  decision.settle();
  return retried;
}

// --- one step

namespace {

Outcome no_step(Ref ref) {
  return wrong(Problem::step_not_found,
               "there is no " + std::string(name(ref.type)) + " " + std::to_string(ref.id));
}
Outcome not_now(const Execution& row, std::string_view what) {
  return wrong(Problem::not_possible, "step '" + row.step_name + "' is " + std::string(name(row.status)) +
                                          " and cannot be " + std::string(what));
}

// Init failed and with it the batch: both go on, and so do the phases that ended because of it.
void reopen_init(Slot<Batch>& batch, const By& by, Decision& decision) {
  for (Slot<InitExecution>* init : decision.ledger.inits_of(batch.row.id))
    (void)decision.make_again(job_of(*init), by.who);
  if (!is_terminal(batch.row.status)) return;
  const auto ended_at = batch.row.completed_at;
  reopen(batch, batch_transition::reopen_init, by, decision);
  for (Slot<PhaseExecution>* phase : decision.ledger.phases_of(batch.row.id)) {
    const PhaseStatus status = phase->row.status;
    if (phase->row.completed_at != ended_at ||
        (status != PhaseStatus::skipped && status != PhaseStatus::failed))
      continue;
    if (status == PhaseStatus::failed) {  // it was due, and is held again
      decision.change(*phase, phase_transition::retry);
      decision.change(*phase, walk_transition::hold_again);
    } else {
      decision.change(*phase, phase_transition::wait_again);
      if (decision.policy.scheduler) phase->row.timer_due = phase->row.due_at;
    }
  }
}

// Everything before it has been done.
bool is_next(const Job& job, Ledger& ledger) {
  if (!job.step) return true;
  return std::ranges::all_of(
      ledger.steps_of(job.step->batch_member_id, job.step->phase_execution_id), [&](const auto* s) {
        return s->row.step_index >= job.row->step_index || s->row.status == StepStatus::succeeded;
      });
}

// The member goes on alone: this step, and those after it that were cancelled because of it.
void retry_from(StepExecution& step, Slot<Member>& member, Slot<Batch>& batch, const By& by,
                Decision& decision) {
  reopen(batch, batch_transition::reopen, by, decision);
  for (Slot<StepExecution>* slot : decision.ledger.steps_of(member.row.id, step.phase_execution_id)) {
    const bool later = slot->row.step_index > step.step_index && slot->row.status == StepStatus::cancelled;
    if ((slot->row.id != step.id && !later) || !decision.make_again(job_of(*slot), by.who)) continue;
    decision.set_catch_up(job_of(*slot));
  }
  member.row.catching_up = true;
  member.changed = true;
  decision.advance_catch_up(member);
}

}  // namespace

Outcome retry_step(Ref ref, const By& by, Context context) {
  const auto job = context.ledger.job(ref);
  if (!job) return no_step(ref);
  Decision decision(context);
  auto& batch = context.ledger.existing_batch(decision.batch_of(*job).id);
  const bool is_removal = job->cleanup && job->cleanup->kind == CleanupKind::removal;
  if (batch.row.status == BatchStatus::cancelled && !is_removal) return ended(batch.row);
  const bool is_cancelled = job->row->status == StepStatus::cancelled;
  if (!is_failure(job->row->status) && !(is_cancelled && is_next(*job, context.ledger)))
    return not_now(*job->row, is_cancelled ? "retried before those before it" : "retried");
  if (is_rolled_back_now(*job, decision)) return not_now(*job->row, "retried before its rollback is over");
  const std::string retried = "step '" + job->row->step_name + "' is retried" + by_whom(by);
  const auto of_member = job->step ? std::optional{job->step->batch_member_id} : std::nullopt;
  const auto old_job = job->row->job_id;
  if (job->step) {
    if (is_in_init(batch.row)) return init_comes_first(batch.row);
    auto* member = context.ledger.member(job->step->batch_member_id);
    if (!member) return no_step(ref);
    if (member->row.status == MemberStatus::removed)
      return wrong(Problem::not_possible, "member '" + member->row.member_key + "' was removed");
    auto& phase = context.ledger.existing_phase(job->step->phase_execution_id);
    if (const auto* newer = begun_anew(phase.row, context.ledger))
      return wrong(Problem::not_possible, "phase '" + newer->phase_name + "' has begun again in version " +
                                              std::to_string(newer->runbook_version) + ": its steps in version " +
                                              std::to_string(phase.row.runbook_version) + " are not retried any more");
    if (member->row.status == MemberStatus::failed) {
      if (is_rolled_back_now(*member, decision))
        return not_now(*job->row, "retried before the member's rollbacks are over");
      retry_member(*member, batch, by, decision);
    } else if (!job->step->is_catch_up && phase.row.status == PhaseStatus::dispatched &&
               phase.row.walk != Walk::stop && job->row->step_index == phase.row.current_index &&
               context.ledger.definition(batch.row, phase.row.runbook_version).progression ==
                   Progression::lockstep) {
      (void)decision.make_again(*job, by.who);  // the others are still at this step: it is in time
      decision.dispatch(*job);
    } else {
      retry_from(*job->step, *member, batch, by, decision);
    }
  } else if (job->init) {
    reopen_init(batch, by, decision);
    decision.next_init(batch);
  } else {
    if (!is_removal) {  // whoever left is cleaned up after, whatever became of the batch
      const bool init_is_over =
          std::ranges::all_of(context.ledger.inits_of(batch.row.id),
                              [](const auto* init) { return init->row.status == StepStatus::succeeded; });
      reopen(batch, init_is_over ? batch_transition::reopen : batch_transition::reopen_init, by, decision);
    }
    (void)decision.make_again(*job, by.who);
    decision.dispatch(*job);
  }
  decision.event(batch.row.id, "step_retried", retried, of_member, old_job);
  decision.settle();
  return changed();
}

Outcome replay(const std::string& job_id, const std::string& by, Context context) {
  const auto named = parse_job_id(job_id);
  const auto job = named ? context.ledger.job(named->ref) : std::nullopt;
  if (!job) return wrong(Problem::step_not_found, "there is no job '" + job_id + "'");
  if (!job->row->dead_at || job->row->job_id != job_id)
    return wrong(Problem::not_dead, "job '" + job_id + "' is not a dead letter");
  return retry_step(named->ref, by, context);
}

Outcome skip_step(Ref ref, const By& by, Context context) {
  const auto job = context.ledger.job(ref);
  if (!job) return no_step(ref);
  Decision decision(context);
  auto& batch = context.ledger.existing_batch(decision.batch_of(*job).id);
  const bool is_removal = job->cleanup && job->cleanup->kind == CleanupKind::removal;
  if (batch.row.status == BatchStatus::cancelled && !is_removal) return ended(batch.row);
  // One that failed is retried first, and is over before any worker has it.
  if (is_failure(job->row->status)) {
    if (auto retried = retry_step(ref, by, context); retried.problem != Problem::none) return retried;
  }
  if (is_terminal(batch.row.status) && !is_removal) return ended(batch.row);
  if (is_terminal(job->row->status)) return not_now(*job->row, "skipped");
  // Whoever has done the last step of a phase has done them all: that must stay true.
  if (job->step && job->row->status == StepStatus::pending && !job->row->retry_after)
    return not_now(*job->row, "skipped before it is its turn");
  decision.event(batch.row.id, "step_skipped", "step '" + job->row->step_name + "' was skipped" + by_whom(by),
                 job->step ? std::optional{job->step->batch_member_id} : std::nullopt);
  job->row->retry_after.reset();
  decision.succeed(*job, result_of_skip(by.who, job->row->is_poll_step));
  decision.settle();
  return changed();
}

Outcome cancel_step(Ref ref, const By& by, Context context) {
  const auto job = context.ledger.job(ref);
  if (!job) return no_step(ref);
  Decision decision(context);
  if (is_terminal(job->row->status)) return not_now(*job->row, "cancelled");
  if (job->init) {
    decision.fail(*job, step_transition::fail, "cancelled" + by_whom(by));
  } else {
    decision.cancel(*job, "cancelled" + by_whom(by));
    decision.event(decision.batch_of(*job).id, "step_cancelled",
                   "step '" + job->row->step_name + "' was cancelled" + by_whom(by) +
                       (job->step ? ", and those after it" : ""),
                   job->step ? std::optional{job->step->batch_member_id} : std::nullopt, job->row->job_id);
    if (job->cleanup) decision.cleanup_ended(*job->cleanup);
    if (job->step)
      for (Slot<StepExecution>* other :
           context.ledger.steps_of(job->step->batch_member_id, job->step->phase_execution_id))
        if (other->row.step_index > job->row->step_index)
          decision.cancel(job_of(*other), "a step before it was cancelled" + by_whom(by));
    auto* member =
        job->step && job->step->is_catch_up ? context.ledger.member(job->step->batch_member_id) : nullptr;
    if (member) {  // the rest of what it missed comes after it
      for (Slot<StepExecution>* other : context.ledger.steps_of_member(member->row.id))
        if (other->row.is_catch_up)
          decision.cancel(job_of(*other), "a step before it was cancelled" + by_whom(by));
      decision.advance_catch_up(*member);
    }
  }
  decision.settle();
  return changed();
}

}  // namespace baton::runbook
