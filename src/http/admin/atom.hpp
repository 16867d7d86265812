// The answers of the management API: an Atom entry, a feed of entries, or an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/admin/xml.hpp"
#include "http/wire/message.hpp"
#include "ports/bus_commands.hpp"
#include "ports/refusal.hpp"

namespace baton::http::admin {

// "http://HOST", as the client knows this server: SDKs read names out of absolute URLs.
[[nodiscard]] std::string base_of(const Request& request);

[[nodiscard]] Response entity_entry(int status, const Request& request, const EntityInfo& info);
[[nodiscard]] Response rule_entry(int status, const Request& request, const EntityInfo& subscription, const message::RuleDescription& rule);
[[nodiscard]] Response namespace_entry(const Request& request, Time created, Time changed);

// Which part of a list is shown, and whether there is more behind it.
struct Page {
  std::size_t skip = 0, top = 0;
  bool are_more = false;
};
[[nodiscard]] Response entity_feed(const Request& request, const Page& page, const std::vector<EntityInfo>& entities);
[[nodiscard]] Response rule_feed(const Request& request, const Page& page, const EntityInfo& subscription, const std::vector<message::RuleDescription>& rules);

// <Error><Code>404</Code><Detail>…
[[nodiscard]] Response error(int status, std::string_view detail);
[[nodiscard]] Response error(const Refused& refused);

}  // namespace baton::http::admin
