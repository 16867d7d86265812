// What workers say of tasks, and what they get.
#include "base/mutant.hpp"
#include "engine/kinds/workflows/transaction.hpp"

namespace baton::engine {

using namespace workflow;

Reply WorkflowTransaction::decide(const ReportResult& c) {
  const auto found = task(c.task_id, c.tenant);
  if (!found) return Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}};
  if (!agrees(*parse_task_id(c.task_id), c.job_id.value, c.node_id))
    return Refused{
        Refusal::invalid_input, "job_id and node_id are not those of task '" + c.task_id + "'", {}};
  const auto earlier = rows_.stored_results.find(c.task_id);
  const TaskReport said{found->retry_count,     c.completed, c.output, c.error, c.lease, c.worker,
                    c.execution_duration_ms};
  switch (report(*found->run, found->ref, said, earlier == rows_.stored_results.end() ? nullptr : &earlier->second,
                 kind_.policy_, turn_.now, rows_.decided)) {
    case Verdict::accepted:
      // A worker that does not say its name is the one that was handed the task.
      if (const NodeState& state = found->run->at(found->ref).state; state.worker_id && !state.tenant.empty())
        turn_.effects.emplace_back(
            WorkerReported{found->run->job.tenant, *state.worker_id, c.task_id, c.completed});
      return ResultReply{false};
    case Verdict::duplicate: return ResultReply{true};
    case Verdict::stale: break;
  }
  return Refused{Refusal::stale_result,
                 "task '" + c.task_id + "' is " + std::string(name(found->run->at(found->ref).state.status)) +
                     " and not waiting for this result: its lease or its attempt is over",
                 {}};
}

Reply WorkflowTransaction::decide(const TaskNote& c) {
  const auto found = task(c.task_id, c.tenant);
  if (!found) return Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}};
  Run& r = *found->run;
  const Policy& policy = kind_.policy_;
  const AttemptLease attempt{found->retry_count, c.lease};
  NoteReply reply;
  const bool heard =
      std::visit(overloaded{
                     [&](const TaskProgress& n) { return progress(r, found->ref, attempt, n.progress); },
                     [&](const TaskCheckpoint& n) {
                       return checkpoint(r, found->ref, attempt, n.data, policy, turn_.now, rows_.decided);
                     },
                     [&](const TaskLog& n) {
                       const LogVerdict verdict = log(r, found->ref, attempt, n.lines, policy);
                       reply.stored = verdict.stored;
                       return verdict.accepted;
                     },
                 },
                 c.note);
  if (heard) return reply;
  return Refused{Refusal::stale_result,
                 "task '" + c.task_id + "' is " + std::string(name(r.at(found->ref).state.status)) +
                     ": its lease or its attempt is over",
                 {}};
}

Reply WorkflowTransaction::decide(const SettleTask& c) {
  const auto found = task(c.task_id, c.tenant);
  if (!found) return Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}};
  Run& r = *found->run;
  const auto settle = [&](auto&& how) {
    return how(r, found->ref, c.lease, c.reason, kind_.policy_, turn_.now, rows_.decided);
  };
  const bool is_its = c.how == SettleTask::How::keep      ? workflow::keep(r, found->ref, {found->retry_count, c.lease}, turn_.now)
                      : c.how == SettleTask::How::abandon ? settle(workflow::abandon)
                                                          : settle(workflow::give_up);
  if (is_its) return SettleReply{};
  return Refused{Refusal::stale_result, "the lease of task '" + c.task_id + "' is over", {}};
}

Renewal WorkflowTransaction::renew(const TaskLease& lease, Duration lease_time, const std::optional<Tenant>& caller) {
  Renewal renewal;
  unless_missing([&] {
    const auto found = task(lease.task_id, caller);
    if (!found) return;
    renewal.tenant = found->run->job.tenant;
    renewal.renewed = workflow::renew(*found->run, found->ref, lease.lease, lease_time, turn_.now);
  });
  return renewal;
}

void WorkflowTransaction::give_back(const TaskLease& lease, const std::string& reason) {
  unless_missing([&] {
    if (const auto found = task(lease.task_id, std::nullopt))
      (void)workflow::give_back(*found->run, found->ref, lease.lease, reason, kind_.policy_, turn_.now,
                                rows_.decided);
  });
}

std::vector<Ready> WorkflowTransaction::take_ready() {
  std::vector<Ready> all;
  all.reserve(rows_.decided.dispatched.size());
  for (Dispatched& d : rows_.decided.dispatched)
    all.push_back({{std::move(d.tenant), std::move(d.queue)},
                   waiting_task({std::move(d.job_id), d.item_index, std::move(d.node_id)},
                                MUTANT(priority_ignored) ? 0 : d.priority, d.dispatched_at)});
  return all;
}

// A job that dispatched its task in this batch is here already; the others are loaded with what they hand
// out.
// One that cannot be read keeps nobody from the others. It is looked at again: somebody may repair it.
Result<> WorkflowTransaction::load_tasks(std::span<const WaitingTask> tasks) {
  const Result<> loaded = load_all_tasks(tasks);
  if (loaded || loaded.error().code != Code::invalid) return loaded;
  if (tasks.size() == 1) {
    turn_.effects.emplace_back(cannot_go_on(node_of(tasks.front()).job_id, loaded.error().message));
    turn_.effects.emplace_back(MatchAllAt{turn_.now + std::chrono::seconds{5}});
    return {};
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) TRY(load_tasks(tasks.subspan(i, 1)));
  return {};
}

Result<> WorkflowTransaction::load_all_tasks(std::span<const WaitingTask> tasks) {
  LoadRequest request;
  for (const WaitingTask& task : tasks) {
    if (!kind_.owns(task.type)) continue;
    NodeKey key = node_of(task);
    request.jobs.push_back(key.job_id);
    if (key.item_index != no_item)
      request.nodes.push_back({key.job_id, no_item, std::string(parse_item_name(key.node_id)->fan_out)});
    request.nodes.push_back(std::move(key));
  }
  TRY(load_runs(std::move(request)));
  LoadRequest documents;
  for (const WaitingTask& task : tasks) {
    if (!kind_.owns(task.type)) continue;
    const NodeKey key = node_of(task);
    const Run* found = run(key.job_id);
    const auto ref = found ? found->definition->locate(key.node_id) : std::nullopt;
    if (ref && params_need_input(*found, *ref)) documents.jobs_whole.push_back(key.job_id);
  }
  return load_runs(std::move(documents));
}

std::optional<Handout> WorkflowTransaction::hand_out(const WaitingTask& task, const Poll& poll) {
  const NodeKey key = node_of(task);
  Run* found = run(key.job_id);
  if (!found) return std::nullopt;
  const auto ref = found->definition->locate(key.node_id);
  if (!ref || !found->has(*ref)) return std::nullopt;
  if (!workflow::hand_out(*found, *ref, poll.worker, lease_time(poll, kind_.policy_), kind_.policy_, turn_.now,
                          rows_.decided))
    return std::nullopt;
  const NodeState& state = found->at(*ref).state;
  const Node& definition = found->node(*ref);
  return Handout{.task_id = *state.task_id,
                 .job_id = state.job_id,
                 .node_id = state.node_id,
                 .handler = definition.handler,
                 .params = task_params(*found, *ref),
                 .queue = *state.queue,
                 .timeout = definition.timeout,
                 .retry_count = state.retry_count,
                 .delivery_count = state.delivery_count,
                 .lease = lease_token(state),
                 .lease_until = *state.lease_until,
                 .traceparent = found->job.traceparent,
                 .checkpoint = state.checkpoint};
}

}  // namespace baton::engine
