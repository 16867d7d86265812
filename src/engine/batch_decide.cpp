// Deciding: each command and each due timer, in order, against the rows at hand. Pure but for the batch that
// it fills.
#include "base/mutant.hpp"
#include "core/workflow/input.hpp"
#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

void Writer::Batch::answer(const std::shared_ptr<Waiter>& waiter, Reply reply) {
  if (MUTANT(reply_before_commit)) return waiter->deliver(std::move(reply));
  answers_.push_back({.waiter = waiter, .reply = std::move(reply)});
}

void Writer::Batch::answer_job(const std::shared_ptr<Waiter>& waiter, const Job& job, bool created,
                               Time wait_until) {
  if (MUTANT(reply_before_commit) && wait_until <= now_) return waiter->deliver(JobReply{job, created});
  answers_.push_back({.waiter = waiter,
                      .job_id = job.job_id,
                      .created = created,
                      .wait_until = wait_until,
                      .tenant = job.tenant});
}

void Writer::Batch::decide_timers() {
  for (const Timer& timer : timers_) {
    Run* found = run(timer.job_id);
    const auto node = found ? found->definition->find(timer.node_id) : std::nullopt;
    if (node && found->has(*node) && found->at(*node).stored_timer == timer.due)
      timer_fired(*found, *node, writer_.options_.policy, now_, journal_);
    else
      timers_stray_.push_back(timer);
  }
}

void Writer::Batch::decide_items() {
  for (const Item& item : items_) {
    std::visit(overloaded{
                   [&](const SubmitJob& c) { decide(c, item.waiter); },
                   [&](const AwaitJob& c) { decide(c, item.waiter); },
                   [&](const CancelJob& c) { decide(c, item.waiter); },
                   [&](const PublishWorkflow& c) { answer(item.waiter, decide(c)); },
                   [&](const ReportResult& c) { answer(item.waiter, decide(c)); },
                   [&](const Heartbeat& c) { answer(item.waiter, decide(c)); },
                   [&](const ReturnTasks& c) { answer(item.waiter, decide(c)); },
                   [&](const Poll&) {},  // went to its queue before the batch began
               },
               item.command);
  }
}

void Writer::Batch::decide(const SubmitJob& c, const std::shared_ptr<Waiter>& waiter) {
  if (c.idempotency_key && !MUTANT(ignore_idempotency_key)) {
    if (const auto it = keys_.find({c.tenant, *c.idempotency_key}); it != keys_.end()) {
      if (it->second.request_hash != c.request_hash)
        return answer(waiter, Refused{Refusal::idempotency_key_reused,
                                      "this idempotency key was used before, for a different request",
                                      {}});
      return answer_job(waiter, run(it->second.job_id)->job, false, c.wait_until);
    }
  }
  if (auto refused = create_job(c)) return answer(waiter, *std::move(refused));
  answer_job(waiter, run(c.job_id)->job, true, c.wait_until);
}

std::optional<Refused> Writer::Batch::create_job(const SubmitJob& c) {
  const auto* known = definition({c.tenant, c.workflow_id, c.version});
  if (!known) {
    std::string which = "there is no workflow '" + c.workflow_id + "'";
    if (c.version > 0) which += " in version " + std::to_string(c.version);
    return Refused{Refusal::workflow_not_found, std::move(which), {}};
  }
  auto input = check_input(*known->definition, c.input_data);
  if (!input)
    return Refused{Refusal::invalid_input, "the input does not fit workflow '" + c.workflow_id + "'",
                   std::move(input).error()};
  Run created = create({c.job_id, c.tenant, known->definition->version, *std::move(input), c.traceparent},
                       known->definition, writer_.options_.policy, now_, journal_);
  runs_.try_emplace(c.job_id, std::move(created));
  if (c.idempotency_key) {
    keys_new_.push_back({c.tenant, *c.idempotency_key, c.job_id, c.request_hash});
    keys_.insert_or_assign({c.tenant, *c.idempotency_key}, keys_new_.back());
    if (MUTANT(ignore_idempotency_key)) keys_new_.pop_back();
  }
  return std::nullopt;
}

void Writer::Batch::decide(const AwaitJob& c, const std::shared_ptr<Waiter>& waiter) {
  const Run* found = run(c.job_id);
  if (!found || found->job.tenant != c.tenant)
    return answer(waiter, Refused{Refusal::job_not_found, "there is no job '" + c.job_id.value + "'", {}});
  answer_job(waiter, found->job, false, c.wait_until);
}

void Writer::Batch::decide(const CancelJob& c, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run(c.job_id);
  if (!found || found->job.tenant != c.tenant)
    return answer(waiter, Refused{Refusal::job_not_found, "there is no job '" + c.job_id.value + "'", {}});
  // Cancelling what is cancelled already is what a client does that did not hear the first answer.
  if (!cancel(*found, c.reason, now_, journal_) && found->job.status != JobStatus::cancelled)
    return answer(
        waiter,
        Refused{Refusal::job_ended, "the job has ended as " + std::string(name(found->job.status)), {}});
  answer_job(waiter, found->job, false, now_);
}

Reply Writer::Batch::decide(const PublishWorkflow& c) {
  const std::string& id = c.definition->workflow_id;
  const auto* latest = definition({c.tenant, id, 0});
  const std::int32_t newest = latest ? latest->definition->version : 0;
  if (c.definition->version > 0) {
    if (const auto* same = definition({c.tenant, id, c.definition->version})) {
      if (same->text == c.text) return WorkflowReply{id, c.definition->version, false};
      return Refused{Refusal::version_exists,
                     "version " + std::to_string(c.definition->version) + " of workflow '" + id +
                         "' was published with another text; the next free one is " +
                         std::to_string(newest + 1),
                     {}};
    }
  } else if (latest && latest->text == c.text) {
    return WorkflowReply{id, newest, false};
  }
  auto definition = std::make_shared<Definition>(*c.definition);
  if (definition->version == 0) definition->version = newest + 1;
  const std::int32_t version = definition->version;
  const KnownDefinition known{std::move(definition), c.text};
  published_[{c.tenant, id, version}] = known;
  if (version > newest) published_[{c.tenant, id, 0}] = known;
  workflows_new_.push_back({c.tenant, id, version, c.text, now_});
  return WorkflowReply{id, version, true};
}

Reply Writer::Batch::decide(const ReportResult& c) {
  const auto found = task(c.task_id, c.tenant);
  const auto name_given = parse_task_id(c.task_id);
  // The body names the task twice; when the two disagree nobody knows which is meant.
  if (found && ((!c.job_id.empty() && c.job_id != name_given->job_id) ||
                (!c.node_id.empty() && c.node_id != name_given->node_id)))
    return Refused{
        Refusal::invalid_input, "job_id and node_id are not those of task '" + c.task_id + "'", {}};
  if (!found) return Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}};
  const auto earlier = stored_results_.find(c.task_id);
  const Report said{found->retry_count,     c.completed, c.output, c.error, c.lease, c.worker,
                    c.execution_duration_ms};
  switch (report(*found->run, found->node, said,
                 earlier == stored_results_.end() ? nullptr : &earlier->second, writer_.options_.policy, now_,
                 journal_)) {
    case Verdict::accepted: return ResultReply{false};
    case Verdict::duplicate: return ResultReply{true};
    case Verdict::stale: break;
  }
  return Refused{Refusal::stale_result,
                 "task '" + c.task_id + "' is " +
                     std::string(name(found->run->at(found->node).state.status)) +
                     " and not waiting for this result: its lease or its attempt is over",
                 {}};
}

Reply Writer::Batch::decide(const Heartbeat& c) {
  HeartbeatReply reply{.lease_until = now_ + writer_.options_.policy.short_lease};
  for (const TaskLease& lease : c.tasks) {
    const auto found = task(lease.task_id, c.tenant);
    if (!found || !renew(*found->run, found->node, lease.lease, writer_.options_.policy, now_))
      reply.cancelled.push_back(lease.task_id);
  }
  return reply;
}

Reply Writer::Batch::decide(const ReturnTasks& c) {
  for (const TaskLease& lease : c.tasks)
    if (const auto found = task(lease.task_id, std::nullopt))
      (void)workflow::give_back(*found->run, found->node, lease.lease, c.reason, writer_.options_.policy,
                                now_, journal_);
  return ReturnReply{};
}

}  // namespace baton::engine
