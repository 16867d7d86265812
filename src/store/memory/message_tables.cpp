#include "store/memory/message_tables.hpp"

#include <set>

#include "store/tables.hpp"

namespace baton::store::memory {
namespace {

message::Message light_copy(const message::Message& row) {
  message::Message copy;
  for_each_column<message::Message>([&](const auto& column) {
    if constexpr (!std::is_same_v<std::decay_t<decltype(row.*column.member)>, Bytes>) copy.*column.member = row.*column.member;
  });
  return copy;
}

// Each key once; those that do not exist are absent.
template <class Key, class Row>
void take_rows(const auto& table, const std::vector<Key>& keys, std::vector<Row>& out) {
  for (const Key& key : std::set<Key>(keys.begin(), keys.end()))
    if (const Row* row = table.get(key)) out.push_back(*row);
}

template <class Row>
std::unexpected<Error> conflict_in(const char* what) {
  return fail(Code::conflict, "table " + std::string(Table<Row>::name) + what);
}

// New rows are in nobody's way once those that go have gone; changed ones are there.
template <class Row, class Key>
Result<> check_table(const auto& table, const std::vector<Key>& gone, const std::vector<Row>& rows_new,
                     const std::vector<Row>& rows_changed) {
  std::set<Key> going, seen;
  if (!rows_new.empty() || !rows_changed.empty()) going.insert(gone.begin(), gone.end());
  const auto is_there = [&](const Key& key) { return table.contains(key) && !going.contains(key); };
  for (const Row& row : rows_new) {
    const Key key = PrimaryKey<Row>::of(row);
    if (is_there(key) || !seen.insert(key).second) return conflict_in<Row>(" has a row already that was to be inserted");
  }
  for (const Row& row : rows_changed) {
    const Key key = PrimaryKey<Row>::of(row);
    if (!is_there(key) && !seen.contains(key)) return conflict_in<Row>(" lacks a row that was to be updated");
  }
  return {};
}

template <class Row, class Key>
void apply_rows(auto& table, const std::vector<Key>& gone, const std::vector<Row>& rows_new, const std::vector<Row>& rows_changed) {
  for (const Key& key : gone) table.erase(key);
  for (const Row& row : rows_new) table.insert(row);
  for (const Row& row : rows_changed) table.change(PrimaryKey<Row>::of(row), [&](Row& stored) { copy_live(row, stored); });
}

}  // namespace

message::Loaded MessageTables::load(const message::LoadRequest& request) const {
  message::Loaded loaded;
  if (request.entities) {
    for (const auto& [id, row] : entities) loaded.entities.push_back(row);
    for (const auto& [id, row] : counters) loaded.counters.push_back(row);
  }
  if (request.locked)
    for (const message::Message* row : messages.with<MessagesLocked>()) loaded.locked.push_back(light_copy(*row));
  take_rows(messages, request.messages, loaded.messages);
  for (const message::MessageKey& key : std::set(request.messages_light.begin(), request.messages_light.end()))
    if (const message::Message* row = messages.get(key)) loaded.messages_light.push_back(light_copy(*row));
  take_rows(history, request.history, loaded.history);
  for (const auto& [entity_id, lane, first, limit, whole] : request.pages) {
    auto& page = loaded.pages.emplace_back();
    for (auto at = messages.lower_bound({entity_id, lane, first}); at != messages.end() && page.size() < limit; ++at) {
      if (at->first.entity_id != entity_id || at->first.lane != lane) break;
      page.push_back(whole ? at->second : light_copy(at->second));
    }
  }
  for (const auto& [entity_id, lane, limit] : request.agendas) {
    auto& agenda = loaded.agendas.emplace_back();
    for (const message::Message* row : messages.with<MessagesDue>(entity_id, lane) | at_most(limit)) agenda.push_back(light_copy(*row));
  }
  for (const auto& [entity_id, limit] : request.history_oldest) {
    auto& oldest = loaded.history_oldest.emplace_back();
    for (const message::HistoryEntry* row : history.with<HistoryOldest>(entity_id) | at_most(limit)) oldest.push_back(*row);
  }
  return loaded;
}

std::vector<WaitingTask> MessageTables::waiting(const message::QueueOfMessages& queue, std::size_t limit, Time now) const {
  std::vector<WaitingTask> found;
  for (const message::Message* row : messages.with<MessagesWaiting>(queue.entity_id, queue.lane)) {
    if (found.size() >= limit) break;
    if (!row->due_at || *row->due_at > now) found.push_back(waiting_task(row->key()));
  }
  return found;
}

Result<> MessageTables::check(const message::Writes& w) const {
  TRY(check_table(entities, w.entities_gone, w.entities_new, w.entities_changed));
  TRY(check_table(counters, w.entities_gone, w.counters_new, w.counters_changed));
  return check_table(messages, w.messages_gone, w.messages_new, w.messages_changed);
}

void MessageTables::apply(const message::Writes& w) {
  apply_rows(entities, w.entities_gone, w.entities_new, w.entities_changed);
  apply_rows(counters, w.entities_gone, w.counters_new, w.counters_changed);
  apply_rows(messages, w.messages_gone, w.messages_new, w.messages_changed);
  for (const message::HistoryKey& key : w.history_gone) history.erase(key);
  for (const message::HistoryEntry& row : w.history_new)
    if (!history.insert(row))
      history.change({row.entity_id, row.message_id}, [&](message::HistoryEntry& stored) { copy_live(row, stored); });
}

}  // namespace baton::store::memory
