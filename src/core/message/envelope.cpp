#include "core/message/envelope.hpp"

#include <algorithm>
#include <array>

#include "base/result.hpp"

namespace baton::message {
namespace {

// What is not documented as read-only can be set, but for the time to be enqueued: a copy is enqueued already.
constexpr std::array<SystemProperty, 25> all_system_properties{{
    {"MessageId", &Envelope::message_id, true},
    {"CorrelationId", &Envelope::correlation_id, true},
    {"To", &Envelope::to, true},
    {"ReplyTo", &Envelope::reply_to, true},
    {"Label", &Envelope::label, true},
    {"Subject", &Envelope::label, true},
    {"SessionId", &Envelope::session_id, true},
    {"ReplyToSessionId", &Envelope::reply_to_session_id, true},
    {"ContentType", &Envelope::content_type, true},
    {"PartitionKey", &Envelope::partition_key, true},
    {"ViaPartitionKey", &Envelope::via_partition_key, true},
    {"TransactionPartitionKey", &Envelope::via_partition_key, true},
    {"ScheduledEnqueueTimeUtc", &Envelope::scheduled_enqueue_time},
    {"ScheduledEnqueueTime", &Envelope::scheduled_enqueue_time},
    {"TimeToLive", &Envelope::time_to_live, true},
    {"DeadLetterSource", &Envelope::dead_letter_source},
    {"EnqueuedTimeUtc", &Envelope::enqueued_time},
    {"ExpiresAtUtc", &Envelope::expires_at},
    {"SequenceNumber", &Envelope::sequence_number},
    {"EnqueuedSequenceNumber", &Envelope::enqueued_sequence_number},
    {"DeliveryCount", &Envelope::delivery_count},
    {"Size", &Envelope::size},
    {"LockedUntilUtc", std::monostate{}},
    {"LockToken", std::monostate{}},
    {"State", std::monostate{}},
}};

}  // namespace

Value SystemProperty::get(const Envelope& envelope) const {
  return std::visit(overloaded{[](std::monostate) { return Value(Null{}); },
                               [&](auto field) {
                                 const auto& value = envelope.*field;
                                 return value ? Value(*value) : Value(Null{});
                               }},
                    field_);
}

bool SystemProperty::set(Envelope& envelope, const Value& value) const {
  return std::visit(overloaded{[](std::monostate) { return false; },
                               [&]<class T>(std::optional<T> Envelope::* field) {
                                 if (is_null(value)) {
                                   (envelope.*field).reset();
                                   return true;
                                 }
                                 const T* const fitting = std::get_if<T>(&value);
                                 if (fitting) envelope.*field = *fitting;
                                 return fitting != nullptr;
                               }},
                    field_);
}

std::span<const SystemProperty> system_properties() { return all_system_properties; }

const SystemProperty* find_system_property(std::string_view name) {
  const auto found = std::ranges::find_if(
      all_system_properties, [&](const SystemProperty& each) { return same_name(each.name(), name); });
  return found == all_system_properties.end() ? nullptr : &*found;
}

}  // namespace baton::message
