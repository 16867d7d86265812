// The tables of queues, topics and subscriptions and of their messages.
#pragma once

#include "core/message/rows.hpp"
#include "store/columns.hpp"

namespace baton::store {

template <>
struct Table<message::Entity> {
  using Row = message::Entity;
  static constexpr std::string_view name = "bus_entities";
  static constexpr auto columns = std::tuple{
      key("entity_id", &Row::entity_id),    fixed("tenant_id", &Row::tenant_id),
      fixed("entity_type", &Row::entity_type), live("path", &Row::path),
      fixed("created_at", &Row::created_at), live("updated_at", &Row::updated_at),
      live("settings", &Row::settings),     live("rules", &Row::rules),
  };
};

template <>
struct Table<message::Counters> {
  using Row = message::Counters;
  static constexpr std::string_view name = "bus_counters";
  static constexpr auto columns = std::tuple{
      key("entity_id", &Row::entity_id),
      live("last_sequence_number", &Row::last_sequence_number),
      live("active", &Row::active),
      live("dead", &Row::dead),
      live("scheduled", &Row::scheduled),
      live("deferred", &Row::deferred),
      live("bytes", &Row::bytes),
      live("accessed_at", &Row::accessed_at),
      live("wake_at", &Row::wake_at),
  };
};

template <>
struct Table<message::Message> {
  using Row = message::Message;
  static constexpr std::string_view name = "bus_messages";
  static constexpr auto columns = std::tuple{
      key("entity_id", &Row::entity_id),
      key("lane", &Row::lane),
      key("sequence_number", &Row::sequence_number),
      live("delivery_count", &Row::delivery_count),
      live("locks", &Row::locks),
      live("locked_until", &Row::locked_until),
      live("changes", &Row::changes),
      fixed("message_id", &Row::message_id),
      fixed("enqueued_at", &Row::enqueued_at),
      fixed("due_at", &Row::due_at),
      fixed("time_to_live_ms", &Row::time_to_live_ms),
      fixed("enqueued_sequence_number", &Row::enqueued_sequence_number),
      fixed("dead_letter_source", &Row::dead_letter_source),
      fixed("dead_letter_reason", &Row::dead_letter_reason),
      fixed("dead_letter_description", &Row::dead_letter_description),
      fixed("bytes", &Row::bytes),
      fixed("envelope", &Row::envelope),
      fixed("annotations", &Row::annotations),
      fixed("content", &Row::content),
  };
};

template <>
struct Table<message::HistoryEntry> {
  using Row = message::HistoryEntry;
  static constexpr std::string_view name = "bus_history";
  static constexpr auto columns = std::tuple{
      key("entity_id", &Row::entity_id),
      key("message_id", &Row::message_id),
      live("forget_at", &Row::forget_at),
  };
};

}  // namespace baton::store
