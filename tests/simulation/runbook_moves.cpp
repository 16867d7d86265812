// What may become of a row in one commit, and what may be answered.
#include <algorithm>

#include "core/runbook/machine/machine.hpp"
#include "core/runbook/machine/versions.hpp"
#include "store/runbook_tables.hpp"
#include "tests/simulation/runbook_watch.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

using namespace runbook;

namespace {

bool under_way(StepStatus status) {
  return status == StepStatus::dispatched || status == StepStatus::polling;
}

template <class Row>
void remember(const auto& table, const std::vector<Update<Row>>& changed,
              std::map<std::int64_t, Row>& before) {
  before.clear();
  for (const auto& [loaded, row] : changed)
    if (const auto it = table.find(row.id); it != table.end()) before.emplace(row.id, it->second);
}

}  // namespace

void RunbookWatch::expect(bool truth, const std::string& what, const std::string& about) const {
  if (!truth) throw Violation{what + (about.empty() ? "" : " (" + about + ")")};
}

const Execution* RunbookWatch::find(Ref ref) const {
  const auto in = [&](const auto& table) -> const Execution* {
    const auto it = table.find(ref.id);
    return it == table.end() ? nullptr : &it->second;
  };
  switch (ref.type) {
    case RowType::step: return in(rows_.steps);
    case RowType::init: return in(rows_.inits);
    case RowType::cleanup: return in(rows_.cleanups);
    default: return nullptr;
  }
}

std::int64_t RunbookWatch::batch_of(Ref ref) const {
  if (!find(ref)) return 0;
  if (ref.type == RowType::step) return rows_.phases.at(rows_.steps.at(ref.id).phase_execution_id).batch_id;
  return ref.type == RowType::init ? rows_.inits.at(ref.id).batch_id : rows_.cleanups.at(ref.id).batch_id;
}

std::string RunbookWatch::about(const Execution& row, RowType type) const {
  return std::string(name(type)) + " " + std::to_string(row.id) + " '" + row.step_name + "' " +
         std::string(name(row.status)) + " " + std::string(name(row.job_state)) + " of batch " +
         std::to_string(batch_of({type, row.id}));
}

const Definition& RunbookWatch::definition(const Batch& batch, std::int32_t version) const {
  const std::string& book = rows_.runbooks.at(batch.runbook_id).name;
  for (const auto& [id, row] : rows_.runbooks) {
    if (row.name != book || row.version != version) continue;
    auto& known = definitions_[id];
    if (!known) known = runbook::parse(row.yaml_content, Strictness::stored).definition;
    return *known;
  }
  throw Violation{"a row names a version that exists (" + book + " " + std::to_string(version) + ")"};
}

// Of the runbook; null for what another scheduler has made up.
const Step* RunbookWatch::step_of(Ref ref) const {
  const Batch& batch = rows_.batches.at(batch_of(ref));
  const std::vector<Step>* steps = nullptr;
  if (ref.type == RowType::init) {
    steps = &definition(batch, rows_.inits.at(ref.id).runbook_version).init;
  } else if (ref.type == RowType::step) {
    const PhaseExecution& phase = rows_.phases.at(rows_.steps.at(ref.id).phase_execution_id);
    const Phase* of = definition(batch, phase.runbook_version).phase(phase.phase_name);
    if (of) steps = &of->steps;
  }
  const auto index = static_cast<std::size_t>(find(ref)->step_index);
  return steps && index < steps->size() ? &(*steps)[index] : nullptr;
}

// --- commands and answers

void RunbookWatch::arrived(const Command& command) {
  if (const auto* retry = std::get_if<RetryMembers>(&command)) retried_.insert(retry->batch_id);
  if (const auto* step = std::get_if<ChangeStep>(&command)) {
    if (step->what == ChangeStep::What::retry) retried_.insert(batch_of(step->ref));
    handled_.insert(batch_of(step->ref));
  }
  if (const auto* settled = std::get_if<SettleTask>(&command))
    if (settled->how != SettleTask::How::keep) lease_promised_.erase({settled->task_id, settled->lease});
  if (const auto* change = std::get_if<ChangeBatch>(&command))
    if (change->what == ChangeBatch::What::advance) advanced_.insert(change->batch_id);
  if (const auto* event = std::get_if<RunbookEvent>(&command))
    if (std::holds_alternative<PhaseDue>(event->message.what)) advanced_.insert(event->message.batch_id);
}

void RunbookWatch::answered(const Command& command, const Reply& reply) {
  if (const auto* poll = std::get_if<PollReply>(&reply)) {
    for (const Handout& job : poll->jobs)
      if (job.runbook) on_handed_out(job);
  } else if (const auto* result = std::get_if<ResultReply>(&reply)) {
    const std::string& id = std::get<ReportResult>(command).task_id;
    if (parse_job_id(id) && result->ignored.empty())
      expect(++accepted_[id] == 1, "a job has one accepted result", id);
  } else if (const auto* beat = std::get_if<HeartbeatReply>(&reply)) {
    for (const TaskLease& job : std::get<Heartbeat>(command).tasks) {
      const auto named = parse_job_id(job.task_id);
      const Execution* row = named ? find(named->ref) : nullptr;
      if (!row || std::ranges::find(beat->cancelled, job.task_id) != beat->cancelled.end()) continue;
      if (row->lease_until && row->job_id == job.task_id && lease_token(*row) == job.lease)
        lease_promised_[{job.task_id, job.lease}] = *row->lease_until;
    }
  } else if (std::holds_alternative<SettleReply>(reply)) {
    const auto& settled = std::get<SettleTask>(command);
    const auto named = parse_job_id(settled.task_id);
    const Execution* row = named ? find(named->ref) : nullptr;
    const bool is_its = row && row->job_state == JobState::leased && row->job_id == settled.task_id && lease_token(*row) == settled.lease;
    if (is_its) expect(settled.how == SettleTask::How::keep, "what a worker does not want is not its any more", settled.task_id);
    if (is_its) lease_promised_[{settled.task_id, settled.lease}] = *row->lease_until;
    if (row && row->job_id == settled.task_id && settled.how == SettleTask::How::give_up)
      expect(is_terminal(row->status), "what a worker calls hopeless has failed", settled.task_id);
  } else if (const auto* decided = std::get_if<HoldReply>(&reply)) {
    expect(rows_.holds.at(decided->hold.id).status != HoldStatus::open, "an acknowledged answer is stored",
           std::to_string(decided->hold.id));
  } else if (const auto* batch = std::get_if<BatchReply>(&reply)) {
    expect(rows_.batches.contains(batch->batch.id), "an acknowledged batch is stored",
           std::to_string(batch->batch.id));
    const auto* change = std::get_if<ChangeBatch>(&command);
    if (change && change->what == ChangeBatch::What::cancel)
      expect(rows_.batches.at(change->batch_id).status == BatchStatus::cancelled,
             "an acknowledged cancel is stored", std::to_string(change->batch_id));
  } else if (const auto* event = std::get_if<EventReply>(&reply); event && std::holds_alternative<RunbookEvent>(command)) {
    const SchedulerMessage& message = std::get<RunbookEvent>(command).message;
    if (const auto* left = std::get_if<MemberRemoved>(&message.what))
      told_removed_.emplace(left->batch_member_id, message.runbook_version);
  } else if (const auto* members = std::get_if<MembersReply>(&reply)) {
    for (const std::int64_t id : members->member_ids)
      expect(rows_.members.contains(id), "an acknowledged member is stored", std::to_string(id));
  } else if (const auto* book = std::get_if<RunbookReply>(&reply)) {
    expect(rows_.runbooks.contains(book->runbook.id), "an acknowledged runbook is stored", book->runbook.name);
  }
}

void RunbookWatch::given_back(const std::string& job_id, const std::string& lease) {
  lease_promised_.erase({job_id, lease});
}

void RunbookWatch::on_handed_out(const Handout& job) {
  const std::string what = job.task_id + " " + job.lease;
  expect(handed_out_.emplace(job.task_id, job.lease).second, "a lease is given once", what);
  expect(!job.params.text.contains("{{") && !job.handler.contains("{{"), "nothing unresolved is handed out",
         what + " " + job.handler + " " + job.params.text);
  const auto named = parse_job_id(job.task_id);
  const Execution* row = named ? find(named->ref) : nullptr;
  expect(row && named->ref == job.runbook->ref, "what is handed out is stored", what);
  expect(row->delivery_count >= job.delivery_count || row->job_id != job.task_id,
         "a delivery is counted before it leaves", what);
  expect(job.runbook->batch_id == batch_of(named->ref), "a job knows its batch", what);
  lease_promised_[{job.task_id, job.lease}] = job.lease_until;
  if (named->ref.type == RowType::step) check_target(rows_.steps.at(named->ref.id), job.params, what);
}

// Later parameters show what an earlier step has put out, and the member is the right one.
void RunbookWatch::check_target(const StepExecution& step, const Json& params, const std::string& what) const {
  const auto value = [&](std::string_view key) -> std::optional<std::string> {
    const std::string mark = "\"" + std::string(key) + "\":\"";
    const auto at = params.text.find(mark);
    if (at == std::string::npos) return std::nullopt;
    const auto from = at + mark.size();
    return params.text.substr(from, params.text.find('"', from) - from);
  };
  const Member& member = rows_.members.at(step.batch_member_id);
  if (const auto key = value("Key"))
    expect(*key == member.member_key, "a job is about its member", what + " " + *key);
  const auto target = value("Target");
  if (!target || step.retry_count > 0 || step.poll_count > 0 || step.delivery_count > 1) return;
  std::set<std::string> known;
  for (const auto& [id, other] : rows_.steps) {
    if (other.batch_member_id != member.id || other.status != StepStatus::succeeded || !other.result_json ||
        *other.completed_at > *step.dispatched_at || !other.result_json->text.contains("\"id\""))
      continue;
    const PhaseExecution& phase = rows_.phases.at(other.phase_execution_id);
    const Phase* of = definition(rows_.batches.at(phase.batch_id), phase.runbook_version).phase(phase.phase_name);
    if (of && !of->steps.at(static_cast<std::size_t>(other.step_index)).output_params.empty())
      known.insert("from-" + *other.job_id);
  }
  expect(known.empty() ? *target == "none" : known.contains(*target),
         "what a step has put out is seen by later ones", what + " sees " + *target);
}

// --- commits

void RunbookWatch::before_commit(const Writes& writes) {
  remember(rows_.batches, writes.batches_changed, batches_before_);
  remember(rows_.members, writes.members_changed, members_before_);
  remember(rows_.phases, writes.phases_changed, phases_before_);
  remember(rows_.steps, writes.steps_changed, steps_before_);
  remember(rows_.inits, writes.inits_changed, inits_before_);
  remember(rows_.cleanups, writes.cleanups_changed, cleanups_before_);
  remember(rows_.holds, writes.holds_changed, holds_before_);
  overdue_applied_before_.clear();
  for (const auto& [id, book] : rows_.runbooks)
    if (book.ignore_overdue_applied) overdue_applied_before_.insert(id);
  phases_new_.clear();
  for (const PhaseExecution& phase : writes.phases_new) phases_new_.insert(phase.id);
  late_removals_.clear();
  for (const CleanupExecution& cleanup : writes.cleanups_new)
    if (is_late_removal(cleanup, writes)) late_removals_.insert(cleanup.id);
}

// One commit may end a batch and then be told that a member is gone, which is cleaned up all the same. Of one whom another program
// has removed before there is no event that would tell which came first.
bool RunbookWatch::is_late_removal(const CleanupExecution& cleanup, const Writes& writes) const {
  if (cleanup.kind != CleanupKind::removal || !cleanup.batch_member_id) return false;
  const auto member = rows_.members.find(*cleanup.batch_member_id);
  if (member != rows_.members.end() && member->second.status == MemberStatus::removed) return true;
  const auto is_end = [&](const BatchEvent& event) {
    return event.batch_id == cleanup.batch_id && (event.event_type == "batch_failed" || event.event_type == "batch_completed");
  };
  const auto end = std::ranges::find_if(writes.events_new, is_end);
  return std::any_of(end, writes.events_new.end(), [&](const BatchEvent& event) {
    return event.event_type == "member_removed" && event.batch_member_id == cleanup.batch_member_id;
  });
}

void RunbookWatch::committed(const Writes& writes) {
  // A row in which nothing was changed is not written, whatever another program has made of it since it was loaded.
  const auto each = [](const auto& fresh, const auto& changed, auto&& visit) {
    for (const auto& row : fresh) visit(row.id, true);
    for (const auto& change : changed)
      if (store::differing_columns(change.before, change.row) != 0) visit(change.row.id, false);
  };
  each(writes.batches_new, writes.batches_changed, [&](std::int64_t id, bool fresh) {
    touched_.insert(id);
    if (!fresh) check_move(batches_before_.at(id), rows_.batches.at(id));
  });
  each(writes.members_new, writes.members_changed, [&](std::int64_t id, bool fresh) {
    const Member& row = rows_.members.at(id);
    touched_.insert(row.batch_id);
    if (!fresh) check_move(members_before_.at(id), row);
    expect(!row.counted_as || row.counted_as == row.status, "a member that was written is counted as it is",
           row.member_key);
  });
  each(writes.phases_new, writes.phases_changed, [&](std::int64_t id, bool fresh) {
    const PhaseExecution& row = rows_.phases.at(id);
    touched_.insert(row.batch_id);
    if (row.waits_for == PhaseWait::phases_before || row.waits_for == PhaseWait::required_phase) was_in_line_.insert(id);
    if (!fresh) check_move(phases_before_.at(id), row);
    const bool was_waiting = fresh || phases_before_.at(id).status == PhaseStatus::pending;
    if (was_waiting && row.status != PhaseStatus::pending && row.dispatched_at) check_begin(row);
  });
  each(writes.holds_new, writes.holds_changed, [&](std::int64_t id, bool fresh) {
    touched_.insert(rows_.holds.at(id).batch_id);
    if (!fresh) check_move(holds_before_.at(id), rows_.holds.at(id));
  });
  const auto jobs = [&](RowType type, const auto& table, const auto& before, const auto& fresh, const auto& changed) {
    each(fresh, changed, [&](std::int64_t id, bool is_new) {
      const auto& row = table.at(id);
      touched_.insert(batch_of({type, id}));
      expect(row.counted_as == row.status, "a job that was written is counted as it is", about(row, type));
      std::decay_t<decltype(row)> from = is_new ? std::decay_t<decltype(row)>{} : before.at(id);
      check_move(from, row, {type, id}, about(row, type));
    });
  };
  jobs(RowType::init, rows_.inits, inits_before_, writes.inits_new, writes.inits_changed);
  jobs(RowType::cleanup, rows_.cleanups, cleanups_before_, writes.cleanups_new, writes.cleanups_changed);
  jobs(RowType::step, rows_.steps, steps_before_, writes.steps_new, writes.steps_changed);
  const auto begun = [&](const StepExecution& row) {
    const auto from = steps_before_.find(row.id);
    const bool was = from != steps_before_.end() && from->second.dispatched_at;
    if (under_way(rows_.steps.at(row.id).status) && !was) check_begin(rows_.steps.at(row.id));
  };
  check_kept(writes);
  for (const StepExecution& row : writes.steps_new) begun(row);
  for (const auto& change : writes.steps_changed) begun(change.row);
}

void RunbookWatch::check_move(const Batch& from, const Batch& to) const {
  const std::string what = "batch " + std::to_string(to.id) + " from " + std::string(name(from.status)) + " to " +
                           std::string(name(to.status));
  if (from.runbook_id != to.runbook_id && !interfered_.contains(to.id) && !retried_.contains(to.id)) check_version(from, to);
  if (from.status == to.status) {
    if (is_terminal(to.status) && !retried_.contains(to.id))
      expect(from.completed_at == to.completed_at && from.error_message == to.error_message,
             "what has ended never changes", what);
    return;
  }
  if (is_terminal(from.status))
    expect(retried_.contains(to.id) && from.status != BatchStatus::cancelled,
           "a batch that has ended goes on only when it is retried", what);
  else
    expect(to.status > from.status, "a batch goes forward", what);
  if (is_terminal(to.status) && to.status != BatchStatus::cancelled) check_batch_end(to);
}

// An open batch goes over to a new version: what is past due then, and the init steps, are as that version says.
void RunbookWatch::check_version(const Batch& from, const Batch& to) const {
  const Runbook& book = rows_.runbooks.at(to.runbook_id);
  const std::string what = "batch " + std::to_string(to.id) + " goes over to version " + std::to_string(book.version) +
                           " of " + book.name;
  const bool ignores = open_batches_of(book) == OpenBatches::ignore && !overdue_applied_before_.contains(book.id);
  const bool keeps = open_batches_of(book) == OpenBatches::keep;
  // Of the versions before: what has begun or was left out, and what is due and has only waited for its turn.
  const auto before = [&](const PhaseExecution& phase, auto&& is) {
    return std::ranges::any_of(rows_.phases, [&](const auto& entry) {
      const auto was = phases_before_.find(entry.first);
      const PhaseExecution& old = was == phases_before_.end() ? entry.second : was->second;
      return old.batch_id == to.id && old.phase_name == phase.phase_name && old.runbook_version < book.version && is(old);
    });
  };
  const auto is_over = [](const PhaseExecution& old) {
    return old.status != PhaseStatus::pending && old.status != PhaseStatus::superseded;
  };
  const auto waits = [&](const PhaseExecution& old) {
    return old.status == PhaseStatus::pending && old.due_at && *old.due_at <= clock_.now();
  };
  const auto has_begun_before = [&](const auto& entry) {
    const PhaseExecution& phase = entry.second;
    return phase.batch_id == to.id && phase.runbook_version < book.version && phase.dispatched_at;
  };
  if (keeps) expect(!from.init_dispatched_at && std::ranges::none_of(rows_.phases, has_begun_before), "what has begun stays on its version", what);
  bool changed_over = false;
  for (const auto& [id, phase] : rows_.phases) {
    if (phase.batch_id != to.id || phase.runbook_version != book.version || !phases_new_.contains(id)) continue;
    changed_over = true;
    const bool overdue = phase.due_at && *phase.due_at <= clock_.now();
    const bool left_out = (ignores || keeps) && (before(phase, is_over) || (ignores && overdue && !before(phase, waits)));
    if (!is_terminal(to.status))
      expect((phase.status == PhaseStatus::skipped) == left_out, "what is overdue is as overdue_behavior says",
             what + ", phase '" + phase.phase_name + "' " + std::string(name(phase.status)));
  }
  if (!changed_over || from.status != BatchStatus::active || is_terminal(to.status)) return;
  const bool has_inits = std::ranges::any_of(rows_.inits, [&](const auto& entry) {
    return entry.second.batch_id == to.id && entry.second.runbook_version == book.version;
  });
  expect(has_inits == (book.rerun_init && !definition(to, book.version).init.empty()), "init steps run again as rerun_init says",
         what);
}

void RunbookWatch::check_move(const PhaseExecution& from, const PhaseExecution& to) const {
  const std::string what = "phase " + std::to_string(to.id) + " '" + to.phase_name + "' of batch " +
                           std::to_string(to.batch_id) + " from " + std::string(name(from.status)) + " to " +
                           std::string(name(to.status));
  const Batch& batch = rows_.batches.at(to.batch_id);
  if (from.status == to.status) return;
  if (is_terminal(from.status)) {
    // Whoever catches up may be the first to come through a phase.
    std::map<std::int64_t, bool> through;
    for (const auto& [id, step] : rows_.steps)
      if (step.phase_execution_id == to.id)
        through.try_emplace(step.batch_member_id, true).first->second &= step.status == StepStatus::succeeded;
    const bool late = from.status == PhaseStatus::failed && to.status == PhaseStatus::completed &&
                      std::ranges::any_of(through, [](const auto& each) { return each.second; });
    expect(late || (!is_terminal(to.status) && retried_.contains(to.batch_id)), "what has ended never changes", what);
    return;
  }
  using enum PhaseStatus;
  if (from.status == pending && to.status == dispatched && scheduler_ && !advanced_.contains(to.batch_id))
    expect(to.due_at && *to.due_at <= clock_.now(), "a phase begins when it is due", what);
  if (to.status == superseded)
    expect(from.status == pending && to.runbook_version < rows_.runbooks.at(batch.runbook_id).version,
           "only what waits is superseded, by a newer version", what);
  if (to.status == completed || (to.status == failed && !is_terminal(batch.status))) check_phase_end(to);
}

bool RunbookWatch::is_answered(HoldKind kind, std::int64_t phase_id) const {
  return std::ranges::any_of(rows_.holds, [&](const auto& entry) {
    const Hold& hold = entry.second;
    return hold.kind == kind && hold.phase_execution_id == phase_id && hold.status == HoldStatus::answered && hold.answer == "go";
  });
}

void RunbookWatch::check_move(const Hold& from, const Hold& to) const {
  expect(from.status == HoldStatus::open, "a hold is decided once", "hold " + std::to_string(to.id));
}

// A phase that we have begun by ourselves: nobody and nothing was in the way.
void RunbookWatch::check_begin(const PhaseExecution& phase) const {
  const Batch& batch = rows_.batches.at(phase.batch_id);
  if (!scheduler_ || !batch.phase_overlap || advanced_.contains(batch.id) || interfered_.contains(batch.id)) return;
  const std::string what = "phase " + std::to_string(phase.id) + " '" + phase.phase_name + "' of batch " + std::to_string(batch.id);
  const Definition& book = definition(batch, phase.runbook_version);
  const bool goes_on = !is_terminal(batch.status);
  expect(!batch.hold_id, "a batch on hold begins nothing", what);
  const auto earlier = batches_before_.find(batch.id);  // it may have been paused after that
  const bool was_paused = earlier == batches_before_.end() || earlier->second.paused_at;
  expect(!batch.paused_at || !was_paused || !goes_on, "a paused batch begins no phase", what);
  if (phase.expected_at && goes_on)
    expect(clock_.now() - *phase.expected_at <= book.late_after + std::chrono::minutes{10} || was_in_line_.contains(phase.id) ||
               is_answered(HoldKind::late_phase, phase.id),
           "what is much too late waits for a person", what);
  const Phase* of = book.phase(phase.phase_name);
  if (of && of->gate)
    expect(is_answered(HoldKind::gate, phase.id), "a phase with a gate waits for go", what);
  for (const auto& [id, other] : rows_.phases) {
    const bool before = std::pair(-other.offset_minutes, id) < std::pair(-phase.offset_minutes, phase.id);
    if (other.batch_id == batch.id && before && batch.phase_overlap == PhaseOverlap::wait && goes_on && other.due_at)
      expect(other.status != PhaseStatus::pending, "phases begin in their order", what + " before '" + other.phase_name + "'");
    if (!of || !of->required || other.batch_id != batch.id || other.phase_name != of->required->phase) continue;
    if (other.status == PhaseStatus::superseded || is_answered(HoldKind::required, phase.id)) continue;
    expect(is_terminal(other.status), "what is required is over", what);
    if (!retried_.contains(batch.id) && !handled_.contains(batch.id) && other.runbook_version == phase.runbook_version)
      expect(is_met(*of->required, other), "a phase begins if what it requires is met", what);
  }
}

// By the steps: who began it, and who came through.
bool RunbookWatch::is_met(const Requirement& required, const PhaseExecution& other) const {
  std::map<std::int64_t, std::pair<bool, bool>> members;  // has begun, has come through
  for (const auto& [id, step] : rows_.steps) {
    if (step.phase_execution_id != other.id) continue;
    auto& [began, through] = members.try_emplace(step.batch_member_id, false, true).first->second;
    began = began || (step.step_index == 0 && step.status != StepStatus::cancelled);
    through = through && step.status == StepStatus::succeeded;
  }
  const auto began = std::ranges::count_if(members, [](const auto& each) { return each.second.first; });
  const auto through = std::ranges::count_if(members, [](const auto& each) { return each.second.second; });
  return began > 0 && through * 100 >= required.succeeded_percent * began;
}

void RunbookWatch::check_move(const Member& from, const Member& to) const {
  const std::string what = "member '" + to.member_key + "' of batch " + std::to_string(to.batch_id) + " from " +
                           std::string(name(from.status)) + " to " + std::string(name(to.status));
  if (from.status == to.status) return;
  if (to.status == MemberStatus::active)
    expect(from.status == MemberStatus::failed && retried_.contains(to.batch_id),
           "only a retry makes a member active again", what);
  else
    expect(from.status == MemberStatus::active || to.status == MemberStatus::removed, "who has left stays away", what);
}

void RunbookWatch::check_move(const Execution& from, const Execution& to, Ref ref, const std::string& what) {
  const std::int64_t batch_id = batch_of(ref);
  const std::string moved = what + " from " + std::string(name(from.status));
  if (is_terminal(from.status)) {
    const bool rolls_back = to.status == StepStatus::rolled_back &&
                            (from.status == StepStatus::failed || from.status == StepStatus::poll_timeout);
    if (from.status != to.status && !rolls_back)
      expect(retried_.contains(batch_id) && from.status != StepStatus::succeeded, "what has ended never changes",
             moved);
    if (from.status == to.status && !retried_.contains(batch_id))
      expect(from.completed_at == to.completed_at && from.result_json == to.result_json &&
                 from.error_message == to.error_message && from.job_id == to.job_id &&
                 from.retry_count == to.retry_count,
             "what has ended never changes", moved);
  }
  if (to.status == StepStatus::rolled_back && from.status != to.status) {
    int before = 0;
    for (const auto& [id, cleanup] : rows_.cleanups) {
      if ((ref.type == RowType::step ? cleanup.caused_by_step_id : cleanup.caused_by_init_id) != to.id) continue;
      ++before;
      expect(is_terminal(cleanup.status) || handled_.contains(batch_id), "a step is rolled back after its rollback",
             moved);
    }
    expect(before > 0, "a step is rolled back by its rollback", moved);
  }
  expect(to.retry_count <= to.max_retries.value_or(0) || retried_.contains(batch_id), "retries have an end", what);
  if (is_failure(to.status) && !is_failure(from.status)) check_failure(from, to, ref, moved);
  check_lease(from, to, what);
}

// A step that fails for good has had its retries, and is rolled back.
void RunbookWatch::check_failure(const Execution& from, const Execution& to, Ref ref, const std::string& what) const {
  // A job of another orchestrator may be out when the batch has ended: nothing follows from it.
  const bool too_late = is_terminal(rows_.batches.at(batch_of(ref)).status) && given_out_by_another_.contains(ref.id);
  if (const Step* step = step_of(ref); step && !step->on_failure.empty() && !too_late)
    expect(std::ranges::any_of(rows_.cleanups,
                               [&](const auto& entry) {
                                 const CleanupExecution& row = entry.second;
                                 return (ref.type == RowType::step ? row.caused_by_step_id : row.caused_by_init_id) == ref.id;
                               }),
           "what fails is rolled back", what);
  const bool by_worker = to.error_message && (to.error_message == "bad luck" || to.error_message->starts_with("timed out"));
  if (under_way(from.status) && to.status != StepStatus::poll_timeout && by_worker &&
      (!is_terminal(rows_.batches.at(batch_of(ref)).status) || is_removal(ref)))
    expect(to.retry_count >= to.max_retries.value_or(0), "what fails is tried again as often as the runbook says", what);
}

void RunbookWatch::check_lease(const Execution& from, const Execution& to, const std::string& what) {
  const auto named = to.job_id ? parse_job_id(*to.job_id) : std::nullopt;
  if (to.job_state == JobState::leased && to.delivery_count > 0 &&
      (from.job_state != JobState::leased || from.delivery_count != to.delivery_count || from.job_id != to.job_id)) {
    const Batch& batch = rows_.batches.at(batch_of(named->ref));
    expect(!batch.paused_at || is_terminal(batch.status), "a paused batch hands nothing out", what);
    expect(batch.status != BatchStatus::cancelled || is_removal(named->ref), "a cancelled batch hands nothing out", what);
  }
  // Whoever has a lease keeps it as long as was promised, unless the step is over or it reported itself.
  if (from.job_state != JobState::leased) return;
  const bool again = to.job_state == JobState::queued && to.job_id == from.job_id;
  const bool given_up = to.error_message && to.error_message != from.error_message &&
                        (to.error_message->starts_with("timed out") || to.error_message->starts_with("given up"));
  const auto promised = lease_promised_.find({from.job_id.value_or(""), lease_token(from)});
  if ((again || given_up) && promised != lease_promised_.end())
    expect(clock_.now() >= promised->second, "a lease lasts as long as was promised", what);
}

// A step begins in a batch whose init steps are over.
void RunbookWatch::check_begin(const StepExecution& step) const {
  const PhaseExecution& phase = rows_.phases.at(step.phase_execution_id);
  const Batch& batch = rows_.batches.at(phase.batch_id);
  const std::string what = about(step, RowType::step);
  expect(batch.status != BatchStatus::detected && batch.status != BatchStatus::init_dispatched,
         "no step runs before the batch is active", what);
  for (const auto& [id, init] : rows_.inits)
    if (init.batch_id == batch.id && init.runbook_version == phase.runbook_version)
      expect(init.status == StepStatus::succeeded || retried_.contains(batch.id),
             "no step runs before the init steps have succeeded", what);
  expect(phase.status == PhaseStatus::dispatched || step.is_catch_up, "a step runs in its phase", what);
  for (const auto& [id, other] : rows_.steps) {
    if (!batch.phase_overlap || step.is_catch_up || other.is_catch_up || other.batch_member_id != step.batch_member_id) continue;
    if (other.phase_execution_id == phase.id || !under_way(other.status) || retried_.contains(batch.id)) continue;
    const PhaseExecution& of = rows_.phases.at(other.phase_execution_id);
    expect(of.phase_name != phase.phase_name, "a member does no two versions of a phase at once", what + ", " + about(other, RowType::step));
    const bool before = std::pair(-of.offset_minutes, of.id) < std::pair(-phase.offset_minutes, phase.id);
    expect(batch.phase_overlap == PhaseOverlap::allow || !before, "a member does one phase after the other",
           what + ", " + about(other, RowType::step));
  }
  expect(!rows_.members.at(step.batch_member_id).hold_id || step.is_catch_up, "who is held begins nothing", what);
  for (const auto& [id, other] : rows_.steps) {
    if (!step.is_catch_up || !other.is_catch_up || other.batch_member_id != step.batch_member_id || id == step.id) continue;
    expect(!under_way(other.status), "who is late begins one step after the other", what + ", " + about(other, RowType::step));
    if (place_of(other) < place_of(step))
      expect(other.status == StepStatus::succeeded || handled_.contains(batch.id) || retried_.contains(batch.id),
             "what was missed is caught up in order", what + ", " + about(other, RowType::step));
  }
  expect(rows_.members.at(step.batch_member_id).status == MemberStatus::active ||
             interfered_.contains(batch.id),
         "a step runs for an active member", what);
}

// --- outcomes, by the table of the specification

void RunbookWatch::check_phase_end(const PhaseExecution& phase) const {
  const Batch& batch = rows_.batches.at(phase.batch_id);
  const Definition& book = definition(batch, phase.runbook_version);
  const std::string what =
      "phase " + std::to_string(phase.id) + " '" + phase.phase_name + "' of batch " + std::to_string(batch.id) + " of " +
      book.name + " " + std::string(name(phase.status));
  std::map<std::int64_t, std::pair<int, int>> members;  // steps, of which succeeded
  int failures = 0, steps = 0;
  for (const auto& [id, step] : rows_.steps) {
    if (step.phase_execution_id != phase.id || !step.counted_as) continue;
    auto& [all, succeeded] = members[step.batch_member_id];
    ++all;
    succeeded += step.status == StepStatus::succeeded;
    if (step.is_catch_up) continue;
    expect(is_terminal(step.status), "a phase ends after its steps", what + ", " + about(step, RowType::step));
    ++steps;
    failures += is_failure(step.status);
  }
  for (const auto& [id, cleanup] : rows_.cleanups) {
    if (cleanup.phase_execution_id != phase.id || cleanup.kind != CleanupKind::rollback) continue;
    // A phase does not wait for those who catch up: one may fail, and begin to roll back, in the commit that ends the phase.
    const auto cause = rows_.steps.find(cleanup.caused_by_step_id.value_or(0));
    if (cause != rows_.steps.end() && cause->second.is_catch_up) continue;
    expect(is_terminal(cleanup.status), "a phase ends after its rollbacks", what);
  }
  const Phase* of = book.phase(phase.phase_name);
  const bool one_succeeded = std::ranges::any_of(members, [&](const auto& entry) {
    const auto& [all, succeeded] = entry.second;
    return all == succeeded && all == static_cast<int>(of ? of->steps.size() : 0);
  });
  if (steps == 0) return;
  const bool lockstep = book.progression == Progression::lockstep;
  // Retries by hand take steps out of their phase: what it made of the rest is looked at by others. Yet in lockstep
  // nothing that a failure has stopped is left behind in a phase that is said to be complete.
  if (retried_.contains(batch.id)) {
    for (const auto& [id, step] : rows_.steps)
      if (lockstep && phase.status == PhaseStatus::completed && step.phase_execution_id == phase.id && !step.is_catch_up)
        expect(step.status != StepStatus::cancelled || step.error_message != "a step before it failed" ||
                   rows_.members.at(step.batch_member_id).status != MemberStatus::active,
               "a phase is complete when everybody has done it", what + ", " + about(step, RowType::step));
    return;
  }
  const bool completed = lockstep ? failures == 0 : one_succeeded;
  expect(completed == (phase.status == PhaseStatus::completed), "a phase ends as its steps did", what);
}

void RunbookWatch::check_batch_end(const Batch& batch) const {
  const std::string what = "batch " + std::to_string(batch.id) + " of " +
                           rows_.runbooks.at(batch.runbook_id).name + " " + std::string(name(batch.status));
  int completed = 0, failed = 0;
  bool init_failed = false;
  for (const auto& [id, init] : rows_.inits) {
    if (init.batch_id != batch.id) continue;
    expect(is_terminal(init.status), "a batch ends after its init steps", what);
    init_failed = init_failed || is_failure(init.status);
  }
  for (const auto& [id, cleanup] : rows_.cleanups)
    if (cleanup.batch_id == batch.id && !late_removals_.contains(id))
      expect(is_terminal(cleanup.status), "a batch ends after its rollbacks and removals", what);
  for (const auto& [id, phase] : rows_.phases) {
    if (phase.batch_id != batch.id) continue;
    expect(is_terminal(phase.status), "a batch ends after its phases", what + ", phase " + phase.phase_name);
    completed += phase.status == PhaseStatus::completed;
    failed += phase.status == PhaseStatus::failed;
  }
  for (const auto& [id, step] : rows_.steps)
    if (step.counted_as && rows_.phases.at(step.phase_execution_id).batch_id == batch.id && !init_failed)
      expect(is_terminal(step.status), "a batch ends after its steps", what + ", " + about(step, RowType::step));
  const Runbook& book = rows_.runbooks.at(batch.runbook_id);
  const bool lockstep = definition(batch, book.version).progression == Progression::lockstep;
  const bool good = !init_failed && (lockstep ? failed == 0 : completed > 0);
  expect(good == (batch.status == BatchStatus::completed), "a batch ends as its phases did", what);
}

}  // namespace baton::simulation
