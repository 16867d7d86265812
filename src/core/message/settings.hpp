// What a queue, a topic or a subscription is set to: the settings of Service Bus that have a meaning here, with its defaults.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/message/rows.hpp"

namespace baton::message {

enum class Availability { active, disabled, send_disabled, receive_disabled };
[[nodiscard]] std::string_view name(Availability availability);  // Active, Disabled, SendDisabled, ReceiveDisabled
[[nodiscard]] std::optional<Availability> availability(std::string_view name);

struct Settings {
  Duration lock_time = std::chrono::minutes{1};          // 5 seconds to 5 minutes
  std::int32_t deliveries_max = 10;                      // 1 to 2,000; then a message is a dead letter
  std::optional<Duration> time_to_live;                  // of messages, at most; none: for ever
  bool dead_letter_on_expiry = false;                    // otherwise what expires is gone
  bool dead_letter_on_filter_error = true;               // of a subscription
  bool detects_duplicates = false;                       // of a queue or a topic; never changes
  Duration history_time = std::chrono::minutes{10};      // 20 seconds to 7 days
  std::int64_t size_max_mb = 1'024;                      // of all messages
  std::optional<Duration> delete_when_idle;              // at least 5 minutes
  Availability availability = Availability::active;
  std::string user_metadata;                             // at most 1,024 characters
  friend bool operator==(const Settings&, const Settings&) = default;

  [[nodiscard]] bool takes_messages() const { return availability == Availability::active || availability == Availability::receive_disabled; }
  [[nodiscard]] bool gives_messages() const { return availability == Availability::active || availability == Availability::send_disabled; }
};

// What is wrong with it, for an entity of this type; none: nothing.
[[nodiscard]] std::optional<std::string> problem_of(const Settings& settings, EntityType type);
// Of the name of a queue or topic (at most 260 characters, parts with slashes between), or of a subscription (50).
[[nodiscard]] std::optional<std::string> problem_of_name(std::string_view name, std::size_t length_max);
[[nodiscard]] std::optional<std::string> problem_of_rule_name(std::string_view name);

// As they are stored: what has its default is left out.
[[nodiscard]] Json to_json(const Settings& settings);
[[nodiscard]] std::expected<Settings, std::string> read_settings(const Json& json);

// "events" and "audit" of "events/Subscriptions/audit".
[[nodiscard]] std::string subscription_path(std::string_view topic, std::string_view subscription);
struct SubscriptionName {
  std::string topic, subscription;
};
[[nodiscard]] std::optional<SubscriptionName> split_subscription_path(std::string_view path);

}  // namespace baton::message
