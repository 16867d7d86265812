// Deciding: each command and each due timer, in order, against the rows at hand. Pure but for the batch that
// it fills.
#include "base/mutant.hpp"
#include "core/workflow/definition/input.hpp"
#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

namespace {

// Jobs of runbooks belong to the tenant "default"; whoever acts for all tenants names none.
bool may_touch_jobs(const std::optional<Tenant>& tenant) { return !tenant || tenant->value == "default"; }

Reply no_task(const std::string& task_id) {
  return Refused{Refusal::task_not_found, "there is no task '" + task_id + "'", {}};
}

}  // namespace

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

// A message that needs rows which nobody foresaw is decided again, with all others, when its job has been
// loaded whole; what else is said of that job in this batch would be decided on half-changed rows, and waits
// for it.
template <class Decide>
void Writer::Batch::unless_missing(const JobId* job_id, Decide&& decide) {
  if (job_id && missing_.contains(*job_id)) return;
  try {
    decide();
  } catch (const NotLoaded& not_loaded) {
    missing_.insert(not_loaded.job_id);
  }
}

// Before the timers: whoever has renewed his lease in time must not lose it because the server was slow to
// look.
void Writer::Batch::decide_heartbeats() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    item_index_ = i;
    if (const auto* beat = std::get_if<Heartbeat>(&items_[i].command))
      unless_missing(nullptr, [&] { answer(items_[i].waiter, decide(*beat)); });
  }
}

void Writer::Batch::decide_timers() {
  for (const workflow::Timer& timer : timers_) unless_missing(&timer.job_id, [&] { decide_timer(timer); });
}

void Writer::Batch::decide_timer(const workflow::Timer& timer) {
  Run* found = run(timer.job_id);
  const auto ref = found ? found->definition->locate(timer.node_id) : std::nullopt;
  if (!ref || !found->has(*ref) || found->at(*ref).stored_timer != timer.due) {
    timers_stray_.push_back(timer);
    return;
  }
  if (which_timers_ == Timers::put_off) {
    found->at(*ref).state.timer_due = now_ + lessons_.put_off;
    found->at(*ref).changed = true;
    return;
  }
  if (is_chunk(*found, *ref) && !chunks_.contains(timer)) return;  // it stays due
  timer_fired(*found, *ref, writer_.options_.policy, now_, journal_);
}

void Writer::Batch::decide_items() {
  std::size_t decided = 0;
  // More events than a commit can number: the rest is for the next batch.
  for (; decided < items_.size() && journal_.events.size() <= writer_.options_.events_max; ++decided) {
    item_index_ = decided;
    decide_item(items_[decided]);
  }
  std::vector<Item> kept(std::make_move_iterator(items_.begin()),
                         std::make_move_iterator(items_.begin() + static_cast<std::ptrdiff_t>(decided)));
  for (; decided < items_.size(); ++decided) {
    const bool answered = std::holds_alternative<Heartbeat>(items_[decided].command);
    (answered ? kept : writer_.own_items_).push_back(std::move(items_[decided]));
  }
  items_ = std::move(kept);
}

void Writer::Batch::decide_item(const Item& item) {
  const auto job_of = [](const std::string& task_id) {
    const auto name = parse_task_id(task_id);
    return name ? name->job_id : JobId{};
  };
  const auto with = [&](const JobId& job_id, auto&& decide_it) { unless_missing(&job_id, decide_it); };
  std::visit(
      overloaded{
          [&](const SubmitJob& c) { unless_missing(nullptr, [&] { decide(c, item.waiter); }); },
          [&](const AwaitJob& c) { with(c.job_id, [&] { decide(c, item.waiter); }); },
          [&](const ChangeJob& c) { with(c.job_id, [&] { decide(c, item.waiter); }); },
          [&](const DecideApproval& c) { with(c.job_id, [&] { decide(c, item.waiter); }); },
          [&](const ExplainJob& c) { with(c.job_id, [&] { answer(item.waiter, decide(c)); }); },
          [&](const ReplayTask& c) { with(job_of(c.task_id), [&] { decide(c, item.waiter); }); },
          [&](const ReportResult& c) { with(job_of(c.task_id), [&] { answer(item.waiter, decide(c)); }); },
          [&](const Poll&) {},       // went to its queue before the batch began
          [&](const Heartbeat&) {},  // came before the timers
          [&](const auto& c) { unless_missing(nullptr, [&] { answer(item.waiter, decide(c)); }); },
      },
      item.command);
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
  std::optional<std::string> tags;
  for (const std::string& tag : c.tags) {
    tags = tags ? *tags + "," + quoted(tag) : "[" + quoted(tag);
    tags_new_.push_back({c.tenant, tag, c.job_id});
  }
  if (tags) *tags += "]";
  Run created =
      create({c.job_id, c.tenant, known->definition->version, *std::move(input), c.traceparent, c.priority,
              std::move(tags), c.delay ? std::optional{now_ + *c.delay} : c.due_at, c.rerun_of},
             known->definition, writer_.options_.policy, now_, journal_);
  runs_.try_emplace(c.job_id, std::move(created));
  if (c.idempotency_key) {
    keys_new_.push_back({c.tenant, *c.idempotency_key, c.job_id, c.request_hash});
    keys_.insert_or_assign({c.tenant, *c.idempotency_key}, keys_new_.back());
    if (MUTANT(ignore_idempotency_key)) keys_new_.pop_back();
  }
  return std::nullopt;
}

// The job, if it is the tenant's; otherwise the caller is told that there is none.
Run* Writer::Batch::run_of(const Tenant& tenant, const JobId& job_id, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run(job_id);
  if (found && found->job.tenant == tenant) return found;
  answer(waiter, Refused{Refusal::job_not_found, "there is no job '" + job_id.value + "'", {}});
  return nullptr;
}

void Writer::Batch::decide(const AwaitJob& c, const std::shared_ptr<Waiter>& waiter) {
  if (const Run* found = run_of(c.tenant, c.job_id, waiter))
    answer_job(waiter, found->job, false, c.wait_until);
}

void Writer::Batch::decide(const ChangeJob& c, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run_of(c.tenant, c.job_id, waiter);
  if (!found) return;
  const Policy& policy = writer_.options_.policy;
  const JobStatus status = found->job.status;
  bool done = false;
  switch (c.what) {
    // Cancelling what is cancelled already is what a client does that did not hear the first answer.
    case ChangeJob::What::cancel:
      done = cancel(*found, c.by, c.reason, policy, now_, journal_) || status == JobStatus::cancelled;
      break;
    case ChangeJob::What::pause: done = pause(*found, c.by, c.reason, policy, now_, journal_); break;
    case ChangeJob::What::resume: done = resume(*found, c.by, c.reason, policy, now_, journal_); break;
    case ChangeJob::What::retry: done = retry(*found, c.by, c.reason, policy, now_, journal_); break;
  }
  if (done) return answer_job(waiter, found->job, false, now_);
  const bool retried = c.what == ChangeJob::What::retry;
  answer(waiter,
         Refused{retried ? Refusal::job_not_failed : Refusal::job_ended,
                 retried ? "only a FAILED job can be retried; this one is " + std::string(name(status))
                         : "the job has ended as " + std::string(name(status)),
                 {}});
}

void Writer::Batch::decide(const DecideApproval& c, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run_of(c.tenant, c.job_id, waiter);
  if (!found) return;
  const auto node = found->definition->find(c.node_id);
  if (!node)
    return answer(waiter, Refused{Refusal::node_not_found, "the job has no node '" + c.node_id + "'", {}});
  if (decide_approval(*found, *node, c.approved, c.by, c.comment, writer_.options_.policy, now_, journal_) ||
      was_decided(*found, *node, c.approved))
    return answer_job(waiter, found->job, false, now_);
  answer(waiter, Refused{Refusal::not_waiting,
                         "node '" + c.node_id + "' does not wait for an approval: its type is " +
                             std::string(name(found->definition->nodes[*node].type)) + " and its status " +
                             std::string(name(found->at(*node).state.status)),
                         {}});
}

void Writer::Batch::decide(const ReplayTask& c, const std::shared_ptr<Waiter>& waiter) {
  const auto found = task(c.task_id, c.tenant);
  if (!found)
    return answer(waiter, Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}});
  Run& r = *found->run;
  if (!r.at(found->ref).state.dead_at)
    return answer(waiter, Refused{Refusal::not_dead, "task '" + c.task_id + "' is not a dead letter", {}});
  if (!retry(r, c.by, "", writer_.options_.policy, now_, journal_))
    return answer(waiter,
                  Refused{Refusal::job_not_failed,
                          "its job is " + std::string(name(r.job.status)) +
                              " and goes on or has ended without it; only a FAILED one can be retried",
                          {}});
  answer_job(waiter, r.job, false, now_);
}

Reply Writer::Batch::decide(const ListWorkers& c) {
  WorkersReply reply{writer_.workers_.list(c.tenant, now_)};
  std::set<std::pair<Tenant, std::string>> polling;
  for (const QueueKey& key : writer_.queues_.keys())
    for (const auto& [id, poll] : writer_.queues_.find(key)->polls)
      polling.emplace(key.tenant, poll.poll.worker);
  for (WorkerInfo& worker : reply.workers) worker.polling = polling.contains({worker.tenant, worker.worker});
  return reply;
}

Reply Writer::Batch::decide(const TaskNote& c) {
  if (runbook::parse_job_id(c.task_id)) return may_touch_jobs(c.tenant) ? decide_job_note(c) : no_task(c.task_id);
  const auto found = task(c.task_id, c.tenant);
  if (!found) return Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}};
  Run& r = *found->run;
  const Policy& policy = writer_.options_.policy;
  const Speaker speaker{found->retry_count, c.lease};
  NoteReply reply;
  const bool heard =
      std::visit(overloaded{
                     [&](const TaskProgress& n) { return progress(r, found->ref, speaker, n.progress); },
                     [&](const TaskCheckpoint& n) {
                       return checkpoint(r, found->ref, speaker, n.data, policy, now_, journal_);
                     },
                     [&](const TaskLog& n) {
                       const LogVerdict verdict = log(r, found->ref, speaker, n.lines, policy);
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
  if (runbook::parse_job_id(c.task_id))
    return may_touch_jobs(c.tenant) ? decide_runbook_result(c) : no_task(c.task_id);
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
  switch (report(*found->run, found->ref, said, earlier == stored_results_.end() ? nullptr : &earlier->second,
                 writer_.options_.policy, now_, journal_)) {
    case Verdict::accepted:
      // Whoever does not say his name is the one that was handed the task.
      if (const NodeState& state = found->run->at(found->ref).state; state.worker_id && !state.tenant.empty())
        reported_.push_back({.tenant = found->run->job.tenant,
                             .task_id = c.task_id,
                             .completed = c.completed,
                             .worker = state.worker_id});
      return ResultReply{false};
    case Verdict::duplicate: return ResultReply{true};
    case Verdict::stale: break;
  }
  return Refused{Refusal::stale_result,
                 "task '" + c.task_id + "' is " + std::string(name(found->run->at(found->ref).state.status)) +
                     " and not waiting for this result: its lease or its attempt is over",
                 {}};
}

Reply Writer::Batch::decide(const Heartbeat& c) {
  HeartbeatReply reply{.lease_until = now_ + writer_.options_.policy.short_lease};
  std::optional<Tenant> tenant = c.tenant;
  for (const TaskLease& lease : c.tasks) {
    if (runbook::parse_job_id(lease.task_id)) {
      if (!may_touch_jobs(c.tenant) || !renew_job(lease)) reply.cancelled.push_back(lease.task_id);
      continue;
    }
    const auto found = task(lease.task_id, c.tenant);
    if (!found || !renew(*found->run, found->ref, lease.lease, writer_.options_.policy, now_))
      reply.cancelled.push_back(lease.task_id);
    if (found && !tenant) tenant = found->run->job.tenant;
  }
  if (tenant) writer_.workers_.beat(*tenant, c, reply.lease_until, now_);
  return reply;
}

Reply Writer::Batch::decide(const ReturnTasks& c) {
  for (const TaskLease& lease : c.tasks)
    if (runbook::parse_job_id(lease.task_id))
      give_back_job(lease);
    else if (const auto found = task(lease.task_id, std::nullopt))
      (void)workflow::give_back(*found->run, found->ref, lease.lease, c.reason, writer_.options_.policy, now_,
                                journal_);
  return ReturnReply{};
}

}  // namespace baton::engine
