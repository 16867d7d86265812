#include "bus/address.hpp"

#include <algorithm>
#include <vector>

#include "base/json.hpp"
#include "base/url.hpp"
#include "ports/shared_access.hpp"

namespace baton::bus {
namespace {

constexpr std::size_t entity_name_max = 260;

// A slash that is escaped divides too: an entity is found by its whole path, and whoever judges the parts must see the same.
std::optional<std::vector<std::string>> segments_of(std::string_view escaped) {
  const auto decoded = percent_decode(escaped);
  if (!decoded) return std::nullopt;
  std::vector<std::string> segments;
  for (std::string_view path = *decoded; !path.empty();) {
    const auto end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    if (!is_printable(segment, entity_name_max)) return std::nullopt;
    segments.emplace_back(segment);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return segments;
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  auto segments = segments_of(path_of(text));
  if (!segments || segments->empty()) return std::nullopt;
  Address address;
  const auto take_suffix = [&](std::string_view word) {
    const bool is_there = segments->size() > 1 && equal_ignoring_case(segments->back(), word);
    if (is_there) segments->pop_back();
    return is_there;
  };
  address.is_management = take_suffix("$management");
  address.is_dead_letters = take_suffix("$DeadLetterQueue");
  const std::size_t count = segments->size();
  if (count >= 3 && equal_ignoring_case((*segments)[count - 2], "Subscriptions")) {
    address.subscription = std::move(segments->back());
    segments->resize(count - 2);
  }
  for (const std::string& segment : *segments) {
    const bool is_fixed = equal_ignoring_case(segment, "Subscriptions") || equal_ignoring_case(segment, "Rules");
    if (segment.empty() || (is_fixed && count > 1)) return std::nullopt;
    address.entity.append(address.entity.empty() ? "" : "/").append(segment);
  }
  if (address.entity.size() > entity_name_max) return std::nullopt;
  return address;
}

}  // namespace baton::bus
