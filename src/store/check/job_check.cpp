#include "store/check/job_check.hpp"

#include <fmt/format.h>

namespace baton::store {

using namespace workflow;

namespace {

bool is_open(NodeStatus status) {
  return status == NodeStatus::ready || status == NodeStatus::dispatched || status == NodeStatus::running;
}

bool has_ended(NodeStatus status) { return status == NodeStatus::completed || status == NodeStatus::failed; }

}  // namespace

JobCheck::JobCheck(const Job& job, std::shared_ptr<const Definition> definition, const TellFinding& tell)
    : job_(job), definition_(std::move(definition)), tell_(tell) {
  if (definition_) nodes_.resize(definition_->nodes.size());
}

bool JobCheck::add(const NodeState& node) {
  const bool is_child = node.item_index != no_item;
  if (!is_child) active_ += is_open(node.status);
  if (!is_child && is_terminal(job_.status) && !is_terminal(node.status))
    tell(node, fmt::format("it is {}, and its job is {}", name(node.status), name(job_.status)));
  if (!definition_) return false;
  if (is_child) return add_child(node), true;
  const auto index = definition_->find(node.node_id);
  if (!index) return tell(node, "its workflow has no such node"), false;
  const Node& definition = definition_->nodes[*index];
  if (nodes_[*index]) tell(node, "it is there twice");
  nodes_[*index] = node;
  failed_ += node.status == NodeStatus::failed && definition.on_failure == Consequence::fail;
  check_waiting(node, definition, nullptr);
  return definition.type == NodeType::task;
}

void JobCheck::add_child(const NodeState& node) {
  const auto parsed = parse_item_name(node.node_id);
  const auto index = parsed && parsed->item == node.item_index ? definition_->find(parsed->fan_out) : std::nullopt;
  if (!index || definition_->nodes[*index].type != NodeType::fan_out) return tell(node, "its workflow has no such fan-out");
  const NodeState* parent = nodes_[*index] ? &*nodes_[*index] : nullptr;
  Children& children = children_[*index];
  children.has_gap = children.has_gap || node.item_index != children.count;
  ++children.count;
  children.done += has_ended(node.status);
  children.failed += node.status == NodeStatus::failed;
  children.open += is_open(node.status);
  if (parent) check_waiting(node, definition_->nodes[*index], parent);
}

// Whatever waits has something that will wake it. `parent` is the fan-out of a child, whose definition it has.
void JobCheck::check_waiting(const NodeState& node, const Node& definition, const NodeState* parent) const {
  const bool is_task = parent || definition.type == NodeType::task;
  if (node.status == NodeStatus::completed && is_task && !node.task_id) tell(node, "it is completed, and names no task");
  if (node.status == NodeStatus::running && is_task) {
    if (!node.lease_until || !node.timer_due || *node.timer_due > *node.lease_until)
      tell(node, "it is running without a lease and a timer that is not later");
  } else if (node.status == NodeStatus::running && definition.type == NodeType::fan_out) {
    const bool has_more = node.items_total && node.items_created < *node.items_total && definition.parallel_max == 0;
    if (!node.timer_due && !job_.paused_at && (node.items_created <= node.items_done || has_more))
      tell(node, "it is a fan-out that waits for no child and no timer");
  } else if (node.status == NodeStatus::ready) {
    const bool is_swept = parent && (parent->sweep_next || is_terminal(parent->status));
    const bool may_park = is_task || definition.type == NodeType::approval || definition.type == NodeType::fan_out;
    if (!node.timer_due && !(may_park && (job_.paused_at || is_swept)))
      tell(node, "it is ready, and neither a timer nor a pause holds it back");
  }
}

void JobCheck::check_fan_out(const Node& definition, const NodeState& node, const Children& children) const {
  const auto compare = [&](std::string_view column, std::int32_t stored, std::int32_t counted) {
    if (stored != counted) tell(node, fmt::format("{} is {}, and there are {}", column, stored, counted));
  };
  compare("items_created", node.items_created, children.count);
  compare("items_done", node.items_done, children.done);
  compare("items_failed", node.items_failed, children.failed);
  if (children.has_gap) tell(node, "its children have a gap");
  if (node.items_total && children.count > *node.items_total) tell(node, "it has more children than items");
  if (definition.parallel_max > 0 && children.open > definition.parallel_max) tell(node, "more of its children are open than may be");
  if (node.status == NodeStatus::completed && node.items_total != children.done)
    tell(node, "it is completed, and not all of its children are");
  if (is_terminal(node.status) && !node.sweep_next && children.open > 0)
    tell(node, fmt::format("it is {}, and {} of its children are open", name(node.status), children.open));
}

void JobCheck::check_counts() const {
  if (job_.nodes_active != active_) tell(fmt::format("nodes_active is {}, and {} of its nodes are active", job_.nodes_active, active_));
  if (definition_ && job_.nodes_failed != failed_)
    tell(fmt::format("nodes_failed is {}, and {} of its nodes have failed for good", job_.nodes_failed, failed_));
  if (definition_ && job_.status == JobStatus::completed && failed_ > 0) tell("it is COMPLETED, and a node of it has failed for good");
  if (definition_ && job_.status == JobStatus::failed && failed_ == 0) tell("it is FAILED, and no node of it has failed for good");
  if (!is_terminal(job_.status) && active_ == 0)
    tell(fmt::format("it is {}, and none of its nodes is active", name(job_.status)));
}

void JobCheck::finish() {
  if (!is_counted_) return;
  check_counts();
  if (!definition_) return;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    const Node& definition = definition_->nodes[i];
    if (!nodes_[i])
      tell_(node_text(job_.job_id, definition.id), "it is missing");
    else if (definition.type == NodeType::fan_out)
      check_fan_out(definition, *nodes_[i], children_[i]);
  }
}

void EventCheck::add(const Event& event) {
  if (!last_ && is_whole_ && event.event_type != EventType::job_created)
    tell_(job_text(job_id_), fmt::format("its first event is {} and not {}", name(event.event_type), name(EventType::job_created)));
  if (last_ && event.event_id <= *last_)
    tell_(job_text(job_id_), fmt::format("event {} comes behind event {}", event.event_id, *last_));
  last_ = event.event_id;
}

void EventCheck::finish() const {
  if (!last_ && is_whole_) tell_(job_text(job_id_), "it has no events");
}

}  // namespace baton::store
