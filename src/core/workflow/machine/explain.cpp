#include "core/workflow/machine/explain.hpp"

#include <algorithm>

namespace baton::workflow {

namespace {

// How the client of a broker elsewhere calls itself (bus/broker/publisher.cpp).
constexpr std::string_view broker_prefix = "bus:";

constexpr std::size_t waiting_max = 200;
constexpr std::size_t names_max = 10;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string counted(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// The answers about one job, node by node.
class Explainer {
 public:
  Explainer(Run& run, const LookAtQueue& look_at_queue, Time now)
      : run_(run), look_at_queue_(look_at_queue), now_(now) {}

  Explanation explain() {
    Explanation out{.job = run_.job};
    out.job.input_data = {};
    out.job.result_data.reset();
    if (is_terminal(run_.job.status)) {
      out.reason = "ended";
      out.summary = "the job has ended as " + std::string(name(run_.job.status));
      if (run_.job.error) out.summary += ": " + *run_.job.error;
      return out;
    }
    for (NodeIndex i = 0; i < run_.nodes.size() && waiting_.size() < waiting_max; ++i) explain(i);
    for (auto& [ref, slot] : run_.items)
      if (waiting_.size() < waiting_max) explain_task(slot.state);
    out.waiting = std::move(waiting_);
    summarize(out);
    return out;
  }

 private:
  void add(const NodeState& state, std::string_view reason, std::string message,
           std::optional<Time> since = {}, std::optional<Time> until = {},
           std::vector<std::string> held_by = {}) {
    waiting_.push_back({state.node_id, state.status, reason, std::move(message), since, until, state.queue,
                        std::move(held_by)});
  }

  void explain(NodeIndex i) {
    const NodeState& state = run_.at(i).state;
    if (is_terminal(state.status)) return;
    if (state.status == NodeStatus::pending) return explain_pending(i, state);
    if (is_put_off(run_.definition->nodes[i].type, state))
      return add(state, "its_turn_comes",
                 "it waits for its turn: what the expressions of a tenant may cost at once is bounded");
    switch (run_.definition->nodes[i].type) {
      case NodeType::start:
        return add(state, "not_due", "the job is not due until " + to_iso(*state.timer_due),
                   run_.job.created_at, state.timer_due);
      case NodeType::wait:
        return add(state, "waiting_until", "it waits until " + to_iso(*state.timer_due), state.started_at,
                   state.timer_due);
      case NodeType::approval: return explain_approval(state);
      case NodeType::fan_out: return explain_fan_out(i, state);
      case NodeType::fan_in: return add(state, "gathering", "it is reading the results of the items");
      default: return explain_task(state);
    }
  }

  // READY and due: the budget of a turn was used up before its expressions were evaluated.
  [[nodiscard]] bool is_put_off(NodeType type, const NodeState& state) const {
    return type != NodeType::fan_in && type != NodeType::start && state.status == NodeStatus::ready &&
           state.timer_due && *state.timer_due <= now_ && !run_.job.paused_at;
  }

  void explain_pending(NodeIndex i, const NodeState& state) {
    std::vector<std::string> before;
    for (const NodeIndex other : run_.definition->nodes[i].incoming) {
      const NodeState& pred = run_.at(other).state;
      if (!is_terminal(pred.status) && before.size() < names_max)
        before.push_back(pred.node_id + " (" + std::string(name(pred.status)) + ")");
    }
    add(state, "waits_for_nodes", "it waits for " + listed(before), {}, {}, before);
  }

  void explain_approval(const NodeState& state) {
    if (state.status == NodeStatus::ready && run_.job.paused_at) return explain_paused(state);
    if (state.status == NodeStatus::ready) return;
    std::string message = "it waits for a person to approve or reject it";
    if (state.timer_due) message += "; that times out at " + to_iso(*state.timer_due);
    add(state, "waits_for_approval", std::move(message), state.dispatched_at, state.timer_due);
  }

  void explain_paused(const NodeState& state) {
    std::string message = "the job is paused";
    if (run_.job.paused_by) message += " by " + *run_.job.paused_by;
    add(state, "paused", message + " since " + to_iso(*run_.job.paused_at), run_.job.paused_at, {},
        run_.job.paused_by ? std::vector{*run_.job.paused_by} : std::vector<std::string>{});
  }

  void explain_fan_out(NodeIndex i, const NodeState& state) {
    if (run_.job.paused_at) return explain_paused(state);
    if (!state.items_total) return;
    const std::int32_t open = state.items_created - state.items_done;
    const std::int32_t limit = run_.definition->nodes[i].parallel_max;
    const std::string counts = std::to_string(state.items_done) + " of " +
                               std::to_string(*state.items_total) + " items have ended, " +
                               std::to_string(open) + " are out";
    if (limit > 0 && open >= limit && state.items_created < *state.items_total)
      return add(state, "limit_reached",
                 "its max_parallel of " + std::to_string(limit) + " is reached: " + counts, state.started_at,
                 {}, open_items(i));
    add(state, "waits_for_items", counts, state.started_at, {}, open_items(i));
  }

  std::vector<std::string> open_items(NodeIndex i) const {
    std::vector<std::string> names;
    for (const auto& [ref, slot] : run_.items)
      if (ref.node == i && !is_terminal(slot.state.status) && names.size() < names_max)
        names.push_back(slot.state.node_id);
    return names;
  }

  void explain_task(const NodeState& state) {
    if (is_terminal(state.status)) return;
    if (state.status == NodeStatus::running) {
      const std::string worker = state.worker_id.value_or("a worker");
      const bool is_published = worker.starts_with(broker_prefix);
      const std::string who = is_published ? "it was published to the broker '" + worker.substr(broker_prefix.size()) + "', and no result has come yet"
                                           : "worker '" + worker + "' is running it";
      return add(state, "running", who + ", delivery " + std::to_string(state.delivery_count), state.started_at, state.lease_until, {worker});
    }
    if (state.status == NodeStatus::ready && state.timer_due)
      return add(state, "retry_later",
                 "attempt " + std::to_string(state.retry_count) + " failed (" + state.error.value_or("") +
                     "); the next one is due at " + to_iso(*state.timer_due),
                 {}, state.timer_due);
    if (run_.job.paused_at) return explain_paused(state);
    if (state.status == NodeStatus::dispatched && state.queue) explain_queue(state);
  }

  void explain_queue(const NodeState& state) {
    const std::string queue = "queue '" + *state.queue + "'";
    const auto seen = look_at_queue_(state.tenant, *state.queue);
    if (seen.trouble) return add(state, "broker_away", queue + " is published through a broker: " + *seen.trouble, state.dispatched_at);
    if (!seen.last_poll)
      return add(state, "no_worker", "no worker has asked for work on " + queue + " since the server started",
                 state.dispatched_at);
    if (seen.workers == 0 && *seen.last_poll < now_ - std::chrono::minutes{1})
      return add(state, "no_worker",
                 "no worker is on " + queue + "; the last one asked at " + to_iso(*seen.last_poll),
                 state.dispatched_at);
    add(state, "workers_busy",
        counted(seen.workers, "worker") + " on " + queue + ", " + counted(seen.running, "task") +
            " running; this one waits for its turn (priority " + std::to_string(state.priority) + ")",
        state.dispatched_at);
  }

  // The job's own reason is that of the node nearest to running.
  void summarize(Explanation& out) const {
    if (run_.job.paused_at) {
      out.reason = "paused";
      out.summary = "paused" + (run_.job.paused_by ? " by " + *run_.job.paused_by : std::string()) +
                    " since " + to_iso(*run_.job.paused_at);
      return;
    }
    const auto nearest = std::ranges::find_if(
        out.waiting, [](const WaitingNode& node) { return node.status != NodeStatus::pending; });
    if (nearest == out.waiting.end()) {
      out.reason = "starting";
      out.summary = "it is about to go on";
      return;
    }
    out.reason = nearest->reason;
    out.summary = "node '" + nearest->node_id + "': " + nearest->message;
  }

  Run& run_;
  const LookAtQueue& look_at_queue_;
  const Time now_;
  std::vector<WaitingNode> waiting_;
};

}  // namespace

Explanation explain(Run& run, const LookAtQueue& look_at_queue, Time now) {
  return Explainer(run, look_at_queue, now).explain();
}

}  // namespace baton::workflow
