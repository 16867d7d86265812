#include "store/journal/journal_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/mutant.hpp"
#include "store/journal/codec.hpp"
#include "store/journal/message_load.hpp"
#include "store/tables.hpp"

namespace baton::store {
namespace {

using namespace workflow;

// A row beyond this, large because of its documents, would write twice what is better written once.
constexpr std::size_t row_bytes_max = 512 << 10;
// Messages mostly go again before the tables follow, and many come in one commit.
constexpr std::size_t row_bytes_max_of_messages = 4 << 20;

// Rows that change again soon, so that a journal pays.
bool has_journaled_rows(const WriteSet& w) {
  return !w.calls.empty() || !w.messages.empty() || !(w.jobs_new.empty() && w.jobs_changed.empty() && w.nodes_new.empty() && w.nodes_changed.empty() &&
           w.task_results_new.empty() && w.events_new.empty());
}

// Rows that a journal does not carry.
bool is_for_tables(const WriteSet& w) { return !w.workflows_new.empty() || !w.calls.calls_rebuilt.empty(); }

template <class Row, class Key>
bool is_any_twice(const std::vector<Row>& rows, Key&& key_of) {
  if (rows.size() < 2) return false;
  const auto is_behind = [&](const Row& a, const Row& b) { return !(key_of(a) < key_of(b)); };
  if (std::ranges::adjacent_find(rows, is_behind) == rows.end()) return false;  // they are in order, as most are
  std::vector<decltype(key_of(rows[0]))> keys;
  keys.reserve(rows.size());
  for (const Row& row : rows) keys.push_back(key_of(row));
  std::ranges::sort(keys);
  return std::ranges::adjacent_find(keys) != keys.end();
}

bool has_key_twice(const WriteSet& w) {
  using Text = std::string_view;
  return is_any_twice(w.jobs_new, [](const Job& row) { return Text(row.job_id.value); }) ||
         is_any_twice(w.task_results_new, [](const TaskResult& row) { return Text(row.task_id); }) ||
         is_any_twice(w.idempotency_keys_new,
                      [](const IdempotencyKey& row) { return std::pair(Text(row.tenant.value), Text(row.idempotency_key)); }) ||
         is_any_twice(w.calls.calls_new,
                      [](const call::Call& row) { return std::pair(Text(row.tenant_id.value), Text(row.service_call_id.value)); }) ||
         is_any_twice(w.calls.keys_new,
                      [](const call::IdempotencyKey& row) { return std::pair(Text(row.tenant_id.value), Text(row.idempotency_key)); }) ||
         is_any_twice(w.messages.messages_new, [](const message::Message& row) { return row.key(); }) ||
         is_any_twice(w.messages.entities_new, [](const message::Entity& row) { return row.entity_id; }) ||
         is_any_twice(w.messages.counters_new, [](const message::Counters& row) { return row.entity_id; });
}

}  // namespace

// Rows that cannot be read, or are not there, end the start: without them nobody knows what was acknowledged.
Result<WriterState> JournalStore::open(Partition partition) {
  (void)wait_for_commit();
  const auto commit = beside_ ? std::exchange(beside_, std::nullopt)->outcome : std::nullopt;
  tables_->wait();
  const auto following = tables_->end();
  // Whoever was told of another writer by what went on beside writes nothing more.
  for (const auto& ended : {commit, following})
    if (ended && !*ended && ended->error().code == Code::fenced) return std::unexpected(ended->error());
  following_.clear();
  since_.clear();
  documents_.clear();
  under_way_ = is_asked_for_ = false;
  ended_.reset();
  last_commit_ = followed_ = following_to_ = 0;  // with what is half read nothing follows
  TRY_ASSIGN(WriterState state, tables_->open(partition));
  TRY_ASSIGN(const auto rows, tables_->journal());
  Backlog backlog;
  std::int64_t expected = state.followed;
  for (const JournalRow& row : rows) {
    if (row.commit_number != ++expected)
      return fail(Code::corrupt, fmt::format("the journal lacks commit {}; it has {}. Was the database replaced by a copy, and not what belongs to it?", expected, row.commit_number));
    TRY_ASSIGN(Decoded decoded, decode_journal(row));
    TRY(bring_unchanged(decoded, backlog));
    if (!MUTANT(journal_not_replayed)) backlog.add(std::move(decoded.writes), row.data.size());
  }
  if (expected != state.last_commit)
    return fail(Code::corrupt, fmt::format("the journal ends with commit {}, and {} was the last", expected, state.last_commit));
  since_ = std::move(backlog);
  last_commit_ = state.last_commit;
  followed_ = state.followed;
  TRY(follow_now());
  state.followed = last_commit_;
  return state;
}

// `before`: the commits of the journal before this one, upon what the tables show.
Result<> JournalStore::bring_unchanged(Decoded& decoded, const Backlog& before) {
  if (decoded.unchanged.empty() || MUTANT(unchanged_not_brought)) return {};
  LoadRequest request;
  for (const auto& [row, columns] : decoded.unchanged) request.nodes.push_back(baton::key_of(decoded.writes.nodes_changed[row]));
  std::erase_if(request.nodes, [&](const NodeKey& key) { return before.node(key) != nullptr; });
  TRY_ASSIGN(const Loaded stored, tables_->load(request));
  std::map<NodeKey, const NodeState*> in_tables;
  for (const NodeState& node : stored.nodes) in_tables.emplace(baton::key_of(node), &node);
  for (const auto& [row, columns] : decoded.unchanged) {
    NodeState& node = decoded.writes.nodes_changed[row];
    const NodeKey key = baton::key_of(node);
    const NodeState* from = before.node(key);
    if (!from && !in_tables.contains(key))
      return fail(Code::corrupt, fmt::format("the journal changes node {} of job {}, which is not there", key.node_id, key.job_id.value));
    copy_columns(from ? *from : *in_tables.at(key), node, columns);
  }
  return {};
}

template <class Request>
Result<> JournalStore::wait_for_commit_of(const Request& asked) {
  const bool is_over = beside_ && beside_->outcome;
  return beside_ && (is_over || beside_->touched.has_any_of(asked)) ? wait_for_commit() : Result<>{};
}

Result<Loaded> JournalStore::load(const LoadRequest& asked) {
  TRY(wait_for_commit_of(asked));
  const std::scoped_lock lock(backlogs_mutex_);
  if (following_.rows() + since_.rows() == 0) return tables_->load(asked);
  LoadRequest request = asked;
  Loaded loaded;
  const auto take = [&](Loaded&& more) {
    const auto move = [](auto& to, auto& from) { std::ranges::move(from, std::back_inserter(to)); };
    move(loaded.jobs, more.jobs);
    move(loaded.nodes, more.nodes);
    move(loaded.task_results, more.task_results);
    move(loaded.workflows, more.workflows);
    move(loaded.idempotency_keys, more.idempotency_keys);
  };
  // The newest first; what an older one still has to answer is brought up to date by those behind it.
  if (!MUTANT(backlog_not_asked)) take(since_.load(request));
  Loaded older = following_.load(request);
  since_.settle(older);
  take(std::move(older));
  TRY_ASSIGN(Loaded stored, tables_->load(request));
  following_.settle(stored);
  since_.settle(stored);
  take(std::move(stored));
  return loaded;
}

Result<call::Loaded> JournalStore::load(const call::LoadRequest& asked) {
  TRY(wait_for_commit_of(asked));
  const std::scoped_lock lock(backlogs_mutex_);
  if (following_.rows() + since_.rows() == 0) return tables_->load(asked);
  call::LoadRequest request = asked;
  call::Loaded loaded;
  const auto take = [&](call::Loaded&& more) {
    std::ranges::move(more.calls, std::back_inserter(loaded.calls));
    std::ranges::move(more.requests, std::back_inserter(loaded.requests));
    std::ranges::move(more.idempotency_keys, std::back_inserter(loaded.idempotency_keys));
  };
  if (!MUTANT(backlog_hides_call)) take(since_.load(request));  // the newest first
  take(following_.load(request));
  TRY_ASSIGN(call::Loaded stored, tables_->load(request));
  loaded.without_row = std::move(stored.without_row);
  take(std::move(stored));
  return loaded;
}

Result<message::Loaded> JournalStore::load(const message::LoadRequest& asked) {
  TRY(wait_for_commit_of(asked));
  const std::scoped_lock lock(backlogs_mutex_);
  return load_messages(*tables_, following_.messages(), since_.messages(), asked);
}

Result<std::vector<std::int64_t>> JournalStore::phases_without_timer(std::size_t limit) {
  TRY(follow());
  return tables_->phases_without_timer(limit);
}

Result<std::vector<runbook::Ref>> JournalStore::left_by_others(runbook::Ref after, std::size_t limit) {
  TRY(follow());
  return tables_->left_by_others(after, limit);
}

// What a backlog has of a node is newer than its row. As many more are read as are left out because of that: what is not read
// comes after all that is.
Result<std::vector<WaitingTask>> JournalStore::waiting(const QueueKey& queue, std::size_t limit, Time now) {
  TRY(wait_for_commit());
  if (message::parse_queue_name(queue.queue)) return waiting_messages(*tables_, following_.messages(), since_.messages(), queue, limit, now);
  for (std::size_t more = 0;;) {
    TRY_ASSIGN(auto found, tables_->waiting(queue, limit + more, now));
    const bool is_all = found.size() < limit + more;
    const std::size_t left_out = following_.settle(found, queue) +
                                 (MUTANT(backlog_hides_waiting) ? 0 : since_.settle(found, queue));
    if (!is_all && left_out > more) {
      more = left_out;
      continue;
    }
    std::ranges::sort(found);
    if (found.size() > limit) found.resize(limit);
    return found;
  }
}

Result<std::vector<NodeKey>> JournalStore::running_builtin(std::size_t limit) {
  TRY(follow());
  return tables_->running_builtin(limit);
}

Result<std::vector<Timer>> JournalStore::timers_due(Time until, std::size_t limit) {
  TRY(wait_for_commit());
  const std::size_t hidden = following_.timers_gone().size() + since_.timers_gone().size();
  TRY_ASSIGN(const auto stored, tables_->timers_due(until, limit + hidden));
  std::set<Timer> due(stored.begin(), stored.end());
  for (const Backlog* backlog : {&following_, &since_}) {
    for (const Timer& gone : backlog->timers_gone()) due.erase(gone);
    for (const Timer& timer : backlog->timers_new()) {
      if (timer.due > until || MUTANT(backlog_hides_timer)) break;
      due.insert(timer);
    }
  }
  std::vector<Timer> first(due.begin(), due.end());
  if (first.size() > limit) first.resize(limit);
  return first;
}

Result<std::optional<Time>> JournalStore::next_timer() {
  TRY(wait_for_commit());
  if (behind_now().rows == 0) return tables_->next_timer();
  TRY_ASSIGN(const auto first, timers_due(Time::max(), 1));
  return first.empty() ? std::nullopt : std::optional{first.front().due};
}

// What is acknowledged and cannot be shown, because its row does not fit on the disk any more, helps nobody.
Result<> JournalStore::leave_room() {
  // A row may touch a page of its table and of an index; texts are written to the log of the database and to the table.
  constexpr std::uint64_t reserve = 512 << 10, for_a_row = 8 << 10;
  const auto room = tables_->room();
  const Behind behind = behind_now();
  if (!room || *room >= reserve + behind.rows * for_a_row + 2 * behind.bytes) return {};
  TRY(follow_now());
  if (tables_->room().value_or(reserve) < reserve) return fail(Code::full, "there is no room left on the disk");
  return {};
}

Result<> JournalStore::commit(const WriteSet& writes, std::int64_t commit_number) {
  TRY(wait_for_commit());
  return commit_rows(writes, commit_number, nullptr);
}

// `own`: the same rows, if they may be taken.
Result<> JournalStore::commit_rows(const WriteSet& writes, std::int64_t commit_number, WriteSet* own) {
  const bool is_behind = followed_ < last_commit_;
  if ((!is_behind && !has_journaled_rows(writes)) || is_for_tables(writes))
    return commit_directly(writes, commit_number);
  TRY_ASSIGN(Encoded encoded, encode_journal(writes, documents_.unchanged(writes.nodes_changed)));
  const std::size_t bytes_max = writes.messages.messages_new.empty() ? row_bytes_max : row_bytes_max_of_messages;
  if (encoded.data.size() > bytes_max) return commit_directly(writes, commit_number);
  TRY(check_keys(writes));
  TRY(leave_room());
  const JournalRow row{commit_number, journal_format, std::move(encoded.data)};
  TRY(tables_->append(row, writes));
  documents_.committed(writes);
  const std::scoped_lock lock(backlogs_mutex_);
  last_commit_ = commit_number;
  since_.add(own ? std::move(*own) : writes, row.data.size() + encoded.left_out);
  return {};
}

// What is in the journal must fit the tables. Those that the tables have are loaded before anything is decided.
Result<> JournalStore::check_keys(const WriteSet& writes) const {
  std::map<call::CallKey, std::int64_t> versions;  // of calls that the tables do not show as they are
  for (const call::EventRow& event : writes.calls.events_new) {
    const call::CallKey key{event.tenant_id, event.service_call_id};
    auto known = versions.find(key);
    if (known == versions.end()) {
      const auto version = since_.version_of(key).or_else([&] { return following_.version_of(key); });
      if (!version) continue;
      known = versions.emplace(key, *version).first;
    }
    if (event.version != ++known->second)
      return fail(Code::conflict, fmt::format("service call {} has an event of version {} already, or lacks the one before it",
                                              event.service_call_id.value, event.version));
  }
  if (!writes.messages.empty() && is_in_the_way(following_.messages(), since_.messages(), writes.messages))
    return fail(Code::conflict, "a message, or what it is in, is there already, or was changed by this commit and is gone");
  const bool is_there_twice = has_key_twice(writes) || since_.has_key_of(writes) || following_.has_key_of(writes);
  return is_there_twice ? fail(Code::conflict, "a job, a result, a service call, a message or an idempotency key of this commit is there already") : Result<>{};
}

Result<> JournalStore::commit_directly(const WriteSet& writes, std::int64_t commit_number) {
  TRY(follow_now());
  TRY(tables_->commit(writes, commit_number));
  documents_.committed(writes);
  const std::scoped_lock lock(backlogs_mutex_);
  last_commit_ = followed_ = commit_number;
  return {};
}

bool JournalStore::may_commit_beside(const WriteSet& writes) const {
  return !is_for_tables(writes) && writes.is_journaled();
}

void JournalStore::begin_commit(WriteSet writes, std::int64_t commit_number) {
  ENSURE(!beside_);
  beside_.emplace(behind_now(), TouchedKeys(writes), std::nullopt);
  tables_->begin_work([this, commit_number, writes = std::move(writes)]() mutable {
    return commit_rows(writes, commit_number, &writes);
  });
}

// What is asked while a commit goes on may have been asked because of it.
Result<> JournalStore::wait_for_commit() {
  if (!beside_) return {};
  if (!beside_->outcome) beside_->outcome = tables_->end_work();
  const Result<>& outcome = *beside_->outcome;
  return outcome ? outcome : fail(Code::unavailable, "the commit before it failed: " + outcome.error().message);
}

Result<> JournalStore::end_commit() {
  ENSURE(beside_);
  (void)wait_for_commit();
  return *std::exchange(beside_, std::nullopt)->outcome;
}

Behind JournalStore::behind() const { return beside_ ? beside_->behind : behind_now(); }

Behind JournalStore::behind_now() const {
  return {last_commit_ - followed_, following_.rows() + since_.rows(), following_.bytes() + since_.bytes(), under_way_};
}

void JournalStore::begin_following() {
  if (under_way_ || followed_ == last_commit_) return;
  ended_.reset();
  is_asked_for_ = true;
  begin_now();
}

void JournalStore::begin_now() {
  if (following_to_ <= followed_) {  // else it is tried again with what could not be written
    const std::scoped_lock lock(backlogs_mutex_);
    following_ = std::move(since_);
    since_.clear();
    following_to_ = last_commit_;
  }
  if (MUTANT(journal_follows_before)) following_.clear();
  under_way_ = true;
  tables_->begin({&following_.writes(), followed_, following_to_});
}

std::optional<Result<std::int64_t>> JournalStore::end_following() {
  if (beside_) return std::nullopt;
  if (under_way_)
    if (auto ended = tables_->end()) (void)settle(std::move(*ended));
  const auto ended = std::exchange(ended_, std::nullopt);
  if (!ended) return std::nullopt;
  is_asked_for_ = false;
  if (!*ended) return std::unexpected(ended->error());
  return followed_;
}

Result<> JournalStore::settle(Result<> ended) {
  under_way_ = false;
  Result<> done = judge(std::move(ended));
  if (is_asked_for_) ended_ = done;
  if (!done) return done;
  auto spent = std::make_shared<Backlog>();
  {
    const std::scoped_lock lock(backlogs_mutex_);
    std::swap(*spent, following_);
    followed_ = following_to_;
  }
  tables_->discard(std::move(spent));
  return done;
}

// What keeps the tables from following is nobody's fault who asks for something now. Where another program holds a row, or
// the file, it passes. Rows that do not fit never will: what was acknowledged, or what is in the tables, is wrong.
Result<> JournalStore::judge(Result<> ended) {
  if (ended) return {};
  const auto& [code, message] = ended.error();
  if (code == Code::full || code == Code::fenced) return ended;
  if (code == Code::conflict || code == Code::not_found)
    return fail(Code::corrupt, fmt::format("the tables do not take what the journal says, which is kept, from commit {} to {}: {}",
                                           followed_ + 1, following_to_, message));
  return fail(code == Code::busy ? Code::busy : Code::unavailable, "the tables cannot follow the journal: " + message);
}

Result<> JournalStore::follow() {
  TRY(wait_for_commit());
  return follow_now();
}

Result<> JournalStore::close() {
  TRY(follow());
  return tables_->close();
}

Result<> JournalStore::follow_now() {
  while (followed_ < last_commit_) {
    if (!under_way_) begin_now();
    tables_->wait();
    TRY(settle(tables_->end().value()));
  }
  return {};
}

}  // namespace baton::store
