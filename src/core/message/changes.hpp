// What was changed of a message since it was sent, by the actions of rules and by receivers that abandon, defer or
// dead-letter it. The message itself is kept as it came; whoever sends it on puts the changes in.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.hpp"
#include "core/message/envelope.hpp"
#include "core/message/value.hpp"

namespace baton::message {

struct Changes {
  Properties set;                  // of the application
  std::set<std::string> removed;   // of the application, as they are spelt
  // Of the system, by its name for rules ("Label", "CorrelationId"): those that are texts; none: unset.
  std::map<std::string, std::optional<std::string>> system;

  [[nodiscard]] bool empty() const { return set.empty() && removed.empty() && system.empty(); }
  void add(const Changes& later);
  friend bool operator==(const Changes&, const Changes&) = default;
};

[[nodiscard]] Changes changes_between(const Envelope& before, const Envelope& after);

[[nodiscard]] Json to_json(const Changes& changes);
[[nodiscard]] std::expected<Changes, std::string> read_changes(const Json& json);

// Envelopes of messages that are scheduled in a topic.
[[nodiscard]] Json to_json(const Envelope& envelope);
[[nodiscard]] std::expected<Envelope, std::string> read_envelope(const Json& json);

}  // namespace baton::message
