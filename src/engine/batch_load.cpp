// Loading: what a batch touches is fetched in a few bulk requests, whatever the number of its messages.
#include <algorithm>
#include <iterator>

#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

namespace {

std::unexpected<Error> unreadable(const Workflow& row) {
  return fail(Code::invalid,
              "version " + std::to_string(row.version) + " of workflow '" + row.workflow_id +
                  "' was published by a version of baton whose definitions this one cannot read");
}

}  // namespace

Writer::Batch::Batch(Writer& writer, Time now, std::vector<Item> items)
    : writer_(writer), now_(now), items_(std::move(items)) {}

Result<> Writer::Batch::prepare() {
  TRY(take_due());
  TRY(load_named());
  TRY(load_neighbours());
  decide_timers();
  decide_items();
  return hand_out();
}

// Timers, and waits for the end of a job whose patience is over.
Result<> Writer::Batch::take_due() {
  if (writer_.next_timer_ && *writer_.next_timer_ <= now_) {
    TRY_ASSIGN(timers_, writer_.store_.timers_due(now_, writer_.options_.timers_max));
    timers_taken_ = true;
    more_timers_ = timers_.size() == writer_.options_.timers_max;
  }
  for (const Deadline& deadline : writer_.deadlines_) {
    if (deadline.at > now_) break;
    if (!deadline.poll) waits_over_.push_back(deadline.id);
  }
  return {};
}

void Writer::Batch::want_task(LoadRequest& request, const std::string& task_id) const {
  const auto name = parse_task_id(task_id);
  if (!name) return;
  request.jobs.push_back(name->job_id);
  request.nodes.push_back({name->job_id, name->node_id});
}

void Writer::Batch::want(LoadRequest& request, const Command& command) const {
  const auto want_workflow = [&](const WorkflowKey& key) {
    if (!writer_.definitions_.find(key)) request.workflows.push_back(key);
  };
  std::visit(overloaded{
                 [&](const SubmitJob& c) {
                   want_workflow({c.tenant, c.workflow_id, c.version});
                   if (c.idempotency_key)
                     request.idempotency_keys.push_back({c.tenant, *c.idempotency_key, {}, {}});
                 },
                 [&](const AwaitJob& c) { request.jobs.push_back(c.job_id); },
                 [&](const CancelJob& c) {
                   request.jobs.push_back(c.job_id);
                   request.all_nodes_of.push_back(c.job_id);
                 },
                 [&](const PublishWorkflow& c) {
                   want_workflow({c.tenant, c.definition->workflow_id, 0});
                   if (c.definition->version > 0)
                     want_workflow({c.tenant, c.definition->workflow_id, c.definition->version});
                 },
                 [&](const ReportResult& c) { want_task(request, c.task_id); },
                 [&](const Heartbeat& c) {
                   for (const TaskLease& lease : c.tasks) want_task(request, lease.task_id);
                 },
                 [&](const ReturnTasks& c) {
                   for (const TaskLease& lease : c.tasks) want_task(request, lease.task_id);
                 },
                 [&](const Poll&) {},
             },
             command);
}

// The rows that the messages name.
Result<> Writer::Batch::load_named() {
  LoadRequest request;
  for (const Item& item : items_) want(request, item.command);
  for (const Timer& timer : timers_) {
    request.jobs.push_back(timer.job_id);
    request.nodes.push_back({timer.job_id, timer.node_id});
  }
  for (const std::uint64_t id : waits_over_) request.jobs.push_back(writer_.waits_.at(id).job_id);
  return load_runs(std::move(request));
}

// The rows that deciding about the named ones may touch, and the jobs that earlier submits with the same key
// have made.
Result<> Writer::Batch::load_neighbours() {
  LoadRequest request;
  for (const auto& [name, key] : keys_) request.jobs.push_back(key.job_id);
  // A job can end in this batch only if there are as many messages about it as it has active nodes.
  std::unordered_map<JobId, std::int32_t> messages;
  std::vector<std::pair<Task, const ReportResult*>> tasks;
  for (const Item& item : items_) {
    const auto* result = std::get_if<ReportResult>(&item.command);
    const auto found = result ? task(result->task_id, std::nullopt) : std::nullopt;
    if (found) tasks.emplace_back(*found, result);
  }
  for (const Timer& timer : timers_) {
    Run* found = run(timer.job_id);
    const auto node = found ? found->definition->find(timer.node_id) : std::nullopt;
    if (node && found->has(*node)) tasks.emplace_back(Task{found, *node, 0}, nullptr);
  }
  for (const auto& [found, result] : tasks) ++messages[found.run->job.job_id];
  for (const auto& [found, result] : tasks) {
    const Run& r = *found.run;
    const JobId& job_id = r.job.job_id;
    if (result && result_may_be_repeated(found.run->at(found.node).state, found.retry_count))
      request.task_results.push_back(result->task_id);
    if (may_fail_node(r, found.node, result ? std::optional{result->completed} : std::nullopt,
                      found.retry_count, writer_.options_.policy) ||
        r.job.nodes_active <= messages[job_id]) {
      request.all_nodes_of.push_back(job_id);
    } else if (result) {
      for (const NodeIndex next : r.definition->nodes[found.node].next)
        request.nodes.push_back({job_id, r.definition->nodes[next].id});
    }
  }
  return load_runs(std::move(request));
}

Result<> Writer::Batch::load_runs(LoadRequest request) {
  std::erase_if(request.jobs, [&](const JobId& id) { return runs_.contains(id); });
  if (request.jobs.empty() && request.nodes.empty() && request.all_nodes_of.empty() &&
      request.task_results.empty() && request.workflows.empty() && request.idempotency_keys.empty())
    return {};
  TRY_ASSIGN(Loaded loaded, writer_.store_.load(request));
  for (const Workflow& row : loaded.workflows) {
    const bool latest = std::ranges::any_of(request.workflows, [&](const WorkflowKey& key) {
      return key.version == 0 && key.workflow_id == row.workflow_id && key.tenant == row.tenant;
    });
    // Of the rows of one workflow the store was asked for, the newest is the latest when the latest was asked
    // for.
    const auto* known = definition({row.tenant, row.workflow_id, 0});
    if (!writer_.definitions_.add(row, latest && (!known || known->definition->version <= row.version)))
      return unreadable(row);
  }
  for (IdempotencyKey& key : loaded.idempotency_keys)
    keys_.emplace(std::pair{key.tenant, key.idempotency_key}, key);
  for (TaskResult& result : loaded.task_results) stored_results_.emplace(result.task_id, std::move(result));
  TRY(load_definitions(loaded.jobs));
  for (Job& job : loaded.jobs) {
    const auto* known = definition({job.tenant, job.workflow_id, job.workflow_version});
    ENSURE(known);  // a job's definition is never deleted
    JobId id = job.job_id;
    runs_.try_emplace(std::move(id), known->definition, std::move(job));
  }
  for (NodeState& node : loaded.nodes)
    if (Run* found = run(node.job_id)) found->add(std::move(node));
  return {};
}

Result<> Writer::Batch::load_definitions(const std::vector<Job>& jobs) {
  LoadRequest request;
  for (const Job& job : jobs) {
    WorkflowKey key{job.tenant, job.workflow_id, job.workflow_version};
    if (!definition(key)) request.workflows.push_back(std::move(key));
  }
  if (request.workflows.empty()) return {};
  TRY_ASSIGN(const Loaded loaded, writer_.store_.load(request));
  for (const Workflow& row : loaded.workflows)
    if (!writer_.definitions_.add(row, false)) return unreadable(row);
  return {};
}

const KnownDefinition* Writer::Batch::definition(const WorkflowKey& key) const {
  const auto it = published_.find(key);
  return it != published_.end() ? &it->second : writer_.definitions_.find(key);
}

Run* Writer::Batch::run(const JobId& job_id) {
  const auto it = runs_.find(job_id);
  return it == runs_.end() ? nullptr : &it->second;
}

// The loaded task of that id, if it exists and the caller may touch it.
std::optional<Writer::Batch::Task> Writer::Batch::task(const std::string& task_id,
                                                       const std::optional<Tenant>& tenant) {
  const auto name = parse_task_id(task_id);
  if (!name) return std::nullopt;
  Run* found = run(name->job_id);
  if (!found || (tenant && *tenant != found->job.tenant)) return std::nullopt;
  const auto node = found->definition->find(name->node_id);
  if (!node || !found->has(*node)) return std::nullopt;
  return Task{found, *node, name->retry_count};
}

}  // namespace baton::engine
