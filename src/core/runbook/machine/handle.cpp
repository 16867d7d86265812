// The messages of a scheduler, timers, and what each of them is likely to need.
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
  if (ref.kind == RowType::batch || ref.kind == RowType::runbook) return true;
  if (ref.kind != RowType::phase) return false;
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
    return;
  }
  phase.row.timer_due.reset();
  auto* batch = decision.ledger.batch(phase.row.batch_id);
  if (batch && decision.policy.scheduler && phase.row.status == PhaseStatus::pending)
    decision.phase_due(phase, *batch);
}

}  // namespace

void timer_fired(Ref ref, Context context) {
  Decision decision(context);
  Ledger& ledger = context.ledger;
  switch (ref.kind) {
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
  switch (chunk.kind) {
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
    if (!want(need::Batch{id})) return;
    if (const auto* found = ledger_.batch(id)) want(need::Runbook{found->row.runbook_id});
  }
  void phase(std::int64_t id) {
    if (!want(need::Phase{id})) return;
    const auto* found = ledger_.phase(id);
    if (!found) return;
    batch(found->row.batch_id);
    want(need::CountsOf{found->row.batch_id, id});
  }
  void phase_due(std::int64_t id) {
    phase(id);
    if (!ledger_.knows(need::Phase{id})) return;
    const auto* found = ledger_.phase(id);
    if (!found || (found->row.walk != Walk::none && found->row.walk != Walk::held)) return;
    want(need::CountsOf{found->row.batch_id, 0});
    want(need::InitsOf{found->row.batch_id});
  }
  void step(std::int64_t id) {
    if (!want(need::Step{id})) return;
    const auto job = ledger_.job({RowType::step, id});
    if (!job) return;
    const std::int64_t phase_id = job->step->phase_execution_id;
    if (const StepPlace* place = around(id)) want(need::CountsOf{place->batch_id, phase_id});
    phase(phase_id);
    want(need::Member{job->step->batch_member_id});
    want(need::StepsAhead{job->step->batch_member_id, job->step->phase_execution_id});
  }
  // What a step belongs to, asked for together and not one after the other.
  const StepPlace* around(std::int64_t step_id) {
    const StepPlace* place = ledger_.place_of(step_id);
    if (!place) return nullptr;
    want(need::Batch{place->batch_id});
    want(need::Runbook{place->runbook_id});
    return place;
  }
  void init(std::int64_t id) {
    if (!want(need::Init{id})) return;
    if (const auto job = ledger_.job({RowType::init, id})) whole_batch(job->init->batch_id);
  }
  void cleanup(std::int64_t id) {
    if (!want(need::Cleanup{id})) return;
    const auto job = ledger_.job({RowType::cleanup, id});
    if (!job) return;
    const CleanupExecution& row = *job->cleanup;
    batch(row.batch_id);
    want(need::CountsOf{row.batch_id, 0});
    if (row.batch_member_id) want(need::Member{*row.batch_member_id});
    if (row.kind == CleanupKind::removal && row.batch_member_id) want(need::RemovalsOf{*row.batch_member_id});
    if (row.caused_by_init_id) {
      init(*row.caused_by_init_id);
      want(need::CleanupsOfInit{*row.caused_by_init_id});
    }
    if (row.caused_by_step_id) {
      step(*row.caused_by_step_id);
      want(need::CleanupsOfStep{*row.caused_by_step_id});
    }
  }
  void whole_batch(std::int64_t id) {
    batch(id);
    want(need::PhasesOf{id});
    want(need::InitsOf{id});
    want(need::CountsOf{id, 0});
  }

 private:
  Ledger& ledger_;
  Needs& needs_;
};

}  // namespace

void foresee(Ref ref, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  switch (ref.kind) {
    case RowType::step: return see.step(ref.id);
    case RowType::init: return see.init(ref.id);
    case RowType::cleanup: return see.cleanup(ref.id);
    case RowType::phase: return see.phase_due(ref.id);
    case RowType::batch: return see.whole_batch(ref.id);
    case RowType::runbook: see.want(need::Runbook{ref.id}); return;
    case RowType::none: return;
  }
}

// A chunk of a walk: its members, and their steps.
void foresee_chunk(Ref ref, const Policy& policy, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  if (ref.kind != RowType::phase && ref.kind != RowType::batch) return;
  try {
    if (ref.kind == RowType::phase) {
      const auto* phase = ledger.phase(ref.id);
      const auto* batch = phase ? ledger.batch(phase->row.batch_id) : nullptr;
      if (!batch) return;
      const Definition& definition = ledger.definition(batch->row, phase->row.runbook_version);
      const std::int32_t n = phase_chunk(phase->row, definition, policy);
      see.want(need::CountsOf{batch->row.id, 0});
      if (!see.want(need::MembersOf{batch->row.id, phase->row.walk_after, n})) return;
      for (const Slot<Member>* member : ledger.members_of(batch->row.id, phase->row.walk_after, n))
        see.want(need::StepsOf{member->row.id, ref.id});
    } else if (const auto* batch = ledger.batch(ref.id); batch && batch->row.walk == Walk::cancel) {
      const std::int32_t n = batch_chunk(batch->row, ledger, policy);
      if (!see.want(need::MembersOf{ref.id, batch->row.walk_after, n})) return;
      for (const Slot<Member>* member : ledger.members_of(ref.id, batch->row.walk_after, n))
        see.want(need::StepsOfMember{member->row.id});
    } else if (batch && batch->row.walk == Walk::resume) {
      see.want(need::ParkedSteps{ref.id, policy.chunk_members});
    }
  } catch (NotLoaded& missing) {
    needs.merge(missing.needs);
  } catch (const Unreadable&) {  // deciding will say so
  }
}

void foresee(const SchedulerMessage& message, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  see.want(need::RunbookNamed{message.runbook_name, message.runbook_version});
  std::visit(overloaded{
                 [&](const BatchInit&) { see.whole_batch(message.batch_id); },
                 [&](const PhaseDue& m) {
                   see.batch(message.batch_id);
                   see.phase_due(m.phase_execution_id);
                 },
                 [&](const MemberAdded& m) {
                   see.whole_batch(message.batch_id);
                   see.want(need::Member{m.batch_member_id});
                   see.want(need::StepsOfMember{m.batch_member_id});
                 },
                 [&](const MemberRemoved& m) {
                   see.whole_batch(message.batch_id);
                   see.want(need::Member{m.batch_member_id});
                   see.want(need::StepsOfMember{m.batch_member_id});
                   see.want(need::RemovalsOf{m.batch_member_id});
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
  if (ref.kind == RowType::step && see.want(need::Step{ref.id})) {
    const auto job = ledger.job(ref);
    if (!job) return;
    see.around(ref.id);
    if (!see.want(need::Phase{job->step->phase_execution_id})) return;
    if (const auto* phase = ledger.phase(job->step->phase_execution_id)) see.batch(phase->row.batch_id);
  } else if (ref.kind == RowType::init && see.want(need::Init{ref.id})) {
    if (const auto job = ledger.job(ref)) see.batch(job->init->batch_id);
  } else if (ref.kind == RowType::cleanup && see.want(need::Cleanup{ref.id})) {
    if (const auto job = ledger.job(ref)) see.batch(job->cleanup->batch_id);
  }
}

}  // namespace baton::runbook
