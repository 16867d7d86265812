// The tables of service calls in memory, with the indexes of the databases (migrations.cpp).
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/call/rows.hpp"
#include "store/memory/indexed_table.hpp"

namespace baton::store::memory {

template <>
struct PrimaryKey<call::Call> {
  static call::CallKey of(const call::Call& row) { return row.key(); }
};
template <>
struct PrimaryKey<call::EventRow> {
  static std::pair<call::CallKey, std::int64_t> of(const call::EventRow& row) {
    return {{row.tenant_id, row.service_call_id}, row.version};
  }
};
template <>
struct PrimaryKey<call::Request> {
  static call::CallKey of(const call::Request& row) { return {row.tenant_id, row.service_call_id}; }
};
template <>
struct PrimaryKey<call::IdempotencyKey> {
  static std::pair<Tenant, std::string> of(const call::IdempotencyKey& row) {
    return {row.tenant_id, row.idempotency_key};
  }
};
template <>
struct PrimaryKey<call::Tag> {
  static std::tuple<Tenant, std::string, call::CallId> of(const call::Tag& row) {
    return {row.tenant_id, row.tag, row.service_call_id};
  }
};

// The calls to a destination in the order of time.
struct CallsToDestination {
  static bool has(const call::Call& row) { return row.status == call::Status::scheduled; }
  static auto key(const call::Call& row) {
    return std::tie(row.tenant_id, row.origin, row.due_at, row.service_call_id);
  }
};
struct CallsByTime {
  static bool has(const call::Call& row) { return row.status == call::Status::scheduled; }
  static auto key(const call::Call& row) {
    return std::tie(row.due_at, row.tenant_id, row.origin, row.service_call_id);
  }
};
struct CallsByDue {
  static auto key(const call::Call& row) {
    return std::tie(row.tenant_id, row.due_at, row.service_call_id);
  }
};
struct CallsRunning {
  static bool has(const call::Call& row) { return row.status == call::Status::running; }
  static auto key(const call::Call& row) { return std::tie(row.tenant_id, row.service_call_id); }
};
struct CallsByStatus {
  static auto key(const call::Call& row) { return std::tie(row.tenant_id, row.status, row.service_call_id); }
};
struct CallsByName {
  static auto key(const call::Call& row) { return std::tie(row.tenant_id, row.name, row.service_call_id); }
};
struct CallTables {
  IndexedTable<call::Call, CallsToDestination, CallsByTime, CallsByDue, CallsRunning, CallsByStatus,
               CallsByName>
      calls;
  IndexedTable<call::EventRow> call_events;
  IndexedTable<call::Request> call_requests;
  IndexedTable<call::IdempotencyKey> call_keys;
  IndexedTable<call::Tag> call_tags;

  [[nodiscard]] std::vector<call::EventRow> stream(const call::CallKey& key) const;
  [[nodiscard]] Result<call::Loaded> load(const call::LoadRequest& request) const;
};

}  // namespace baton::store::memory
