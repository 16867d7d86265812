#include "core/runbook/machine/transitions.hpp"

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {
namespace {

// A planted bug may want what is illegal: it is to be found by what is stored then.
template <class Status>
void become(Status& status, const Transition<Status>& transition) {
  ENSURE(transition.allows(status) || ANY_MUTANT);
  status = transition.to;
}

template <class Row, class Status>
void set(Slot<Row>& slot, const Transition<Status>& transition) {
  become(slot.row.status, transition);
  slot.changed = true;
}

// A walk begins before the first member, and each of its chunks is a timer.
template <class Row>
void set_walk(Slot<Row>& slot, const Transition<Walk>& transition, Time now) {
  become(slot.row.walk, transition);
  slot.changed = true;
  if (transition.to == Walk::none) {
    slot.row.timer_due.reset();
  } else if (transition.to != Walk::held) {
    slot.row.walk_after = 0;
    slot.row.timer_due = now;
  }
}

}  // namespace

void Decision::change(Slot<Batch>& batch, const Transition<BatchStatus>& transition) {
  set(batch, transition);
  if (is_terminal(transition.to)) {
    batch.row.completed_at = now;
    ++decided.batches_ended;
  } else {
    batch.row.completed_at.reset();
  }
}

void Decision::change(Slot<PhaseExecution>& phase, const Transition<PhaseStatus>& transition) {
  set(phase, transition);
  phase.row.waits_for = PhaseWait::none;
  if (is_terminal(transition.to)) {
    phase.row.completed_at = now;
    change(phase, walk_transition::end);
  } else {
    phase.row.completed_at.reset();
  }
}

void Decision::change(Slot<Hold>& hold, const Transition<HoldStatus>& transition) { set(hold, transition); }

void Decision::change(Slot<Member>& member, const Transition<MemberStatus>& transition) {
  set(member, transition);
  if (transition.to == MemberStatus::failed)
    member.row.failed_at = now;
  else
    member.row.failed_at.reset();
  if (transition.to == MemberStatus::removed && !member.row.removed_at) member.row.removed_at = now;
  adopt(member);
}

void Decision::change(const Job& job, const Transition<StepStatus>& transition) {
  Execution& row = *job.row;
  const bool ends = is_terminal(transition.to) && !is_terminal(row.status);
  become(row.status, transition);
  job.state->changed = true;
  if (ends) {
    row.completed_at = now;
    ++decided.steps_ended;
  } else if (!is_terminal(transition.to)) {
    row.completed_at.reset();
  }
  recount(job);
  if (ends && job.step) members_.insert(job.step->batch_member_id);
  if (!MUTANT(transition_settles_nothing)) touched(job);
}

void Decision::change(const Job& job, const Transition<JobState>& transition) {
  become(job.row->job_state, transition);
  job.state->changed = true;
}

void Decision::change(Slot<PhaseExecution>& phase, const Transition<Walk>& transition) {
  set_walk(phase, transition, now);
}

void Decision::change(Slot<Batch>& batch, const Transition<Walk>& transition) {
  set_walk(batch, transition, now);
}

void Decision::created(const Job& job) {
  recount(job);
  touched(job);
}

void Decision::touched(const Job& job) {
  if (job.step) phase_touched(job.step->phase_execution_id);
  if (job.step && job.step->is_catch_up) batch_touched(batch_of(job).id);  // its phase may be over
  if (job.init) batch_touched(job.init->batch_id);
  if (job.cleanup) {
    batch_touched(job.cleanup->batch_id);
    if (job.cleanup->phase_execution_id) phase_touched(*job.cleanup->phase_execution_id);
  }
}

}  // namespace baton::runbook
