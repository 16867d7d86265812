#include "http/json/render_bus.hpp"

#include "base/base64.hpp"
#include "core/message/content.hpp"

namespace baton::http {
namespace {

// A number of seconds, whole if it is; none: null.
void append_seconds(std::string& out, std::string_view key, const std::optional<Duration>& duration) {
  if (!duration) append_member(out, key, std::optional<int>{});
  else if (duration->count() % 1'000 == 0) append_member(out, key, duration->count() / 1'000);
  else append_member(out, key, static_cast<double>(duration->count()) / 1'000);
}

void append_settings(std::string& out, const message::Settings& settings) {
  append_member(out, "status", message::name(settings.availability));
  append_seconds(out, "lock_seconds", settings.lock_time);
  append_member(out, "deliveries_max", settings.deliveries_max);
  append_seconds(out, "time_to_live_seconds", settings.time_to_live);
  append_member(out, "dead_letter_on_expiry", settings.dead_letter_on_expiry);
  append_member(out, "dead_letter_on_filter_error", settings.dead_letter_on_filter_error);
  append_member(out, "detects_duplicates", settings.detects_duplicates);
  append_seconds(out, "history_seconds", settings.history_time);
  append_member(out, "size_max_mb", settings.size_max_mb);
  append_seconds(out, "delete_when_idle_seconds", settings.delete_when_idle);
  append_member(out, "user_metadata", settings.user_metadata);
}

void append_content(std::string& out, const message::Message& message) {
  if (message.changes) append_member(out, "changes", *message.changes);
  const auto shown = message::show_content(message.content.value);
  if (!shown) return append_member(out, "content_base64", base64(message.content.value));
  append_members(out, "properties", shown->properties, "application_properties", shown->application_properties, "body_type", message::name(shown->body_type),
                 "body", shown->body);
}

}  // namespace

void append_entity(std::string& out, const EntityInfo& info, ObjectEnd ending) {
  const message::Counters& counters = info.counters;
  out += '{';
  append_members(out, "path", info.entity.path, "type", message::name(info.entity.entity_type), "reserved", info.is_reserved);
  append_settings(out, info.settings);
  append_member(out, "counts",
                json_object("active", counters.active, "dead", counters.dead, "scheduled", counters.scheduled, "deferred", counters.deferred));
  if (info.pool) append_members(out, "pool", *info.pool, "counts_are_at_least", info.counts_are_at_least);
  append_members(out, "bytes", counters.bytes, "last_sequence_number", counters.last_sequence_number);
  append_members(out, "created_at", info.entity.created_at, "updated_at", info.entity.updated_at, "accessed_at", counters.accessed_at);
  if (info.entity.entity_type == message::EntityType::topic) append_member(out, "subscriptions", info.subscriptions);
  if (info.entity.entity_type == message::EntityType::subscription) append_member(out, "rules", message::to_json(info.rules));
  if (ending == ObjectEnd::closed) out += '}';
}

void append_message(std::string& out, const message::Message& message, Documents documents) {
  const bool is_scheduled = message.lane == message::Lane::scheduled;
  out += '{';
  append_members(out, "sequence_number", message.sequence_number, "state", message::name(message.lane), "message_id", message.message_id);
  append_members(out, "enqueued_at", message.enqueued_at, "delivery_count", message.delivery_count, "locked_until", message.locked_until);
  append_member(out, is_scheduled ? "scheduled_for" : "expires_at", message.due_at);
  append_members(out, "size", message.size(), "enqueued_sequence_number", message.enqueued_sequence_number);
  append_members(out, "dead_letter_source", message.dead_letter_source, "dead_letter_reason", message.dead_letter_reason, "dead_letter_description",
                 message.dead_letter_description);
  if (documents == Documents::all) append_content(out, message);
  out += '}';
}

void append_broker(std::string& out, const BrokerState::View& broker) {
  out += '{';
  append_members(out, "address", broker.address, "connected", broker.is_connected, "since", broker.since);
  append_members(out, "trouble", broker.trouble.empty() ? std::nullopt : std::optional(broker.trouble), "trouble_at", broker.trouble_at);
  const auto text_or_null = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  append_list(out, "links", broker.links, [&](std::string& to, const BrokerState::Link& link) {
    to += '{';
    append_members(to, "address", link.address, "direction", link.is_sender ? "out" : "in", "queue", text_or_null(link.queue), "open", link.is_open, "since",
                   link.since, "trouble", text_or_null(link.trouble));
    to += '}';
  });
  append_list(out, "rejected", broker.rejected, [&](std::string& to, const BrokerState::Rejected& message) {
    to += '{';
    append_members(to, "at", message.at, "rejected_by", message.by_broker ? "broker" : "baton", "source", message.source, "message_id",
                   text_or_null(message.message_id), "reason", message.reason, "description", message.description);
    to += '}';
  });
  out += '}';
}

}  // namespace baton::http
