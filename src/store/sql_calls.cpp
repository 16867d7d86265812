#include "store/sql_calls.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/call/call.hpp"

namespace baton::store {

namespace {

using call::CallKey;

// An insert that overwrites all of a row that is there.
Statement replace_statement(Dialect dialect) {
  Statement s = insert_statement<call::Call>(dialect);
  s.sql += " ON CONFLICT(" + names<call::Call>(Columns::keys) + ") DO UPDATE SET ";
  bool first = true;
  for_each_column<call::Call>([&](const auto& column) {
    if (column.role == ColumnRole::key) return;
    if (!std::exchange(first, false)) s.sql += ',';
    s.sql.append(column.name).append("=excluded.").append(column.name);
  });
  return s;
}

// A tag of a call whose row is written anew may be there already.
Statement tag_statement(Dialect dialect) {
  Statement s = insert_statement<call::Tag>(dialect);
  s.sql += " ON CONFLICT DO NOTHING";
  return s;
}

std::vector<Match> stream_key() { return {{"tenant_id", Type::text}, {"service_call_id", Type::text}}; }

}  // namespace

std::string columns_at_head(const std::string& event) {
  return "SELECT " + names<call::EventRow>(Columns::all, event + ".") + "," + names<call::Call>(Columns::all, "t.");
}

std::string select_row_at_head() {
  return columns_at_head("h") +
         " FROM service_call_events AS h LEFT JOIN service_calls AS t ON t.tenant_id=?1 AND "
         "t.service_call_id=?2"
         " WHERE h.tenant_id=?1 AND h.service_call_id=?2 ORDER BY h.version DESC LIMIT 1";
}

Statement rows_at_head_statement(Dialect dialect) {
  Statement s{select_row_at_head(), {Type::text, Type::text}, true};
  if (dialect == Dialect::postgres)
    s.sql = columns_at_head("h") + " FROM " + key_sets(stream_key()) +
            " CROSS JOIN LATERAL (SELECT * FROM service_call_events AS e WHERE e.tenant_id=k.tenant_id AND"
            " e.service_call_id=k.service_call_id ORDER BY e.version DESC LIMIT 1) AS h"
            " LEFT JOIN LATERAL (SELECT * FROM service_calls AS c WHERE c.tenant_id=k.tenant_id AND"
            " c.service_call_id=k.service_call_id OFFSET 0) AS t ON true";
  return s;
}

Result<RowAtHead> read_row_at_head(const RowView& view) {
  constexpr int row_at = std::tuple_size_v<decltype(Table<call::EventRow>::columns)>;
  call::EventRow head;
  TRY(read_into(head, view, Columns::all));
  RowAtHead found{.key = {head.tenant_id, head.service_call_id}, .row = {}};
  if (view.is_null(row_at)) return found;
  if (!read_into(found.row.emplace(), view, Columns::all, row_at)) found.row.reset();
  found.is_snapshot = found.row && call::is_snapshot(*found.row, head);
  return found;
}

Result<call::Call> fold_stream(const std::vector<call::EventRow>& events) {
  auto folded = call::fold(events);
  if (!folded)
    return fail(Code::invalid, "the events of service call " + events.front().service_call_id.value +
                                   " of tenant " + events.front().tenant_id.value + " cannot be folded");
  return *std::move(folded);
}

SqlCalls::SqlCalls(Dialect d)
    : call_insert_(insert_statement<call::Call>(d)),
      // One that is gone is brought back by whoever looks for lost rows (caller/dispatch.hpp).
      call_update_(update_statement<call::Call>(d, live_columns<call::Call>(), Guard::none)),
      call_replace_(replace_statement(d)),
      call_select_(rows_at_head_statement(d)),
      event_insert_(insert_statement<call::EventRow>(d)),
      event_select_(select_by<call::EventRow>(d, Columns::all, stream_key(), "",
                                              "t.tenant_id,t.service_call_id,t.version")),
      request_insert_(insert_statement<call::Request>(d)),
      request_select_(select_statement<call::Request>(d)),
      tag_insert_(tag_statement(d)),
      key_insert_(insert_statement<call::IdempotencyKey>(d)),
      key_select_(select_statement<call::IdempotencyKey>(d)) {}

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

Pair pair_of(const call::CallKey& key) { return {key.tenant.value, key.id.value}; }
Pair pair_of(const std::pair<Tenant, std::string>& key) { return {key.first.value, key.second}; }

// Each key once, in order: an answer holds no row twice, and neighbours are read together.
template <class Key, class Take>
void add_select(std::vector<Query>& queries, const Statement& statement, std::vector<Key> keys, Take&& take) {
  if (keys.empty()) return;
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  const std::size_t count = keys.size();
  const auto fill_pair = [keys = std::move(keys)](std::size_t i, std::span<Value> to) {
    const Pair pair = pair_of(keys[i]);
    to[0] = pair.first, to[1] = pair.second;
  };
  queries.push_back({&statement, count, fill_pair, std::forward<Take>(take), {}});
}

}  // namespace

void SqlCalls::add_writes(std::vector<Query>& queries, const call::Writes& w) const {
  add_write(queries, event_insert_, w.events_new, Columns::all);
  add_write(queries, call_insert_, w.calls_new, Columns::all);
  add_update(queries, call_update_, w.calls_changed);
  add_write(queries, call_replace_, w.calls_rebuilt, Columns::all);
  add_write(queries, request_insert_, w.requests_new, Columns::all);
  add_write(queries, tag_insert_, w.tags_new, Columns::all);
  add_write(queries, key_insert_, w.keys_new, Columns::all);
}

void CallLoad::add_rows(std::vector<Query>& queries) {
  std::vector<CallKey> keys = request_.calls;
  keys.insert(keys.end(), request_.streams.begin(), request_.streams.end());
  add_select(queries, sql_.call_select_, std::move(keys), [this](const RowView& view) -> Result<> {
    TRY_ASSIGN(auto row, read_row_at_head(view));
    rows_.push_back(std::move(row));
    return {};
  });
  add_select(queries, sql_.request_select_, request_.requests, collect(loaded_.requests));
  add_select(queries, sql_.key_select_, request_.idempotency_keys, collect(loaded_.idempotency_keys));
}

void CallLoad::add_streams(std::vector<Query>& queries) {
  const std::set<CallKey> asked(request_.streams.begin(), request_.streams.end());
  std::vector<CallKey> keys;
  for (RowAtHead& each : rows_) {
    if (each.is_snapshot && !asked.contains(each.key)) {
      loaded_.calls.push_back(*std::move(each.row));
    } else {
      keys.push_back(each.key);
      to_fold_.emplace(each.key, std::move(each.row));
    }
  }
  add_select(queries, sql_.event_select_, std::move(keys), collect(events_));
}

Result<call::Loaded> CallLoad::finish() {
  std::map<CallKey, std::vector<call::EventRow>> streams;
  for (call::EventRow& event : events_)
    streams[{event.tenant_id, event.service_call_id}].push_back(std::move(event));
  for (const auto& [key, events] : streams) {
    TRY_ASSIGN(auto folded, fold_stream(events));
    if (to_fold_.at(key) != folded) loaded_.without_row.push_back(key);
    loaded_.calls.push_back(std::move(folded));
  }
  return std::move(loaded_);
}

}  // namespace baton::store
