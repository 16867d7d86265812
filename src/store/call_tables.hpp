// The tables of service calls.
#pragma once

#include "core/call/rows.hpp"
#include "store/columns.hpp"

namespace baton::store {

template <>
struct Table<call::Call> {
  using Row = call::Call;
  static constexpr std::string_view name = "service_calls";
  static constexpr auto columns = std::tuple{
      key("tenant_id", &Row::tenant_id),
      key("service_call_id", &Row::service_call_id),
      live("version", &Row::version),
      fixed("name", &Row::name),
      live("status", &Row::status),
      live("due_at", &Row::due_at),
      fixed("submitted_at", &Row::submitted_at),
      live("started_at", &Row::started_at),
      live("finished_at", &Row::finished_at),
      live("started_by", &Row::started_by),
      fixed("correlation_id", &Row::correlation_id),
      fixed("origin", &Row::origin),
      fixed("repeat_of", &Row::repeat_of),
      fixed("tags", &Row::tags),
      fixed("request_spec", &Row::request_spec),
      live("response_meta", &Row::response_meta),
      live("error_meta", &Row::error_meta),
  };
};

template <>
struct Table<call::EventRow> {
  using Row = call::EventRow;
  static constexpr std::string_view name = "service_call_events";
  static constexpr auto columns = std::tuple{
      key("tenant_id", &Row::tenant_id),
      key("service_call_id", &Row::service_call_id),
      key("version", &Row::version),
      fixed("event_type", &Row::event_type),
      fixed("occurred_at", &Row::occurred_at),
      fixed("correlation_id", &Row::correlation_id),
      fixed("causation_id", &Row::causation_id),
      fixed("data", &Row::data),
  };
};

template <>
struct Table<call::Request> {
  using Row = call::Request;
  static constexpr std::string_view name = "service_call_requests";
  static constexpr auto columns = std::tuple{
      key("tenant_id", &Row::tenant_id),
      key("service_call_id", &Row::service_call_id),
      fixed("method", &Row::method),
      fixed("url", &Row::url),
      fixed("headers", &Row::headers),
      fixed("timeout_ms", &Row::timeout_ms),
      fixed("redirects_max", &Row::redirects_max),
      fixed("probe", &Row::probe),
      fixed("body_is_base64", &Row::body_is_base64),
      fixed("body", &Row::body),
  };
};

template <>
struct Table<call::IdempotencyKey> {
  using Row = call::IdempotencyKey;
  static constexpr std::string_view name = "service_call_keys";
  static constexpr auto columns = std::tuple{
      key("tenant_id", &Row::tenant_id),
      key("idempotency_key", &Row::idempotency_key),
      fixed("service_call_id", &Row::service_call_id),
      fixed("request_hash", &Row::request_hash),
  };
};

template <>
struct Table<call::Tag> {
  using Row = call::Tag;
  static constexpr std::string_view name = "service_call_tags";
  static constexpr auto columns = std::tuple{key("tenant_id", &Row::tenant_id), key("tag", &Row::tag),
                                             key("service_call_id", &Row::service_call_id)};
};

}  // namespace baton::store
