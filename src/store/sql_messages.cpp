#include "store/sql_messages.hpp"

#include <algorithm>

namespace baton::store {
namespace {

constexpr ColumnSet light_message = columns_without_bytes<message::Message>();

template <class Row>
Statement select_all(std::string_view condition = "") {
  return {"SELECT " + names<Row>(Columns::all) + " FROM " + table_name<Row>() + std::string(condition) + " ORDER BY " +
              names<Row>(Columns::keys),
          {}};
}

Statement page_statement(auto columns) {
  return {"SELECT " + names<message::Message>(columns) +
              " FROM bus_messages WHERE entity_id=?1 AND lane=?2 AND sequence_number>=?3 ORDER BY sequence_number LIMIT ?4",
          {Type::integer, Type::text, Type::integer, Type::integer}};
}

// The largest that both databases take.
Value limit_value(std::size_t limit) {
  return static_cast<std::int64_t>(std::min(limit, static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())));
}

void fill_keys(const message::MessageKey& key, std::span<Value> to) {
  to[0] = key.entity_id, to[1] = encode(key.lane), to[2] = key.sequence_number;
}
void fill_keys(const message::HistoryKey& key, std::span<Value> to) {
  to[0] = key.entity_id, to[1] = encode(key.message_id);
}
void fill_keys(std::int64_t entity_id, std::span<Value> to) { to[0] = entity_id; }

// The keys must outlive the run.
template <class Key>
void add_for_keys(std::vector<Query>& queries, const Statement& statement, const std::vector<Key>& keys,
                  std::function<Result<>(const RowView&)> take = {}) {
  if (keys.empty()) return;
  const auto fill_one = [&keys](std::size_t i, std::span<Value> to) { fill_keys(keys[i], to); };
  queries.push_back({&statement, keys.size(), fill_one, std::move(take), {}});
}

// Each once, in order: an answer holds no row twice, and neighbours are read together.
template <class Key>
std::vector<Key> ordered_keys(std::vector<Key> keys) {
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  return keys;
}

}  // namespace

SqlMessages::SqlMessages(Dialect d)
    : entity_insert_(insert_statement<message::Entity>(d)),
      entity_update_(update_statement<message::Entity>(d)),
      entity_delete_(delete_statement<message::Entity>(d)),
      entity_select_(select_all<message::Entity>()),
      counters_insert_(insert_statement<message::Counters>(d)),
      counters_update_(update_statement<message::Counters>(d)),
      counters_delete_(delete_statement<message::Counters>(d)),
      counters_select_(select_all<message::Counters>()),
      insert_(insert_statement<message::Message>(d)),
      update_(update_statement<message::Message>(d)),
      delete_(delete_statement<message::Message>(d)),
      select_(select_statement<message::Message>(d)),
      select_light_(select_statement<message::Message>(d, light_message)),
      locked_{"SELECT " + names<message::Message>(light_message) +
                  " FROM bus_messages WHERE locked_until IS NOT NULL ORDER BY entity_id,lane,sequence_number",
              {}},
      page_(page_statement(Columns::all)),
      page_without_bytes_(page_statement(light_message)),
      agenda_{"SELECT " + names<message::Message>(light_message) +
                  " FROM bus_messages WHERE entity_id=?1 AND lane=?2 AND due_at IS NOT NULL ORDER BY due_at,sequence_number LIMIT ?3",
              {Type::integer, Type::text, Type::integer}},
      waiting_{"SELECT sequence_number FROM bus_messages WHERE entity_id=?1 AND lane=?2 AND locked_until IS NULL"
               " AND (due_at IS NULL OR due_at>?4) ORDER BY sequence_number LIMIT ?3",
               {Type::integer, Type::text, Type::integer, Type::time}},
      history_upsert_(upsert_statement<message::HistoryEntry>(d)),
      history_delete_(delete_statement<message::HistoryEntry>(d)),
      history_select_(select_statement<message::HistoryEntry>(d)),
      history_oldest_{"SELECT " + names<message::HistoryEntry>(Columns::all) +
                          " FROM bus_history WHERE entity_id=?1 ORDER BY forget_at,message_id LIMIT ?2",
                      {Type::integer, Type::integer}} {}

void SqlMessages::add_writes(std::vector<Query>& queries, const message::Writes& w) const {
  add_for_keys(queries, delete_, w.messages_gone);
  add_for_keys(queries, history_delete_, w.history_gone);
  add_for_keys(queries, entity_delete_, w.entities_gone);
  add_for_keys(queries, counters_delete_, w.entities_gone);
  add_write(queries, entity_insert_, w.entities_new, Columns::all);
  add_update(queries, entity_update_, w.entities_changed);
  add_write(queries, counters_insert_, w.counters_new, Columns::all);
  add_update(queries, counters_update_, w.counters_changed);
  add_write(queries, insert_, w.messages_new, Columns::all);
  add_update(queries, update_, w.messages_changed);
  add_write(queries, history_upsert_, w.history_new, Columns::all);
}

Result<message::Loaded> SqlMessages::load(const message::LoadRequest& request, const Run& run) const {
  const auto messages = ordered_keys(request.messages), light = ordered_keys(request.messages_light);
  const auto history = ordered_keys(request.history);
  message::Loaded loaded;
  loaded.pages.resize(request.pages.size());
  loaded.agendas.resize(request.agendas.size());
  loaded.history_oldest.resize(request.history_oldest.size());
  std::vector<Query> queries;
  if (request.entities) {
    queries.push_back({&entity_select_, 1, {}, collect(loaded.entities), {}});
    queries.push_back({&counters_select_, 1, {}, collect(loaded.counters), {}});
  }
  if (request.locked) queries.push_back({&locked_, 1, {}, collect(loaded.locked, light_message), {}});
  add_for_keys(queries, select_, messages, collect(loaded.messages));
  add_for_keys(queries, select_light_, light, collect(loaded.messages_light, light_message));
  add_for_keys(queries, history_select_, history, collect(loaded.history));
  for (std::size_t i = 0; i < request.pages.size(); ++i) {
    const auto& [entity_id, lane, first, limit, whole] = request.pages[i];
    const auto values = constant({entity_id, encode(lane), first, limit_value(limit)});
    if (whole)
      queries.push_back({&page_, 1, values, collect(loaded.pages[i]), {}});
    else
      queries.push_back({&page_without_bytes_, 1, values, collect(loaded.pages[i], light_message), {}});
  }
  for (std::size_t i = 0; i < request.agendas.size(); ++i) {
    const auto& [entity_id, lane, limit] = request.agendas[i];
    queries.push_back({&agenda_, 1, constant({entity_id, encode(lane), limit_value(limit)}), collect(loaded.agendas[i], light_message), {}});
  }
  for (std::size_t i = 0; i < request.history_oldest.size(); ++i) {
    const auto& [entity_id, limit] = request.history_oldest[i];
    queries.push_back({&history_oldest_, 1, constant({entity_id, limit_value(limit)}), collect(loaded.history_oldest[i]), {}});
  }
  if (!queries.empty()) TRY(run(queries));
  return loaded;
}

Query SqlMessages::waiting(const message::QueueOfMessages& queue, std::size_t limit, Time now, std::vector<WaitingTask>& found) const {
  const auto take = [queue, &found](const RowView& row) -> Result<> {
    found.push_back(waiting_task(message::MessageKey{queue.entity_id, queue.lane, row.integer(0)}));
    return {};
  };
  return {&waiting_, 1, constant({queue.entity_id, encode(queue.lane), limit_value(limit), now}), take, {}};
}

std::vector<Statement> SqlMessages::statements() const {
  return {update_, delete_, select_, select_light_, locked_, page_, page_without_bytes_, agenda_, waiting_, counters_update_, history_delete_,
          history_select_, history_oldest_};
}

}  // namespace baton::store
