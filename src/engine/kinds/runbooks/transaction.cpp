#include "engine/kinds/runbooks/transaction.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace baton::engine {

using runbook::Needs;
using runbook::Ref;

namespace {

// Whatever cannot be read is found out again when it is decided on.
template <class Foresee>
void unless_unreadable(Foresee&& foresee) {
  try {
    foresee();
  } catch (const runbook::Unreadable&) {
  }
}

runbook::RowTimer own(const Timer& timer) {
  const Ref ref = ref_of(timer.subject);
  return {timer.due, ref.type, ref.id};
}
Timer shared(const runbook::RowTimer& timer) { return {timer.due, subject_of(Ref{timer.type, timer.id}), ""}; }

}  // namespace

RunbookTransaction::Round::Round(Runbooks& kind)
    : ledger([&kind](const runbook::Runbook& row) { return kind.definition(row); }, kind.ids_) {}

RunbookTransaction::RunbookTransaction(Runbooks& kind, Turn turn) : kind_(kind), turn_(turn) {
  round_.emplace(kind);
}

Result<> RunbookTransaction::restart() {
  std::map<runbook::Table, std::size_t> wanted;
  for (const runbook::Table table : round_->ids_wanted) wanted[table] = round_->ledger.ids_taken(table);
  round_->ledger.return_ids();
  round_.emplace(kind_);
  for (const auto& [table, taken] : wanted) TRY(kind_.reserve_ids(turn_.store, table, taken));
  return {};
}

// ---- loading

// False: everything was known already.
Result<bool> RunbookTransaction::load_needs(Needs needs) {
  std::erase_if(needs, [&](const runbook::Need& need) { return round_->ledger.knows(need); });
  if (needs.empty()) return false;
  TRY_ASSIGN(auto loaded, turn_.store.load(std::vector<runbook::Need>(needs.begin(), needs.end())));
  round_->ledger.add(std::move(loaded), needs);
  return true;
}

// A round of loading may tell what the next one needs: step, phase, batch, runbook.
template <class Foresee>
Result<> RunbookTransaction::load_rounds(Foresee&& foresee) {
  constexpr int rounds_max = 8;
  for (int round = 0; round < rounds_max; ++round) {
    Needs needs;
    foresee(needs);
    TRY_ASSIGN(const bool more, load_needs(std::move(needs)));
    if (!more) break;
  }
  return {};
}

Result<> RunbookTransaction::load(std::span<const Item> items, std::span<const Timer> timers) {
  for (const Timer& timer : timers)
    if (kind_.owns(timer.subject.type)) round_->timers.push_back(own(timer));
  TRY(load_needs(learnt_.needs));
  const std::size_t admitted = admit(items);
  TRY(load_rounds([&](Needs& needs) {
    for (std::size_t place = 0; place < items.size(); ++place) {
      const Command& command = items[place].command;
      if (place < admitted || std::holds_alternative<Heartbeat>(command))  // those wait for nobody
        unless_unreadable([&] { foresee(command, needs); });
    }
    for (const runbook::RowTimer& timer : round_->timers)
      unless_unreadable([&] { runbook::foresee(Ref{timer.type, timer.id}, round_->ledger, needs); });
  }));
  TRY(reserve_for_members(items.first(admitted)));
  choose_walks();
  TRY(load_rounds([&](Needs& needs) {
    for (const runbook::RowTimer& timer : round_->walks)
      runbook::foresee_chunk(Ref{timer.type, timer.id}, kind_.policy_, round_->ledger, needs);
  }));
  return write_data(items.first(admitted));
}

// How many members come is known, unlike all else that is made.
Result<> RunbookTransaction::reserve_for_members(std::span<const Item> items) {
  std::size_t joining = 0;
  for (const Item& item : items)
    if (const auto* add = std::get_if<AddMembers>(&item.command)) joining += add->members.size();
  const std::size_t at_hand = kind_.ids_[runbook::Table::batch_members].size();
  if (joining <= at_hand) return {};
  return kind_.reserve_ids(turn_.store, runbook::Table::batch_members, joining - at_hand);
}

// A chunk of a walk may bring thousands of rows: only few have their turn in one batch. The others stay due.
void RunbookTransaction::choose_walks() {
  for (const runbook::RowTimer& timer : round_->timers) {
    if (round_->walks.size() >= kind_.walks_max_) return;
    try {
      if (runbook::is_chunk({timer.type, timer.id}, round_->ledger)) round_->walks.insert(timer);
    } catch (const runbook::NotLoaded&) {  // a row that is gone: deciding finds out
    } catch (const runbook::Unreadable&) {
    }
  }
}

// What the source of a runbook said goes to its table, in a transaction of its own; once, however often the
// batch is decided.
Result<> RunbookTransaction::write_data(std::span<const Item> items) {
  if (learnt_.data_written) return {};
  for (const Item& item : items) {
    const auto* sync = std::get_if<SyncData>(&item.command);
    if (!sync) continue;
    std::optional<runbook::DataRows> rows;
    unless_unreadable([&] {
      rows = runbook::data_rows(sync->runbook_id, sync->rows, sync->seen_at, sync->finish, round_->ledger);
    });
    if (rows) TRY(turn_.store.write_data(*rows));
  }
  learnt_.data_written = true;
  return {};
}

// ---- deciding

template <class Decide>
bool RunbookTransaction::with_ledger(Decide&& decide, std::string& unreadable) {
  try {
    decide();
    return true;
  } catch (const runbook::NotLoaded& missing) {
    round_->incomplete = true;
    learnt_.needs.insert(missing.needs.begin(), missing.needs.end());
  } catch (const runbook::NoIds& none) {
    round_->incomplete = true;
    round_->ids_wanted.insert(none.table);
  } catch (const runbook::Unreadable& problem) {
    round_->incomplete = true;  // rows may be half changed
    unreadable = problem.message;
  }
  return false;
}

// What timers have cost does not count: a walk that uses up its budget in every batch keeps no message waiting.
bool RunbookTransaction::is_full() const {
  const Round& round = *round_;
  return round.commands >= round.commands_max ||
         (round.commands > 0 && is_enough(round.decided.spent - round.before_commands, kind_.policy_));
}

void RunbookTransaction::decide(std::size_t place, const Item& item) {
  if (round_->commands++ == 0) round_->before_commands = round_->decided.spent;
  Reply reply;
  std::string unreadable;
  if (const auto it = learnt_.unreadable.find(place); it != learnt_.unreadable.end())
    reply = Refused{Refusal::row_unreadable, it->second, {}};
  else if (!with_ledger([&] { reply = reply_to(item.command); }, unreadable) && !unreadable.empty())
    learnt_.unreadable.emplace(place, std::move(unreadable));
  if (MUTANT(reply_before_commit)) return item.waiter->deliver(std::move(reply));
  turn_.effects.emplace_back(Answer{item.waiter, std::move(reply)});
}

void RunbookTransaction::fire(const Timer& due) {
  const runbook::RowTimer timer = own(due);
  if (learnt_.unreadable_timers.contains(timer)) {
    // There may be two of one row, which must not become one.
    round_->put_off[timer] = turn_.now + put_off_for + Duration{round_->put_off.size()};
    return;
  }
  std::string unreadable;
  const bool decided = with_ledger(
      [&] {
        const Ref ref{timer.type, timer.id};
        round_->ledger.fired(timer);
        if (is_enough(round_->decided.spent, kind_.policy_)) return;  // it stays due
        if (runbook::is_chunk(ref, round_->ledger) && !round_->walks.contains(timer)) return;  // so does this
        runbook::timer_fired(ref, context(turn_.as_of));
      },
      unreadable);
  if (decided || unreadable.empty()) return;
  learnt_.unreadable_timers.insert(timer);
  turn_.effects.emplace_back(cannot_go_on({timer.type, timer.id}, unreadable));
}

// Chunks that did not have their turn.
void RunbookTransaction::timers_go_behind() {
  Time later = turn_.as_of;
  for (const runbook::RowTimer& timer : round_->timers) {
    if (round_->put_off.contains(timer)) continue;
    std::string unreadable;
    (void)with_ledger(
        [&] {
          const Time behind = later + Duration{1};
          if (runbook::put_behind(timer, behind, round_->ledger)) later = behind;
        },
        unreadable);
    if (!unreadable.empty()) learnt_.unreadable_timers.insert(timer);  // the next round puts it off
  }
}

// ---- workers

Renewal RunbookTransaction::renew(const TaskLease& lease, Duration lease_time, const std::optional<Tenant>& caller) {
  Renewal renewal;
  if (!may_touch_jobs(caller)) return renewal;
  renewal.tenant = tenant_of_runbooks;
  with_job(lease, [&] { renewal.renewed = runbook::renew(lease.task_id, lease.lease, lease_time, context()); });
  return renewal;
}

void RunbookTransaction::give_back(const TaskLease& lease, const std::string&) {
  with_job(lease, [&] { (void)runbook::give_back(lease.task_id, lease.lease, context()); });
}

// A job that cannot be read is left to its timer.
template <class Decide>
void RunbookTransaction::with_job(const TaskLease& lease, Decide&& decide) {
  const auto named = runbook::parse_job_id(lease.task_id);
  if (!named || learnt_.unreadable_jobs.contains(named->ref)) return;
  std::string unreadable;
  if (with_ledger(decide, unreadable) || unreadable.empty()) return;
  learnt_.unreadable_jobs.insert(named->ref);
  turn_.effects.emplace_back(cannot_go_on(named->ref, unreadable));
}

std::vector<Ready> RunbookTransaction::take_ready() {
  std::vector<Ready> all;
  for (runbook::Queued& q : round_->decided.queued)
    all.push_back({{tenant_of_runbooks, std::move(q.queue)}, waiting_task(q.ref, q.queued_at)});
  return all;
}

Result<> RunbookTransaction::load_tasks(std::span<const WaitingTask> tasks) {
  return load_rounds([&](Needs& needs) {
    for (const WaitingTask& task : tasks)
      unless_unreadable([&] { runbook::foresee_handout(ref_of(task), round_->ledger, needs); });
  });
}

std::optional<Handout> RunbookTransaction::hand_out(const WaitingTask& task, const Poll& poll) {
  const Ref ref = ref_of(task);
  std::optional<Handout> handout;
  if (learnt_.unreadable_jobs.contains(ref)) return handout;
  std::string unreadable;
  const bool decided = with_ledger(
      [&] {
        if (!runbook::hand_out(ref, poll.worker, lease_time(poll, kind_.policy_), context())) return;
        const runbook::JobContext job = runbook::context_of(ref, round_->ledger);
        const runbook::Execution& row = *job.row;
        handout = Handout{.task_id = *row.job_id,
                          .handler = row.function_name.value_or(""),
                          .params = row.params_json.value_or(Json{"{}"}),
                          .queue = row.worker_id,
                          .timeout = std::chrono::seconds{row.timeout_sec.value_or(3600)},
                          .retry_count = row.retry_count,
                          .delivery_count = row.delivery_count,
                          .lease = runbook::lease_token(row),
                          .lease_until = *row.lease_until,
                          .runbook = RunbookJob{job.batch_id, ref, job.runbook_name, job.runbook_version}};
      },
      unreadable);
  if (!decided && !unreadable.empty()) {
    learnt_.unreadable_jobs.insert(ref);
    turn_.effects.emplace_back(cannot_go_on(ref, unreadable));
  }
  return handout;
}

// ---- writing

void RunbookTransaction::write(WriteSet& set, std::int64_t commit_number) {
  runbook::TimerWrites timers;
  // Timers of rows that are gone, or that another program has moved, are not left to fire for ever.
  for (const runbook::RowTimer& timer : round_->timers)
    if (!round_->put_off.contains(timer) && !round_->ledger.holds(timer)) timers.timers_gone.push_back(timer);
  runbook::Writes& out = set.runbooks;
  out = round_->ledger.take_writes(timers);
  // What cannot be obeyed is tried again later. Its row, which may be unreadable, keeps its time, now in the past.
  for (const auto& [timer, until] : round_->put_off) {
    timers.timers_gone.push_back(timer);
    timers.timers_new.push_back({until, timer.type, timer.id});
  }
  std::ranges::transform(timers.timers_gone, std::back_inserter(set.timers_gone), shared);
  std::ranges::transform(timers.timers_new, std::back_inserter(set.timers_new), shared);
  const bool approved = std::ranges::any_of(
      out.batches_changed, [](const auto& batch) { return batch.row.removals_approved.has_value(); });
  if (approved || !out.runbooks_new.empty() || !out.runbooks_changed.empty())
    turn_.effects.emplace_back(OfKind{&kind_, RunbooksChanged{}});
  if (!learnt_.unreadable_jobs.empty())
    turn_.effects.emplace_back(MatchAllAt{turn_.now + std::chrono::seconds{5}});
  count(turn_.effects, kind_.steps_ended_, round_->decided.steps_ended);
  count(turn_.effects, kind_.batches_ended_, round_->decided.batches_ended);
  std::int64_t event_id = first_event_id(commit_number);
  out.events_new = std::move(round_->decided.events);
  for (runbook::BatchEvent& event : out.events_new) event.event_id = event_id++;
  std::int64_t log_id = first_event_id(commit_number);
  for (workflow::LogLine& line : round_->logs) {
    line.log_id = log_id++;
    set.logs_new.push_back(std::move(line));
  }
}

void RunbookTransaction::committed(const WriteSet&) {
  if (const auto& walked = round_->decided.walked)
    kind_.policy_.chunk_members =
        runbook::next_chunk_members(*walked, kind_.policy_.chunk_members, kind_.chunk_members_max_);
}

}  // namespace baton::engine
