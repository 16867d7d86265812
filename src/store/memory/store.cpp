#include "tests/support/memory_store.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/call/call.hpp"
#include "store/tables.hpp"

namespace baton::support {
namespace {

using namespace workflow;

using baton::key_of;
MemoryDatabase::WorkflowId key_of(const Workflow& w) { return {w.tenant, w.workflow_id, w.version}; }
std::pair<Tenant, std::string> key_of(const IdempotencyKey& key) { return {key.tenant, key.idempotency_key}; }
std::pair<JobId, std::int64_t> key_of(const Event& event) { return {event.job_id, event.event_id}; }
JobId key_of(const Job& job) { return job.job_id; }
std::string key_of(const TaskResult& result) { return result.task_id; }
std::tuple<JobId, std::string, std::int64_t> key_of(const LogLine& line) {
  return {line.job_id, line.node_id, line.log_id};
}

// All rows must be new, also among themselves.
template <class Map, class Row>
bool all_new(const Map& map, const std::vector<Row>& rows) {
  std::set<typename Map::key_type> seen;
  for (const Row& row : rows) {
    if (map.contains(key_of(row)) || !seen.insert(key_of(row)).second) return false;
  }
  return true;
}

template <class Map, class Row>
bool all_known(const Map& map, const std::vector<Row>& rows_new, const std::vector<Row>& rows) {
  std::set<typename Map::key_type> inserted;
  for (const Row& row : rows_new) inserted.insert(key_of(row));
  for (const Row& row : rows) {
    if (!map.contains(key_of(row)) && !inserted.contains(key_of(row))) return false;
  }
  return true;
}

template <class Map, class Row>
void insert_all(Map& map, const std::vector<Row>& rows) {
  for (const Row& row : rows) map.emplace(key_of(row), row);
}

template <class Map, class Key, class Row>
void take(const Map& map, const std::set<Key>& keys, std::vector<Row>& out) {
  for (const Key& key : keys) {
    if (const auto found = map.find(key); found != map.end()) out.push_back(found->second);
  }
}

bool is_waiting(const NodeState& node) {
  return node.status == NodeStatus::dispatched && node.queue && node.dispatched_at;
}
MemoryDatabase::WaitingKey waiting_key(const NodeState& node) {
  return {QueueKey{node.tenant, *node.queue}, {-node.priority, *node.dispatched_at, key_of(node)}};
}

std::unexpected<Error> not_open() { return fail(Code::unavailable, "the store is not open"); }

}  // namespace

MemoryStore::MemoryStore(MemoryDatabase& database, std::function<CommitFault()> fault)
    : database_(database), fault_(std::move(fault)), owner_(++database.stores) {}

Result<WriterState> MemoryStore::open() {
  // Who has written before and finds another's name must not go on with what he believed.
  if (term_ != 0 && database_.owner != owner_) return fail(Code::fenced, "another writer has taken over");
  database_.owner = owner_;
  term_ = ++database_.term;
  open_ = true;
  return WriterState{term_, database_.last_commit};
}

Result<Loaded> MemoryStore::load(const LoadRequest& request) {
  if (!open_) return not_open();
  Loaded loaded;
  const std::set whole(request.jobs_whole.begin(), request.jobs_whole.end());
  for (const JobId& id : std::set(request.jobs.begin(), request.jobs.end())) {
    const auto found = database_.jobs.find(id);
    if (found == database_.jobs.end() || whole.contains(id)) continue;
    loaded.jobs.push_back(found->second);
    loaded.jobs.back().input_data = {};
    loaded.jobs.back().result_data.reset();
  }
  take(database_.jobs, whole, loaded.jobs);
  take(database_.nodes, std::set(request.nodes.begin(), request.nodes.end()), loaded.nodes);
  take(database_.task_results, std::set(request.task_results.begin(), request.task_results.end()),
       loaded.task_results);
  std::set<MemoryDatabase::WorkflowId> workflows;
  for (const WorkflowKey& key : request.workflows) {
    if (key.version != 0) {
      workflows.emplace(key.tenant, key.workflow_id, key.version);
      continue;
    }
    const auto after = database_.workflows.upper_bound(
        {key.tenant, key.workflow_id, std::numeric_limits<std::int32_t>::max()});
    if (after != database_.workflows.begin()) {
      const auto& [tenant, workflow_id, version] = std::prev(after)->first;
      if (tenant == key.tenant && workflow_id == key.workflow_id)
        workflows.emplace(tenant, workflow_id, version);
    }
  }
  take(database_.workflows, workflows, loaded.workflows);
  std::set<std::pair<Tenant, std::string>> keys;
  for (const IdempotencyKey& key : request.idempotency_keys) keys.insert(key_of(key));
  take(database_.idempotency_keys, keys, loaded.idempotency_keys);
  return loaded;
}

Result<runbook::Loaded> MemoryStore::load(const std::vector<runbook::Need>& needs) {
  if (!open_) return not_open();
  return database_.runbooks.load(needs);
}

std::vector<call::EventRow> MemoryDatabase::stream(const call::CallKey& key) const {
  std::vector<call::EventRow> found;
  for (auto it = call_events.lower_bound({key, 0}); it != call_events.end() && it->first.first == key; ++it)
    found.push_back(it->second);
  return found;
}

Result<call::Loaded> MemoryStore::load(const call::LoadRequest& request) {
  if (!open_) return not_open();
  call::Loaded loaded;
  const std::set streams(request.streams.begin(), request.streams.end());
  std::set keys(request.calls.begin(), request.calls.end());
  keys.insert(streams.begin(), streams.end());
  for (const call::CallKey& key : keys) {
    const auto events = database_.stream(key);
    if (events.empty()) continue;
    const auto row = database_.calls.find(key);
    const bool has_row = row != database_.calls.end();
    if (has_row && !streams.contains(key) && call::is_snapshot(row->second, events.back())) {
      loaded.calls.push_back(row->second);
      continue;
    }
    auto folded = call::fold(events);
    if (!folded)
      return fail(Code::invalid, "the events of service call " + key.id.value + " cannot be folded");
    if (!has_row || row->second != *folded) loaded.without_row.push_back(key);
    loaded.calls.push_back(*std::move(folded));
  }
  take(database_.call_requests, std::set(request.requests.begin(), request.requests.end()), loaded.requests);
  take(database_.call_keys, std::set(request.idempotency_keys.begin(), request.idempotency_keys.end()),
       loaded.idempotency_keys);
  return loaded;
}

Result<std::vector<std::int64_t>> MemoryStore::reserve_ids(runbook::Table table, std::size_t count) {
  if (!open_) return not_open();
  return database_.runbooks.reserve_ids(table, count);
}

Result<> MemoryStore::write_data(const runbook::DataRows& rows) {
  if (!open_) return not_open();
  database_.runbooks.write_data(rows);
  return {};
}

Result<std::vector<std::int64_t>> MemoryStore::phases_without_timer(std::size_t limit) {
  if (!open_) return not_open();
  return database_.runbooks.phases_without_timer(limit);
}

Result<std::vector<runbook::Ref>> MemoryStore::jobs_without_timer(runbook::Ref after, std::size_t limit) {
  if (!open_) return not_open();
  return database_.runbooks.jobs_without_timer(after, limit);
}

Result<std::vector<WaitingTask>> MemoryStore::waiting(const QueueKey& queue, std::size_t limit) {
  if (!open_) return not_open();
  std::vector<WaitingTask> found;
  const WaitingTask first{std::numeric_limits<std::int32_t>::min(), Time::min(), {}};
  auto it = database_.waiting.lower_bound({queue, first});
  for (; it != database_.waiting.end() && it->first == queue && found.size() < limit; ++it)
    found.push_back(it->second);
  if (queue.tenant.value == "default") {
    const auto jobs = database_.runbooks.waiting(queue.queue);
    const auto nodes = std::exchange(found, {});
    std::ranges::merge(nodes, jobs, std::back_inserter(found));
    if (found.size() > limit) found.resize(limit);
  }
  return found;
}

Result<std::vector<NodeKey>> MemoryStore::running_builtin(std::size_t limit) {
  std::vector<NodeKey> out;
  for (const auto& [key, node] : database_.nodes)
    if (out.size() < limit && node.status == NodeStatus::running && node.tenant.empty()) out.push_back(key);
  return out;
}

Result<std::vector<Timer>> MemoryStore::timers_due(Time until, std::size_t limit) {
  if (!open_) return not_open();
  std::vector<Timer> found;
  for (auto it = database_.timers.begin();
       it != database_.timers.end() && it->due <= until && found.size() < limit; ++it) {
    found.push_back(*it);
  }
  return found;
}

Result<std::vector<runbook::Timer>> MemoryStore::runbook_timers_due(Time until, std::size_t limit) {
  if (!open_) return not_open();
  std::vector<runbook::Timer> found;
  for (const runbook::Timer& timer : database_.runbooks.timers) {
    if (timer.due > until || found.size() == limit) break;
    found.push_back(timer);
  }
  return found;
}

Result<std::optional<Time>> MemoryStore::next_timer() {
  if (!open_) return not_open();
  std::optional<Time> next;
  const auto look = [&](const auto& timers) {
    if (!timers.empty()) next = std::min(next.value_or(timers.begin()->due), timers.begin()->due);
  };
  look(database_.timers);
  look(database_.runbooks.timers);
  return next;
}

Result<> MemoryStore::commit(const WriteSet& writes, std::int64_t commit_number) {
  if (!open_) return not_open();
  const CommitFault fault = fault_ ? fault_() : CommitFault::none;
  if (fault == CommitFault::fail_before) return fail(Code::unavailable, "the commit failed on purpose");
  if (fault == CommitFault::unknown_lost) {
    open_ = false;
    return fail(Code::unknown, "the connection was lost on purpose");
  }
  if (term_ != database_.term) {
    open_ = false;
    return fail(Code::fenced, "another writer has taken over");
  }
  TRY(check(writes));
  apply(writes, commit_number);
  if (fault == CommitFault::unknown_applied) {
    open_ = false;
    return fail(Code::unknown, "the connection was lost on purpose");
  }
  return {};
}

Result<> MemoryStore::check(const WriteSet& w) const {
  const MemoryDatabase& db = database_;
  const bool inserts = all_new(db.jobs, w.jobs_new) && all_new(db.nodes, w.nodes_new) &&
                       all_new(db.task_results, w.task_results_new) && all_new(db.events, w.events_new) &&
                       all_new(db.workflows, w.workflows_new) &&
                       all_new(db.idempotency_keys, w.idempotency_keys_new) && all_new(db.logs, w.logs_new) &&
                       std::ranges::none_of(w.tags_new, [&](const JobTag& tag) {
                         return db.tags.contains({tag.tenant, tag.tag, tag.job_id});
                       });
  if (!inserts) return fail(Code::conflict, "a row that was to be inserted exists already");
  if (!all_known(db.jobs, w.jobs_new, w.jobs_changed) || !all_known(db.nodes, w.nodes_new, w.nodes_changed)) {
    return fail(Code::conflict, "a row that was to be updated does not exist");
  }
  std::set<Timer> gone(w.timers_gone.begin(), w.timers_gone.end());
  std::set<Timer> seen;
  for (const Timer& timer : w.timers_new) {
    if ((db.timers.contains(timer) && !gone.contains(timer)) || !seen.insert(timer).second) {
      return fail(Code::conflict, "a timer that was to be inserted exists already");
    }
  }
  for (const call::EventRow& event : w.calls.events_new)
    if (db.call_events.contains({{event.tenant_id, event.service_call_id}, event.version}))
      return fail(Code::conflict, "an event of this version exists already");
  for (const call::Call& row : w.calls.calls_changed)
    if (!db.calls.contains(row.key())) return fail(Code::conflict, "a call that was to be updated does not exist");
  return db.runbooks.check(w.runbooks);
}

void MemoryStore::apply(const WriteSet& writes, std::int64_t commit_number) {
  MemoryDatabase& db = database_;
  insert_all(db.jobs, writes.jobs_new);
  for (const Job& job : writes.jobs_changed) store::copy_live(job, db.jobs.at(job.job_id));
  insert_all(db.nodes, writes.nodes_new);
  for (const NodeState& node : writes.nodes_new) {
    if (is_waiting(node)) db.waiting.insert(waiting_key(node));
  }
  for (const NodeState& node : writes.nodes_changed) {
    NodeState& row = db.nodes.at(key_of(node));
    if (is_waiting(row)) db.waiting.erase(waiting_key(row));
    store::copy_live(node, row);
    if (is_waiting(row)) db.waiting.insert(waiting_key(row));
  }
  insert_all(db.task_results, writes.task_results_new);
  for (const call::EventRow& event : writes.calls.events_new)
    db.call_events.insert({{{event.tenant_id, event.service_call_id}, event.version}, event});
  for (const call::Call& row : writes.calls.calls_new) db.calls.insert({row.key(), row});
  for (const call::Call& row : writes.calls.calls_changed) store::copy_live(row, db.calls.at(row.key()));
  for (const call::Call& row : writes.calls.calls_rebuilt) db.calls.insert_or_assign(row.key(), row);
  for (const call::Request& row : writes.calls.requests_new)
    db.call_requests.insert({{row.tenant_id, row.service_call_id}, row});
  for (const call::IdempotencyKey& row : writes.calls.keys_new)
    db.call_keys.insert({{row.tenant_id, row.idempotency_key}, row});
  insert_all(db.events, writes.events_new);
  for (const Timer& timer : writes.timers_gone) db.timers.erase(timer);
  db.timers.insert(writes.timers_new.begin(), writes.timers_new.end());
  insert_all(db.workflows, writes.workflows_new);
  insert_all(db.idempotency_keys, writes.idempotency_keys_new);
  for (const JobTag& tag : writes.tags_new) db.tags.emplace(tag.tenant, tag.tag, tag.job_id);
  insert_all(db.logs, writes.logs_new);
  db.runbooks.apply(writes.runbooks);
  db.last_commit = commit_number;
}

}  // namespace baton::support
