#include "core/workflow/machine/run.hpp"

#include "base/mutant.hpp"
#include "base/result.hpp"

namespace baton::workflow {

Run::Run(std::shared_ptr<const Definition> d, Job j)
    : definition(std::move(d)),
      job(std::move(j)),
      stored_active(job.nodes_active),
      stored_failed(job.nodes_failed),
      nodes(definition->nodes.size()) {}

void Run::add(NodeState stored) {
  const auto ref = definition->locate(stored.node_id);
  ENSURE(ref && ref->item == stored.item_index);
  if (has(*ref)) return;
  const auto timer = stored.timer_due;
  Slot slot{.state = std::move(stored), .stored_timer = timer};
  if (ref->is_item())
    items.emplace(*ref, std::move(slot));
  else
    nodes[ref->node] = std::move(slot);
}

void Run::add_documents(Job whole) {
  if (has_input()) return;
  job.input_data = std::move(whole.input_data);
  if (!job.result_data) job.result_data = std::move(whole.result_data);  // it may have just ended
}

bool Run::has(NodeRef ref) const { return ref.is_item() ? items.contains(ref) : nodes[ref.node].has_value(); }

Slot& Run::at(NodeRef ref) {
  if (ref.is_item()) {
    const auto found = items.find(ref);
    ENSURE(found != items.end());  // children are never found out on the way
    return found->second;
  }
  if (!nodes[ref.node]) throw NotLoaded{job.job_id};
  return *nodes[ref.node];
}

const Json& Run::input() const {
  if (!has_input()) throw NotLoaded{job.job_id};
  return job.input_data;
}

bool Run::row_changed() const {
  return changed || job.nodes_active != stored_active || job.nodes_failed != stored_failed;
}

void Run::stored() {
  is_new = changed = false;
  stored_active = job.nodes_active;
  stored_failed = job.nodes_failed;
  const auto settle = [](Slot& slot) {
    slot.is_new = slot.changed = false;
    if (!MUTANT(hot_run_keeps_old_timer)) slot.stored_timer = slot.state.timer_due;
  };
  for (auto& slot : nodes)
    if (slot) settle(*slot);
  constexpr std::size_t waiting_max = 1'000;  // the first, which have their turn soon
  std::size_t waiting = 0;
  std::erase_if(items, [&](const auto& item) {
    const NodeStatus status = item.second.state.status;
    return is_terminal(status) || (status == NodeStatus::dispatched && ++waiting > waiting_max);
  });
  for (auto& [ref, slot] : items) settle(slot);
  results.clear();
  logs.clear();
  item_ranges.clear();
  expansions.clear();
  gatherings.clear();
  values.reset();
}

std::size_t Run::bytes() const {
  const auto size = [](const auto& text) {
    if constexpr (requires { text->text; })
      return text ? text->text.size() : 0;
    else
      return text ? text->size() : 0;
  };
  const auto of = [&](const Slot& slot) {
    const NodeState& s = slot.state;
    constexpr std::size_t names = 256;  // ids, queue, worker: about
    return sizeof(Slot) + names + size(s.error) + size(s.progress) + size(s.checkpoint) + size(s.params) + size(s.output);
  };
  std::size_t sum = sizeof(Run) + job.input_data.text.size() + size(job.result_data) + nodes.size() * sizeof(nodes[0]);
  for (const auto& slot : nodes)
    if (slot) sum += of(*slot);
  for (const auto& [ref, slot] : items) sum += of(slot);
  return sum;
}

}  // namespace baton::workflow
