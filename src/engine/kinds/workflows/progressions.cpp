#include "engine/kinds/workflows/progressions.hpp"

#include <algorithm>

namespace baton::engine {

using namespace workflow;

namespace {

NodeKey key_of(const JobId& job_id, const Run& run, NodeIndex node) {
  return {job_id, no_item, run.definition->nodes[node].id};
}

}  // namespace

void Progressions::lend(Run& run, NodeIndex node) {
  const NodeKey key = key_of(run.job.job_id, run, node);
  if (const auto found = sources_.find(key); found != sources_.end()) {
    found->second.used = ++uses_;
    run.expansions[node] = found->second.expansion;
    if (!run.values) run.values = found->second.expansion.values;
  }
  // A copy: the batch may have to be decided again.
  if (const auto found = gatherings_.find(key); found != gatherings_.end())
    run.gatherings[node] = found->second;
}

// The texts of the run's rows have moved into the write set by now; statuses and counters are still there.
void Progressions::keep(const JobId& job_id, Run& run) {
  for (auto& [node, gathering] : run.gatherings) {
    const auto& slot = run.nodes[node];
    if (slot && slot->state.status == NodeStatus::ready)
      gatherings_[key_of(job_id, run, node)] = std::move(gathering);
    else
      gatherings_.erase(key_of(job_id, run, node));
  }
  for (auto& [node, expansion] : run.expansions) {
    const auto& slot = run.nodes[node];
    const bool goes_on = slot && slot->state.status == NodeStatus::running &&
                         slot->state.items_created < *slot->state.items_total;
    if (goes_on)
      sources_[key_of(job_id, run, node)] = {std::move(expansion), ++uses_};
    else
      sources_.erase(key_of(job_id, run, node));
  }
  while (sources_.size() > expansions_max_)
    sources_.erase(
        std::ranges::min_element(sources_, {}, [](const auto& source) { return source.second.used; }));
}

void Progressions::drop(const JobId& job_id) {
  const auto is_its = [&](const auto& entry) { return entry.first.job_id == job_id; };
  std::erase_if(sources_, is_its);
  std::erase_if(gatherings_, is_its);
}

void Progressions::forget() {
  sources_.clear();
  gatherings_.clear();
}

bool Progressions::may_gather(const NodeKey& key) const {
  return gatherings_.size() < gatherings_max || gatherings_.contains(key);
}

}  // namespace baton::engine
