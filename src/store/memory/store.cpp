#include "store/memory/store.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <ranges>

namespace baton::store {
namespace {

using namespace workflow;
using Reading = std::shared_lock<std::shared_mutex>;
using Writing = std::unique_lock<std::shared_mutex>;

// Each key once; those that do not exist are absent.
template <class Row, class Key>
void take(const auto& table, const std::set<Key>& keys, std::vector<Row>& out) {
  for (const Key& key : keys)
    if (const Row* row = table.get(key)) out.push_back(*row);
}
template <class Key>
std::set<Key> unique(const std::vector<Key>& keys) {
  return {keys.begin(), keys.end()};
}

std::unexpected<Error> not_open() { return fail(Code::unavailable, "the store is not open"); }

}  // namespace

MemoryStore::MemoryStore(MemoryDatabase& database)
    : database_(database), name_([&] {
        const Writing lock(database.mutex);
        return ++database.stores;
      }()) {}

MemoryStore::~MemoryStore() {
  const Writing lock(database_.mutex);
  if (row_ != nullptr && row_->holder == name_) row_->holder = 0;
}

Result<WriterState> MemoryStore::open(Partition partition) {
  const Writing lock(database_.mutex);
  open_ = false;
  row_ = &database_.writers[partition];
  if (row_->holder != 0 && row_->holder != name_)
    return fail(Code::conflict, "another baton server is writing to this database");
  // A writer that was open before and finds another's name must not go on with what it believed, nor keep others out.
  if (term_ != 0 && row_->owner != name_) {
    if (row_->holder == name_) row_->holder = 0;
    return fail(Code::fenced, "another writer has taken over");
  }
  row_->holder = name_;
  row_->owner = name_;
  term_ = ++row_->term;
  open_ = true;
  return WriterState{term_, row_->last_commit, row_->followed};
}

Result<Loaded> MemoryStore::load(const LoadRequest& request) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  Loaded loaded;
  const auto whole = unique(request.jobs_whole);
  for (const JobId& id : unique(request.jobs)) {
    const Job* job = whole.contains(id) ? nullptr : database_.jobs.get(id);
    if (job == nullptr) continue;
    loaded.jobs.push_back(*job);
    loaded.jobs.back().input_data = {};
    loaded.jobs.back().result_data.reset();
  }
  take(database_.jobs, whole, loaded.jobs);
  take(database_.nodes, unique(request.nodes), loaded.nodes);
  take(database_.task_results, unique(request.task_results), loaded.task_results);
  std::set<std::tuple<Tenant, std::string, std::int32_t>> workflows;
  for (const WorkflowKey& key : request.workflows) {
    const Workflow* latest =
        key.version == 0 ? database_.latest_workflow(key.tenant, key.workflow_id) : nullptr;
    workflows.emplace(key.tenant, key.workflow_id, latest != nullptr ? latest->version : key.version);
  }
  take(database_.workflows, workflows, loaded.workflows);
  std::set<std::pair<Tenant, std::string>> keys;
  for (const IdempotencyKey& key : request.idempotency_keys) keys.emplace(key.tenant, key.idempotency_key);
  take(database_.idempotency_keys, keys, loaded.idempotency_keys);
  return loaded;
}

Result<runbook::Loaded> MemoryStore::load(const std::vector<runbook::Need>& needs) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  return database_.runbooks.load(needs);
}

Result<call::Loaded> MemoryStore::load(const call::LoadRequest& request) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  const memory::CallTables& calls = database_;
  return calls.load(request);
}

Result<message::Loaded> MemoryStore::load(const message::LoadRequest& request) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  return database_.bus.load(request);
}

Result<std::vector<std::int64_t>> MemoryStore::reserve_ids(runbook::Table table, std::size_t count) {
  if (!open_) return not_open();
  const Writing lock(database_.mutex);
  return database_.runbooks.reserve_ids(table, count);
}

Result<> MemoryStore::write_data(const runbook::DataRows& rows) {
  if (!open_) return not_open();
  const Writing lock(database_.mutex);
  return database_.runbooks.write_data(rows);
}

Result<std::vector<std::int64_t>> MemoryStore::phases_without_timer(std::size_t limit) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  std::vector<std::int64_t> found;
  for (const auto* phase : database_.runbooks.phases.with<memory::PhasesUntimed>() | memory::at_most(limit))
    found.push_back(phase->id);
  return found;
}

Result<std::vector<runbook::Ref>> MemoryStore::left_by_others(runbook::Ref after, std::size_t limit) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  return database_.runbooks.left_by_others(after, limit);
}

Result<std::vector<WaitingTask>> MemoryStore::waiting(const QueueKey& queue, std::size_t limit, Time now) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  if (const auto of_messages = message::parse_queue_name(queue.queue)) return database_.bus.waiting(*of_messages, limit, now);
  std::vector<WaitingTask> found;
  for (const NodeState* node :
       database_.nodes.with<memory::NodesWaiting>(queue.tenant, queue.queue) | memory::at_most(limit))
    found.push_back(waiting_task(baton::key_of(*node), node->priority, *node->dispatched_at));
  if (queue.tenant.value != "default") return found;
  const auto nodes = std::exchange(found, {});
  std::ranges::merge(nodes, database_.runbooks.waiting(queue.queue, limit), std::back_inserter(found));
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<std::vector<NodeKey>> MemoryStore::running_builtin(std::size_t limit) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  std::vector<NodeKey> found;
  for (const NodeState* node : database_.nodes.with<memory::NodesRunningBuiltin>() | memory::at_most(limit))
    found.push_back(baton::key_of(*node));
  return found;
}

Result<std::vector<Timer>> MemoryStore::timers_due(Time until, std::size_t limit) {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  std::vector<Timer> found;
  for (const Timer& timer : database_.timers) {
    if (timer.due > until || found.size() == limit) break;
    found.push_back(timer);
  }
  return found;
}

Result<std::optional<Time>> MemoryStore::next_timer() {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  if (database_.timers.empty()) return std::nullopt;
  return database_.timers.begin()->due;
}

Result<std::vector<JournalRow>> MemoryStore::journal() {
  if (!open_) return not_open();
  const Reading lock(database_.mutex);
  std::vector<JournalRow> rows;
  for (const auto& [number, row] : row_->journal) rows.push_back(row);
  return rows;
}

// Under the database's mutex.
Result<> MemoryStore::check_term() {
  if (term_ == row_->term) return {};
  open_ = false;
  return fail(Code::fenced, "another writer has taken over");
}

Result<> MemoryStore::commit(const WriteSet& writes, std::int64_t commit_number) {
  if (!open_) return not_open();
  const Writing lock(database_.mutex);
  TRY(check_term());
  TRY(memory::write(database_, writes));
  row_->last_commit = row_->followed = commit_number;
  return {};
}

Result<> MemoryStore::append(const JournalRow& row, const WriteSet& beside) {
  if (!open_) return not_open();
  const Writing lock(database_.mutex);
  TRY(check_term());
  TRY(memory::write_beside_journal(database_, beside));
  row_->journal[row.commit_number] = row;
  row_->last_commit = row.commit_number;
  return {};
}

void MemoryStore::begin(const Following& following) {
  const auto follow = [&]() -> Result<> {
    if (!open_) return not_open();
    const Writing lock(database_.mutex);
    TRY(check_term());
    TRY(memory::write(database_, *following.writes));
    row_->followed = following.to;
    row_->journal.erase(row_->journal.upper_bound(following.from), row_->journal.upper_bound(following.to));
    return {};
  };
  ended_ = follow();
  if (*ended_ && on_followed_) on_followed_(following.to);
  if (on_end_) on_end_();
}

}  // namespace baton::store
