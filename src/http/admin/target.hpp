// What a path of the management API names. The words in it are found in whatever case, as SDKs differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::http::admin {

struct Target {
  enum class What { namespace_info, queues, topics, subscriptions, rules, entity, rule };
  What what{};
  std::string path;  // of the entity; of subscriptions, their topic; of rules, their subscription
  std::string rule;  // its name
};

// Of a path as it was sent. None: it names nothing.
[[nodiscard]] std::optional<Target> parse_target(std::string_view path);

}  // namespace baton::http::admin
