#include "engine/progressions.hpp"

namespace baton::engine {

using namespace workflow;

void Progressions::lend(Run& run, NodeIndex node) {
  const auto found = known_.find({run.job.job_id, no_item, run.definition->nodes[node].id});
  if (found == known_.end()) return;
  if (found->second.expansion.items) {
    run.expansions[node] = found->second.expansion;
    if (!run.values) run.values = found->second.expansion.values;
  }
  // A copy: the batch may have to be decided again.
  if (found->second.gathering) run.gatherings[node] = *found->second.gathering;
}

// The texts of the run's rows have moved into the write set by now; statuses and counters are still there.
void Progressions::keep(const JobId& job_id, Run& run) {
  for (auto& [node, gathering] : run.gatherings) {
    const auto& slot = run.nodes[node];
    const NodeKey key{job_id, no_item, run.definition->nodes[node].id};
    if (slot && slot->state.status == NodeStatus::ready)
      known_[key].gathering = std::move(gathering);
    else
      known_.erase(key);
  }
  for (auto& [node, expansion] : run.expansions) {
    const auto& slot = run.nodes[node];
    const NodeKey key{job_id, no_item, run.definition->nodes[node].id};
    const bool goes_on = slot && slot->state.status == NodeStatus::running &&
                         slot->state.items_created < *slot->state.items_total;
    if (goes_on)
      known_[key].expansion = std::move(expansion);
    else
      known_.erase(key);
  }
  while (known_.size() > known_max) known_.erase(known_.begin());
}

std::int32_t Progressions::gathered(const NodeKey& key) const {
  const auto found = known_.find(key);
  return found != known_.end() && found->second.gathering ? found->second.gathering->next : 0;
}

bool Progressions::has_expansion(const NodeKey& key) const {
  const auto found = known_.find(key);
  return found != known_.end() && found->second.expansion.items;
}

}  // namespace baton::engine
