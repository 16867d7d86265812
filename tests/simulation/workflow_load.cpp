#include "tests/simulation/workflow_load.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "tests/simulation/actors.hpp"
#include "tests/simulation/broker.hpp"
#include "tests/simulation/definitions.hpp"

namespace baton::simulation {

using namespace workflow;

namespace {
constexpr std::array tenants{"default", "acme"};
}  // namespace

WorkflowLoad::WorkflowLoad(World& world)
    : world_(world), random_(world.random_), calm_(world.calm_), database_(world.database_) {
  for (const std::string_view text : definitions) {
    const auto parsed = parse(text);
    ENSURE(parsed.definition);
    definitions_[parsed.definition->workflow_id] = parsed.definition;
  }
  const auto clients = random_.between(1, 5);
  for (int i = 0; i < clients; ++i)
    clients_.push_back(
        std::make_unique<Client>(world, Tenant{tenants[i % 2]}, i / 2, static_cast<int>(random_.between(1, 8))));
  workers_.push_back(std::make_unique<Worker>(world, std::nullopt, 100, std::string(builtin_queue), true));
  const auto workers = random_.between(4, 7);  // one that beats for each queue of each tenant
  for (int i = 0; i < workers; ++i)
    workers_.push_back(std::make_unique<Worker>(world, Tenant{tenants[i / 2 % 2]}, i, i % 2 == 0 ? "q1" : "q2",
                                                i < 4 || random_.chance(0.6)));
  for (const char* tenant : tenants)
    intruders_.push_back(std::make_unique<Intruder>(world, Tenant{tenant}, static_cast<int>(random_.between(0, 15))));
  if (!random_.chance(0.5)) return;
  broker_ = std::make_unique<Broker>(world);
  publisher_ = std::make_unique<Publisher>(world, *broker_, random_.chance(0.5) ? "q1" : "q2");
}

WorkflowLoad::~WorkflowLoad() = default;

void WorkflowLoad::start() {
  for (auto& client : clients_) client->start();
  for (auto& worker : workers_) worker->start();
  for (auto& intruder : intruders_) intruder->start();
}

void WorkflowLoad::engine_started() {
  publish();
  if (publisher_) publisher_->engine_started();
}

namespace {

// For a planted bug: the engine is told of limits that it never reaches; what is checked are those of `definitions`.
std::string without_limits(std::string_view text) {
  constexpr std::string_view limit = "max_parallel: ";
  std::string without(text);
  for (std::size_t at = 0; (at = without.find(limit, at)) != std::string::npos; at += limit.size())
    without.insert(at + limit.size(), "9");
  return without;
}

}  // namespace

void WorkflowLoad::publish() {
  for (const std::string_view definition : definitions) {
    const std::string text = MUTANT(ignore_max_parallel) ? without_limits(definition) : std::string(definition);
    const auto parsed = parse(text).definition;
    for (const char* tenant : tenants) world_.tell_engine(PublishWorkflow{{tenant}, parsed, text}, [](const Reply&) {});
  }
}

void WorkflowLoad::engine_died() {
  for (auto& worker : workers_) worker->engine_died();
  if (publisher_) publisher_->engine_died();
}

// When the faults are over, somebody resumes what was left paused.
void WorkflowLoad::tidy_up() {
  if (world_.has_.runbooks) publish();  // it may have been refused when the engine started
  if (!calm_) return;
  for (const auto& [id, job] : database_.jobs)
    if (job.paused_at && !is_terminal(job.status))
      world_.send(ChangeJob{job.tenant, id, ChangeJob::What::resume, "janitor", ""}, [](const Reply&) {});
}

bool WorkflowLoad::at_rest() const {
  const auto is_ours = [](const Timer& timer) { return timer.subject.type == Subject::Type::job; };
  return std::ranges::none_of(database_.timers, is_ours) &&
         std::ranges::all_of(database_.jobs,
                             [](const auto& entry) { return is_terminal(entry.second.status); });
}

void WorkflowLoad::committed(const WriteSet& writes) {
  check_tenants(writes);
  for (const Job& job : writes.jobs_new) touched_.insert(job.job_id);
  for (const Job& job : writes.jobs_changed) touched_.insert(job.job_id);
  for (const NodeState& node : writes.nodes_new) touched_.insert(node.job_id);
  for (const NodeState& node : writes.nodes_changed) touched_.insert(node.job_id);
  for (const Event& event : writes.events_new) touched_.insert(event.job_id);
  check_settled(writes);
}

// Stores pack what a completed job leaves, so it must not change any more.
void WorkflowLoad::check_settled(const WriteSet& writes) {
  for (const NodeState& node : writes.nodes_changed)
    expect(!completed_.contains(node.job_id) || !settled_.contains(key_of(node)), "what a completed job leaves never changes",
           node.job_id.value + " " + node.node_id);
  const auto is_open = [&](const auto& row) {
    expect(!completed_.contains(row.job_id), "what a completed job leaves never changes", row.job_id.value);
  };
  std::ranges::for_each(writes.nodes_new, is_open);
  std::ranges::for_each(writes.task_results_new, is_open);
  std::ranges::for_each(writes.events_new, is_open);
  for (const auto* jobs : {&writes.jobs_new, &writes.jobs_changed})
    for (const Job& job : *jobs) {
      expect(!completed_.contains(job.job_id), "what a completed job leaves never changes", job.job_id.value);
      if (job.status == JobStatus::completed) completed_.insert(job.job_id);
    }
  for (const auto* nodes : {&writes.nodes_new, &writes.nodes_changed})
    for (const NodeState& node : *nodes)
      if (is_terminal(node.status) && !node.dead_at && !node.timer_due && !node.sweep_next) settled_.insert(key_of(node));
}

}  // namespace baton::simulation
