// Loading: what a batch touches is fetched in a few bulk requests, whatever the number of its messages.
#include <algorithm>
#include <deque>
#include <iterator>

#include "base/mutant.hpp"
#include "engine/kinds/workflows/transaction.hpp"

namespace baton::engine {

using namespace workflow;

namespace {

std::unexpected<Error> unreadable(const Workflow& row) {
  return fail(Code::invalid,
              "version " + std::to_string(row.version) + " of workflow '" + row.workflow_id +
                  "' was published by a version of baton whose definitions this one cannot read");
}

}  // namespace

Result<> WorkflowTransaction::load(std::span<const Item> items, std::span<const Timer> timers) {
  TRY(load_named(items, timers));
  find_least_debt(items, timers);
  TRY(load_neighbours(items, timers));
  return load_explained(items);
}

Result<> WorkflowTransaction::restart() {
  whole_.merge(rows_.missing);
  rows_ = Rows(kind_.steps_max_);
  return {};
}

// A name that ends in a number may be a node's or that of a child: which of the two the definition knows.
void WorkflowTransaction::want_node(LoadRequest& request, const JobId& job_id, const std::string& node_id) {
  request.nodes.push_back({job_id, no_item, node_id});
  if (const auto name = parse_item_name(node_id)) {
    request.nodes.push_back({job_id, name->item, node_id});
    request.nodes.push_back({job_id, no_item, std::string(name->fan_out)});
  }
}

void WorkflowTransaction::want_task(LoadRequest& request, std::string_view task_id) {
  const auto name = parse_task_id(task_id);
  if (!name) return;
  if (const Run* known = at_hand(name->job_id); known && known->has_input()) {
    const auto ref = known->definition->locate(name->node_id);
    if (ref && known->has(*ref) && known->has(NodeRef{ref->node})) return;
  }
  // Whoever waits for the end of the job is told it with its documents.
  const JobId job_id{std::string(name->job_id)};
  (is_awaited(job_id) ? request.jobs_whole : request.jobs).push_back(job_id);
  want_node(request, job_id, std::string(name->node_id));
}

void WorkflowTransaction::want_one(LoadRequest& request, const Run& r, NodeIndex node) {
  if (!r.has(NodeRef{node})) request.nodes.push_back({r.job.job_id, no_item, r.definition->nodes[node].id});
}

void WorkflowTransaction::want_all_nodes(LoadRequest& request, const Run& r) {
  for (NodeIndex node = 0; node < r.definition->nodes.size(); ++node) want_one(request, r, node);
}

// What the completion of a node is likely to touch.
void WorkflowTransaction::want_touched(LoadRequest& request, const Run& r, NodeIndex node) {
  const Node& definition = r.definition->nodes[node];
  for (const NodeIndex other : definition.touches) want_one(request, r, other);
  if (definition.touches_input && !r.has_input()) request.jobs_whole.push_back(r.job.job_id);
}

// What the expressions of a node look at.
void WorkflowTransaction::want_read(LoadRequest& request, const Run& r, NodeIndex node) {
  for (const NodeIndex other : r.definition->nodes[node].reads) want_one(request, r, other);
  if (r.definition->nodes[node].reads_input && !r.has_input()) request.jobs_whole.push_back(r.job.job_id);
}

void WorkflowTransaction::want(LoadRequest& request, const Command& command) {
  const auto want_workflow = [&](const WorkflowKey& key) {
    if (!kind_.definitions_.find(key)) request.workflows.push_back(key);
  };
  std::visit(overloaded{
                 [&](const SubmitJob& c) {
                   want_workflow({c.tenant, c.workflow_id, c.version});
                   if (c.idempotency_key)
                     request.idempotency_keys.push_back({c.tenant, *c.idempotency_key, {}, {}});
                 },
                 [&](const AwaitJob& c) { request.jobs.push_back(c.job_id); },
                 [&](const ChangeJob& c) { request.jobs.push_back(c.job_id); },
                 [&](const DecideApproval& c) { request.jobs.push_back(c.job_id); },
                 [&](const ExplainJob& c) { request.jobs.push_back(c.job_id); },
                 [&](const ReplayTask& c) { want_task(request, c.task_id); },
                 [&](const one_of<TaskNote, SettleTask> auto& c) { want_task(request, c.task_id); },
                 [&](const one_of<ListWorkers, LookAtQueues> auto&) {},
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
                 [&](const auto&) {},  // not about workflows
             },
             command);
}

// The rows that the messages name.
Result<> WorkflowTransaction::load_named(std::span<const Item> items, std::span<const Timer> timers) {
  LoadRequest request;
  for (const Item& item : items) want(request, item.command);
  for (const Timer& timer : timers) {
    if (!kind_.owns(timer.subject.type)) continue;
    request.jobs.push_back({timer.subject.id});
    want_node(request, request.jobs.back(), timer.what);
  }
  return load_runs(std::move(request));
}

void WorkflowTransaction::want_items(LoadRequest& request, Run& r, NodeIndex fan_out, NodeIndex walker,
                               std::int32_t from) const {
  const ItemRange range{from, from + kind_.policy_.items_chunk};
  r.item_ranges[walker] = range;
  for (std::int32_t item = range.from; item < range.until; ++item)
    request.nodes.push_back({r.job.job_id, item, item_name(r.definition->nodes[fan_out].id, item)});
}

void WorkflowTransaction::want_after_report(LoadRequest& request, const Task& task, const ReportResult& report,
                                      const Messages& messages) {
  Run& r = *task.run;
  const NodeState& state = r.at(task.ref).state;
  if (result_may_be_repeated(state, task.retry_count)) request.task_results.push_back(report.task_id);
  const Node& node = r.node(task.ref);
  // A job can end in this batch only if there are as many messages about it as it has active nodes, and a
  // fan-out only if there are as many as it has open items.
  const auto about_job = messages.find({&r, NodeRef{}});
  bool completes = true;
  if (task.ref.is_item()) {
    const auto about_items = messages.find({&r, NodeRef{task.ref.node, 0}});
    const NodeRef parent{task.ref.node};
    completes =
        r.has(parent) && about_items != messages.end() &&
        r.at(parent).state.items_total.value_or(0) - r.at(parent).state.items_done <= about_items->second;
  }
  if (may_fail_node(r, task.ref, report.completed, task.retry_count, kind_.policy_) ||
      (completes && node.may_end_job && r.job.nodes_active <= about_job->second))
    want_all_nodes(request, r);
  if (completes) want_touched(request, r, task.ref.node);
}

void WorkflowTransaction::want_after_timer(LoadRequest& request, const Task& task) {
  Run& r = *task.run;
  const Node& node = r.node(task.ref);
  const NodeIndex i = task.ref.node;
  const NodeState& state = r.at(task.ref).state;
  if (state.status == NodeStatus::ready && !task.ref.is_item() && !state.params && !state.started_at)
    want_read(request, r, i);  // it was put off before its expressions were evaluated
  if (task.ref.is_item() || node.type == NodeType::task) {
    if (may_fail_node(r, task.ref, std::nullopt, 0, kind_.policy_))
      want_all_nodes(request, r);
    else if (node.on_failure == Consequence::go_on)
      want_touched(request, r, i);
    return;
  }
  if (node.type == NodeType::fan_out) {
    kind_.progressions_.lend(r, i);
    const auto& sweep_next = r.at(i).state.sweep_next;
    if (sweep_next) return want_items(request, r, i, i, *sweep_next);
    if (!r.expansions.contains(i)) want_read(request, r, i);
    return;
  }
  if (node.type == NodeType::fan_in) {
    kind_.progressions_.lend(r, i);
    const auto so_far = r.gatherings.find(i);
    want_items(request, r, node.incoming.front(), i, so_far == r.gatherings.end() ? 0 : so_far->second.next);
    request.nodes.push_back({r.job.job_id, no_item, r.definition->nodes[node.incoming.front()].id});
  }
  if (node.may_end_job && r.job.nodes_active <= 1) want_all_nodes(request, r);
  want_touched(request, r, i);
}

// The rows that deciding about the named ones is likely to touch, and the jobs that earlier submits with the
// same key have made.
Result<> WorkflowTransaction::load_neighbours(std::span<const Item> items, std::span<const Timer> timers) {
  LoadRequest request;
  for (const auto& [name, key] : rows_.keys) request.jobs.push_back(key.job_id);
  for (const JobId& id : whole_) {
    request.jobs_whole.push_back(id);
    if (const Run* found = run(id)) want_all_nodes(request, *found);
  }
  Messages messages;
  std::vector<std::pair<Task, const ReportResult*>> tasks;
  for (const Item& item : items) {
    if (const auto* result = std::get_if<ReportResult>(&item.command))
      if (const auto found = task(result->task_id, std::nullopt)) tasks.emplace_back(*found, result);
    const auto* change = std::get_if<ChangeJob>(&item.command);
    const auto* approval = std::get_if<DecideApproval>(&item.command);
    const auto* question = std::get_if<ExplainJob>(&item.command);
    const auto* replay = std::get_if<ReplayTask>(&item.command);
    const auto replayed = replay ? parse_task_id(replay->task_id) : std::nullopt;
    const std::string_view about = change     ? change->job_id.value
                                   : approval ? approval->job_id.value
                                   : question ? question->job_id.value
                                   : replayed ? replayed->job_id
                                              : std::string_view();
    if (const Run* found = run(about)) {
      want_all_nodes(request, *found);
      if (!question) request.jobs_whole.push_back(found->job.job_id);  // what goes on may look at the input
    }
  }
  choose_chunks(timers);
  for (const Timer& timer : timers) {
    const auto found = kind_.owns(timer.subject.type) ? task(timer) : std::nullopt;
    if (found && (!is_chunk(*found->run, found->ref) || rows_.chunks.contains(timer)))
      tasks.emplace_back(*found, nullptr);
  }
  for (const auto& [found, result] : tasks) {
    if (found.ref.is_item()) ++messages[{found.run, NodeRef{found.ref.node, 0}}];
    ++messages[{found.run, NodeRef{}}];
  }
  for (const auto& [found, result] : tasks) {
    if (result)
      want_after_report(request, found, *result, messages);
    else
      want_after_timer(request, found);
  }
  return load_runs(std::move(request));
}

// A timer of a fan_out or a fan_in itself is the next step of a walk over its children.
bool WorkflowTransaction::is_chunk(const Run& run, NodeRef ref) {
  const NodeType type = run.node(ref).type;
  return !ref.is_item() && (type == NodeType::fan_out || type == NodeType::fan_in);
}

// Of the steps of large fan-outs only a few have their turn in one batch: each may bring a thousand rows. The
// others stay due. Tenants take turns, those with the smallest debt first.
void WorkflowTransaction::choose_chunks(std::span<const Timer> timers) {
  std::map<std::pair<std::int64_t, Tenant>, std::deque<Timer>> waiting;  // by debt and tenant
  for (const Timer& timer : timers) {
    const auto found = kind_.owns(timer.subject.type) ? task(timer) : std::nullopt;
    if (!found || !is_chunk(*found->run, found->ref)) continue;
    const Job& job = found->run->job;
    if (has_to_wait(job.tenant)) continue;
    const bool gathers = found->run->node(found->ref).type == NodeType::fan_in;
    if (gathers && !kind_.progressions_.may_gather({job.job_id, no_item, timer.what})) continue;
    waiting[{kind_.shares_.debt(job.tenant), job.tenant}].push_back(timer);
  }
  while (!waiting.empty() && rows_.chunks.size() < static_cast<std::size_t>(kind_.chunks_max_))
    for (auto it = waiting.begin(); it != waiting.end();) {
      if (rows_.chunks.size() >= static_cast<std::size_t>(kind_.chunks_max_)) return;
      rows_.chunks.insert(it->second.front());
      it->second.pop_front();
      it = it->second.empty() ? waiting.erase(it) : std::next(it);
    }
}

// Whoever has something to do in this batch and the smallest debt, mostly none, goes first.
void WorkflowTransaction::find_least_debt(std::span<const Item> items, std::span<const Timer> timers) {
  if (!kind_.shares_.has_debts()) return;
  std::optional<std::int64_t> least;
  const auto look = [&](const Tenant& tenant) {
    const std::int64_t debt = kind_.shares_.debt(tenant);
    least = std::min(least.value_or(debt), debt);
  };
  for (const Item& item : items) look(tenant_of(item));
  for (const Timer& timer : timers)
    if (kind_.owns(timer.subject.type)) look(tenant_of(timer));
  rows_.least_debt = least.value_or(0);
}

// Whoever asks why a fan-out does not go on is told of some of its children.
Result<> WorkflowTransaction::load_explained(std::span<const Item> items) {
  constexpr std::int32_t shown = 50;
  LoadRequest request;
  for (const Item& item : items) {
    const auto* question = std::get_if<ExplainJob>(&item.command);
    Run* found = question ? run(question->job_id) : nullptr;
    if (!found) continue;
    for (NodeIndex i = 0; i < found->nodes.size(); ++i) {
      if (!found->has(NodeRef{i})) continue;
      const NodeState& state = found->at(i).state;
      if (state.items_created == state.items_done) continue;
      for (std::int32_t n = std::max(0, state.items_created - shown); n < state.items_created; ++n)
        request.nodes.push_back({question->job_id, n, item_name(state.node_id, n)});
    }
  }
  return load_runs(std::move(request));
}

// Answers tell the job with its documents, which deciding could do without.
Result<> WorkflowTransaction::complete() {
  LoadRequest request;
  const auto want_job = [&](const JobId& id) {
    if (const Run* found = run(id); found && !found->has_input()) request.jobs_whole.push_back(id);
  };
  for (const JobAnswer& answer : rows_.answers) want_job(answer.job_id);
  for (const JobId& id : rows_.decided.ended)
    if (is_awaited(id)) want_job(id);
  return load_runs(std::move(request));
}

// Whatever of the jobs is in memory need not be loaded.
void WorkflowTransaction::take_hot(const LoadRequest& request) {
  for (const JobId& id : request.jobs) (void)at_hand(id.value);
  for (const JobId& id : request.jobs_whole) (void)at_hand(id.value);
  for (const NodeKey& key : request.nodes) (void)at_hand(key.job_id.value);
}

Run* WorkflowTransaction::at_hand(std::string_view job_id) {
  if (Run* found = run(job_id)) return found;
  auto hot = kind_.hot_runs_.take(job_id);
  if (!hot) return nullptr;
  JobId id = hot->job.job_id;
  return &rows_.runs.try_emplace(std::move(id), *std::move(hot)).first->second;
}

Result<> WorkflowTransaction::load_runs(LoadRequest request) {
  take_hot(request);
  std::erase_if(request.jobs, [&](const JobId& id) { return rows_.runs.contains(id); });
  std::erase_if(request.jobs_whole, [&](const JobId& id) { return run(id) && run(id)->has_input(); });
  std::erase_if(request.nodes, [&](const NodeKey& key) {
    const Run* found = run(key.job_id);
    const auto ref = found ? found->definition->locate(key.node_id) : std::nullopt;
    return found && (!ref || found->has(*ref));
  });
  if (request.jobs.empty() && request.jobs_whole.empty() && request.nodes.empty() &&
      request.task_results.empty() && request.workflows.empty() && request.idempotency_keys.empty())
    return {};
  TRY_ASSIGN(Loaded loaded, turn_.store.load(request));
  for (const Workflow& row : loaded.workflows) {
    const bool latest = std::ranges::any_of(request.workflows, [&](const WorkflowKey& key) {
      return key.version == 0 && key.workflow_id == row.workflow_id && key.tenant == row.tenant;
    });
    // Of the rows of one workflow the store was asked for, the newest is the latest when the latest was asked
    // for.
    const auto* known = definition({row.tenant, row.workflow_id, 0});
    if (!kind_.definitions_.add(row, latest && (!known || known->definition->version <= row.version)))
      return unreadable(row);
  }
  for (IdempotencyKey& key : loaded.idempotency_keys)
    rows_.keys.emplace(std::pair{key.tenant, key.idempotency_key}, key);
  for (TaskResult& result : loaded.task_results) rows_.stored_results.emplace(result.task_id, std::move(result));
  TRY(load_definitions(loaded.jobs));
  for (Job& job : loaded.jobs) {
    const auto* known = definition({job.tenant, job.workflow_id, job.workflow_version});
    if (!known)  // we never delete one; somebody else may
      return fail(Code::invalid, "job " + job.job_id.value + " is of version " + std::to_string(job.workflow_version) +
                                     " of workflow '" + job.workflow_id + "', which is not stored");
    JobId id = job.job_id;
    if (Run* found = run(id))
      found->add_documents(std::move(job));
    else
      rows_.runs.try_emplace(std::move(id), known->definition, std::move(job));
  }
  for (NodeState& node : loaded.nodes)
    if (Run* found = run(node.job_id)) found->add(std::move(node));
  return {};
}

Result<> WorkflowTransaction::load_definitions(const std::vector<Job>& jobs) {
  LoadRequest request;
  for (const Job& job : jobs) {
    WorkflowKey key{job.tenant, job.workflow_id, job.workflow_version};
    if (!definition(key)) request.workflows.push_back(std::move(key));
  }
  if (request.workflows.empty()) return {};
  TRY_ASSIGN(const Loaded loaded, turn_.store.load(request));
  for (const Workflow& row : loaded.workflows)
    if (!kind_.definitions_.add(row, false)) return unreadable(row);
  return {};
}

const KnownDefinition* WorkflowTransaction::definition(const WorkflowKey& key) const {
  const auto it = rows_.published.find(key);
  return it != rows_.published.end() ? &it->second : kind_.definitions_.find(key);
}

Run* WorkflowTransaction::run(std::string_view job_id) {
  const auto it = rows_.runs.find(job_id);
  return it == rows_.runs.end() ? nullptr : &it->second;
}

// The loaded task of that id, if it exists and the caller may touch it.
std::optional<WorkflowTransaction::Task> WorkflowTransaction::task(std::string_view task_id,
                                                                    const std::optional<Tenant>& tenant) {
  const auto name = parse_task_id(task_id);
  if (!name) return std::nullopt;
  Run* found = run(name->job_id);
  if (!found || (tenant && *tenant != found->job.tenant && !MUTANT(tenant_not_checked))) return std::nullopt;
  const auto ref = found->definition->locate(name->node_id);
  if (!ref || !found->has(*ref)) return std::nullopt;
  return Task{found, *ref, name->retry_count};
}

}  // namespace baton::engine
