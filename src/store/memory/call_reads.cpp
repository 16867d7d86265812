#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <ranges>

#include "core/call/call.hpp"
#include "store/memory/reads.hpp"

namespace baton::store {

using call::Call;
using call::CallKey;
using memory::at_most;

std::vector<call::EventRow> memory::CallTables::stream(const CallKey& key) const {
  std::vector<call::EventRow> found;
  for (auto at = call_events.lower_bound({key, 0}); at != call_events.end() && at->first.first == key; ++at)
    found.push_back(at->second);
  return found;
}

Result<call::Loaded> memory::CallTables::load(const call::LoadRequest& request) const {
  call::Loaded loaded;
  const std::set streams(request.streams.begin(), request.streams.end());
  std::set keys(request.calls.begin(), request.calls.end());
  keys.insert(streams.begin(), streams.end());
  for (const CallKey& key : keys) {
    const auto events = stream(key);
    if (events.empty()) continue;
    const Call* row = calls.get(key);
    if (row != nullptr && !streams.contains(key) && call::is_snapshot(*row, events.back())) {
      loaded.calls.push_back(*row);
      continue;
    }
    auto folded = call::fold(events);
    if (!folded)
      return fail(Code::invalid, "the events of service call " + key.id.value + " cannot be folded");
    if (row == nullptr || *row != *folded) loaded.without_row.push_back(key);
    loaded.calls.push_back(*std::move(folded));
  }
  for (const CallKey& key : std::set(request.requests.begin(), request.requests.end()))
    if (const call::Request* found = call_requests.get(key)) loaded.requests.push_back(*found);
  for (const auto& key : std::set(request.idempotency_keys.begin(), request.idempotency_keys.end()))
    if (const call::IdempotencyKey* found = call_keys.get(key)) loaded.idempotency_keys.push_back(*found);
  return loaded;
}

Result<std::optional<Call>> MemoryReads::service_call(const CallKey& key) {
  const auto reading = lock();
  const memory::CallTables& tables = database_;
  TRY_ASSIGN(auto loaded, tables.load({.calls = {key}}));
  if (loaded.calls.empty()) return std::nullopt;
  return std::move(loaded.calls.front());
}

Result<std::optional<Call>> MemoryReads::call_row(const CallKey& key) {
  const auto reading = lock();
  const Call* found = database_.calls.get(key);
  return found == nullptr ? std::nullopt : std::optional<Call>(*found);
}

Result<CallReads::Streams> MemoryReads::streams_without_row(const call::EventKey& after,
                                                            std::size_t events) {
  const auto reading = lock();
  Streams found;
  auto at = database_.call_events.upper_bound({after.call, after.version});
  for (; at != database_.call_events.end() && events > 0; ++at, --events) {
    const auto& [key, version] = at->first;
    found.last = call::EventKey{key, version};
    const auto next = std::next(at);
    if (next != database_.call_events.end() && next->first.first == key) continue;
    const Call* row = database_.calls.get(key);
    if (row == nullptr || !call::is_snapshot(*row, at->second))
      found.without_row.push_back(key);
  }
  if (events > 0) found.last.reset();
  return found;
}

Result<std::optional<call::Request>> MemoryReads::call_request(const CallKey& key) {
  const auto reading = lock();
  const call::Request* found = database_.call_requests.get(key);
  return found == nullptr ? std::nullopt : std::optional<call::Request>(*found);
}

Result<std::vector<call::EventRow>> MemoryReads::call_events(const CallKey& key) {
  const auto reading = lock();
  return database_.stream(key);
}

// A page of a range of time is read from the index by time, one of a tag from its tags, one of a status or a
// name from theirs, any other from the ids.
Result<std::vector<Call>> MemoryReads::calls(const CallFilter& filter, const std::optional<call::Due>& last,
                                             std::size_t limit) {
  const auto reading = lock();
  std::vector<Call> found;
  const auto has_tag = [&](const Call& row, const std::string& tag) {
    return database_.call_tags.contains({row.tenant_id, tag, row.service_call_id});
  };
  const auto add = [&](const Call& row) {
    const bool fits = (!filter.status || row.status == *filter.status) &&
                      (!filter.name || row.name == *filter.name) &&
                      (!filter.due_until || row.due_at < *filter.due_until) &&
                      std::ranges::all_of(filter.tags, [&](const auto& tag) { return has_tag(row, tag); });
    if (!fits) return true;
    // A row that is damaged does not spoil the page: it is what its events come to.
    auto shown = call::has_readable_documents(row) ? std::optional(row) : call::fold(database_.stream(row.key()));
    if (shown) found.push_back(*std::move(shown));
    return found.size() < limit;
  };
  const auto add_all = [&](auto&& rows) {
    for (const Call* row : rows)
      if (!add(*row)) break;
  };
  if (limit == 0) return found;
  const Tenant& tenant = filter.tenant;
  if (filter.is_by_time()) {
    // The beginning of the range is where the first page begins.
    const call::Due first{filter.due_from.value_or(Time{} - Duration{1}), {}};
    const call::Due from = last ? std::max(*last, first) : first;
    add_all(database_.calls.after<memory::CallsByDue>(std::tie(tenant), from.at, from.id));
    return found;
  }
  const call::CallId below = last ? last->id : call::CallId{"~"};  // ids are hexadecimal
  if (!filter.tags.empty()) {
    const std::string& tag = filter.tags.front();
    const auto begin = database_.call_tags.lower_bound({tenant, tag, {}});
    const auto end = database_.call_tags.lower_bound({tenant, tag, below});
    for (const auto& [key, row] : std::ranges::subrange(begin, end) | std::views::reverse) {
      const Call* of_tag = database_.calls.get({tenant, row.service_call_id});
      if (of_tag != nullptr && !add(*of_tag)) break;
    }
  } else if (filter.name) {
    add_all(database_.calls.before<memory::CallsByName>(std::tie(tenant, *filter.name), below) |
            std::views::reverse);
  } else if (filter.status) {
    add_all(database_.calls.before<memory::CallsByStatus>(std::tie(tenant, *filter.status), below) |
            std::views::reverse);
  } else {
    const auto begin = database_.calls.lower_bound({tenant, {}});
    const auto end = database_.calls.lower_bound({tenant, below});
    for (const auto& [key, row] : std::ranges::subrange(begin, end) | std::views::reverse)
      if (!add(row)) break;
  }
  return found;
}

Result<std::vector<call::Due>> MemoryReads::due_calls(const call::Agenda::Refill& wanted) {
  const auto reading = lock();
  std::vector<call::Due> found;
  const auto rows = database_.calls.after<memory::CallsToDestination>(
      std::tie(wanted.destination.tenant, wanted.destination.origin), wanted.after.at, wanted.after.id);
  for (const Call* row : rows | at_most(wanted.limit)) {
    if (row->due_at > wanted.until) break;
    found.push_back({row->due_at, row->service_call_id});
  }
  return found;
}

Result<std::vector<std::pair<call::Destination, Time>>> MemoryReads::destinations_due(Time after,
                                                                                      Time until) {
  const auto reading = lock();
  std::map<call::Destination, Time> found;
  for (const Call* row : database_.calls.after<memory::CallsByTime>(std::tuple<>{}, after)) {
    if (row->due_at > until) break;
    found.try_emplace({row->tenant_id, row->origin}, row->due_at);  // the first is the earliest
  }
  return std::vector<std::pair<call::Destination, Time>>(found.begin(), found.end());
}

Result<std::vector<CallKey>> MemoryReads::running_calls(const CallKey& after, std::size_t limit) {
  const auto reading = lock();
  std::vector<CallKey> found;
  const auto rows = database_.calls.after<memory::CallsRunning>(std::tuple<>{}, after.tenant, after.id);
  for (const Call* row : rows | at_most(limit)) found.push_back(row->key());
  return found;
}

Result<std::vector<CallKey>> MemoryReads::call_keys(const CallKey& after, std::size_t limit) {
  const auto reading = lock();
  std::set<CallKey> found;
  const auto add = [&](auto at, auto end, auto key_of_row) {
    const CallKey* last = nullptr;
    for (std::size_t n = 0; at != end; ++at) {
      const CallKey& key = key_of_row(at->first);
      if (last != nullptr && *last == key) continue;
      if (n++ == limit) break;
      last = &*found.insert(key).first;
    }
  };
  const auto itself = [](const CallKey& key) -> const CallKey& { return key; };
  add(database_.calls.upper_bound(after), database_.calls.end(), itself);
  add(database_.call_requests.upper_bound(after), database_.call_requests.end(), itself);
  add(database_.call_events.upper_bound({after, std::numeric_limits<std::int64_t>::max()}),
      database_.call_events.end(), [](const auto& key) -> const CallKey& { return key.first; });
  std::vector<CallKey> page;
  std::ranges::copy(found | at_most(limit), std::back_inserter(page));
  return page;
}

Result<bool> MemoryReads::has_tag(const CallKey& key, const std::string& tag) {
  const auto reading = lock();
  return database_.call_tags.contains({key.tenant, tag, key.id});
}

Result<std::int64_t> MemoryReads::count_stray_rows() {
  const auto reading = lock();
  const auto is_stray = [&](const auto& entry) {
    return !database_.calls.contains({entry.second.tenant_id, entry.second.service_call_id});
  };
  return std::ranges::count_if(database_.call_tags, is_stray) +
         std::ranges::count_if(database_.call_keys, is_stray);
}

}  // namespace baton::store
