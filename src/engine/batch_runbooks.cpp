// Runbooks on their way through a batch: what messages and timers are likely to need is loaded in bulk, round
// after round, until nothing is missing; what nobody foresaw is learnt by deciding, and then all is decided
// again.
#include <algorithm>
#include <boost/json.hpp>

#include "base/mutant.hpp"
#include "engine/batch_runbooks.hpp"

namespace baton::engine {

using runbook::Needs;
using runbook::Ref;

runbook::Context Writer::Batch::context() {
  return {ledger_, writer_.options_.runbooks, now_, runbook_journal_};
}

std::map<runbook::Table, std::size_t> Writer::Batch::ids_wanted() const {
  std::map<runbook::Table, std::size_t> wanted;
  for (const runbook::Table table : ids_wanted_) wanted[table] = ledger_.ids_taken(table);
  return wanted;
}

// --- loading

namespace {

// Whatever cannot be read is found out again when it is decided on.
template <class Foresee>
void unless_unreadable(Foresee&& foresee) {
  try {
    foresee();
  } catch (const runbook::Unreadable&) {
  }
}

}  // namespace

// False: everything was known already.
Result<bool> Writer::Batch::load_needs(Needs needs) {
  std::erase_if(needs, [&](const runbook::Need& need) { return ledger_.knows(need); });
  if (needs.empty()) return false;
  TRY_ASSIGN(auto loaded, writer_.store_.load(std::vector<runbook::Need>(needs.begin(), needs.end())));
  ledger_.add(std::move(loaded), needs);
  return true;
}

// A round of loading may tell what the next one needs: step, phase, batch, runbook.
template <class Foresee>
Result<> Writer::Batch::load_rounds(Foresee&& foresee) {
  constexpr int rounds_max = 8;
  for (int round = 0; round < rounds_max; ++round) {
    Needs needs;
    foresee(needs);
    TRY_ASSIGN(const bool more, load_needs(std::move(needs)));
    if (!more) break;
  }
  return {};
}

void Writer::Batch::foresee_item(const Command& command, Needs& needs) {
  using What = runbook::Need::What;
  const auto job = [&](const std::string& task_id) {
    if (const auto named = runbook::parse_job_id(task_id)) runbook::foresee(named->ref, ledger_, needs);
  };
  const auto batch = [&](std::int64_t id) { runbook::foresee(Ref{runbook::Kind::batch, id}, ledger_, needs); };
  const auto of_version = [&](std::int64_t id) {
    if (id != 0) needs.insert({.what = What::runbook, .id = id});
  };
  std::visit(overloaded{
                 [&](const RunbookEvent& c) { runbook::foresee(c.message, ledger_, needs); },
                 [&](const ReportResult& c) { job(c.task_id); },
                 [&](const TaskNote& c) {
                   if (const auto named = runbook::parse_job_id(c.task_id))
                     runbook::foresee_handout(named->ref, ledger_, needs);
                 },
                 [&](const Heartbeat& c) {
                   for (const TaskLease& lease : c.tasks)
                     if (const auto named = runbook::parse_job_id(lease.task_id))
                       runbook::foresee_handout(named->ref, ledger_, needs);
                 },
                 [&](const ReturnTasks& c) {
                   for (const TaskLease& lease : c.tasks) job(lease.task_id);
                 },
                 [&](const PublishRunbook& c) {
                   needs.insert({.what = What::runbook_named, .n = 0, .text = c.definition->name});
                   needs.insert({.what = What::latest_version, .text = c.definition->name});
                 },
                 [&](const AddMembers& c) {
                   batch(c.batch_id);
                   of_version(c.of_runbook);
                   for (const runbook::DataRow& row : c.members)
                     needs.insert({.what = What::members_named, .id = c.batch_id, .text = row.member_key});
                 },
                 [&](const OpenBatch& c) { of_version(c.of_runbook); },
                 [&](const NoteSync& c) { of_version(c.runbook_id); },
                 [&](const RefreshMembers& c) {
                   of_version(c.of_runbook);
                   for (const auto& one : c.members) needs.insert({.what = What::member, .id = one.member_id});
                 },
                 [&](const RemoveMembers& c) {
                   batch(c.batch_id);
                   of_version(c.of_runbook);
                   for (const std::int64_t id : c.member_ids) {
                     needs.insert({.what = What::member, .id = id});
                     needs.insert({.what = What::steps_of_member, .id = id});
                     needs.insert({.what = What::removals_of, .id = id});
                   }
                 },
                 [&](const SyncData& c) { needs.insert({.what = What::runbook, .id = c.runbook_id}); },
                 [&](const StartBatch& c) { batch(c.batch_id), of_version(c.of_runbook); },
                 [&](const ChangeBatch& c) { batch(c.batch_id); },
                 [&](const RetryMembers& c) { batch(c.batch_id); },
                 [&](const ChangeStep& c) { runbook::foresee(c.ref, ledger_, needs); },
                 [&](const AdoptPhases& c) {
                   for (const std::int64_t id : c.phase_ids) needs.insert({.what = What::phase, .id = id});
                 },
                 [&](const auto&) {},
             },
             command);
}

Result<> Writer::Batch::load_runbooks() {
  TRY(load_needs(lessons_.needs));
  TRY(load_rounds([&](Needs& needs) {
    for (const Item& item : items_) unless_unreadable([&] { foresee_item(item.command, needs); });
    for (const runbook::Timer& timer : runbook_timers_)
      unless_unreadable([&] { runbook::foresee(Ref{timer.kind, timer.id}, ledger_, needs); });
  }));
  choose_walks();
  return load_rounds([&](Needs& needs) {
    for (const runbook::Timer& timer : walks_)
      runbook::foresee_chunk(Ref{timer.kind, timer.id}, writer_.options_.runbooks, ledger_, needs);
  });
}

// A chunk of a walk may bring thousands of rows: only few have their turn in one batch. The others stay due.
void Writer::Batch::choose_walks() {
  for (const runbook::Timer& timer : runbook_timers_) {
    if (walks_.size() >= static_cast<std::size_t>(writer_.options_.walks_max)) return;
    try {
      if (runbook::is_chunk({timer.kind, timer.id}, ledger_)) walks_.insert(timer);
    } catch (const runbook::NotLoaded&) {  // a row that is gone: deciding finds out
    } catch (const runbook::Unreadable&) {
    }
  }
}

// What the source of a runbook said goes to its table, in a transaction of its own; once, however often the
// batch is decided.
Result<> Writer::Batch::write_data() {
  if (std::exchange(lessons_.data_written, true)) return {};
  for (const Item& item : items_) {
    const auto* sync = std::get_if<SyncData>(&item.command);
    const auto* book = sync ? ledger_.runbook(sync->runbook_id) : nullptr;
    if (!book || !book->row.is_active || book->row.data_table_name.empty()) continue;
    runbook::DataRows out{.table = book->row.data_table_name,
                          .rows = sync->rows,
                          .seen_at = sync->seen_at,
                          .finish = sync->finish};
    boost::system::error_code error;
    const auto first = boost::json::parse(out.rows.empty() ? "{}" : out.rows.front().data.text, error);
    if (!error && first.is_object())
      for (const auto& entry : first.get_object()) out.columns.emplace_back(entry.key());
    TRY(writer_.store_.write_data(out));
  }
  return {};
}

// --- deciding

void Writer::Batch::decide_runbook_timers() {
  for (const runbook::Timer& timer : runbook_timers_) {
    if (which_timers_ == Timers::put_off || lessons_.unreadable_timers.contains(timer)) {
      put_off_.insert(timer);
      continue;
    }
    std::string unreadable;
    const bool decided = with_ledger(
        [&] {
          const Ref ref{timer.kind, timer.id};
          if (runbook::is_chunk(ref, ledger_) && !walks_.contains(timer)) return;  // it stays due
          runbook::timer_fired(ref, context());
        },
        unreadable);
    if (decided || unreadable.empty()) continue;
    lessons_.unreadable_timers.insert(timer);
    writer_.tell_unreadable({timer.kind, timer.id}, unreadable);
  }
}

// --- workers

Reply Writer::Batch::decide_runbook_result(const ReportResult& c) {
  return runbook_reply([&]() -> Reply {
    const auto named = runbook::parse_job_id(c.task_id);
    const runbook::Report said{.job_id = c.task_id,
                               .success = c.completed,
                               .result = c.output,
                               .error = c.error,
                               .lease = c.lease,
                               .worker = c.worker};
    const auto judged = runbook::report(said, context());
    switch (judged.verdict) {
      case runbook::Verdict::accepted:
        if (const auto job = ledger_.job(named->ref); job && job->row->leased_by)
          reported_.push_back({.tenant = workflow::Tenant{"default"},
                               .task_id = c.task_id,
                               .completed = c.completed,
                               .worker = job->row->leased_by});
        return ResultReply{};
      case runbook::Verdict::ignored: return ResultReply{.duplicate = false, .ignored = judged.why};
      case runbook::Verdict::stale: return Refused{Refusal::stale_result, judged.why, {}};
      case runbook::Verdict::unknown: break;
    }
    return Refused{Refusal::task_not_found, judged.why, {}};
  });
}

bool Writer::Batch::renew_job(const TaskLease& lease) {
  bool renewed = false;
  std::string unreadable;
  const bool decided = with_ledger(
      [&] { renewed = runbook::renew(lease.task_id, lease.lease, context()); }, unreadable);
  return decided && renewed;
}

void Writer::Batch::give_back_job(const TaskLease& lease) {
  std::string unreadable;
  (void)with_ledger([&] { (void)runbook::give_back(lease.task_id, lease.lease, context()); }, unreadable);
}

// What a job says goes to the same table as what a task says, under the name of its step, and is bounded like
// that.
Reply Writer::Batch::decide_job_note(const TaskNote& c) {
  return runbook_reply([&]() -> Reply {
    const runbook::Ref ref = runbook::parse_job_id(c.task_id)->ref;
    const auto job = ledger_.job(ref);
    if (!job) return Refused{Refusal::task_not_found, "there is no job '" + c.task_id + "'", {}};
    if (job->row->job_id != c.task_id || job->row->job_state != runbook::JobState::leased ||
        (c.lease && *c.lease != runbook::lease_token(*job->row)))
      return Refused{Refusal::stale_result, "job '" + c.task_id + "' is not leased, or by another", {}};
    const auto* log = std::get_if<TaskLog>(&c.note);
    if (!log)
      return Refused{Refusal::not_possible, "jobs of runbooks have neither progress nor checkpoints", {}};
    std::size_t stored = 0;
    for (const workflow::LogText& line : log->lines) {
      const std::int32_t bytes = workflow::log_bytes_of(line);
      if (job->row->log_bytes > writer_.options_.policy.log_bytes_max - bytes) break;
      job->row->log_bytes += bytes;
      job->state->changed = true;
      ++stored;
      job_logs_.push_back({.job_id = workflow::JobId{runbook::log_name(ref)},
                           .node_id = "",
                           .retry_count = job->row->retry_count,
                           .stream = line.stream,
                           .logged_at = line.at,
                           .text = line.text});
    }
    return NoteReply{stored};
  });
}

Result<> Writer::Batch::load_jobs(const std::vector<WaitingTask>& tasks) {
  return load_rounds([&](Needs& needs) {
    for (const WaitingTask& task : tasks)
      unless_unreadable([&] { runbook::foresee_handout(task.runbook_job, ledger_, needs); });
  });
}

std::optional<Handout> Writer::Batch::give_job(Ref ref, const Poll& poll) {
  std::optional<Handout> handout;
  if (lessons_.unreadable_jobs.contains(ref)) return handout;
  std::string unreadable;
  const bool decided = with_ledger(
      [&] {
        if (!runbook::hand_out(ref, poll.worker, poll.heartbeats, context())) return;
        const auto job = ledger_.job(ref);
        const runbook::Execution& row = *job->row;
        std::int64_t batch_id = 0;
        std::int32_t version = 0;
        if (job->step) {
          const auto& phase = ledger_.existing_phase(job->step->phase_execution_id).row;
          batch_id = phase.batch_id, version = phase.runbook_version;
        } else {
          batch_id = job->init ? job->init->batch_id : job->cleanup->batch_id;
          version = job->init ? job->init->runbook_version : job->cleanup->runbook_version;
        }
        const auto* book = ledger_.runbook(ledger_.existing_batch(batch_id).row.runbook_id);
        handout = Handout{.task_id = *row.job_id,
                          .handler = row.function_name.value_or(""),
                          .params = row.params_json.value_or(Json{"{}"}),
                          .queue = row.worker_id,
                          .timeout = std::chrono::seconds{row.timeout_sec.value_or(3600)},
                          .retry_count = row.retry_count,
                          .delivery_count = row.delivery_count,
                          .lease = runbook::lease_token(row),
                          .lease_until = *row.lease_until,
                          .runbook = RunbookJob{batch_id, ref, book ? book->row.name : "", version}};
      },
      unreadable);
  if (!decided && !unreadable.empty()) {
    lessons_.unreadable_jobs.insert(ref);
    writer_.tell_unreadable(ref, unreadable);
  }
  return handout;
}

// --- writing

void Writer::Batch::write_runbooks(runbook::Writes& out, std::int64_t first_event_id) {
  std::vector<runbook::Timer> stray;
  for (const runbook::Timer& timer : runbook_timers_)
    if (!put_off_.contains(timer) && !ledger_.holds(timer)) stray.push_back(timer);
  out = ledger_.take_writes();
  runbooks_changed_ = !out.runbooks_new.empty() || !out.runbooks_changed.empty() ||
                      std::ranges::any_of(out.batches_changed,
                                          [](const auto& batch) { return batch.removals_approved.has_value(); });
  out.events_new = std::move(runbook_journal_.events);
  for (runbook::BatchEvent& event : out.events_new) event.event_id = first_event_id++;
  // Timers of rows that are gone, or that another program has moved, are not left to fire for ever.
  out.timers_gone.insert(out.timers_gone.end(), stray.begin(), stray.end());
  // What cannot be obeyed is tried again later. Its row, which may be unreadable, keeps its time, now in the past.
  for (const runbook::Timer& timer : put_off_) {
    out.timers_gone.push_back(timer);
    out.timers_new.push_back({now_ + lessons_.put_off, timer.kind, timer.id});
  }
  for (const runbook::Timer& timer : out.timers_new)
    earliest_timer_ = earliest_timer_ ? std::min(*earliest_timer_, timer.due) : timer.due;
}

}  // namespace baton::engine
