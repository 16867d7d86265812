// What must be true of the rows of a batch after every commit that touched it.
#include <algorithm>

#include "core/runbook/machine/machine.hpp"
#include "tests/simulation/runbook_watch.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

using namespace runbook;

namespace {

bool is_open(StepStatus status) { return !is_terminal(status); }

// Somebody has begun with it and has not come to its end.
bool under_way(const Execution& row) {
  return row.status == StepStatus::dispatched || row.status == StepStatus::polling ||
         (row.status == StepStatus::pending && row.retry_after);
}

}  // namespace

RunbookWatch::Whole RunbookWatch::whole(std::int64_t batch_id) const {
  Whole all{.batch = &rows_.batches.at(batch_id)};
  const auto take = [&](const auto& table, auto& into) {
    for (const auto& [id, row] : table)
      if (row.batch_id == batch_id) into.push_back(&row);
  };
  take(rows_.members, all.members);
  take(rows_.phases, all.phases);
  take(rows_.inits, all.inits);
  take(rows_.cleanups, all.cleanups);
  take(rows_.holds, all.holds);
  for (const auto& [id, row] : rows_.steps)
    if (rows_.phases.at(row.phase_execution_id).batch_id == batch_id) all.steps.push_back(&row);
  return all;
}

void RunbookWatch::check_touched() {
  const auto touched = std::exchange(touched_, {});
  for (const std::int64_t id : touched) check_batch(whole(id));
}

void RunbookWatch::check_phases(const Whole& all) const {
  const Batch& batch = *all.batch;
  const std::int32_t version = rows_.runbooks.at(batch.runbook_id).version;
  expect(is_terminal(batch.status) || !batch.completed_at, "what goes on has no end",
         "batch " + std::to_string(batch.id));
  std::set<std::pair<std::int32_t, std::string>> seen;
  for (const PhaseExecution* phase : all.phases) {
    check_timer(RowType::phase, phase->id, phase->timer_due);
    const std::string what = "phase " + std::to_string(phase->id) + " '" + phase->phase_name + "' of batch " +
                             std::to_string(batch.id);
    if (phase->walk != Walk::none && phase->walk != Walk::held)
      expect(phase->timer_due && phase->status == PhaseStatus::dispatched, "a walk goes on", what);
    if (is_terminal(phase->status))
      expect(!phase->timer_due && phase->walk == Walk::none, "a phase that has ended has no timer", what);
    if (phase->waits_for != PhaseWait::none)
      check_waiting(all, *phase);
    else if (phase->status == PhaseStatus::pending && scheduler_ && !is_terminal(batch.status))
      expect(phase->timer_due == phase->due_at, "a phase that waits has a timer", what);
    if (is_terminal(batch.status) && batch.walk == Walk::none)
      expect(is_terminal(phase->status), "a batch that has ended has only ended phases", what);
    expect(seen.emplace(phase->runbook_version, phase->phase_name).second, "a batch has each phase once", what);
    expect(phase->status != PhaseStatus::pending || phase->runbook_version >= version || is_terminal(batch.status),
           "phases of older versions do not wait", what);
    check_lockstep(all, *phase);
  }
}

// What a phase waits for is there, so that somebody will come back to it.
void RunbookWatch::check_waiting(const Whole& all, const PhaseExecution& phase) const {
  const std::string what = "phase " + std::to_string(phase.id) + " '" + phase.phase_name + "' of batch " +
                           std::to_string(all.batch->id) + " waits for " + std::string(name(phase.waits_for));
  expect(phase.status == PhaseStatus::pending && !is_terminal(all.batch->status), "only what has not begun waits", what);
  const auto is_open = [&](const PhaseExecution* other) { return other->id != phase.id && !is_terminal(other->status); };
  switch (phase.waits_for) {
    case PhaseWait::batch_held: return expect(all.batch->hold_id.has_value(), "what a phase waits for is there", what);
    case PhaseWait::batch_paused: return expect(all.batch->paused_at.has_value(), "what a phase waits for is there", what);
    case PhaseWait::phases_before:
    case PhaseWait::required_phase:
      return expect(std::ranges::any_of(all.phases, is_open), "what a phase waits for is there", what);
    case PhaseWait::answer:
      return expect(std::ranges::any_of(all.holds, [&](const Hold* hold) {
                      return hold->status == HoldStatus::open && hold->phase_execution_id == phase.id;
                    }), "what a phase waits for is there", what);
    case PhaseWait::none: return;
  }
}

void RunbookWatch::check_holds(const Whole& all) const {
  for (const Hold* hold : all.holds) {
    const std::string what = "hold " + std::to_string(hold->id) + " " + std::string(name(hold->kind)) + " of batch " +
                             std::to_string(all.batch->id);
    expect(hold->status != HoldStatus::open || !is_terminal(all.batch->status), "a batch that has ended waits for nobody", what);
    expect((hold->status == HoldStatus::open) == !hold->decided_at, "what is decided says when", what);
  }
  if (all.batch->hold_id)
    expect(rows_.holds.at(*all.batch->hold_id).status == HoldStatus::open, "a batch is held by what is open",
           "batch " + std::to_string(all.batch->id));
}

// Who pauses itself because too many fail has not gone on.
void RunbookWatch::check_threshold(const Whole& all) const {
  const Batch& batch = *all.batch;
  const Definition& book = definition(batch, rows_.runbooks.at(batch.runbook_id).version);
  if (is_terminal(batch.status) || batch.paused_at || !book.threshold || book.progression == Progression::lockstep) return;
  const auto is = [](MemberStatus status) { return [status](const Member* row) { return row->counted_as == status; }; };
  const std::int64_t failed = std::ranges::count_if(all.members, is(MemberStatus::failed)) - batch.failures_accepted;
  // It is looked at when somebody fails, and not when somebody leaves.
  const auto others = static_cast<std::int64_t>(all.members.size()) - std::ranges::count_if(all.members, is(MemberStatus::failed));
  expect(failed < book.threshold->min_failed || failed * 100 <= book.threshold->max_failed_percent * (failed + others),
         "a batch in which too many fail pauses", "batch " + std::to_string(batch.id));
}

void RunbookWatch::check_batch(const Whole& all) const {
  check_counts(all);
  check_phases(all);
  check_holds(all);
  check_threshold(all);
  const Batch& batch = *all.batch;
  check_timer(RowType::batch, batch.id, batch.timer_due);
  expect((batch.walk != Walk::none) == batch.timer_due.has_value(), "a walk over a batch goes on",
         std::to_string(batch.id));
  for (const StepExecution* row : all.steps) check_job(*row, all, RowType::step, about(*row, RowType::step));
  for (const InitExecution* row : all.inits) check_job(*row, all, RowType::init, about(*row, RowType::init));
  for (const CleanupExecution* row : all.cleanups) check_job(*row, all, RowType::cleanup, about(*row, RowType::cleanup));
  check_members(all);
  check_cleanups(all);
  bool before = true;  // init steps run one after the other
  auto inits = all.inits;
  std::ranges::sort(inits, {}, [](const auto* i) { return std::tuple(i->runbook_version, i->step_index, i->id); });
  for (const InitExecution* init : inits) {
    if (under_way(*init) && !retried_.contains(batch.id))
      expect(before, "init steps run one after the other", about(*init, RowType::init));
    before = before && init->status == StepStatus::succeeded;
  }
}

void RunbookWatch::check_timer(RowType type, std::int64_t id, std::optional<Time> due) const {
  expect(!due || timers_.contains({*due, subject_of(Ref{type, id}), ""}), "what a row says of its timer is stored",
         std::string(name(type)) + " " + std::to_string(id));
}

void RunbookWatch::check_counts(const Whole& all) const {
  const std::int64_t batch_id = all.batch->id;
  std::map<store::memory::CountKey, std::int64_t> expected;
  const auto add = [&](std::int64_t phase, std::string_view lane, std::int32_t index, std::string_view status) {
    ++expected[{batch_id, phase, std::string(lane), index, std::string(status)}];
  };
  for (const Member* row : all.members)
    if (row->counted_as) add(0, "member", 0, name(*row->counted_as));
  const auto add_job = [&](const Execution& row, std::int64_t phase, std::string_view lane, std::int32_t index) {
    if (!row.counted_as) return;
    add(phase, lane, index, name(*row.counted_as));
    if (*row.counted_as == StepStatus::succeeded && is_skipped(row)) add(phase, "skipped", index, lane);
  };
  for (const InitExecution* row : all.inits) add_job(*row, 0, "init", 0);
  for (const StepExecution* row : all.steps) {
    add_job(*row, row->phase_execution_id, row->is_catch_up ? "catch_up" : "step", row->step_index);
    if (row->is_catch_up) add_job(*row, 0, "catch_up", 0);
  }
  for (const CleanupExecution* row : all.cleanups) {
    add_job(*row, 0, name(row->kind), 0);
    if (row->phase_execution_id) add_job(*row, *row->phase_execution_id, name(row->kind), 0);
  }
  for (auto it = rows_.counts.lower_bound({batch_id, 0, "", 0, ""});
       it != rows_.counts.end() && it->second.batch_id == batch_id; ++it) {
    const Count& count = it->second;
    const auto found = expected.find(it->first);
    const std::int64_t n = found == expected.end() ? 0 : found->second;
    expect(count.n == n, "batch_counts equal their recount",
           "batch " + std::to_string(batch_id) + " phase " + std::to_string(count.phase_execution_id) + " " + count.lane +
               " " + std::to_string(count.step_index) + " " + count.status + " is " + std::to_string(count.n) +
               " and not " + std::to_string(n));
    if (found != expected.end()) expected.erase(found);
  }
  expect(expected.empty(), "everything is counted",
         expected.empty() ? "" : "batch " + std::to_string(batch_id) + " " + std::get<2>(expected.begin()->first) + " " +
                                     std::get<4>(expected.begin()->first));
}

void RunbookWatch::check_job(const Execution& row, const Whole& all, RowType type, const std::string& what) const {
  check_timer(type, row.id, row.timer_due);
  if (!row.counted_as) return;  // another's, that we have not come to yet
  const bool out = row.job_state != JobState::none;
  switch (row.status) {
    case StepStatus::pending:
      expect(!out, "what is pending has no job", what);
      expect(row.retry_after.has_value() == row.timer_due.has_value(), "what waits for a retry has a timer", what);
      break;
    case StepStatus::dispatched: expect(out, "what is dispatched has a job", what); break;
    case StepStatus::polling:
      expect(out || row.timer_due || (!scheduler_ && !row.poll_timeout_sec), "what is polled has a timer", what);
      break;
    default:
      expect(!out && !row.timer_due && !row.lease_until, "what has ended has neither job nor timer", what);
      expect(row.completed_at.has_value(), "what has ended says when", what);
  }
  if (row.job_state == JobState::leased)
    expect(row.lease_until && row.timer_due && *row.timer_due <= *row.lease_until,
           "who has a job has a lease and a timer", what);
  if (out && row.delivery_count + (row.job_state != JobState::leased) > 0) {  // not another orchestrator's
    const auto named = row.job_id ? parse_job_id(*row.job_id) : std::nullopt;
    expect(named && named->ref == Ref{type, row.id} && named->retry == row.retry_count &&
               named->poll == (row.status == StepStatus::polling ? row.poll_count : 0),
           "a job is named after its row", what + " " + row.job_id.value_or("?"));
    expect(row.params_json && !row.params_json->text.contains("{{"), "a job is resolved", what);
  }
  if (row.job_state == JobState::queued) expect(row.queued_at.has_value(), "what waits says since when", what);
  const Batch& batch = *all.batch;
  if (is_terminal(batch.status) && batch.walk == Walk::none && !is_removal({type, row.id}))
    expect(is_terminal(row.status), "a batch that has ended has only ended steps", what);
  if (row.status == StepStatus::succeeded && row.result_json && row.result_json->text.contains("\"job\"")) {
    const std::string& said = row.result_json->text;
    expect(said.contains("\"job\":" + quoted(row.job_id.value_or(""))), "the result is of the last job", what);
    expect(!said.contains("\"echo\":true") || said.contains("\"lease\":" + quoted(lease_token(row))),
           "the result is of the last lease", what);
  }
  check_dead(row, batch, type, what);
}

void RunbookWatch::check_dead(const Execution& row, const Batch& batch, RowType type, const std::string& what) const {
  if (row.dead_at) expect(is_failure(row.status), "what was given up has failed", what);
  const bool is_cancelled = batch.status == BatchStatus::cancelled && !is_removal({type, row.id});
  if (is_cancelled && batch.walk == Walk::none)
    expect(!row.dead_at, "a batch that was cancelled has no dead letters that nobody can replay", what);
  const bool has_left = type == RowType::step &&
                        rows_.members.at(rows_.steps.at(row.id).batch_member_id).status == MemberStatus::removed;
  if (is_failure(row.status) && row.error_message && row.error_message->starts_with("given up after") && !is_cancelled && !has_left)
    expect(row.dead_at.has_value(), "what was given up is a dead letter", what);
}

// --- members and their steps

// In their order: what is before the one under way has succeeded, and nothing after it has begun.
void RunbookWatch::check_order(const std::vector<const StepExecution*>& steps, const std::string& what) const {
  const StepExecution* busy = nullptr;
  bool all_succeeded = true;
  for (const StepExecution* step : steps) {
    if (under_way(*step)) {
      expect(!busy, "of a member's steps one is under way", what + ", " + about(*step, RowType::step));
      expect(all_succeeded, "steps before the one under way have succeeded", what + ", " + about(*step, RowType::step));
      busy = step;
    }
    all_succeeded = all_succeeded && step->status == StepStatus::succeeded;
  }
}

void RunbookWatch::check_members(const Whole& all) const {
  std::map<std::int64_t, std::vector<const StepExecution*>> by_member;
  for (const StepExecution* step : all.steps) by_member[step->batch_member_id].push_back(step);
  for (const Member* member : all.members) {
    const std::string what = "member '" + member->member_key + "' of batch " + std::to_string(all.batch->id) + " of " +
                             rows_.runbooks.at(all.batch->runbook_id).name;
    std::map<std::int64_t, std::vector<const StepExecution*>> by_phase;
    std::vector<const StepExecution*> catch_up;
    std::set<std::pair<std::int64_t, std::int32_t>> seen;
    bool open = false;
    for (const StepExecution* step : by_member[member->id]) {
      expect(seen.emplace(step->phase_execution_id, step->step_index).second, "a member has each step once",
             what + ", " + about(*step, RowType::step));
      (step->is_catch_up ? catch_up : by_phase[step->phase_execution_id]).push_back(step);
      open = open || (step->counted_as && is_open(step->status));
      if (step->is_catch_up && under_way(*step))
        expect(member->catching_up, "a member that does what it missed is catching up", what);
    }
    const auto index = [](const StepExecution* step) { return step->step_index; };
    for (auto& [phase_id, steps] : by_phase) {
      std::ranges::sort(steps, {}, index);
      check_order(steps, what);
    }
    // What another orchestrator gave out before us runs beside.
    const auto is_ours = [&](const StepExecution& step) { return !given_out_by_another_.contains(step.id); };
    expect(std::ranges::count_if(catch_up, [&](const auto* step) { return under_way(*step) && is_ours(*step); }) <= 1,
           "who is late does one step after the other", what);
    // Another program's word that it left counts when it has told us.
    const bool told = member->status == MemberStatus::failed ||
                      (member->status == MemberStatus::removed && member->remove_dispatched_at);
    const bool over = told && all.batch->status != BatchStatus::cancelled;
    const bool lockstep_walk = std::ranges::any_of(all.phases, [](const auto* p) { return p->walk != Walk::none; });
    if (member->status == MemberStatus::removed && told)
      for (const StepExecution* step : by_member[member->id])
        expect(!step->dead_at, "who has left has no dead letters", what + ", " + about(*step, RowType::step));
    if (over && !lockstep_walk)
      expect(!open, "who has failed or left has nothing open", what + " " + std::string(name(member->status)));
  }
}

void RunbookWatch::check_lockstep(const Whole& all, const PhaseExecution& phase) const {
  if (definition(*all.batch, phase.runbook_version).progression != Progression::lockstep) return;
  const std::string what = "phase " + std::to_string(phase.id) + " '" + phase.phase_name + "' of batch " +
                           std::to_string(all.batch->id) + " at " + std::to_string(phase.current_index);
  for (const StepExecution* step : all.steps) {
    if (step->phase_execution_id != phase.id || step->is_catch_up || !step->counted_as) continue;
    if (under_way(*step)) expect(step->step_index <= phase.current_index, "all do one step before the next", what);
    if (step->step_index < phase.current_index)
      expect(!is_open(step->status), "nobody is behind in lockstep", what + ", " + about(*step, RowType::step));
    if (is_failure(step->status) && !retried_.contains(all.batch->id))
      expect(step->step_index >= phase.current_index, "the first step with a failure ends the phase", what);
  }
}

// --- what others write meanwhile

// An update writes the columns that were decided: what another scheduler has refreshed since the load stays.
void RunbookWatch::check_kept(const Writes& writes) const {
  for (const auto& change : writes.members_changed) {
    const Member& row = rows_.members.at(change.row.id);
    if (rows_.batches.at(row.batch_id).created_by == "outsider")
      expect(row.data_json == members_before_.at(row.id).data_json, "what another scheduler says of a member is kept",
             "member '" + row.member_key + "'");
  }
  for (const auto& change : writes.phases_changed) {
    const PhaseExecution& row = rows_.phases.at(change.row.id);
    expect(row.due_at == phases_before_.at(row.id).due_at, "when a phase is due is kept as it was said",
           "phase " + std::to_string(row.id));
  }
  check_params(writes.steps_changed, steps_before_, RowType::step);
  check_params(writes.inits_changed, inits_before_, RowType::init);
}

template <class Row>
void RunbookWatch::check_params(const std::vector<Update<Row>>& changed, const Rows<Row>& before, RowType type) const {
  for (const auto& [loaded, row] : changed) {
    const Execution& stored = *find({type, row.id});
    const bool resolved = loaded.params_json && loaded.params_json->text != "null";
    if (row.params_json != loaded.params_json)
      expect(!resolved || retried_.contains(batch_of({type, row.id})), "parameters are resolved once", about(stored, type));
    else
      expect(stored.params_json == before.at(row.id).params_json, "parameters that others write are kept",
             about(stored, type));
  }
}

// --- rollbacks and removals

void RunbookWatch::check_cleanups(const Whole& all) const {
  if (handled_.contains(all.batch->id) || retried_.contains(all.batch->id)) return;
  std::map<std::tuple<CleanupKind, std::int64_t, std::int64_t, std::int64_t>, bool> open_before;
  for (const CleanupExecution* row : all.cleanups) {  // by id: in the order of their sequence
    const std::tuple key(row->kind, row->caused_by_step_id.value_or(0), row->caused_by_init_id.value_or(0),
                         row->kind == CleanupKind::removal ? row->batch_member_id.value_or(0) : 0);
    bool& open = open_before[key];
    if (row->status != StepStatus::pending && row->status != StepStatus::cancelled)
      expect(!open, "rollbacks and removals go in order", about(*row, RowType::cleanup));
    open = open || is_open(row->status);
  }
  for (const auto& [key, open] : open_before) {
    const auto& [kind, step_id, init_id, member_id] = key;
    if (open || kind == CleanupKind::removal || all.batch->status == BatchStatus::cancelled) continue;
    const Execution* cause = step_id != 0 ? find({RowType::step, step_id}) : find({RowType::init, init_id});
    expect(cause && cause->status == StepStatus::rolled_back, "what was rolled back says so",
           cause ? about(*cause, step_id != 0 ? RowType::step : RowType::init) : "");
  }
}

// Whoever we were told has left was cleaned up after, whatever became of the batch.
void RunbookWatch::check_removals(const Whole& all) const {
  for (const Member* member : all.members) {
    const auto told = told_removed_.find(member->id);
    if (told == told_removed_.end() || definition(*all.batch, told->second).on_member_removed.empty()) continue;
    expect(std::ranges::any_of(all.cleanups,
                               [&](const CleanupExecution* row) {
                                 return row->kind == CleanupKind::removal && row->batch_member_id == member->id;
                               }),
           "who has left is cleaned up after", "member '" + member->member_key + "'");
  }
}

// --- the end

void RunbookWatch::check_end(const Whole& all) const {
  const Batch& batch = *all.batch;
  const Runbook& book = rows_.runbooks.at(batch.runbook_id);
  const std::string what = "batch " + std::to_string(batch.id) + " of " + book.name + " is " +
                           std::string(name(batch.status));
  expect(is_terminal(batch.status), "every batch comes to its end", what);
  expect(batch.walk == Walk::none && !batch.timer_due, "nothing goes on in a batch that has ended", what);
  check_removals(all);
  if (batch.status == BatchStatus::cancelled) return;
  check_batch_end(batch);
  if (definition(batch, book.version).progression == Progression::lockstep) return;
  if (handled_.contains(batch.id) || retried_.contains(batch.id)) return;
  // Nobody was forgotten: who is still a member has done the steps of each phase that completed.
  std::map<std::string, const PhaseExecution*> newest;
  for (const PhaseExecution* phase : all.phases)
    if (phase->status == PhaseStatus::completed) {
      auto& best = newest[phase->phase_name];
      if (!best || best->runbook_version < phase->runbook_version) best = phase;
    }
  for (const Member* member : all.members)
    for (const auto& [phase_name, phase] : newest) {
      const Phase* of = definition(batch, phase->runbook_version).phase(phase_name);
      if (member->status != MemberStatus::active || !of) continue;
      const auto done = std::ranges::count_if(all.steps, [&](const StepExecution* step) {
        return step->batch_member_id == member->id && step->phase_execution_id == phase->id &&
               step->status == StepStatus::succeeded;
      });
      expect(done == static_cast<std::ptrdiff_t>(of->steps.size()), "no member is forgotten",
             what + ", member '" + member->member_key + "', phase '" + phase_name + "'");
    }
}

void RunbookWatch::check_all() {
  for (const auto& [id, batch] : rows_.batches) {
    const Whole all = whole(id);
    check_batch(all);
    check_end(all);
  }
  const auto due = [&](Ref ref) -> std::optional<Time> {
    const auto in = [&](const auto& table) -> std::optional<Time> {
      const auto it = table.find(ref.id);
      return it == table.end() ? std::nullopt : it->second.timer_due;
    };
    switch (ref.type) {
      case RowType::step: return in(rows_.steps);
      case RowType::init: return in(rows_.inits);
      case RowType::cleanup: return in(rows_.cleanups);
      case RowType::phase: return in(rows_.phases);
      case RowType::batch: return in(rows_.batches);
      case RowType::runbook: return in(rows_.runbooks);
      case RowType::none: break;
    }
    return std::nullopt;
  };
  for (const baton::Timer& timer : timers_)
    expect(timer.subject.type == Subject::Type::job || due(ref_of(timer.subject)) == timer.due,
           "no timer is left over", std::string(name(timer.subject.type)) + " " + timer.subject.id);
  for (const auto& [id, book] : rows_.runbooks) {
    expect(!book.transition_after && !book.timer_due, "a new version is applied to all batches", book.name);
    if (scheduler_ && book.is_active && book.version > 1 && book.overdue_behavior == "ignore")
      expect(book.ignore_overdue_applied, "what was ignored once is marked", book.name);
  }
}

}  // namespace baton::simulation
