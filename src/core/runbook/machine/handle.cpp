// The messages of a scheduler, timers, and what each of them is likely to need.
#include <algorithm>

#include "base/result.hpp"
#include "core/runbook/machine/desk.hpp"

namespace baton::runbook {
namespace {

using Problem = Outcome::Problem;
using What = Need::What;

Outcome ignored(std::string why) { return {.problem = Problem::none, .why = std::move(why), .changed = false}; }
Outcome done() { return {.problem = Problem::none, .why = "", .changed = true}; }
Outcome wrong(Problem problem, std::string why) {
  return {.problem = problem, .why = std::move(why), .changed = false};
}

std::string batch_name(const SchedulerMessage& message) { return "batch " + std::to_string(message.batch_id); }

Outcome on(const BatchInit&, const SchedulerMessage& message, Slot<Batch>& batch, Desk& desk) {
  if (is_terminal(batch.row.status))
    return ignored(batch_name(message) + " is " + std::string(name(batch.row.status)));
  if (batch.row.status == BatchStatus::active && !desk.reruns_init(batch, message.runbook_version))
    return ignored(batch_name(message) + " is active, and version " + std::to_string(message.runbook_version) +
                   " does not run init steps again");
  desk.begin_init(batch, message.runbook_version);
  return done();
}

// Notes for whom the phase is: those that the message names and those that one before it named. A phase that was
// begun for all stays so. True: somebody is new.
bool list_members(const PhaseDue& due, PhaseExecution& phase) {
  const bool begun_for_all = phase.walk_after != 0 && !phase.member_ids;
  if (due.member_ids.empty() || begun_for_all) return false;
  return list_also(phase, due.member_ids);
}

Outcome on(const PhaseDue& due, const SchedulerMessage& message, Slot<Batch>& batch, Desk& desk) {
  auto* phase = desk.ledger.phase(due.phase_execution_id);
  if (!phase || phase->row.batch_id != batch.row.id)
    return wrong(Problem::phase_not_found, batch_name(message) + " has no phase execution " +
                                               std::to_string(due.phase_execution_id));
  if (is_terminal(phase->row.status))
    return ignored("phase '" + phase->row.phase_name + "' is " + std::string(name(phase->row.status)));
  if (is_terminal(batch.row.status))
    return ignored(batch_name(message) + " is " + std::string(name(batch.row.status)));
  if (list_members(due, phase->row) && phase->row.walk == Walk::start) phase->row.walk_after = 0;
  desk.phase_due(*phase, batch);
  return done();
}

Slot<Member>* member_of(std::int64_t id, const Batch& batch, Desk& desk) {
  auto* member = desk.ledger.member(id);
  return member && member->row.batch_id == batch.id ? member : nullptr;
}

Outcome no_member(const SchedulerMessage& message, std::int64_t id) {
  return wrong(Problem::member_not_found, batch_name(message) + " has no member " + std::to_string(id));
}

Outcome on(const MemberAdded& added, const SchedulerMessage& message, Slot<Batch>& batch, Desk& desk) {
  auto* member = member_of(added.batch_member_id, batch.row, desk);
  if (!member) return no_member(message, added.batch_member_id);
  desk.adopt(*member);
  if (member->row.status != MemberStatus::active)
    return ignored("member '" + member->row.member_key + "' is " + std::string(name(member->row.status)));
  if (is_terminal(batch.row.status))
    return ignored(batch_name(message) + " is " + std::string(name(batch.row.status)));
  if (!member->row.add_dispatched_at) member->row.add_dispatched_at = desk.now;
  member->changed = true;
  desk.catch_up(*member, batch);
  return done();
}

Outcome on(const MemberRemoved& removed, const SchedulerMessage& message, Slot<Batch>& batch, Desk& desk) {
  auto* member = member_of(removed.batch_member_id, batch.row, desk);
  if (!member) return no_member(message, removed.batch_member_id);
  desk.remove(*member, batch, message.runbook_version);
  return done();
}

// Which of the two tables an id means that may stand in both.
std::optional<Job> find_job(const std::optional<std::int64_t>& step_id, const std::optional<std::int64_t>& init_id,
                            const std::string& step_name, const Batch& batch, Desk& desk) {
  const auto fits = [&](const std::optional<Job>& job) {
    if (!job) return false;
    if (job->step && !desk.ledger.phase(job->step->phase_execution_id)) return false;
    return desk.batch_of(*job).id == batch.id;
  };
  std::optional<Job> step = step_id ? desk.ledger.job({Kind::step, *step_id}) : std::nullopt;
  std::optional<Job> init = init_id ? desk.ledger.job({Kind::init, *init_id}) : std::nullopt;
  if (!fits(step)) step.reset();
  if (!fits(init)) init.reset();
  if (step && init && !step_name.empty())
    return step->row->step_name == step_name || init->row->step_name != step_name ? step : init;
  return step ? step : init;
}

Outcome on(const PollCheck& check, const SchedulerMessage&, Slot<Batch>& batch, Desk& desk) {
  const auto job = find_job(check.step_execution_id, check.init_execution_id, check.step_name, batch.row, desk);
  if (!job) return wrong(Problem::step_not_found, "the batch has no such step");
  desk.adopt(*job);
  if (job->row->status != StepStatus::polling)
    return ignored("the step is " + std::string(name(job->row->status)) + ", not polling");
  const bool timed_out = desk.poll_deadline(*job->row) && *desk.poll_deadline(*job->row) <= desk.now;
  if (job->row->job_state != JobState::none && !timed_out) return ignored("a poll is under way");
  if (timed_out)
    desk.fail(*job, step_transition::time_out,
              "polling timed out after " + std::to_string(*job->row->poll_timeout_sec) + " s");
  else
    desk.poll(*job);
  return done();
}

Outcome on(const RetryCheck& check, const SchedulerMessage&, Slot<Batch>& batch, Desk& desk) {
  const auto job = find_job(check.step_execution_id, check.init_execution_id, "", batch.row, desk);
  if (!job) return wrong(Problem::step_not_found, "the batch has no such step");
  const Execution& row = *job->row;
  if (row.status != StepStatus::pending || row.retry_count == 0 || !row.retry_after)
    return ignored("the step is " + std::string(name(row.status)) + " and waits for no retry");
  if (check.retry_count && *check.retry_count != row.retry_count)
    return ignored("it is of retry " + std::to_string(*check.retry_count) + ", the step waits for retry " +
                   std::to_string(row.retry_count));
  desk.dispatch(*job);
  return done();
}

}  // namespace

Outcome handle(const SchedulerMessage& message, Context context) {
  Desk desk(context);
  auto* book = context.ledger.runbook(message.runbook_name, message.runbook_version);
  if (!book)
    return wrong(Problem::runbook_not_found, "there is no version " + std::to_string(message.runbook_version) +
                                                 " of runbook '" + message.runbook_name + "'");
  auto* batch = context.ledger.batch(message.batch_id);
  const auto* of = batch ? context.ledger.runbook(batch->row.runbook_id) : nullptr;
  if (!batch || !of || of->row.name != message.runbook_name)
    return wrong(Problem::batch_not_found,
                 "runbook '" + message.runbook_name + "' has no " + batch_name(message));
  Outcome outcome = std::visit([&](const auto& what) { return on(what, message, *batch, desk); }, message.what);
  if (outcome.problem == Problem::none) desk.settle();
  return outcome;
}

// --- timers

bool is_chunk(Ref ref, Ledger& ledger) {
  if (ref.kind == Kind::batch || ref.kind == Kind::runbook) return true;
  if (ref.kind != Kind::phase) return false;
  const auto* phase = ledger.phase(ref.id);
  return phase && phase->row.walk != Walk::none && phase->row.walk != Walk::held;
}

namespace {

template <class SlotType>
bool is_due(SlotType& slot, Time now) {
  return slot.row.timer_due && *slot.row.timer_due <= now;
}

void phase_timer_fired(Slot<PhaseExecution>& phase, Desk& desk) {
  if (!is_due(phase, desk.now)) return;
  if (phase.row.walk != Walk::none && phase.row.walk != Walk::held) return desk.walk(phase);
  phase.row.timer_due.reset();
  phase.changed = true;
  auto* batch = desk.ledger.batch(phase.row.batch_id);
  if (batch && desk.policy.scheduler && phase.row.status == PhaseStatus::pending) desk.phase_due(phase, *batch);
}

}  // namespace

void timer_fired(Ref ref, Context context) {
  Desk desk(context);
  Ledger& ledger = context.ledger;
  switch (ref.kind) {
    case Kind::phase:
      if (auto* phase = ledger.phase(ref.id)) phase_timer_fired(*phase, desk);
      break;
    case Kind::batch:
      if (auto* batch = ledger.batch(ref.id); batch && is_due(*batch, context.now)) desk.walk(*batch);
      break;
    case Kind::runbook:
      if (auto* book = ledger.runbook(ref.id); book && is_due(*book, context.now)) desk.transition_chunk(*book);
      break;
    default:
      if (const auto job = ledger.job(ref)) job_timer_fired(*job, desk);
  }
  desk.settle();
}

void adopt_phase(std::int64_t phase_id, Context context) {
  auto* phase = context.ledger.phase(phase_id);
  if (!phase || phase->row.status != PhaseStatus::pending || !phase->row.due_at) return;
  phase->row.timer_due = phase->row.due_at;
  phase->changed = true;
}

// --- what will be needed

namespace {

class Foresight {
 public:
  Foresight(Ledger& ledger, Needs& needs) : ledger_(ledger), needs_(needs) {}

  // True: it is known, and there may be something.
  bool want(Need need) {
    if (ledger_.knows(need)) return true;
    needs_.insert(std::move(need));
    return false;
  }

  void batch(std::int64_t id) {
    if (!want({.what = What::batch, .id = id})) return;
    if (const auto* found = ledger_.batch(id)) want({.what = What::runbook, .id = found->row.runbook_id});
  }
  void phase(std::int64_t id) {
    if (!want({.what = What::phase, .id = id})) return;
    const auto* found = ledger_.phase(id);
    if (!found) return;
    batch(found->row.batch_id);
    want({.what = What::counts_of, .id = found->row.batch_id, .other = id});
  }
  void phase_due(std::int64_t id) {
    phase(id);
    if (!ledger_.knows({.what = What::phase, .id = id})) return;
    const auto* found = ledger_.phase(id);
    if (!found || (found->row.walk != Walk::none && found->row.walk != Walk::held)) return;
    want({.what = What::counts_of, .id = found->row.batch_id, .other = 0});
    want({.what = What::inits_of, .id = found->row.batch_id});
  }
  void step(std::int64_t id) {
    if (!want({.what = What::step, .id = id})) return;
    const auto job = ledger_.job({Kind::step, id});
    if (!job) return;
    phase(job->step->phase_execution_id);
    want({.what = What::member, .id = job->step->batch_member_id});
    want({.what = What::steps_ahead, .id = job->step->batch_member_id, .other = job->step->phase_execution_id});
  }
  void init(std::int64_t id) {
    if (!want({.what = What::init, .id = id})) return;
    if (const auto job = ledger_.job({Kind::init, id})) whole_batch(job->init->batch_id);
  }
  void cleanup(std::int64_t id) {
    if (!want({.what = What::cleanup, .id = id})) return;
    const auto job = ledger_.job({Kind::cleanup, id});
    if (!job) return;
    const CleanupExecution& row = *job->cleanup;
    batch(row.batch_id);
    want({.what = What::counts_of, .id = row.batch_id, .other = 0});
    if (row.batch_member_id) want({.what = What::member, .id = *row.batch_member_id});
    if (row.kind == CleanupKind::removal && row.batch_member_id)
      want({.what = What::removals_of, .id = *row.batch_member_id});
    if (row.caused_by_init_id) {
      init(*row.caused_by_init_id);
      want({.what = What::cleanups_of_init, .id = *row.caused_by_init_id});
    }
    if (row.caused_by_step_id) {
      step(*row.caused_by_step_id);
      want({.what = What::cleanups_of_step, .id = *row.caused_by_step_id});
    }
  }
  void whole_batch(std::int64_t id) {
    batch(id);
    want({.what = What::phases_of, .id = id});
    want({.what = What::inits_of, .id = id});
    want({.what = What::counts_of, .id = id, .other = 0});
  }

 private:
  Ledger& ledger_;
  Needs& needs_;
};

}  // namespace

void foresee(Ref ref, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  switch (ref.kind) {
    case Kind::step: return see.step(ref.id);
    case Kind::init: return see.init(ref.id);
    case Kind::cleanup: return see.cleanup(ref.id);
    case Kind::phase: return see.phase_due(ref.id);
    case Kind::batch: return see.whole_batch(ref.id);
    case Kind::runbook: see.want({.what = What::runbook, .id = ref.id}); return;
    case Kind::none: return;
  }
}

// A chunk of a walk: its members, and their steps.
void foresee_chunk(Ref ref, const Policy& policy, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  if (ref.kind != Kind::phase && ref.kind != Kind::batch) return;
  try {
    if (ref.kind == Kind::phase) {
      const auto* phase = ledger.phase(ref.id);
      const auto* batch = phase ? ledger.batch(phase->row.batch_id) : nullptr;
      if (!batch) return;
      const Definition& definition = ledger.definition(batch->row, phase->row.runbook_version);
      const std::int32_t n = phase_chunk(phase->row, definition, policy);
      see.want({.what = What::counts_of, .id = batch->row.id, .other = 0});
      if (!see.want({.what = What::members_of, .id = batch->row.id, .other = phase->row.walk_after, .n = n})) return;
      for (const Slot<Member>* member : ledger.members_of(batch->row.id, phase->row.walk_after, n))
        see.want({.what = What::steps_of, .id = member->row.id, .other = ref.id});
    } else if (const auto* batch = ledger.batch(ref.id); batch && batch->row.walk == Walk::cancel) {
      const std::int32_t n = batch_chunk(batch->row, ledger, policy);
      if (!see.want({.what = What::members_of, .id = ref.id, .other = batch->row.walk_after, .n = n})) return;
      for (const Slot<Member>* member : ledger.members_of(ref.id, batch->row.walk_after, n))
        see.want({.what = What::steps_of_member, .id = member->row.id});
    } else if (batch && batch->row.walk == Walk::resume) {
      see.want({.what = What::parked_steps, .id = ref.id, .n = policy.chunk_members});
    }
  } catch (NotLoaded& missing) {
    needs.merge(missing.needs);
  } catch (const Unreadable&) {  // deciding will say so
  }
}

void foresee(const SchedulerMessage& message, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  see.want({.what = What::runbook_named, .n = message.runbook_version, .text = message.runbook_name});
  std::visit(overloaded{
                 [&](const BatchInit&) { see.whole_batch(message.batch_id); },
                 [&](const PhaseDue& m) {
                   see.batch(message.batch_id);
                   see.phase_due(m.phase_execution_id);
                 },
                 [&](const MemberAdded& m) {
                   see.whole_batch(message.batch_id);
                   see.want({.what = What::member, .id = m.batch_member_id});
                   see.want({.what = What::steps_of_member, .id = m.batch_member_id});
                 },
                 [&](const MemberRemoved& m) {
                   see.whole_batch(message.batch_id);
                   see.want({.what = What::member, .id = m.batch_member_id});
                   see.want({.what = What::steps_of_member, .id = m.batch_member_id});
                   see.want({.what = What::removals_of, .id = m.batch_member_id});
                 },
                 [&](const auto& m) {
                   see.batch(message.batch_id);
                   if (m.step_execution_id) see.step(*m.step_execution_id);
                   if (m.init_execution_id) see.init(*m.init_execution_id);
                 },
             },
             message.what);
}

void foresee_handout(Ref ref, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  const auto batch_of_phase = [&](std::int64_t id) {
    if (!see.want({.what = What::phase, .id = id})) return;
    if (const auto* phase = ledger.phase(id)) see.batch(phase->row.batch_id);
  };
  if (ref.kind == Kind::step && see.want({.what = What::step, .id = ref.id})) {
    if (const auto job = ledger.job(ref)) batch_of_phase(job->step->phase_execution_id);
  } else if (ref.kind == Kind::init && see.want({.what = What::init, .id = ref.id})) {
    if (const auto job = ledger.job(ref)) see.batch(job->init->batch_id);
  } else if (ref.kind == Kind::cleanup && see.want({.what = What::cleanup, .id = ref.id})) {
    if (const auto job = ledger.job(ref)) see.batch(job->cleanup->batch_id);
  }
}

}  // namespace baton::runbook
