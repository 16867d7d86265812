// Queues, topics and subscriptions as XML: <QueueDescription>, <TopicDescription>, <SubscriptionDescription> of the
// management API.
//
// What has no meaning here is taken and answered with its default where nothing depends on it. What a client would rely on
// and not get (sessions, forwarding, partitions, keys of one entity) is refused.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "core/message/rule_description.hpp"
#include "core/message/settings.hpp"
#include "http/admin/xml.hpp"
#include "ports/bus_commands.hpp"

namespace baton::http::admin {

inline constexpr std::int64_t message_kilobytes_max = 1'024;  // as the endpoint takes them

struct Description {
  message::EntityType type{};
  message::Settings settings;
  std::vector<message::RuleDescription> rules;  // of a subscription: that which it is to have at first, or none
};

// What is not said of the settings stays as it was `before`.
[[nodiscard]] std::expected<Description, std::string> read_description(pugi::xml_node described, const message::Settings& before);

// With what changes as messages come and go.
void add_description(pugi::xml_node content, const EntityInfo& info);

}  // namespace baton::http::admin
