// What a rule may see of a message, and change: never its body.
//
// Pure data, for any thread. The names and what may be set are those that Service Bus documents under
// "Messages, payloads, and serialization"; the names of its newer SDKs (Subject, TransactionPartitionKey) are
// accepted too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/message/value.hpp"

namespace baton::message {

// What is not set is null to a filter.
struct Envelope {
  std::optional<std::string> message_id;
  std::optional<std::string> correlation_id;
  std::optional<std::string> to;
  std::optional<std::string> reply_to;
  std::optional<std::string> label;  // AMQP and the newer SDKs: subject
  std::optional<std::string> session_id;
  std::optional<std::string> reply_to_session_id;
  std::optional<std::string> content_type;
  std::optional<std::string> partition_key;
  std::optional<std::string> via_partition_key;
  std::optional<std::string> dead_letter_source;
  std::optional<Time> enqueued_time;
  std::optional<Time> scheduled_enqueue_time;
  std::optional<Time> expires_at;
  std::optional<Duration> time_to_live;
  std::optional<std::int64_t> sequence_number;
  std::optional<std::int64_t> enqueued_sequence_number;
  std::optional<std::int64_t> delivery_count;
  std::optional<std::int64_t> size;
  Properties properties;

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

// Where newid() gets its ids: the caller has chance, rules have none. Without one, newid() fails.
using NewId = std::function<std::string()>;

// One of those that a rule names `sys.x`.
class SystemProperty {
 public:
  // No field: documented, but a message has none when rules look at it, such as a lock.
  using Field =
      std::variant<std::monostate, std::optional<std::string> Envelope::*, std::optional<Time> Envelope::*,
                   std::optional<Duration> Envelope::*, std::optional<std::int64_t> Envelope::*>;

  constexpr SystemProperty(std::string_view name, Field field, bool settable = false)
      : name_(name), field_(field), settable_(settable) {}

  [[nodiscard]] constexpr std::string_view name() const { return name_; }
  [[nodiscard]] constexpr bool settable() const { return settable_; }
  [[nodiscard]] Value get(const Envelope& envelope) const;
  // Null unsets it. False, and nothing is changed, when the value is of another type.
  [[nodiscard]] bool set(Envelope& envelope, const Value& value) const;

 private:
  std::string_view name_;
  Field field_;
  bool settable_;
};

[[nodiscard]] std::span<const SystemProperty> system_properties();
// Without regard to case; null when there is none of that name.
[[nodiscard]] const SystemProperty* find_system_property(std::string_view name);

}  // namespace baton::message
