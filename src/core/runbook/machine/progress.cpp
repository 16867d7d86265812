// What follows from the end of a step: the next one, a rollback, the end of a member, a phase, a batch.
#include <algorithm>

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {

Job job_of(Slot<StepExecution>& slot) {
  return {.ref = {RowType::step, slot.row.id}, .row = &slot.row, .state = &slot, .step = &slot.row};
}
Job job_of(Slot<InitExecution>& slot) {
  return {.ref = {RowType::init, slot.row.id}, .row = &slot.row, .state = &slot, .init = &slot.row};
}
Job job_of(Slot<CleanupExecution>& slot) {
  return {.ref = {RowType::cleanup, slot.row.id}, .row = &slot.row, .state = &slot, .cleanup = &slot.row};
}

void fill_from(const Step& step, const Definition& definition, std::size_t index, Execution& row) {
  const Retry retry = definition.retry_of(step);
  row.step_name = step.name;
  row.step_index = static_cast<std::int32_t>(index);
  row.worker_id = step.worker_id;
  row.function_name = step.function;
  row.timeout_sec = static_cast<std::int32_t>(step.timeout.count());
  row.max_retries = retry.max_retries;
  row.retry_interval_sec = static_cast<std::int32_t>(retry.interval.count());
  if (retry.backoff == Backoff::exponential) row.retry_backoff = "exponential";
  if (retry.max_interval) row.retry_max_interval_sec = static_cast<std::int32_t>(retry.max_interval->count());
  row.is_poll_step = step.poll.has_value();
  if (step.poll) {
    row.poll_interval_sec = static_cast<std::int32_t>(step.poll->interval.count());
    row.poll_timeout_sec = static_cast<std::int32_t>(step.poll->timeout.count());
  }
}

void Decision::event(std::int64_t batch_id, std::string_view type, std::string message,
                     std::optional<std::int64_t> member_id, std::optional<std::string> job_id) {
  constexpr std::size_t message_bytes_max = 4 << 10;
  decided.events.push_back({.batch_id = batch_id,
                            .created_at = now,
                            .event_type = std::string(type),
                            .batch_member_id = member_id,
                            .job_id = std::move(job_id),
                            .message = clean_text(message, message_bytes_max)});
}

// --- members

void Decision::adopt(Slot<Member>& member) {
  Member& row = member.row;
  if (row.counted_as == row.status) return;
  ++decided.spent.rows;
  if (row.counted_as) ledger.count(row.batch_id, 0, "member", 0, name(*row.counted_as), -1);
  ledger.count(row.batch_id, 0, "member", 0, name(row.status), 1);
  row.counted_as = row.status;
  member.changed = true;
}

// Per member: the first of its steps in the phase that has not succeeded runs, if it waits.
void Decision::advance_member(Slot<Member>& member, PhaseExecution& phase) {
  if (member.row.status != MemberStatus::active) return;
  Slot<StepExecution>* step = ledger.step_ahead(member.row.id, phase.id);
  if (!step || step->row.is_catch_up || step->row.status != StepStatus::pending || step->row.retry_after) return;
  if (!may_begin(member.row, phase)) return;  // settle_member() comes back to it
  dispatch(job_of(*step));
  if (MUTANT(member_runs_ahead))
    for (Slot<StepExecution>* next : ledger.steps_of(member.row.id, phase.id))
      if (next->row.status == StepStatus::pending) dispatch(job_of(*next));
}

// Catching up goes through all phases that have begun, in their order, one step after the other.
void Decision::advance_catch_up(Slot<Member>& member) {
  if (!member.row.catching_up) return;
  auto steps = ledger.steps_of_member(member.row.id);
  std::erase_if(steps, [](const auto* step) { return !step->row.is_catch_up; });
  const auto order = [&](const Slot<StepExecution>* step) {
    const PhaseExecution& phase = ledger.existing_phase(step->row.phase_execution_id).row;
    return std::tuple(-phase.offset_minutes, phase.id, step->row.step_index);
  };
  std::ranges::sort(steps, {}, order);
  // A phase that begins late may come before the one that the member is at: that one is finished first.
  const auto under_way = [](const auto* step) {
    return step->row.job_state != JobState::none || step->row.status == StepStatus::polling ||
           step->row.retry_after;
  };
  if (std::ranges::any_of(steps, under_way)) return;
  for (Slot<StepExecution>* step : steps) {
    // Who failed or cancelled one has cancelled those after it; what was retried since then runs all the
    // same.
    if (is_terminal(step->row.status)) continue;
    if (member.row.status == MemberStatus::active) dispatch(job_of(*step));
    if (!is_terminal(step->row.status) || !member.row.catching_up) return;
  }
  member.row.catching_up = false;
  member.changed = true;
  adopt(member);
  complete_phases(member);
  batch_touched(member.row.batch_id);
}

// Per member: a phase that nobody had come through has somebody now, who was retried or late.
void Decision::complete_phases(const Slot<Member>& member) {
  if (member.row.status != MemberStatus::active) return;
  std::map<std::int64_t, bool> through;  // by phase
  for (const Slot<StepExecution>* step : ledger.steps_of_member(member.row.id)) {
    bool& all = through.try_emplace(step->row.phase_execution_id, true).first->second;
    all = all && step->row.status == StepStatus::succeeded;
  }
  for (const auto& [id, all] : through) {
    Slot<PhaseExecution>& phase = ledger.existing_phase(id);
    if (!all || phase.row.status != PhaseStatus::failed) continue;
    const Batch& batch = ledger.existing_batch(phase.row.batch_id).row;
    if (ledger.definition(batch, phase.row.runbook_version).progression == Progression::lockstep) continue;
    change(phase, phase_transition::complete_late);
    event(batch.id, "phase_completed",
          "phase '" + phase.row.phase_name + "' completed after all: member '" + member.row.member_key +
              "' came through");
  }
}

void Decision::fail_member(Slot<Member>& member, const std::string& reason) {
  if (member.row.status != MemberStatus::active) return;
  member.row.catching_up = false;
  change(member, member_transition::fail);
  event(member.row.batch_id, "member_failed", "member '" + member.row.member_key + "' failed: " + reason,
        member.row.id);
  if (MUTANT(failed_member_goes_on)) return;
  for (Slot<StepExecution>* step : ledger.steps_of_member(member.row.id))
    cancel(job_of(*step), "the member failed");
}

// --- steps

void Decision::step_succeeded(StepExecution& step) {
  auto* member = ledger.member(step.batch_member_id);
  if (!member) return;
  Slot<PhaseExecution>& phase = ledger.existing_phase(step.phase_execution_id);
  const Batch& batch = ledger.existing_batch(phase.row.batch_id).row;
  if (is_terminal(batch.status)) return;  // another orchestrator's job was out: it is noted, and nothing follows
  if (step.is_catch_up) return advance_catch_up(*member);
  if (!is_walked(phase.row))
    return;  // another orchestrator gave it out: the walk over the phase goes on with it
  if (ledger.definition(batch, phase.row.runbook_version).progression == Progression::per_member)
    advance_member(*member, phase.row);
}

void Decision::step_failed(const Job& job) {
  const StepExecution& step = *job.step;
  const PhaseExecution& phase = ledger.existing_phase(step.phase_execution_id).row;
  const Batch& batch = batch_of(job);
  if (is_terminal(batch.status)) return;
  failing_.insert(phase.id);
  begin_rollback(job);
  auto* member = ledger.member(step.batch_member_id);
  if (!member) return;
  if (ledger.definition(batch, phase.runbook_version).progression == Progression::per_member)
    return fail_member(*member, "step '" + step.step_name + "' of phase '" + phase.phase_name +
                                    "': " + step.error_message.value_or(""));
  event(batch.id, "step_failed",
        "member '" + member->row.member_key + "', step '" + step.step_name + "' of phase '" +
            phase.phase_name + "': " + step.error_message.value_or(""),
        member->row.id, step.job_id);
  if (!step.is_catch_up)
    return;  // the others end this step, and somebody may retry this one; then the phase stops
  for (Slot<StepExecution>* other : ledger.steps_of_member(member->row.id))
    if (other->row.is_catch_up) cancel(job_of(*other), "an earlier step failed");
  advance_catch_up(*member);
}

void Decision::init_succeeded(InitExecution& init) { next_init(ledger.existing_batch(init.batch_id)); }

// --- rollbacks and removals

void Decision::begin_sequence(const std::vector<Step>& steps, const Definition& definition,
                              const CleanupExecution& like) {
  Slot<CleanupExecution>* first = nullptr;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CleanupExecution row = like;
    fill_from(steps[i], definition, i, row);
    Slot<CleanupExecution>& slot = ledger.create(std::move(row));
    created(job_of(slot));
    if (!first) first = &slot;
  }
  if (first) dispatch(job_of(*first));
}

void Decision::begin_rollback(const Job& cause) {
  const Step* step = definition_of(cause);
  if (!step || step->on_failure.empty() || MUTANT(rollback_forgotten)) return;
  const Definition& definition = book_of(cause);
  const auto before = ledger.cleanups_of(cause);
  if (std::ranges::any_of(before, [](const auto* c) { return !is_terminal(c->row.status); })) return;
  CleanupExecution like;
  like.kind = CleanupKind::rollback;
  like.batch_id = batch_of(cause).id;
  like.sequence = step->on_failure;
  if (cause.step) {
    like.runbook_version = ledger.existing_phase(cause.step->phase_execution_id).row.runbook_version;
    like.phase_execution_id = cause.step->phase_execution_id;
    like.batch_member_id = cause.step->batch_member_id;
    like.caused_by_step_id = cause.ref.id;
  } else {
    like.runbook_version = cause.init->runbook_version;
    like.caused_by_init_id = cause.ref.id;
  }
  begin_sequence(definition.rollback(step->on_failure), definition, like);
}

void Decision::begin_removal(Slot<Member>& member, Batch& batch, std::int32_t version) {
  const Definition& definition = ledger.definition(batch, version);
  if (definition.on_member_removed.empty() || !ledger.removals_of(member.row.id).empty()) return;
  CleanupExecution like;
  like.kind = CleanupKind::removal;
  like.batch_id = batch.id;
  like.runbook_version = version;
  like.batch_member_id = member.row.id;
  like.sequence = "on_member_removed";
  begin_sequence(definition.on_member_removed, definition, like);
}

// One of a sequence has ended, well or not: the next one runs, or the sequence is over.
void Decision::cleanup_ended(CleanupExecution& ended) {
  std::optional<Job> cause;
  if (ended.caused_by_step_id) cause = ledger.job({RowType::step, *ended.caused_by_step_id});
  if (ended.caused_by_init_id) cause = ledger.job({RowType::init, *ended.caused_by_init_id});
  std::vector<Slot<CleanupExecution>*> sequence;
  if (cause)
    sequence = ledger.cleanups_of(*cause);
  else if (ended.batch_member_id)
    sequence = ledger.removals_of(*ended.batch_member_id);
  for (Slot<CleanupExecution>* next : sequence) {
    if (is_terminal(next->row.status)) continue;
    if (next->row.status == StepStatus::pending && !next->row.retry_after) dispatch(job_of(*next));
    return;
  }
  if (cause && (cause->row->status == StepStatus::failed || cause->row->status == StepStatus::poll_timeout))
    change(*cause, step_transition::roll_back);
}

// --- the end of phases and batches

void Decision::settle() {
  const auto take = [](std::set<std::int64_t>& ids) { return ids.extract(ids.begin()).value(); };
  while (!members_.empty() || !failing_.empty() || !phases_.empty() || !batches_.empty()) {
    if (!members_.empty()) {
      settle_member(take(members_));
    } else if (!failing_.empty()) {
      const PhaseExecution& phase = ledger.existing_phase(take(failing_)).row;
      check_threshold(ledger.existing_batch(phase.batch_id), phase);
    } else if (!phases_.empty()) {
      const std::int64_t id = *phases_.begin();
      phases_.erase(phases_.begin());
      settle_phase(ledger.existing_phase(id));
    } else {
      const std::int64_t id = *batches_.begin();
      batches_.erase(batches_.begin());
      settle_batch(ledger.existing_batch(id));
    }
  }
}

namespace {

std::int64_t failures(Ledger& ledger, std::int64_t batch_id, std::int64_t phase_id, std::string_view lane,
                      std::int32_t index) {
  std::int64_t n = 0;
  for (const StepStatus status : {StepStatus::failed, StepStatus::poll_timeout, StepStatus::rolled_back})
    n += ledger.count(batch_id, phase_id, lane, index, name(status));
  return n;
}

}  // namespace

void Decision::settle_phase(Slot<PhaseExecution>& phase) {
  PhaseExecution& row = phase.row;
  if (row.status != PhaseStatus::dispatched || row.walk != Walk::none) return;
  // Another orchestrator began it. Who else is in it, and how far, is known when all were seen.
  if (!is_walked(row) && !MUTANT(others_phase_not_walked)) {
    if (!row.member_ids) row.member_ids = Json{"[]"};  // who has no steps in it is not in it, unless a phase-due says so
    return phase_due(phase, ledger.existing_batch(row.batch_id));
  }
  const std::int64_t open = ledger.open_count(row.batch_id, row.id, "step");
  auto& batch = ledger.existing_batch(row.batch_id);
  if (is_terminal(batch.row.status)) return;
  const bool lockstep =
      ledger.definition(batch.row, row.runbook_version).progression == Progression::lockstep;
  bool completed = false;
  const std::int32_t last = ledger.last_index(row.batch_id, row.id, "step");
  if (last < 0) {  // nobody was there: that is no success if it is because they failed
    completed = ledger.count(row.batch_id, 0, "member", 0, name(MemberStatus::failed)) == 0;
  } else if (lockstep) {
    if (ledger.open_count(row.batch_id, row.id, "step", row.current_index) > 0) return;
    completed = failures(ledger, row.batch_id, row.id, "step", row.current_index) == 0;
    if (completed && row.current_index < last) {
      ++row.current_index;
      return change(phase, walk_transition::advance);
    }
    if (open > 0) return change(phase, walk_transition::stop);
  } else {
    if (open > 0 && !MUTANT(phase_ends_early)) return;
    const auto through = [&](std::string_view lane) {
      return ledger.count(row.batch_id, row.id, lane, last, name(StepStatus::succeeded)) > 0;
    };
    completed = through("step") || through("catch_up");  // who was late may be the only one
  }
  if (ledger.open_count(row.batch_id, row.id, "rollback") > 0 && !MUTANT(rollback_not_awaited)) return;
  change(phase, completed ? phase_transition::complete : phase_transition::fail);
  row.member_ids.reset();
  event(row.batch_id, completed ? "phase_completed" : "phase_failed",
        "phase '" + row.phase_name + "' " + std::string(name(row.status)));
  consider_waiting(batch);
  batch_touched(row.batch_id);
}

void Decision::settle_batch(Slot<Batch>& batch) {
  Batch& row = batch.row;
  if (is_terminal(row.status) || row.importing) return;
  const auto open = [&](std::string_view lane) { return ledger.open_count(row.id, 0, lane) > 0; };
  const bool init_failed = failures(ledger, row.id, 0, "init", 0) > 0;
  if (init_failed)
    for (Slot<InitExecution>* init : ledger.inits_of(row.id))
      if (init->row.status == StepStatus::pending && !init->row.retry_after)
        cancel(job_of(*init), "an earlier init step failed");
  if ((row.status != BatchStatus::active && !init_failed) || row.walk != Walk::none) return;
  if (open("rollback") || open("removal") || open("catch_up") || open("init")) return;
  const auto phases = ledger.phases_of(row.id);
  if (init_failed) {  // of a new version, when phases of the one before may be running: they come to their
                      // end
    const bool running = std::ranges::any_of(phases, [](const auto* phase) {
      return phase->row.status == PhaseStatus::dispatched && phase->row.walk != Walk::held;
    });
    if (running) return;
    // What another orchestrator gave out meanwhile, and we have taken over, ends with it.
    const bool has_steps = std::ranges::any_of(
        phases, [&](const auto* phase) { return ledger.open_count(row.id, phase->row.id, "step") > 0; });
    end(batch, batch_transition::fail, "init failed");
    if (has_steps) change(batch, walk_transition::cancel);
    return;
  }
  const auto has = [&](PhaseStatus status) {
    return std::ranges::any_of(phases, [&](const auto* phase) { return phase->row.status == status; });
  };
  if (phases.empty() || has(PhaseStatus::pending) || has(PhaseStatus::dispatched)) return;
  const auto* book = ledger.runbook(row.runbook_id);
  const bool lockstep = book && ledger.definition(book->row).progression == Progression::lockstep;
  const bool completed = lockstep ? !has(PhaseStatus::failed) : has(PhaseStatus::completed);
  end(batch, completed ? batch_transition::complete : batch_transition::fail,
      completed  ? ""
      : lockstep ? "a phase failed"
                 : "no phase completed");
}

void Decision::end(Slot<Batch>& batch, const Transition<BatchStatus>& how, const std::string& message) {
  Batch& row = batch.row;
  change(batch, how);
  row.error_message = message.empty() ? std::nullopt : std::optional{message};
  row.hold_id.reset();
  close_holds(row.id, 0, "the batch is " + std::string(name(row.status)));
  for (Slot<PhaseExecution>* phase : ledger.phases_of(row.id)) {
    if (is_terminal(phase->row.status)) continue;
    // What runs is ended by the walk that cancels it; what waits never begins.
    if (phase->row.status == PhaseStatus::dispatched && phase->row.walk != Walk::held &&
        row.status == BatchStatus::cancelled)
      continue;
    change(*phase,
           phase->row.status == PhaseStatus::pending ? phase_transition::skip : phase_transition::fail);
  }
  event(row.id, "batch_" + std::string(name(row.status)),
        row.status == BatchStatus::cancelled
            ? message
            : "the batch is " + std::string(name(row.status)) + (message.empty() ? "" : ": " + message));
}

}  // namespace baton::runbook
