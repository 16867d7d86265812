// What people do to a job: cancel, pause, resume, retry, approve.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/json_write.hpp"
#include "base/mutant.hpp"
#include "core/workflow/machine/decision.hpp"

namespace baton::workflow {
namespace {

// {"by": …, "reason": …}, without what is empty.
OptionalJson who_and_why(std::string_view by, std::string_view reason) {
  if (by.empty() && reason.empty()) return std::nullopt;
  return json_object_of_given("by", by, "reason", reason);
}

enum class Edge { open, fired, dead };

// What has become of the edge between two nodes.
Edge edge_between(Run& run, NodeIndex from, NodeIndex to) {
  const NodeState& state = run.at(from).state;
  const Node& node = run.definition->nodes[from];
  if (state.status == NodeStatus::skipped) return Edge::dead;
  if (state.status == NodeStatus::failed && node.on_failure == Consequence::go_on) return Edge::fired;
  if (state.status != NodeStatus::completed) return Edge::open;
  if (node.type != NodeType::conditional) return Edge::fired;
  const auto output = boost::json::parse(state.output->text);
  const std::string_view taken(output.at("branch").as_string());
  const auto branch = std::ranges::find(node.branches, taken, &Branch::name);
  const bool leads_there =
      branch != node.branches.end() && std::ranges::find(branch->next, to) != branch->next.end();
  return leads_there ? Edge::fired : Edge::dead;
}

void count_edges(Run& run, NodeIndex i) {
  NodeState& state = run.at(i).state;
  state.waiting_for = 0;
  state.edges_fired = 0;
  for (const NodeIndex from : run.definition->nodes[i].incoming) {
    const Edge edge = edge_between(run, from, i);
    if (edge == Edge::open) ++state.waiting_for;
    if (edge == Edge::fired) ++state.edges_fired;
  }
  if (run.definition->nodes[i].join == Join::any_of && state.edges_fired > 0) state.waiting_for = 0;
}

}  // namespace

bool cancel(Run& run, std::string_view by, std::string_view reason, const Policy& policy, Time now,
            Decided& decided) {
  if (is_terminal(run.job.status)) return false;
  Decision decision(run, policy, now, decided);
  decision.cancel_rest();
  decision.end(JobStatus::cancelled, EventType::job_cancelled, who_and_why(by, reason));
  return true;
}

bool pause(Run& run, std::string_view by, std::string_view reason, const Policy& policy, Time now,
           Decided& decided) {
  if (is_terminal(run.job.status)) return false;
  if (run.job.paused_at) return true;  // whoever did not hear the first answer asks again
  run.job.paused_at = now;
  run.job.paused_by = by.empty() ? std::optional<std::string>{} : std::string(by);
  run.changed = true;
  Decision(run, policy, now, decided).event(EventType::job_paused, nullptr, who_and_why(by, reason));
  return true;
}

// What is READY without a timer was parked. The children of a fan-out are visited in chunks.
bool resume(Run& run, std::string_view by, std::string_view reason, const Policy& policy, Time now,
            Decided& decided) {
  if (is_terminal(run.job.status)) return false;
  if (!run.job.paused_at) return true;
  run.job.paused_at.reset();
  run.job.paused_by.reset();
  run.changed = true;
  Decision decision(run, policy, now, decided);
  decision.event(EventType::job_resumed, nullptr, who_and_why(by, reason));
  if (MUTANT(resume_forgets_parked)) return true;
  for (NodeIndex i = 0; i < run.nodes.size(); ++i) {
    Slot& slot = run.at(i);
    const NodeType type = run.definition->nodes[i].type;
    if (type == NodeType::fan_out && slot.state.status == NodeStatus::running) {
      decision.begin_sweep(slot);
    } else if (slot.state.status == NodeStatus::ready && !slot.state.timer_due) {
      if (type == NodeType::task) decision.dispatch(NodeRef{i});
      if (type == NodeType::approval) decision.ask_for_approval(i);
      if (type == NodeType::fan_out) decision.begin_fan_out(i);
    }
  }
  decision.settle();
  return true;
}

bool retry(Run& run, std::string_view by, std::string_view reason, const Policy& policy, Time now,
           Decided& decided) {
  if (run.job.status != JobStatus::failed) return false;
  run.job.status = JobStatus::running;
  run.job.completed_at.reset();
  run.job.error.reset();
  run.job.nodes_failed = 0;
  run.job.paused_at.reset();
  run.job.paused_by.reset();
  run.changed = true;
  Decision decision(run, policy, now, decided);
  decision.event(EventType::job_retried, nullptr, who_and_why(by, reason));
  std::vector<NodeIndex> reopened;
  for (NodeIndex i = 0; i < run.nodes.size(); ++i) {
    Slot& slot = run.at(i);
    const bool failed = slot.state.status == NodeStatus::failed &&
                        (run.definition->nodes[i].on_failure == Consequence::fail || slot.state.dead_at);
    if (!failed && slot.state.status != NodeStatus::cancelled) continue;
    decision.reopen(slot);
    slot.state.sweep_next.reset();
    slot.state.timer_due.reset();
    reopened.push_back(i);
  }
  for (const NodeIndex i : reopened) count_edges(run, i);
  for (const NodeIndex i : reopened) {
    const NodeState& state = run.at(i).state;
    if (state.status == NodeStatus::pending && state.waiting_for == 0 && run.job.nodes_failed == 0)
      decision.resolved(i);
  }
  decision.settle();
  return true;
}

bool was_decided(Run& run, NodeIndex node, bool approved) {
  const NodeState& state = run.at(node).state;
  if (run.definition->nodes[node].type != NodeType::approval) return false;
  if (state.status == NodeStatus::failed)
    return !approved && state.error && state.error->starts_with("rejected by");
  return state.status == NodeStatus::completed && state.output &&
         state.output->text.starts_with(approved ? R"({"approved":true)" : R"({"approved":false)");
}

bool decide_approval(Run& run, NodeIndex node, bool approved, const std::string& by,
                     const std::string& comment, const Policy& policy, Time now, Decided& decided) {
  Slot& slot = run.at(node);
  if (run.definition->nodes[node].type != NodeType::approval || slot.state.status != NodeStatus::dispatched)
    return false;
  Decision decision(run, policy, now, decided);
  decision.settle_approval(node, approved, by, comment);
  decision.settle();
  return true;
}

}  // namespace baton::workflow
