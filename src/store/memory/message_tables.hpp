// The tables of queues, topics and their messages in memory, with the indexes of the databases (migrations.cpp).
#pragma once

#include <tuple>
#include <vector>

#include "base/result.hpp"
#include "ports/store.hpp"
#include "store/memory/indexed_table.hpp"

namespace baton::store::memory {

template <>
struct PrimaryKey<message::Entity> {
  static std::int64_t of(const message::Entity& row) { return row.entity_id; }
};
template <>
struct PrimaryKey<message::Counters> {
  static std::int64_t of(const message::Counters& row) { return row.entity_id; }
};
template <>
struct PrimaryKey<message::Message> {
  static message::MessageKey of(const message::Message& row) { return row.key(); }
};
template <>
struct PrimaryKey<message::HistoryEntry> {
  static message::HistoryKey of(const message::HistoryEntry& row) { return {row.entity_id, row.message_id}; }
};

struct MessagesDue {
  static bool has(const message::Message& row) { return row.due_at.has_value(); }
  static auto key(const message::Message& row) { return std::tie(row.entity_id, row.lane, row.due_at, row.sequence_number); }
};
struct MessagesLocked {
  static bool has(const message::Message& row) { return row.locked_until.has_value(); }
  static auto key(const message::Message& row) { return std::tie(row.entity_id, row.lane, row.sequence_number); }
};
struct MessagesWaiting {
  static bool has(const message::Message& row) { return !row.locked_until; }
  static auto key(const message::Message& row) { return std::tie(row.entity_id, row.lane, row.sequence_number); }
};
struct HistoryOldest {
  static auto key(const message::HistoryEntry& row) { return std::tie(row.entity_id, row.forget_at, row.message_id); }
};

struct MessageTables {
  IndexedTable<message::Entity> entities;
  IndexedTable<message::Counters> counters;
  IndexedTable<message::Message, MessagesDue, MessagesLocked, MessagesWaiting> messages;
  IndexedTable<message::HistoryEntry, HistoryOldest> history;

  [[nodiscard]] message::Loaded load(const message::LoadRequest& request) const;
  [[nodiscard]] std::vector<WaitingTask> waiting(const message::QueueOfMessages& queue, std::size_t limit, Time now) const;
  // All of it may be written: Code::conflict says which row is in the way.
  [[nodiscard]] Result<> check(const message::Writes& writes) const;
  void apply(const message::Writes& writes);  // that was checked
};

}  // namespace baton::store::memory
