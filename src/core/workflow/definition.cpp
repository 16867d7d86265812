#include "core/workflow/definition.hpp"

#include <algorithm>

namespace baton::workflow {

Duration RetryPolicy::delay_before(std::int32_t attempt) const {
  if (backoff == Backoff::fixed) return initial_delay;
  Duration delay = std::min(initial_delay, delay_max);
  if (delay <= Duration::zero()) return Duration::zero();  // doubling would never reach the cap
  for (std::int32_t i = 1; i < attempt && delay < delay_max; ++i) {
    delay = delay > delay_max / 2 ? delay_max : delay * 2;  // compared by halves, so that nothing overflows
  }
  return delay;
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

}  // namespace baton::workflow
