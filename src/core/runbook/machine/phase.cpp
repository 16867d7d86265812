// Phases and batches: init steps, phases that become due, walks over members, versions, late joiners,
// leavers.
#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {
namespace {

// How many members one step of a walk sees, so that it writes about chunk_rows rows.
std::int32_t chunk_size(const Policy& policy, std::size_t rows_per_member) {
  const auto rows = static_cast<std::int32_t>(std::max<std::size_t>(rows_per_member, 1));
  return std::clamp(policy.chunk_rows / rows, 1, policy.chunk_members);
}

void note_walked(Decided& decided, std::size_t members, bool is_cut) {
  Walked& walked = decided.walked ? *decided.walked : decided.walked.emplace();
  walked.members = std::max(walked.members, members);
  walked.is_cut = walked.is_cut || is_cut;
}

std::size_t steps_in_all(const Definition& definition) {
  std::size_t n = 0;
  for (const Phase& phase : definition.phases) n += phase.steps.size();
  return n;
}

}  // namespace

std::int32_t next_chunk_members(const Walked& walked, std::int32_t now, std::int32_t most) {
  const std::int64_t enough_for = walked.is_cut ? static_cast<std::int64_t>(walked.members) : now;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(2 * enough_for, 1, most));
}

std::set<std::int64_t> read_ids(const Json& text) {
  std::set<std::int64_t> ids;
  boost::system::error_code error;
  const auto value = boost::json::parse(text.text, error);
  if (!error && value.is_array())
    for (const auto& each : value.get_array())
      if (each.is_int64()) ids.insert(each.get_int64());
  return ids;
}

// Adds to the list of those for whom a phase is. True: somebody is new.
bool list_also(PhaseExecution& phase, const std::vector<std::int64_t>& more) {
  std::set<std::int64_t> ids = phase.member_ids ? read_ids(*phase.member_ids) : std::set<std::int64_t>{};
  const std::size_t before = ids.size();
  ids.insert(more.begin(), more.end());
  if (ids.size() == before) return false;
  std::string list;
  for (const std::int64_t id : ids) list += (list.empty() ? "[" : ",") + std::to_string(id);
  phase.member_ids = Json{list + "]"};
  return true;
}

// --- init

void Decision::begin_init(Slot<Batch>& batch, std::int32_t version) {
  const Definition& definition = ledger.definition(batch.row, version);
  const auto there = ledger.inits_of(batch.row.id);
  for (std::size_t i = 0; i < definition.init.size(); ++i) {
    const bool exists = std::ranges::any_of(there, [&](const auto* init) {
      return init->row.runbook_version == version && init->row.step_index == static_cast<std::int32_t>(i);
    });
    if (exists) continue;
    InitExecution row;
    fill_from(definition.init[i], definition, i, row);
    row.batch_id = batch.row.id;
    row.runbook_version = version;
    created(job_of(ledger.create(std::move(row))));
  }
  if (batch.row.status == BatchStatus::detected) {
    change(batch, batch_transition::begin_init);
    if (!batch.row.init_dispatched_at) batch.row.init_dispatched_at = now;
  }
  next_init(batch);
}

// One after the other, in order; when all have succeeded the batch is active.
void Decision::next_init(Slot<Batch>& batch) {
  const auto inits = ledger.inits_of(batch.row.id);
  for (Slot<InitExecution>* init : inits) adopt(job_of(*init));
  for (Slot<InitExecution>* init : inits) {
    if (init->row.status == StepStatus::succeeded) continue;
    if (init->row.status == StepStatus::pending && !init->row.retry_after) dispatch(job_of(*init));
    if (!MUTANT(init_all_at_once)) return;
  }
  activate(batch);
}

bool Decision::reruns_init(Slot<Batch>& batch, std::int32_t version) {
  const auto inits = ledger.inits_of(batch.row.id);
  if (std::ranges::any_of(inits, [&](const auto* init) { return init->row.runbook_version == version; }))
    return true;
  const auto* now_at = ledger.runbook(batch.row.runbook_id);
  const auto* book = now_at ? ledger.runbook(now_at->row.name, version) : nullptr;
  return book && book->row.rerun_init && !ledger.definition(book->row).init.empty();
}

void Decision::activate(Slot<Batch>& batch) {
  if (batch.row.status == BatchStatus::detected || batch.row.status == BatchStatus::init_dispatched) {
    change(batch, batch_transition::activate);
    event(batch.row.id, "batch_active", "the batch is active");
  }
  if (batch.row.status != BatchStatus::active || MUTANT(held_phases_forgotten)) return;
  for (Slot<PhaseExecution>* phase : ledger.phases_of(batch.row.id))
    if (phase->row.walk == Walk::held) change(*phase, walk_transition::start);
  batch_touched(batch.row.id);
}

bool Decision::gate_is_open(Slot<Batch>& batch) {
  return batch.row.status == BatchStatus::active && !batch.row.importing &&
         std::ranges::all_of(ledger.inits_of(batch.row.id),
                             [](const auto* init) { return init->row.status == StepStatus::succeeded; });
}

// --- phases

void Decision::phase_due(Slot<PhaseExecution>& phase, Slot<Batch>& batch) {
  PhaseExecution& row = phase.row;
  if (is_terminal(row.status) || is_terminal(batch.row.status)) return;
  phase.changed = true;
  if (row.status == PhaseStatus::pending) {
    if (row.waits_for == PhaseWait::answer) close_holds(row.batch_id, row.id, "the phase has begun");
    change(phase, phase_transition::dispatch);
    event(batch.row.id, "phase_dispatched", "phase '" + row.phase_name + "' is due");
  }
  if (!row.dispatched_at) row.dispatched_at = now;
  if (row.walk != Walk::none && row.walk != Walk::held) return;  // it is being walked over
  row.timer_due.reset();
  // A scheduler without init steps to announce leaves the batch as it detected it, and one that announced
  // them may have changed to a version with others meanwhile: nothing is to wait for a batch-init that never
  // comes.
  const bool is_active = batch.row.status == BatchStatus::active;
  if (is_active && reruns_init(batch, row.runbook_version)) {
    begin_init(batch, row.runbook_version);
  } else if (!is_active && !batch.row.importing && ledger.inits_of(batch.row.id).empty()) {
    if (ledger.definition(batch.row, row.runbook_version).init.empty())
      activate(batch);
    else
      begin_init(batch, row.runbook_version);
  }
  const bool may_start = gate_is_open(batch) || MUTANT(phase_before_init);
  change(phase, may_start ? walk_transition::start : walk_transition::hold);
}

void Decision::walk(Slot<PhaseExecution>& phase) {
  PhaseExecution& row = phase.row;
  auto& batch = ledger.existing_batch(row.batch_id);
  if (is_terminal(batch.row.status)) return change(phase, walk_transition::end);  // its own walk does the rest
  const Definition& definition = ledger.definition(batch.row, row.runbook_version);
  const std::int32_t chunk = phase_chunk(row, definition, policy);
  const auto members = ledger.members_of(row.batch_id, row.walk_after, chunk);
  const std::size_t spent_before = decided.spent.bytes;
  const std::size_t seen = for_all_until(
      members, [&](Slot<Member>* member) { walk_member(*member, phase, definition); },
      [&] { return decided.spent.bytes - spent_before >= policy.chunk_bytes; });
  note_walked(decided, seen, seen < members.size());
  phase.changed = true;
  phase_touched(row.id);
  if (!members.empty()) row.walk_after = members[MUTANT(walk_drops_rest) ? members.size() - 1 : seen - 1]->row.id;
  const bool has_more = seen < members.size() || members.size() == static_cast<std::size_t>(chunk);
  if (has_more && !MUTANT(walk_ends_early)) {
    row.timer_due = now;
  } else if (row.walk == Walk::again) {  // everything waits again: the others are as far as this
    change(phase, walk_transition::advance);
  } else {
    row.walk_after = std::max<std::int64_t>(row.walk_after, 1);
    change(phase, walk_transition::end);
    consider_waiting(batch);
  }
}

void Decision::walk_member(Slot<Member>& member, Slot<PhaseExecution>& phase, const Definition& definition) {
  PhaseExecution& row = phase.row;
  if (row.walk == Walk::start) return start_member(member, phase, definition);
  const bool is_active = member.row.status == MemberStatus::active;
  const auto steps = ledger.steps_of(member.row.id, row.id);
  // One whose step a person has cancelled is out of the phase: what comes after it does not run without it.
  const bool has_come_this_far = std::ranges::all_of(steps, [&](const auto* step) {
    return step->row.step_index >= row.current_index || step->row.is_catch_up || step->row.status == StepStatus::succeeded;
  });
  for (Slot<StepExecution>* step : steps) {
    const Job job = job_of(*step);
    if (step->row.is_catch_up) continue;
    if (row.walk == Walk::again && is_active && has_come_this_far && step->row.step_index >= row.current_index)
      (void)make_again(job, "");
    else if (row.walk == Walk::again && is_failure(step->row.status))
      set_catch_up(job);  // who is gone does not stop the others again
    else if (row.walk == Walk::stop && step->row.step_index > row.current_index)
      cancel(job, "a step before it failed");
    else if (row.walk == Walk::advance && !is_active)
      cancel(job, "the member is not active");
    else if (row.walk == Walk::advance && step->row.step_index == row.current_index && !step->row.retry_after)
      dispatch(job);
  }
}

// In lockstep a phase fails as a whole, and so it is retried: from the step that stopped it, with everybody.
void Decision::run_again(Slot<PhaseExecution>& phase, const std::string& by) {
  change(phase, phase_transition::retry);
  change(phase, walk_transition::again);
  event(phase.row.batch_id, "phase_retried",
        "phase '" + phase.row.phase_name + "' goes on from where it failed" +
            (by.empty() ? "" : ": a retry by " + by));
}

std::int32_t phase_chunk(const PhaseExecution& phase, const Definition& definition, const Policy& policy) {
  const Phase* of = definition.phase(phase.phase_name);
  return chunk_size(policy, of && phase.walk != Walk::advance ? of->steps.size() : 1);
}

// A phase begins for a member: what is missing of its steps is made, what is there is used.
void Decision::start_member(Slot<Member>& member, Slot<PhaseExecution>& phase, const Definition& definition) {
  PhaseExecution& row = phase.row;
  // One whom another program has removed is counted as such when it says so: what is left of it is cancelled
  // then.
  if (member.row.status == MemberStatus::active || !member.row.counted_as) adopt(member);
  auto steps = ledger.steps_of(member.row.id, row.id);
  if (member.row.status != MemberStatus::active) {
    for (Slot<StepExecution>* step : steps) {
      adopt(job_of(*step));
      cancel(job_of(*step), "the member is not active");
    }
    return;
  }
  if (row.member_ids && steps.empty()) {
    if (row.id != listed_phase_) {
      listed_phase_ = row.id;
      listed_ = read_ids(*row.member_ids);
    }
    if (!listed_.contains(member.row.id)) return;
  }
  const bool lockstep = definition.progression == Progression::lockstep;
  // Whoever turns up when the others have done their first step goes on alone.
  if (lockstep && steps.empty() && row.current_index > 0) {
    member.row.catching_up = member.changed = true;
    create_steps(member, row, definition, true);
    return advance_catch_up(member);
  }
  create_steps(member, row, definition, member.row.catching_up);
  steps = ledger.steps_of(member.row.id, row.id);
  for (Slot<StepExecution>* step : steps) adopt(job_of(*step));
  if (member.row.catching_up) return;  // its turn comes when it is through with the phases before
  if (!lockstep) return advance_member(member, row);
  for (Slot<StepExecution>* step : steps)
    if (step->row.step_index == row.current_index && !step->row.is_catch_up && !step->row.retry_after)
      dispatch(job_of(*step));
}

void Decision::create_steps(Slot<Member>& member, PhaseExecution& phase, const Definition& definition,
                            bool catch_up) {
  const Phase* of = definition.phase(phase.phase_name);
  if (!of) return;  // another scheduler's phase: its steps are there, or there are none
  const auto there = ledger.steps_of(member.row.id, phase.id);
  for (std::size_t i = 0; i < of->steps.size(); ++i) {
    const bool exists = std::ranges::any_of(
        there, [&](const auto* step) { return step->row.step_index == static_cast<std::int32_t>(i); });
    if (exists && !MUTANT(steps_made_twice)) continue;
    StepExecution row;
    fill_from(of->steps[i], definition, i, row);
    row.phase_execution_id = phase.id;
    row.batch_member_id = member.row.id;
    row.is_catch_up = catch_up;
    created(job_of(ledger.create(std::move(row))));
  }
}

void Decision::create_phases(Slot<Batch>& batch, const Runbook& runbook, const Definition& definition) {
  for (const Phase& phase : definition.phases) {
    PhaseExecution row;
    row.batch_id = batch.row.id;
    row.phase_name = phase.name;
    row.offset_minutes = phase.offset_minutes;
    row.runbook_version = runbook.version;
    if (batch.row.batch_start_time)
      row.due_at = *batch.row.batch_start_time - std::chrono::minutes{phase.offset_minutes};
    if (policy.scheduler) row.timer_due = row.due_at;
    if (policy.scheduler && row.due_at) row.expected_at = std::max(*row.due_at, now);
    ledger.create(std::move(row));
  }
}

// --- late joiners and leavers

void Decision::catch_up(Slot<Member>& member, Slot<Batch>& batch, bool also_failed) {
  if (member.row.status != MemberStatus::active || is_terminal(batch.row.status)) return;
  std::map<std::string, Slot<PhaseExecution>*> begun;  // of each name the newest version
  for (Slot<PhaseExecution>* phase : ledger.phases_of(batch.row.id)) {
    const PhaseStatus status = phase->row.status;
    const bool has_begun = status == PhaseStatus::dispatched || status == PhaseStatus::completed ||
                           (also_failed && status == PhaseStatus::failed);
    // A walk that has not come to the member yet will see it.
    const bool will_see = phase->row.walk == Walk::held ||
                          (phase->row.walk == Walk::start && phase->row.walk_after < member.row.id);
    // … if the list that came with the phase does not leave it out.
    const bool is_anothers =
        status == PhaseStatus::dispatched && phase->row.walk == Walk::none && !is_walked(phase->row);
    if (((will_see && phase->row.member_ids) || is_anothers) && list_also(phase->row, {member.row.id})) phase->changed = true;
    if (!has_begun || will_see) continue;
    auto& newest = begun[phase->row.phase_name];
    if (!newest || newest->row.runbook_version < phase->row.runbook_version) newest = phase;
  }
  if (batch.row.status != BatchStatus::active) return;  // what has not begun will begin with it
  for (const auto& [phase_name, phase] : begun) {
    // Another orchestrator has begun it, and init steps run again: it goes on when they are over, with this member too.
    if (phase->row.status == PhaseStatus::dispatched && !is_walked(phase->row) && !gate_is_open(batch)) {
      phase_due(*phase, batch);
      continue;
    }
    const auto there = ledger.steps_of(member.row.id, phase->row.id);
    // Steps that we have counted are under way or over; another scheduler's are taken as they are.
    if (std::ranges::any_of(there, [](const auto* step) { return step->row.counted_as.has_value(); }))
      continue;
    for (Slot<StepExecution>* step : there) set_catch_up(job_of(*step));
    create_steps(member, phase->row, ledger.definition(batch.row, phase->row.runbook_version), true);
    member.row.catching_up = true;
    member.changed = true;
  }
  if (!MUTANT(catch_up_forgotten)) advance_catch_up(member);
}

void Decision::remove(Slot<Member>& member, Slot<Batch>& batch, std::int32_t version) {
  if (member.row.status != MemberStatus::removed) {  // also one that failed: nobody retries who has left
    change(member, member_transition::remove);
    event(batch.row.id, "member_removed", "member '" + member.row.member_key + "' left", member.row.id);
  }
  adopt(member);
  if (!member.row.remove_dispatched_at) member.row.remove_dispatched_at = now;
  member.row.catching_up = false;
  member.changed = true;
  for (Slot<StepExecution>* step : ledger.steps_of_member(member.row.id)) {
    if (!MUTANT(leaver_goes_on)) cancel(job_of(*step), "the member was removed");
    clear_dead(job_of(*step));
  }
  if (!is_terminal(batch.row.status) || !MUTANT(late_removal_forgotten))
    begin_removal(member, batch.row, version);
}

// --- walks over a batch

void Decision::walk(Slot<Batch>& batch) {
  Batch& row = batch.row;
  batch.changed = true;
  note_walked(decided, 0, false);
  bool done = false;
  if (row.walk == Walk::cancel && is_terminal(row.status)) {
    const std::int32_t chunk = batch_chunk(row, ledger, policy);
    const auto members = ledger.members_of(row.id, row.walk_after, chunk);
    for_all(members, [&](Slot<Member>* member) {
      for (Slot<StepExecution>* step : ledger.steps_of_member(member->row.id)) {
        cancel(job_of(*step), row.status == BatchStatus::failed ? "the batch failed" : "the batch was cancelled");
        if (row.status == BatchStatus::cancelled) clear_dead(job_of(*step));
      }
    });
    done = members.size() < static_cast<std::size_t>(chunk);
    if (!done) row.walk_after = members.back()->row.id;
    if (done) cancel_phases(row);
  } else if (row.walk == Walk::resume) {
    const auto parked = ledger.parked_steps(row.id, policy.chunk_members);
    if (!row.paused_at) for_all(parked, [&](Slot<StepExecution>* step) { enqueue(job_of(*step), job_transition::unpark); });
    done = row.paused_at || parked.size() < static_cast<std::size_t>(policy.chunk_members);
    if (done && !row.paused_at) resume_rest(row);
  } else {
    done = true;
  }
  if (done)
    change(batch, walk_transition::end);
  else
    row.timer_due = now;
  batch_touched(row.id);
}

std::int32_t batch_chunk(const Batch& batch, Ledger& ledger, const Policy& policy) {
  const auto* book = ledger.runbook(batch.runbook_id);
  return chunk_size(policy, book ? steps_in_all(ledger.definition(book->row)) : 10);
}

// At once, not by the walk: what is cleaned up for those that leave later is not cancelled with it.
void Decision::cancel_inits_and_cleanups(Batch& batch) {
  for (Slot<InitExecution>* init : ledger.inits_of(batch.id)) {
    cancel(job_of(*init), "the batch was cancelled");
    clear_dead(job_of(*init));
  }
  for (Slot<CleanupExecution>* cleanup : ledger.open_cleanups_of(batch.id))
    cancel(job_of(*cleanup), "the batch was cancelled");
  // A removal can be replayed whatever became of the batch.
  for (Slot<CleanupExecution>* cleanup : ledger.dead_cleanups_of(batch.id))
    if (cleanup->row.kind == CleanupKind::rollback) clear_dead(job_of(*cleanup));
}

void Decision::cancel_phases(Batch& batch) {
  for (Slot<PhaseExecution>* phase : ledger.phases_of(batch.id)) {
    if (is_terminal(phase->row.status)) continue;
    change(*phase,
           phase->row.status == PhaseStatus::pending ? phase_transition::skip : phase_transition::fail);
  }
}

void Decision::resume_rest(Batch& batch) {
  for (Slot<InitExecution>* init : ledger.inits_of(batch.id))
    if (init->row.job_state == JobState::parked) enqueue(job_of(*init), job_transition::unpark);
  for (Slot<CleanupExecution>* cleanup : ledger.open_cleanups_of(batch.id))
    if (cleanup->row.job_state == JobState::parked) enqueue(job_of(*cleanup), job_transition::unpark);
}

}  // namespace baton::runbook
