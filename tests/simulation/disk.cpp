#include "tests/simulation/disk.hpp"

namespace baton::simulation {

void Disk::follow(const WriteSet& writes, std::int64_t commit_number) {
  unsynced_.push_back(writes);
  shown_ = commit_number;
}

void Disk::sync() {
  for (const WriteSet& writes : unsynced_) ENSURE(store::memory::write(tables_, writes));
  unsynced_.clear();
  synced_ = shown_;
}

void Disk::append(const store::JournalRow& row, std::int64_t removable) {
  log_.erase(log_.begin(), log_.upper_bound(removable));
  log_.emplace(row.commit_number, row);
}

void Disk::restore(store::MemoryDatabase& tables) {
  unsynced_.clear();
  shown_ = synced_;
  const auto copy = [](const auto& from, auto& to) {
    to.clear();
    for (const auto& [key, row] : from) to.insert(row);
  };
  copy(tables_.jobs, tables.jobs);
  copy(tables_.nodes, tables.nodes);
  copy(tables_.task_results, tables.task_results);
  copy(tables_.events, tables.events);
  copy(tables_.logs, tables.logs);
  copy(tables_.tags, tables.tags);
  copy(tables_.workflows, tables.workflows);
  copy(tables_.idempotency_keys, tables.idempotency_keys);
  copy(tables_.calls, tables.calls);
  copy(tables_.call_events, tables.call_events);
  copy(tables_.call_requests, tables.call_requests);
  copy(tables_.call_tags, tables.call_tags);
  copy(tables_.call_keys, tables.call_keys);
  copy(tables_.bus.entities, tables.bus.entities);
  copy(tables_.bus.counters, tables.bus.counters);
  copy(tables_.bus.messages, tables.bus.messages);
  copy(tables_.bus.history, tables.bus.history);
  tables.timers = tables_.timers;
  auto& writer = tables.writers[{}];
  writer.followed = writer.last_commit = synced_;
  writer.journal = std::map(log_.upper_bound(synced_), log_.end());
  if (!writer.journal.empty()) writer.last_commit = writer.journal.rbegin()->first;
}

}  // namespace baton::simulation
