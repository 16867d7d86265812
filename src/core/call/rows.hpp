// The stored shape of service calls: one struct per table, one field per column. The events are the truth;
// everything else is made from them, but for requests, which are kept apart because events are for everybody
// to read. A row of service_calls is a snapshot of its stream: lists are made from it, deciding may begin with
// it, and it may be lost at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace baton::call {

using CallId = Id<struct CallTag>;

struct CallKey {
  Tenant tenant;
  CallId id;
  friend auto operator<=>(const CallKey&, const CallKey&) = default;
};

enum class Status { scheduled, running, succeeded, failed };
enum class EventType { submitted, scheduled, started, succeeded, failed };

// Scheduled, ServiceCallSubmitted, …: the words of the tables and of the API.
[[nodiscard]] std::string_view name(Status status);
[[nodiscard]] std::string_view name(EventType type);
[[nodiscard]] std::optional<Status> status(std::string_view name);
[[nodiscard]] std::optional<EventType> event_type(std::string_view name);
[[nodiscard]] constexpr bool is_terminal(Status status) { return status >= Status::succeeded; }

// service_calls, key (tenant_id, service_call_id): the fold of the events of one stream, up to `version`.
struct Call {
  Tenant tenant_id;
  CallId service_call_id;
  std::int64_t version = 0;  // of the last event
  std::string name;
  Status status = Status::scheduled;
  Time due_at{};
  Time submitted_at{};
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  Json request_spec;  // without secrets and without the body
  OptionalJson response_meta;
  OptionalJson error_meta;
  std::string tags = "[]";                // a JSON array of strings, sorted
  std::string correlation_id;             // of all its events
  std::string origin;                     // scheme, host and port that it goes to
  std::optional<std::string> repeat_of;   // the call that this one repeats
  std::optional<std::string> started_by;  // the causation of its start
  [[nodiscard]] CallKey key() const { return {tenant_id, service_call_id}; }
  friend bool operator==(const Call&, const Call&) = default;
};

struct EventKey {
  CallKey call;
  std::int64_t version = 0;
};

// service_call_events, key (tenant_id, service_call_id, version).
struct EventRow {
  Tenant tenant_id;
  CallId service_call_id;
  std::int64_t version = 0;  // 1, 2, …
  EventType event_type{};
  Time occurred_at{};
  std::string correlation_id;  // the same in all events of a call
  std::string causation_id;    // of the command or request that led to this
  Json data;
  friend bool operator==(const EventRow&, const EventRow&) = default;
};

// service_call_requests, key (tenant_id, service_call_id): what is sent. Never changes.
struct Request {
  Tenant tenant_id;
  CallId service_call_id;
  std::string method;
  std::string url;
  std::string headers = "[]";  // a JSON array of [name, value]
  std::string body;
  std::int32_t body_is_base64 = 0;  // 1: what is sent is not text
  std::int64_t timeout_ms = 30'000;
  std::int32_t redirects_max = 0;
  OptionalJson
      probe;  // {method, url, headers}: a request that tells, after a crash, whether the call was received
};

// service_call_keys, key (tenant_id, idempotency_key).
struct IdempotencyKey {
  Tenant tenant_id;
  std::string idempotency_key;
  CallId service_call_id;
  std::string request_hash;
};

// service_call_tags, key (tenant_id, tag, service_call_id).
struct Tag {
  Tenant tenant_id;
  std::string tag;
  CallId service_call_id;
};

// --- what the writer loads and writes

struct LoadRequest {  // keys that do not exist are absent from the answer; duplicates are allowed
  std::vector<CallKey> calls;
  std::vector<CallKey> streams;  // calls too, folded from their first event whatever their rows say
  std::vector<CallKey> requests;
  std::vector<std::pair<Tenant, std::string>> idempotency_keys;
};
// A call is what its stream comes to: its row where that is a snapshot of it (call::is_snapshot), otherwise the
// fold of its events. No events, no call. A stream that cannot be folded fails the load with Code::invalid.
struct Loaded {
  std::vector<Call> calls;
  std::vector<CallKey> without_row;  // of these, those whose rows are missing, behind or damaged
  std::vector<Request> requests;
  std::vector<IdempotencyKey> idempotency_keys;
};

// Each row once. An event whose version is there already does not fit. A changed call without a row is left without one
// until somebody looks for lost rows; a rebuilt one is written whole, whether it has a row or not; a tag may be there.
struct Writes {
  std::vector<Call> calls_new, calls_changed, calls_rebuilt;
  std::vector<EventRow> events_new;
  std::vector<Request> requests_new;
  std::vector<Tag> tags_new;
  std::vector<IdempotencyKey> keys_new;
  [[nodiscard]] bool empty() const { return events_new.empty() && calls_rebuilt.empty(); }
};

}  // namespace baton::call
