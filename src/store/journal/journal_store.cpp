#include "store/journal/journal_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/mutant.hpp"
#include "store/journal/codec.hpp"

namespace baton::store {
namespace {

using namespace workflow;

// A row beyond this, large because of its documents, would write twice what is better written once.
constexpr std::size_t row_bytes_max = 512 << 10;

// Rows that change again soon, so that a journal pays.
bool has_workflows(const WriteSet& w) {
  return !(w.jobs_new.empty() && w.jobs_changed.empty() && w.nodes_new.empty() && w.nodes_changed.empty() &&
           w.task_results_new.empty() && w.events_new.empty());
}

}  // namespace

// Rows that cannot be read, or are not there, end the start: without them nobody knows what was acknowledged.
Result<WriterState> JournalStore::open(Partition partition) {
  backlog_.clear();
  last_commit_ = followed_ = 0;  // with what is half read nothing follows
  TRY_ASSIGN(WriterState state, tables_->open(partition));
  TRY_ASSIGN(const auto rows, tables_->journal());
  Backlog backlog;
  std::int64_t expected = state.followed;
  for (const JournalRow& row : rows) {
    if (row.commit_number != ++expected)
      return fail(Code::invalid, fmt::format("the journal lacks commit {}; it has {}", expected, row.commit_number));
    TRY_ASSIGN(const WriteSet writes, decode_journal(row));
    if (!MUTANT(journal_not_replayed)) backlog.add(writes, row.data.size());
  }
  if (expected != state.last_commit)
    return fail(Code::invalid, fmt::format("the journal ends with commit {}, and {} was the last", expected, state.last_commit));
  backlog_ = std::move(backlog);
  last_commit_ = state.last_commit;
  followed_ = state.followed;
  TRY(follow());
  state.followed = last_commit_;
  return state;
}

Result<Loaded> JournalStore::load(const LoadRequest& asked) {
  if (backlog_.rows() == 0) return tables_->load(asked);
  LoadRequest request = asked;
  Loaded loaded;
  if (!MUTANT(backlog_not_asked)) loaded = backlog_.load(request);
  TRY_ASSIGN(Loaded stored, tables_->load(request));
  backlog_.settle(stored);
  const auto take = [](auto& to, auto& from) { std::ranges::move(from, std::back_inserter(to)); };
  take(loaded.jobs, stored.jobs);
  take(loaded.nodes, stored.nodes);
  take(loaded.task_results, stored.task_results);
  take(loaded.idempotency_keys, stored.idempotency_keys);
  loaded.workflows = std::move(stored.workflows);
  return loaded;
}

Result<std::vector<std::int64_t>> JournalStore::phases_without_timer(std::size_t limit) {
  TRY(follow());
  return tables_->phases_without_timer(limit);
}

Result<std::vector<runbook::Ref>> JournalStore::left_by_others(runbook::Ref after, std::size_t limit) {
  TRY(follow());
  return tables_->left_by_others(after, limit);
}

Result<std::vector<WaitingTask>> JournalStore::waiting(const QueueKey& queue, std::size_t limit) {
  TRY(follow());
  return tables_->waiting(queue, limit);
}

Result<std::vector<NodeKey>> JournalStore::running_builtin(std::size_t limit) {
  TRY(follow());
  return tables_->running_builtin(limit);
}

Result<std::vector<Timer>> JournalStore::timers_due(Time until, std::size_t limit) {
  const auto& gone = backlog_.timers_gone();
  TRY_ASSIGN(auto due, tables_->timers_due(until, limit + gone.size()));
  std::erase_if(due, [&](const Timer& timer) { return gone.contains(timer); });
  for (const Timer& timer : backlog_.timers_new()) {
    if (timer.due > until || MUTANT(backlog_hides_timer)) break;
    due.push_back(timer);
  }
  std::ranges::sort(due);
  const auto again = std::ranges::unique(due);  // one that was set again while the tables have it
  due.erase(again.begin(), again.end());
  if (due.size() > limit) due.resize(limit);
  return due;
}

Result<std::optional<Time>> JournalStore::next_timer() {
  std::optional<Time> next;
  if (backlog_.timers_gone().empty()) {
    TRY_ASSIGN(next, tables_->next_timer());
  } else {
    TRY_ASSIGN(const auto first, timers_due(Time::max(), 1));
    if (!first.empty()) next = first.front().due;
  }
  if (const auto& fresh = backlog_.timers_new(); !fresh.empty())
    next = next ? std::min(*next, fresh.begin()->due) : fresh.begin()->due;
  return next;
}

// What is acknowledged and cannot be shown, because its row does not fit on the disk any more, helps nobody.
Result<> JournalStore::leave_room() {
  // A row may touch a page of its table and of an index; texts are written to the log of the database and to the table.
  constexpr std::uint64_t reserve = 512 << 10, for_a_row = 8 << 10;
  const auto room = tables_->room();
  if (!room || *room >= reserve + backlog_.rows() * for_a_row + 2 * backlog_.bytes()) return {};
  TRY(follow());
  if (tables_->room().value_or(reserve) < reserve) return fail(Code::full, "there is no room left on the disk");
  return {};
}

Result<> JournalStore::commit(const WriteSet& writes, std::int64_t commit_number, const Journaling&) {
  const bool is_behind = followed_ < last_commit_;
  if ((!is_behind && !has_workflows(writes)) || !writes.workflows_new.empty())
    return commit_directly(writes, commit_number);
  TRY_ASSIGN(std::string data, encode_journal(writes));
  if (data.size() > row_bytes_max) return commit_directly(writes, commit_number);
  TRY(leave_room());
  const JournalRow row{commit_number, journal_format, std::move(data)};
  TRY(tables_->commit(writes, commit_number, {.append = &row}));
  last_commit_ = commit_number;
  backlog_.add(writes, row.data.size());
  return {};
}

Result<> JournalStore::commit_directly(const WriteSet& writes, std::int64_t commit_number) {
  TRY(follow());
  TRY(tables_->commit(writes, commit_number, {.followed = commit_number}));
  last_commit_ = followed_ = commit_number;
  return {};
}

// What keeps the tables from following is nobody's fault who asks for something now: whatever it is, the store is away
// until they can.
Result<> JournalStore::follow() {
  if (followed_ == last_commit_) return {};
  if (MUTANT(journal_follows_before)) backlog_.clear();
  const Result<> done = tables_->commit(backlog_.writes(), last_commit_,
                                        {.followed = last_commit_, .journaled_from = followed_ + 1, .only_follows = true});
  if (!done && (done.error().code == Code::full || done.error().code == Code::fenced)) return done;
  if (!done) return fail(Code::unavailable, "the tables cannot follow the journal: " + done.error().message);
  backlog_.clear();
  followed_ = last_commit_;
  return {};
}

}  // namespace baton::store
