#include "engine/kinds/workflows/workflows.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "engine/kinds/workflows/transaction.hpp"

namespace baton::engine {
namespace {

// All at once; one by one when there is one among them that cannot be read, which is told and left out.
Result<std::vector<workflow::NodeState>> load_readable(Store& store, const std::vector<NodeKey>& keys, Effects& effects) {
  auto loaded = store.load(LoadRequest{.nodes = keys});
  if (loaded) return std::move(loaded->nodes);
  if (loaded.error().code != Code::invalid) return std::unexpected(loaded.error());
  std::vector<workflow::NodeState> nodes;
  for (const NodeKey& key : keys) {
    auto one = store.load(LoadRequest{.nodes = {key}});
    if (one)
      std::ranges::move(one->nodes, std::back_inserter(nodes));
    else if (one.error().code == Code::invalid)
      effects.emplace_back(cannot_go_on(key.job_id, one.error().message));
    else
      return std::unexpected(one.error());
  }
  return nodes;
}

}  // namespace

Workflows::Workflows(const WorkflowsOptions& options, metrics::Registry* metrics)
    : policy_(options.policy),
      chunks_max_(options.chunks_max),
      events_max_(options.events_max),
      steps_max_(options.steps_max),
      trouble_of_queue_(options.trouble_of_queue),
      jobs_created_(counter_in(metrics, "baton_jobs_created_total", "Jobs created.")),
      jobs_ended_(counter_in(metrics, "baton_jobs_ended_total", "Jobs that completed, failed or were cancelled.")),
      progressions_(options.expansions_max),
      hot_runs_(options.hot_bytes_max),
      shares_(options.steps_share) {}

std::unique_ptr<Transaction> Workflows::begin(Turn turn) {
  return std::make_unique<WorkflowTransaction>(*this, turn);
}

void Workflows::turn_begins() {
  definitions_.trim();
  shares_.next_turn();
}

// A publishing whose outcome was in doubt may have happened, so what is known of the latest versions is dropped.
void Workflows::opened(Time now, Duration short_lease) {
  policy_.opened_at = now;
  policy_.short_lease = short_lease;
  definitions_.clear();
}

// That worker is gone for sure, so nobody waits for its leases to run out.
Result<std::vector<Command>> Workflows::at_start(Store& store, std::span<const TaskLease> given_back, Effects& effects) {
  constexpr std::size_t chunk = 1'000;
  TRY_ASSIGN(auto keys, store.running_builtin(chunk));
  TRY_ASSIGN(auto nodes, load_readable(store, keys, effects));
  std::set<std::string_view> waiting;
  for (const TaskLease& lease : given_back) waiting.insert(lease.task_id);
  std::erase_if(nodes, [&](const workflow::NodeState& node) { return node.task_id && waiting.contains(*node.task_id); });
  std::vector<Command> commands;
  if (keys == taken_back_) {  // their leases run out some time
    for (const workflow::NodeState& node : nodes)
      effects.emplace_back(cannot_go_on(node.job_id, "its task cannot be taken back from the built-in worker"));
    return commands;
  }
  for (const workflow::NodeState& node : nodes)
    if (node.task_id)
      commands.emplace_back(
          ReturnTasks{.tasks = {{*node.task_id, workflow::lease_token(node)}}, .reason = "the server was restarted"});
  taken_back_ = std::move(keys);
  return commands;
}

Warn cannot_go_on(const workflow::JobId& job, const std::string& why) {
  return {subject_of(job), "job " + job.value + " cannot go on: " + why};
}

}  // namespace baton::engine
