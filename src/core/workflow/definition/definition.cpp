#include "core/workflow/definition/definition.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/delivery/delivery.hpp"

namespace baton::workflow {

std::string_view name(NodeType type) {
  static constexpr std::array<std::string_view, 8> names{"start",   "end",    "task", "conditional",
                                                         "fan_out", "fan_in", "wait", "approval"};
  return names[static_cast<std::size_t>(type)];
}

Duration RetryPolicy::delay_before(std::int32_t attempt) const {
  return delivery::RetryDelay{initial_delay, backoff == Backoff::exponential, delay_max}.before(attempt);
}

std::optional<NodeIndex> Definition::find(std::string_view node_id) const {
  if (by_id.size() != nodes.size()) {
    const auto found = std::ranges::find(nodes, node_id, &Node::id);
    if (found == nodes.end()) return std::nullopt;
    return static_cast<NodeIndex>(found - nodes.begin());
  }
  const auto id_of = [this](NodeIndex i) { return std::string_view(nodes[i].id); };
  const auto found = std::ranges::lower_bound(by_id, node_id, {}, id_of);
  if (found == by_id.end() || id_of(*found) != node_id) return std::nullopt;
  return *found;
}

std::optional<NodeRef> Definition::locate(std::string_view node_id) const {
  if (const auto node = find(node_id)) return NodeRef{*node};
  const auto name = parse_item_name(node_id);
  const auto fan_out = name ? find(name->fan_out) : std::nullopt;
  if (!fan_out || nodes[*fan_out].type != NodeType::fan_out) return std::nullopt;
  return NodeRef{*fan_out, name->item};
}

std::optional<ItemName> parse_item_name(std::string_view node_id) {
  const auto last = node_id.rfind('_');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const auto digits = node_id.substr(last + 1);
  if (digits.empty() || digits.size() > 8 || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  ItemName name{node_id.substr(0, last)};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name.item);
  if (error != std::errc{} || end != digits.data() + digits.size() || name.item < 0) return std::nullopt;
  return name;
}

std::string item_name(std::string_view fan_out, std::int32_t item) {
  return std::string(fan_out) + "_" + std::to_string(item);
}

}  // namespace baton::workflow
