#include "store/journal/message_backlog.hpp"

#include <algorithm>

#include "base/mutant.hpp"
#include "store/tables.hpp"

namespace baton::store {
namespace {

constexpr auto id_of_entity = [](const auto& row) { return row.entity_id; };
constexpr auto key_of_message = [](const message::Message& row) { return row.key(); };

// A key that is new may be there only if the same commit deletes it first.
template <class Key, class Row>
bool has_any_live(const RowBacklog<Key, Row>& older, const RowBacklog<Key, Row>& newer, const std::vector<Row>& rows_new,
                  const std::vector<Key>& gone, auto& key_of) {
  return std::ranges::any_of(rows_new, [&](const Row& row) {
    const Key key = key_of(row);
    return last_word(older, newer, key).row != nullptr && std::ranges::find(gone, key) == gone.end();
  });
}

// One that is to be changed was deleted before, and did not come again.
template <class Key, class Row>
bool has_any_gone(const RowBacklog<Key, Row>& older, const RowBacklog<Key, Row>& newer, const std::vector<Row>& rows_changed, auto& key_of) {
  return std::ranges::any_of(rows_changed, [&](const Row& row) { return last_word(older, newer, key_of(row)).fate == Fate::gone; });
}

}  // namespace

void MessageBacklog::add(message::Writes w) {
  for (const message::MessageKey& key : w.messages_gone)
    if (!MUTANT(backlog_keeps_message)) count(key, messages_.add_gone(key, key_of_message));
  for (message::Message& row : w.messages_new) {
    const message::MessageKey key = row.key();
    count(key, messages_.add_new(key, std::move(row)));
  }
  for (message::Message& row : w.messages_changed) {
    if (MUTANT(backlog_loses_lock)) break;
    const message::MessageKey key = row.key();
    count(key, messages_.add_changed(key, std::move(row)));
  }
  for (const std::int64_t id : w.entities_gone) {
    entities_.add_gone(id, id_of_entity);
    counters_.add_gone(id, id_of_entity);
  }
  for (message::Entity& row : w.entities_new) entities_.add_new(row.entity_id, std::move(row));
  for (message::Entity& row : w.entities_changed) entities_.add_changed(row.entity_id, std::move(row));
  for (message::Counters& row : w.counters_new) counters_.add_new(row.entity_id, std::move(row));
  for (message::Counters& row : w.counters_changed) counters_.add_changed(row.entity_id, std::move(row));
  // Whether the tables have an entry is not known here, so the last word counts.
  for (message::HistoryKey& key : w.history_gone) history_.insert_or_assign(std::move(key), std::nullopt);
  for (message::HistoryEntry& row : w.history_new)
    history_.insert_or_assign({row.entity_id, std::move(row.message_id)}, row.forget_at);
}

void MessageBacklog::finish_rows() {
  rows_->messages_gone = messages_.gone();
  rows_->entities_gone = entities_.gone();
  rows_->history_new.clear();
  rows_->history_gone.clear();
  for (const auto& [key, forget_at] : history_) {
    if (forget_at)
      rows_->history_new.push_back({key.entity_id, key.message_id, *forget_at});
    else
      rows_->history_gone.push_back(key);
  }
}

void MessageBacklog::count(const message::MessageKey& key, FateChange change) {
  const auto is_counted = [](Fate fate) { return fate != Fate::none && fate != Fate::made; };
  if (change.before == change.after || (!is_counted(change.before) && !is_counted(change.after))) return;
  Hidden& hidden = hidden_[{key.entity_id, key.lane}];
  const auto count_of = [&](Fate fate) -> std::size_t& { return fate == Fate::changed ? hidden.changed : hidden.gone; };
  if (is_counted(change.after)) ++count_of(change.after);
  if (is_counted(change.before)) --count_of(change.before);
}

MessageBacklog::Hidden MessageBacklog::hidden(std::int64_t entity_id, message::Lane lane) const {
  const auto found = hidden_.find({entity_id, lane});
  return found == hidden_.end() ? Hidden{} : found->second;
}

bool is_in_the_way(const MessageBacklog& older, const MessageBacklog& newer, const message::Writes& w) {
  const auto& entities = newer.entities();
  const auto& counters = newer.counters();
  return has_any_live(older.messages(), newer.messages(), w.messages_new, w.messages_gone, key_of_message) ||
         has_any_gone(older.messages(), newer.messages(), w.messages_changed, key_of_message) ||
         has_any_live(older.entities(), entities, w.entities_new, w.entities_gone, id_of_entity) ||
         has_any_gone(older.entities(), entities, w.entities_changed, id_of_entity) ||
         has_any_live(older.counters(), counters, w.counters_new, w.entities_gone, id_of_entity) ||
         has_any_gone(older.counters(), counters, w.counters_changed, id_of_entity);
}

}  // namespace baton::store
