#include "engine/kinds/workflows/workflows.hpp"

#include "engine/kinds/workflows/transaction.hpp"

namespace baton::engine {

Workflows::Workflows(const WriterOptions& options, const WriterMetrics& metrics)
    : policy_(options.policy),
      chunks_max_(options.chunks_max),
      events_max_(options.events_max),
      steps_max_(options.steps_max),
      jobs_created_(metrics.jobs_created),
      jobs_ended_(metrics.jobs_ended),
      progressions_(options.expansions_max),
      shares_(options.steps_share),
      unreadable_(options.unreadable) {}

bool Workflows::takes_task(std::string_view task_id) const {
  return workflow::parse_task_id(task_id).has_value();
}

std::unique_ptr<Transaction> Workflows::begin(Turn turn) {
  return std::make_unique<WorkflowTransaction>(*this, turn);
}

void Workflows::turn_begins() {
  definitions_.trim();
  shares_.next_turn();
}

// A publishing whose outcome was in doubt may have happened, so what is known of the latest versions is dropped.
void Workflows::opened(Time now) {
  policy_.opened_at = now;
  definitions_.clear();
}

// That worker is gone for sure, so nobody waits for its leases to run out.
Result<std::optional<Command>> Workflows::at_start(Store& store) {
  constexpr std::size_t chunk = 1'000;
  LoadRequest request;
  TRY_ASSIGN(request.nodes, store.running_builtin(chunk));
  if (request.nodes.empty()) return std::nullopt;
  if (request.nodes == taken_back_) {  // their leases run out some time
    tell_unreadable(request.nodes.front().job_id, "its task cannot be taken back from the built-in worker");
    return std::nullopt;
  }
  TRY_ASSIGN(const Loaded loaded, store.load(request));
  ReturnTasks back{.tasks = {}, .reason = "the server was restarted"};
  for (const workflow::NodeState& node : loaded.nodes)
    back.tasks.push_back({*node.task_id, workflow::lease_token(node)});
  taken_back_ = std::move(request.nodes);
  return back;
}

void Workflows::tell_unreadable(const workflow::JobId& job, const std::string& why) {
  constexpr std::size_t told_max = 10'000;
  if (told_unreadable_.size() >= told_max) told_unreadable_.clear();
  if (told_unreadable_.insert(job).second && unreadable_) unreadable_("job " + job.value + " cannot go on: " + why);
}

}  // namespace baton::engine
