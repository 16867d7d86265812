#include "store/sql_calls.hpp"

#include <algorithm>

namespace baton::store {

SqlCalls::SqlCalls(Dialect d)
    : call_insert_(insert_statement<call::Call>(d)),
      call_update_(update_statement<call::Call>(d)),
      call_select_(select_statement<call::Call>(d)),
      event_insert_(insert_statement<call::EventRow>(d)),
      request_insert_(insert_statement<call::Request>(d)),
      request_select_(select_statement<call::Request>(d)),
      tag_insert_(insert_statement<call::Tag>(d)),
      key_insert_(insert_statement<call::IdempotencyKey>(d)),
      key_select_(select_statement<call::IdempotencyKey>(d)) {}

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

Pair pair_of(const call::CallKey& key) { return {key.tenant.value, key.id.value}; }
Pair pair_of(const std::pair<Tenant, std::string>& key) { return {key.first.value, key.second}; }

// Each key once, in order: an answer holds no row twice, and neighbours are read together.
template <class Key, class Row>
void add_select(std::vector<Call>& calls, const Statement& statement, const std::vector<Key>& keys,
                std::vector<Row>& out) {
  if (keys.empty()) return;
  std::vector<Pair> pairs;
  for (const Key& key : keys) pairs.push_back(pair_of(key));
  std::ranges::sort(pairs);
  const auto rest = std::ranges::unique(pairs);
  pairs.erase(rest.begin(), rest.end());
  const std::size_t count = pairs.size();
  const auto fill_pair = [pairs = std::move(pairs)](std::size_t i, std::span<Value> to) {
    to[0] = pairs[i].first, to[1] = pairs[i].second;
  };
  calls.push_back({&statement, count, fill_pair, collect(out), {}});
}

}  // namespace

void SqlCalls::add_load(std::vector<Call>& calls, const call::LoadRequest& request, call::Loaded& out) const {
  add_select(calls, call_select_, request.calls, out.calls);
  add_select(calls, request_select_, request.requests, out.requests);
  add_select(calls, key_select_, request.idempotency_keys, out.idempotency_keys);
}

void SqlCalls::add_writes(std::vector<Call>& calls, const call::Writes& w) const {
  add_write(calls, event_insert_, w.events_new, Columns::all);
  add_write(calls, call_insert_, w.calls_new, Columns::all);
  add_update(calls, call_update_, w.calls_changed);
  add_write(calls, request_insert_, w.requests_new, Columns::all);
  add_write(calls, tag_insert_, w.tags_new, Columns::all);
  add_write(calls, key_insert_, w.keys_new, Columns::all);
}

}  // namespace baton::store
