// A scheduler that is not ours: it writes runbooks, batches, members and phases, sometimes init steps and
// steps too, marks what it has sent, and repeats a message until somebody has taken it.
#include "tests/simulation/runbook_actors.hpp"

namespace baton::simulation {

using namespace std::chrono_literals;
using namespace runbook;

void Outsider::start() {
  publish();
  const auto batches = side_.random().between(1, 2);
  for (int i = 0; i < batches; ++i) side_.at(side_.within(10min, 6h), [this] { new_batch(); });
  if (side_.random().chance(0.4)) side_.at(side_.within(2h, 30h), [this] { publish(); });
  side_.at(5min, [this] { tick(); });
  const auto changes = side_.random().below(8);
  for (std::uint64_t i = 0; i < changes; ++i)
    side_.at(side_.within(1h, 35h), [this] {
      if (const Batch* batch = open_batch()) new_member(batch->id);
      meddle();
    });
}

std::int64_t Outsider::new_id(Table table) { return side_.rows().reserve_ids(table, 1).front(); }

const Batch* Outsider::open_batch() {
  std::vector<const Batch*> found;
  for (const auto& [id, batch] : side_.rows().batches)
    if (!is_terminal(batch.status) && batch.created_by == "outsider") found.push_back(&batch);
  return found.empty() ? nullptr : found[side_.random().below(found.size())];
}

void Outsider::tell(std::int64_t batch_id, decltype(SchedulerMessage::what) what) {
  const Runbook& book = side_.rows().runbooks.at(side_.rows().batches.at(batch_id).runbook_id);
  side_.send_surely(RunbookEvent{{book.name, book.version, batch_id, std::move(what)}}, [](const Reply&) {});
}

// A new version: open batches get its phases, those that wait are superseded.
void Outsider::publish() {
  auto& db = side_.rows();
  const std::string_view text = texts_[published_++ % texts_.size()];
  Runbook row;
  row.id = new_id(Table::runbooks);
  row.name = side_.parsed(text)->name;
  for (const auto& [id, other] : db.runbooks)  // a database has no version twice
    if (other.name == row.name) plan_.version = std::max(plan_.version, other.version);
  row.version = ++plan_.version;
  row.yaml_content = text;
  row.data_table_name = data_table_name(row.name, row.version);
  row.rerun_init = side_.random().chance(0.3);
  row.created_at = side_.now();
  for (const auto& [id, other] : db.runbooks)
    if (other.name == row.name) db.runbooks.change(id, [](Runbook& old) { old.is_active = false; });
  db.runbooks.insert(row);
  plan_.runbook_id = row.id;
  plan_.name = row.name;
  for (const auto& [id, batch] : db.batches) {
    if (is_terminal(batch.status) || batch.created_by != "outsider") continue;
    for (const auto& [phase_id, phase] : db.phases)
      if (phase.batch_id == id && phase.status == PhaseStatus::pending) {
        if (phase.timer_due) side_.erase_timer({*phase.timer_due, subject_of(Ref{RowType::phase, phase_id}), ""});
        db.phases.change(phase_id, [](PhaseExecution& old) {
          old.status = PhaseStatus::superseded;
          old.timer_due.reset();
        });
      }
    db.batches.change(id, [&](Batch& moved) { moved.runbook_id = row.id; });
    new_phases(batch);
    side_.watch().interfered(id);
    if (row.rerun_init && !side_.parsed(text)->init.empty()) tell(id, BatchInit{});
  }
}

void Outsider::new_phases(const Batch& batch) {
  const Runbook& book = side_.rows().runbooks.at(batch.runbook_id);
  for (const Phase& phase : side_.parsed(book.yaml_content)->phases) {
    PhaseExecution row;
    row.id = new_id(Table::phase_executions);
    row.batch_id = batch.id;
    row.phase_name = phase.name;
    row.offset_minutes = phase.offset_minutes;
    row.runbook_version = book.version;
    row.due_at = *batch.batch_start_time - std::chrono::minutes{phase.offset_minutes};
    side_.rows().phases.insert(row);
  }
}

void Outsider::new_batch() {
  Batch batch;
  batch.id = new_id(Table::batches);
  batch.runbook_id = plan_.runbook_id;
  batch.batch_start_time = side_.now() + side_.within(-1h, 26h);
  batch.detected_at = side_.now();
  batch.created_by = "outsider";
  const Definition& book = *side_.parsed(side_.rows().runbooks.at(plan_.runbook_id).yaml_content);
  new_phases(batch);
  if (!book.init.empty()) {
    batch.status = BatchStatus::init_dispatched;
    batch.init_dispatched_at = side_.now();
    if (side_.random().chance(0.5)) new_inits(batch);
  } else if (side_.random().chance(0.5)) {
    batch.status = BatchStatus::active;
  }
  side_.rows().batches.insert(batch);
  side_.watch().interfered(batch.id);
  const auto members = side_.random().between(0, 8);
  for (int i = 0; i < members; ++i) new_member(batch.id);
  if (!book.init.empty()) tell(batch.id, BatchInit{});
}

void Outsider::new_inits(const Batch& batch) {
  const Runbook& book = side_.rows().runbooks.at(batch.runbook_id);
  const auto& steps = side_.parsed(book.yaml_content)->init;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    InitExecution row;
    row.id = new_id(Table::init_executions);
    row.batch_id = batch.id;
    row.runbook_version = book.version;
    row.step_name = steps[i].name;
    row.step_index = static_cast<std::int32_t>(i);
    row.worker_id = steps[i].worker_id;
    row.function_name = steps[i].function;
    row.params_json = Json{R"({"by":"outsider"})"};
    row.is_poll_step = steps[i].poll.has_value();
    if (steps[i].poll) {
      row.poll_interval_sec = static_cast<std::int32_t>(steps[i].poll->interval.count());
      row.poll_timeout_sec = static_cast<std::int32_t>(steps[i].poll->timeout.count());
    }
    if (steps[i].retry) {
      row.max_retries = steps[i].retry->max_retries;
      row.retry_interval_sec = static_cast<std::int32_t>(steps[i].retry->interval.count());
    }
    side_.rows().inits.insert(row);
  }
}

// Data in the row, or in the table of the runbook.
void Outsider::new_member(std::int64_t batch_id) {
  const Batch& batch = side_.rows().batches.at(batch_id);
  const Runbook& book = side_.rows().runbooks.at(batch.runbook_id);
  const DataRow data = side_.member_data("x" + std::to_string(next_member_++));
  Member row;
  row.id = new_id(Table::batch_members);
  row.batch_id = batch_id;
  row.member_key = data.member_key;
  row.added_at = side_.now();
  if (side_.random().chance(0.7)) row.data_json = data.data;
  for (const auto& [id, version] : side_.rows().runbooks)  // the versions to come have it too
    if (version.name == book.name) side_.write_data(version.data_table_name, data);
  for (int ahead = 1; ahead < 4; ++ahead)
    side_.write_data(data_table_name(book.name, book.version + ahead), data);
  side_.rows().members.insert(row);
  const bool begun = std::ranges::any_of(side_.rows().phases, [&](const auto& entry) {
    return entry.second.batch_id == batch_id && entry.second.status != PhaseStatus::pending;
  });
  if (begun || batch.status == BatchStatus::active || side_.random().chance(0.3)) tell(batch_id, MemberAdded{row.id});
}

void Outsider::member_leaves(std::int64_t member_id) {
  const Member& member = side_.rows().members.at(member_id);
  side_.rows().members.change(member_id, [&](Member& left) {
    if (left.status == MemberStatus::active) left.status = MemberStatus::removed;
    left.removed_at = side_.now();
  });
  side_.watch().interfered(member.batch_id);
  tell(member.batch_id, MemberRemoved{member_id});
}

bool Outsider::meddle() {
  auto& db = side_.rows();
  if (side_.random().chance(0.5)) {
    for (const auto& [id, phase] : db.phases) {
      const Batch& batch = db.batches.at(phase.batch_id);
      if (phase.status != PhaseStatus::pending || phase.due_at > side_.now() || is_terminal(batch.status) ||
          batch.created_by != "outsider")
        continue;
      begin_phase(phase);
      return true;
    }
  }
  std::vector<std::int64_t> members;
  for (const auto& [id, member] : db.members)
    if (member.status == MemberStatus::active && db.batches.at(member.batch_id).created_by == "outsider")
      members.push_back(id);
  if (members.empty() || !side_.random().chance(0.3)) return false;
  member_leaves(members[side_.random().below(members.size())]);
  return true;
}

bool Outsider::is_own(std::int64_t batch_id) { return side_.rows().batches.at(batch_id).created_by == "outsider"; }

void Outsider::refresh(const Writes& writes) {
  auto& db = side_.rows();
  const auto drawn = [&](auto& table, std::int64_t id) { return table.contains(id) && side_.random().chance(0.3); };
  for (const auto& change : writes.members_changed) {
    const Member& row = change.row;
    if (!is_own(row.batch_id) || !drawn(db.members, row.id)) continue;
    db.members.change(row.id, [&](Member& stored) { stored.data_json = side_.member_data(stored.member_key).data; });
  }
  for (const auto& change : writes.phases_changed) {
    if (!is_own(change.row.batch_id) || !drawn(db.phases, change.row.id)) continue;
    db.phases.change(change.row.id, [&](PhaseExecution& stored) {
      if (stored.status == PhaseStatus::pending && stored.due_at) *stored.due_at += side_.within(-10min, 10min);
    });
  }
  const auto refresh_params = [&](auto& table, const auto& changed) {
    for (const auto& change : changed) {
      if (!drawn(table, change.row.id)) continue;
      table.change(change.row.id, [&](Execution& stored) {  // of what is not resolved, the function is not either
        if (stored.params_json && stored.params_json->text != "null")
          stored.params_json = Json{"{\"refreshed\":" + std::to_string(++refreshes_) + "}"};
      });
    }
  };
  refresh_params(db.steps, writes.steps_changed);
  refresh_params(db.inits, writes.inits_changed);
}

// Another orchestrator has given the step out before us. Its worker may report, under a name that means nothing to us.
// True: it surely does.
bool Outsider::leave_out(StepExecution& row) {
  const bool polling = row.is_poll_step && side_.random().chance(0.5);
  row.status = polling ? StepStatus::polling : StepStatus::dispatched;
  row.job_id = "theirs-" + std::to_string(row.id);
  side_.watch().given_out_by_another(row.id);
  row.dispatched_at = side_.now() - side_.within(0min, 2h);
  if (polling && side_.random().chance(0.5)) row.poll_started_at = row.last_polled_at = row.dispatched_at;
  if (!row.params_json) row.params_json = Json{"{}"};
  if (side_.random().chance(0.5)) return false;
  ReportResult result{.task_id = *row.job_id, .correlated = Ref{RowType::step, row.id}, .completed = side_.random().chance(0.8)};
  if (result.completed) result.output = Json{R"({"complete":true})"};
  if (!result.completed) result.error = "bad luck";
  side_.at(side_.within(1s, 3h), [this, result] { side_.send_surely(result, [](const Reply&) {}); });
  return true;
}

// Steps of a phase that it has resolved itself; some of them, for the others are for the orchestrator. True: somebody
// will report one that another orchestrator has given out.
bool Outsider::new_steps(const PhaseExecution& phase) {
  auto& db = side_.rows();
  const Batch& batch = db.batches.at(phase.batch_id);
  const bool left = side_.random().chance(0.5);
  bool reported = false;
  for (const auto& [id, book] : db.runbooks) {
    if (book.name != db.runbooks.at(batch.runbook_id).name || book.version != phase.runbook_version) continue;
    const Phase* of = side_.parsed(book.yaml_content)->phase(phase.phase_name);
    for (const auto& [member_id, member] : db.members) {
      if (member.batch_id != batch.id || member.status != MemberStatus::active) continue;
      for (std::size_t i = 0; of && i < of->steps.size(); ++i) {
        const Step& step = of->steps[i];
        StepExecution row;
        row.id = new_id(Table::step_executions);
        row.phase_execution_id = phase.id;
        row.batch_member_id = member_id;
        row.step_name = step.name;
        row.step_index = static_cast<std::int32_t>(i);
        row.worker_id = step.worker_id;
        row.is_poll_step = step.poll.has_value();
        if (step.poll) {
          row.poll_interval_sec = static_cast<std::int32_t>(step.poll->interval.count());
          row.poll_timeout_sec = static_cast<std::int32_t>(step.poll->timeout.count());
        }
        if (side_.random().chance(0.5)) {
          row.function_name = step.function.contains('{') ? "Work" : step.function;
          row.params_json = Json{"{\"Key\":" + quoted(member.member_key) + "}"};
        }
        if (i == 0 && left && leave_out(row)) reported = true;
        db.steps.insert(row);
      }
    }
  }
  return reported;
}

void Outsider::begin_phase(const PhaseExecution& phase) {
  Random& random = side_.random();
  PhaseDue due{.phase_execution_id = phase.id, .member_ids = {}};
  // Once it has been announced, its steps are the orchestrator's.
  const bool reported = announced_.insert(phase.id).second && random.chance(0.3) && new_steps(phase);
  // The other orchestrator began the phase, and what we hear of it is a worker's report.
  const bool untold = reported && random.chance(0.5);
  if (untold || random.chance(0.5)) {
    side_.rows().phases.change(phase.id, [&](PhaseExecution& begun) {
      begun.status = PhaseStatus::dispatched;
      begun.dispatched_at = side_.now();
    });
    side_.watch().interfered(phase.batch_id);
  }
  if (untold) return;
  if (random.chance(0.5))
    for (const auto& [id, member] : side_.rows().members)
      if (member.batch_id == phase.batch_id && member.status == MemberStatus::active) due.member_ids.push_back(id);
  tell(phase.batch_id, due);
}

// Every five minutes: phases that are due, polls whose interval is over.
void Outsider::tick() {
  for (const auto& [id, phase] : side_.rows().phases)
    if (phase.status == PhaseStatus::pending && phase.due_at && *phase.due_at <= side_.now() &&
        !is_terminal(side_.rows().batches.at(phase.batch_id).status))
      begin_phase(phase);
  ask_again();
  side_.at(5min, [this] { tick(); });
}

void Outsider::ask_again() {
  auto& db = side_.rows();
  const auto look = [&](const Execution& row, std::int64_t batch_id, bool init) {
    const auto since = row.last_polled_at.value_or(Time{});
    if (row.status == StepStatus::polling &&
        since + std::chrono::seconds{row.poll_interval_sec.value_or(300)} <= side_.now()) {
      PollCheck check{.step_name = row.step_name};
      // The message of the contract does not say which of the two tables it means.
      check.step_execution_id = check.init_execution_id = row.id;
      if (init && side_.random().chance(0.5)) check.step_execution_id.reset();
      tell(batch_id, check);
    }
    if (row.status == StepStatus::pending && row.retry_after && side_.random().chance(0.2)) {
      RetryCheck check{.retry_count = row.retry_count};
      (init ? check.init_execution_id : check.step_execution_id) = row.id;
      tell(batch_id, check);
    }
  };
  for (const auto& [id, row] : db.steps) look(row, db.phases.at(row.phase_execution_id).batch_id, false);
  for (const auto& [id, row] : db.inits) look(row, row.batch_id, true);
}

}  // namespace baton::simulation
