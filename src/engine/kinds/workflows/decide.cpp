// Deciding: each command and each due timer, in order, against the rows at hand.
#include "base/mutant.hpp"
#include "core/idempotency/key.hpp"
#include "core/workflow/definition/input.hpp"
#include "core/workflow/definition/publish.hpp"
#include "core/workflow/machine/scope.hpp"
#include "engine/kinds/workflows/transaction.hpp"

namespace baton::engine {

using namespace workflow;

Tenant WorkflowTransaction::tenant_of(const Item& item) {
  std::optional<Tenant> named;
  std::visit(
      [&](const auto& c) {
        if constexpr (requires { c.tenant; }) named = c.tenant;
        if constexpr (requires { c.tenant, c.task_id; })
          if (const auto found = named ? std::nullopt : task(c.task_id, std::nullopt)) named = found->run->job.tenant;
      },
      item.command);
  return named.value_or(Tenant{});
}

Tenant WorkflowTransaction::tenant_of(const Timer& timer) {
  const Run* found = run(timer.subject.id);
  return found ? found->job.tenant : Tenant{};
}

std::optional<WorkflowTransaction::Task> WorkflowTransaction::task(const Timer& timer) {
  Run* found = run(timer.subject.id);
  const auto ref = found ? found->definition->locate(timer.what) : std::nullopt;
  if (!ref || !found->has(*ref)) return std::nullopt;
  return Task{found, *ref, 0};
}

void WorkflowTransaction::fire(const Timer& timer) {
  rows_.timers.push_back(timer);
  charged(tenant_of(timer), [&] { obey(timer); });
}

void WorkflowTransaction::obey(const Timer& timer) {
  unless_missing(timer.subject.id, [&] {
    const auto found = task(timer);
    Slot* slot = found ? &found->run->at(found->ref) : nullptr;
    if (!slot || !slot->stored_timer || *slot->stored_timer > timer.due) {
      rows_.timers_stray.push_back(timer);
      return;
    }
    slot->stored_timer = timer.due;  // later than its row says when it was put off
    if (is_chunk(*found->run, found->ref) && !rows_.chunks.contains(timer)) return;  // it stays due
    timer_fired(*found->run, found->ref, kind_.policy_, turn_.as_of, rows_.decided);
  });
}

void WorkflowTransaction::timers_go_behind() {
  Time later = turn_.as_of;
  for (const Timer& timer : rows_.timers) {
    const auto found = task(timer);
    if (!found) continue;
    Slot& slot = found->run->at(found->ref);
    if (slot.stored_timer != timer.due || slot.state.timer_due != timer.due) continue;
    slot.state.timer_due = later += Duration{1};
    slot.changed = true;
  }
}

void WorkflowTransaction::decide(std::size_t, const Item& item) {
  charged(tenant_of(item), [&] { decide(item); });
}

void WorkflowTransaction::decide(const Item& item) {
  const auto job_of = [](const std::string& task_id) {
    const auto name = parse_task_id(task_id);
    return name ? name->job_id : std::string_view();
  };
  const auto with = [&](std::string_view job_id, auto&& decide_it) { unless_missing(job_id, decide_it); };
  std::visit(
      overloaded{
          [&](const SubmitJob& c) { unless_missing([&] { decide(c, item.waiter); }); },
          [&](const AwaitJob& c) { with(c.job_id.value, [&] { decide(c, item.waiter); }); },
          [&](const ChangeJob& c) { with(c.job_id.value, [&] { decide(c, item.waiter); }); },
          [&](const DecideApproval& c) { with(c.job_id.value, [&] { decide(c, item.waiter); }); },
          [&](const ExplainJob& c) { with(c.job_id.value, [&] { answer(item.waiter, decide(c)); }); },
          [&](const ReplayTask& c) { with(job_of(c.task_id), [&] { decide(c, item.waiter); }); },
          [&](const ReportResult& c) { with(job_of(c.task_id), [&] { answer(item.waiter, decide(c)); }); },
          [&](const one_of<TaskNote, SettleTask> auto& c) { with(job_of(c.task_id), [&] { answer(item.waiter, decide(c)); }); },
          [&](const PublishWorkflow& c) { answer(item.waiter, decide(c)); },
          [](const auto&) { ENSURE(false); },  // another kind's
      },
      item.command);
}

void WorkflowTransaction::decide(const SubmitJob& c, const std::shared_ptr<Waiter>& waiter) {
  const IdempotencyKey* used = nullptr;
  if (c.idempotency_key && !MUTANT(ignore_idempotency_key))
    if (const auto it = rows_.keys.find({c.tenant, *c.idempotency_key}); it != rows_.keys.end()) used = &it->second;
  switch (idempotency::judge(used ? &used->request_hash : nullptr, c.request_hash)) {
    case idempotency::Use::reused:
      return answer(waiter,
                    Refused{Refusal::idempotency_key_reused, std::string(idempotency::reused_message), {}});
    case idempotency::Use::same: {
      const Run* first = run(used->job_id);  // we never delete one; somebody else may
      if (!first)
        return answer(waiter, Refused{Refusal::job_not_found, "the job of this idempotency key is gone", {}});
      return answer_job(waiter, first->job, false, c.wait_until);
    }
    case idempotency::Use::fresh: break;
  }
  if (auto refused = create_job(c)) return answer(waiter, *std::move(refused));
  answer_job(waiter, run(c.job_id)->job, true, c.wait_until);
}

std::optional<Refused> WorkflowTransaction::create_job(const SubmitJob& c) {
  const auto* known = definition({c.tenant, c.workflow_id, c.version});
  if (!known) {
    std::string which = "there is no workflow '" + c.workflow_id + "'";
    if (c.version > 0) which += " in version " + std::to_string(c.version);
    return Refused{Refusal::workflow_not_found, std::move(which), {}};
  }
  rows_.input_bytes += c.input_data.text.size();
  rows_.decided.spend(c.input_data.text.size() / json_per_step);
  auto input = check_input(*known->definition, c.input_data);
  if (!input)
    return Refused{Refusal::invalid_input, "the input does not fit workflow '" + c.workflow_id + "'",
                   std::move(input).error()};
  std::optional<std::string> tags;
  for (const std::string& tag : c.tags) {
    tags = tags ? *tags + "," + quoted(tag) : "[" + quoted(tag);
    rows_.tags_new.push_back({c.tenant, tag, c.job_id});
  }
  if (tags) *tags += "]";
  Run created =
      create({c.job_id, c.tenant, known->definition->version, *std::move(input), c.traceparent, c.priority,
              std::move(tags), c.delay ? std::optional{turn_.now + *c.delay} : c.due_at, c.rerun_of},
             known->definition, kind_.policy_, turn_.now, rows_.decided);
  rows_.runs.try_emplace(c.job_id, std::move(created));
  if (c.idempotency_key) {
    rows_.keys_new.push_back({c.tenant, *c.idempotency_key, c.job_id, c.request_hash});
    rows_.keys.insert_or_assign({c.tenant, *c.idempotency_key}, rows_.keys_new.back());
    if (MUTANT(ignore_idempotency_key)) rows_.keys_new.pop_back();
  }
  return std::nullopt;
}

// The job, if it is the tenant's; otherwise the caller is told that there is none.
Run* WorkflowTransaction::run_of(const Tenant& tenant, const JobId& job_id, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run(job_id);
  if (found && (found->job.tenant == tenant || MUTANT(tenant_not_checked))) return found;
  answer(waiter, Refused{Refusal::job_not_found, "there is no job '" + job_id.value + "'", {}});
  return nullptr;
}

void WorkflowTransaction::decide(const AwaitJob& c, const std::shared_ptr<Waiter>& waiter) {
  if (const Run* found = run_of(c.tenant, c.job_id, waiter))
    answer_job(waiter, found->job, c.created, c.wait_until);
}

void WorkflowTransaction::decide(const ChangeJob& c, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run_of(c.tenant, c.job_id, waiter);
  if (!found) return;
  const Policy& policy = kind_.policy_;
  const JobStatus status = found->job.status;
  bool done = false;
  switch (c.what) {
    // Cancelling what is cancelled already is what a client does that did not hear the first answer.
    case ChangeJob::What::cancel:
      done = cancel(*found, c.by, c.reason, policy, turn_.now, rows_.decided) || status == JobStatus::cancelled;
      break;
    case ChangeJob::What::pause: done = pause(*found, c.by, c.reason, policy, turn_.now, rows_.decided); break;
    case ChangeJob::What::resume: done = resume(*found, c.by, c.reason, policy, turn_.now, rows_.decided); break;
    case ChangeJob::What::retry: done = retry(*found, c.by, c.reason, policy, turn_.now, rows_.decided); break;
  }
  if (done) return answer_job(waiter, found->job, false, turn_.now);
  const bool retried = c.what == ChangeJob::What::retry;
  answer(waiter,
         Refused{retried ? Refusal::job_not_failed : Refusal::job_ended,
                 retried ? "only a FAILED job can be retried; this one is " + std::string(name(status))
                         : "the job has ended as " + std::string(name(status)),
                 {}});
}

void WorkflowTransaction::decide(const DecideApproval& c, const std::shared_ptr<Waiter>& waiter) {
  Run* found = run_of(c.tenant, c.job_id, waiter);
  if (!found) return;
  const auto node = found->definition->find(c.node_id);
  if (!node)
    return answer(waiter, Refused{Refusal::node_not_found, "the job has no node '" + c.node_id + "'", {}});
  if (decide_approval(*found, *node, c.approved, c.by, c.comment, kind_.policy_, turn_.now, rows_.decided) ||
      was_decided(*found, *node, c.approved))
    return answer_job(waiter, found->job, false, turn_.now);
  answer(waiter, Refused{Refusal::not_waiting,
                         "node '" + c.node_id + "' does not wait for an approval: its type is " +
                             std::string(name(found->definition->nodes[*node].type)) + " and its status " +
                             std::string(name(found->at(*node).state.status)),
                         {}});
}

void WorkflowTransaction::decide(const ReplayTask& c, const std::shared_ptr<Waiter>& waiter) {
  const auto found = task(c.task_id, c.tenant);
  if (!found)
    return answer(waiter, Refused{Refusal::task_not_found, "there is no task '" + c.task_id + "'", {}});
  Run& r = *found->run;
  if (!r.at(found->ref).state.dead_at)
    return answer(waiter, Refused{Refusal::not_dead, "task '" + c.task_id + "' is not a dead letter", {}});
  if (!retry(r, c.by, "", kind_.policy_, turn_.now, rows_.decided))
    return answer(waiter,
                  Refused{Refusal::job_not_failed,
                          "its job is " + std::string(name(r.job.status)) +
                              " and goes on or has ended without it; only a FAILED one can be retried",
                          {}});
  answer_job(waiter, r.job, false, turn_.now);
}

Reply WorkflowTransaction::decide(const ExplainJob& c) {
  Run* found = run(c.job_id);
  if (!found || found->job.tenant != c.tenant)
    return Refused{Refusal::job_not_found, "there is no job '" + c.job_id.value + "'", {}};
  const auto look = [&](const Tenant& tenant, const std::string& queue) {
    auto seen = turn_.matching.workers().on_queue({tenant, queue}, turn_.now);
    if (kind_.trouble_of_queue_) seen.trouble = kind_.trouble_of_queue_(tenant, queue);
    return seen;
  };
  return explain(*found, look, turn_.now);
}

Reply WorkflowTransaction::decide(const PublishWorkflow& c) {
  const std::string& id = c.definition->workflow_id;
  const std::int32_t wanted = c.definition->version;
  const auto known = [&](std::int32_t version) -> std::optional<VersionText> {
    const auto* found = definition({c.tenant, id, version});
    if (!found) return std::nullopt;
    return VersionText{found->definition->version, found->text};
  };
  const auto placed = place_version(wanted, c.text, wanted > 0 ? known(wanted) : std::nullopt, known(0));
  if (!placed)
    return Refused{Refusal::version_exists,
                   "version " + std::to_string(wanted) + " of workflow '" + id +
                       "' was published with another text; the next free one is " +
                       std::to_string(placed.error().next_free),
                   {}};
  if (!placed->is_new) return WorkflowReply{id, placed->version, false};
  auto published = std::make_shared<Definition>(*c.definition);
  published->version = placed->version;
  const KnownDefinition added{std::move(published), c.text};
  rows_.published[{c.tenant, id, placed->version}] = added;
  if (placed->is_latest) rows_.published[{c.tenant, id, 0}] = added;
  rows_.workflows_new.push_back({c.tenant, id, placed->version, c.text, turn_.now});
  return WorkflowReply{id, placed->version, true};
}

}  // namespace baton::engine
