#include "core/workflow/machine/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_write.hpp"
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/workflow/machine/decision.hpp"

namespace baton::workflow {
namespace {

constexpr std::size_t uuid_length = 36;

Time deadline(Run& run, NodeRef ref) {
  return run.at(ref).state.started_at.value_or(Time{}) + run.node(ref).timeout;
}

bool same_result(const TaskResult& earlier, const TaskReport& now) {
  return (earlier.status == "completed") == now.completed && earlier.output == now.output &&
         earlier.error == now.error && (!now.lease || earlier.lease == now.lease);
}

bool holds_lease(const NodeState& state, std::string_view lease) {
  return state.status == NodeStatus::running && lease_token(state) == lease;
}

// A child of a fan-out that is over, or of a job that is: the walk that cancels it is on its way.
bool is_orphan(Run& run, NodeRef ref) {
  if (!ref.is_item()) return false;
  return is_terminal(run.job.status) || is_terminal(run.at(ref.node).state.status);
}

void cancel_orphan(Decision& decision, Slot& slot) {
  if (is_terminal(slot.state.status)) return;
  decision.set_status(slot, NodeStatus::cancelled);
  decision.event(EventType::node_cancelled, &slot.state);
}

bool has_attempt(const NodeState& state, const AttemptLease& attempt) {
  return state.status == NodeStatus::running && state.retry_count == attempt.retry_count &&
         (!attempt.lease || lease_token(state) == *attempt.lease);
}

}  // namespace

bool is_builtin(std::string_view handler) {
  static constexpr std::array<std::string_view, 4> names{"echo", "sleep", "fail", "flaky"};
  return std::ranges::find(names, handler) != names.end();
}

Run create(const NewJob& job, std::shared_ptr<const Definition> definition, const Policy& policy, Time now,
           Decided& decided) {
  Run run(std::move(definition), Job{.job_id = job.job_id,
                                     .tenant = job.tenant,
                                     .workflow_version = job.version,
                                     .priority = job.priority,
                                     .tags = job.tags,
                                     .rerun_of = job.rerun_of,
                                     .input_data = job.input_data,
                                     .traceparent = job.traceparent,
                                     .created_at = now,
                                     .due_at = job.due_at});
  const Definition& def = *run.definition;
  run.job.workflow_id = def.workflow_id;
  run.is_new = true;
  for (NodeIndex i = 0; i < def.nodes.size(); ++i) {
    run.nodes[i] = Slot{.state = {.job_id = job.job_id,
                                  .node_id = def.nodes[i].id,
                                  .waiting_for = static_cast<std::int32_t>(def.nodes[i].incoming.size()),
                                  .priority = job.priority,
                                  .tenant = job.tenant},
                        .is_new = true};
  }
  Decision decision(run, policy, now, decided);
  decision.event(EventType::job_created);
  decision.set_status(run.at(def.start), NodeStatus::ready);
  if (job.due_at && *job.due_at > now && !MUTANT(start_before_due)) {
    run.at(def.start).state.timer_due = *job.due_at;
    return run;
  }
  decision.complete(NodeRef{def.start}, std::nullopt);
  decision.settle();
  return run;
}

std::string task_id(const JobId& job_id, std::string_view node_id, std::int32_t retry_count) {
  std::string text = job_id.value;
  text += '_';
  text += node_id;
  text += '_';
  text += as_text(retry_count);
  return text;
}

std::optional<TaskName> parse_task_id(std::string_view text) {
  const auto last = text.rfind('_');
  if (last == std::string_view::npos || last < uuid_length + 2 || text[uuid_length] != '_')
    return std::nullopt;
  TaskName name{.job_id = text.substr(0, uuid_length), .node_id = text.substr(uuid_length + 1, last - uuid_length - 1)};
  const auto digits = text.substr(last + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name.retry_count);
  const bool is_number = error == std::errc{} && end == digits.data() + digits.size() && digits.front() != '-' &&
                         (digits.size() == 1 || digits.front() != '0');  // 00 is not 0
  if (!is_number || !is_uuid(name.job_id)) return std::nullopt;
  return name;
}

bool agrees(const TaskName& task, std::string_view job_id, std::string_view node_id) {
  return (job_id.empty() || job_id == task.job_id) && (node_id.empty() || node_id == task.node_id);
}

std::string lease_token(const NodeState& node) {
  return as_text(node.retry_count) + "." + as_text(node.delivery_count);
}

bool params_need_input(const Run& run, NodeRef ref) { return !run.node(ref).params; }

const Json& task_params(const Run& run, NodeRef ref) {
  const auto& params = run.node(ref).params;
  if (!params) return run.input();
  if (params->is_constant()) return params->constant();
  const auto& state = ref.is_item() ? run.items.at(ref).state : run.nodes[ref.node]->state;
  ENSURE(state.params);  // evaluated when it was dispatched
  return *state.params;
}

bool hand_out(Run& run, NodeRef ref, const std::string& worker, delivery::LeaseTime lease_time, const Policy& policy,
              Time now, Decided& decided) {
  Slot& slot = run.at(ref);
  NodeState& state = slot.state;
  if (state.status != NodeStatus::dispatched) return false;
  Decision decision(run, policy, now, decided);
  if (is_orphan(run, ref)) {
    cancel_orphan(decision, slot);
    return false;
  }
  if (!decision.may_give_out()) {
    decision.set_status(slot, NodeStatus::ready);
    return false;
  }
  decision.set_status(slot, NodeStatus::running);
  if (!MUTANT(deliveries_never_counted) || state.delivery_count == 0) ++state.delivery_count;
  state.worker_id = worker;
  state.started_at = now;
  state.lease_until = delivery::lease_end(now, deadline(run, ref), lease_time);
  state.timer_due = state.lease_until;
  decision.event(EventType::node_started, &state,
                 state.delivery_count > 1
                     ? json_object("worker", worker, "delivery_count", state.delivery_count)
                     : json_object("worker", worker));
  return true;
}

// An attempt that a pause holds back is READY; whoever had it last may still report it.
bool result_may_be_repeated(const NodeState& node, std::int32_t retry_count) {
  const bool parked = node.status == NodeStatus::ready && node.task_id &&
                      *node.task_id == task_id(node.job_id, node.node_id, node.retry_count);
  return retry_count < node.retry_count ||
         !(node.status == NodeStatus::dispatched || node.status == NodeStatus::running || parked);
}

namespace {

// What is to be said of a result that the node is not waiting for.
Verdict judge_repeated(Run& run, NodeRef ref, const TaskReport& report, const TaskResult* earlier) {
  const auto mine =
      std::ranges::find(run.results, task_id(run.job.job_id, run.at(ref).state.node_id, report.retry_count),
                        &TaskResult::task_id);
  if (mine != run.results.end()) earlier = &*mine;
  return earlier && same_result(*earlier, report) ? Verdict::duplicate : Verdict::stale;
}

TaskResult stored_result(const Run& run, const NodeState& state, const TaskReport& report, Time now) {
  return {.task_id = *state.task_id,
          .job_id = run.job.job_id,
          .node_id = state.node_id,
          .status = report.completed ? "completed" : "failed",
          .output = report.output,
          .error = report.error,
          .worker_id = report.worker,
          .lease = report.lease,
          .execution_duration_ms = report.execution_duration_ms,
          .received_at = now};
}

}  // namespace

Verdict report(Run& run, NodeRef ref, const TaskReport& report, const TaskResult* earlier, const Policy& policy,
               Time now, Decided& decided) {
  Slot& slot = run.at(ref);
  NodeState& state = slot.state;
  const NodeType type = run.node(ref).type;
  if (type != NodeType::task && !ref.is_item()) return Verdict::stale;  // nobody was given it
  if (result_may_be_repeated(state, report.retry_count) &&
      !(MUTANT(accept_old_attempt) && state.status == NodeStatus::running)) {
    const Verdict verdict = judge_repeated(run, ref, report, earlier);
    if (MUTANT(skip_duplicate_guard) && verdict == Verdict::duplicate && !is_terminal(run.job.status) &&
        !ref.is_item()) {
      for (const NodeIndex next : run.node(ref).next)
        if (run.has(NodeRef{next})) Decision(run, policy, now, decided).edge_fired(next);
      return Verdict::accepted;
    }
    return verdict;
  }
  if (report.retry_count > state.retry_count || is_orphan(run, ref)) return Verdict::stale;
  // A lease that ran out is still the last one given until somebody else is handed the task.
  if (!report.lease && MUTANT(result_without_lease_refused)) return Verdict::stale;
  if (report.lease && !MUTANT(accept_stale_lease) && lease_token(state) != *report.lease)
    return Verdict::stale;

  Decision decision(run, policy, now, decided);
  if (state.status != NodeStatus::running) {  // given up, or by a worker that was not handed it by us
    decision.set_status(slot, NodeStatus::running);
    state.started_at = now;
    decision.event(EventType::node_started, &state);
  }
  if (report.worker) state.worker_id = report.worker;
  run.results.push_back(stored_result(run, state, report, now));
  if (report.completed)
    decision.complete(ref, report.output ? report.output : Json{"null"});
  else
    decision.attempt_failed(ref, report.error.value_or("the worker gave no reason"));
  decision.settle();
  return Verdict::accepted;
}

bool renew(Run& run, NodeRef ref, std::string_view lease, delivery::LeaseTime lease_time, Time now) {
  Slot& slot = run.at(ref);
  NodeState& state = slot.state;
  if (!holds_lease(state, lease) || is_orphan(run, ref)) return false;
  const bool is_kept = state.lease_until >= deadline(run, ref) && !MUTANT(kept_lease_cut_short);
  if (!is_kept) state.lease_until = delivery::lease_end(now, deadline(run, ref), lease_time);
  state.timer_due = delivery::timer_after_renewal(state.timer_due, *state.lease_until);
  slot.changed = true;
  return true;
}

namespace {

// What a lease's holder decides of the task, unless it is an orphan.
template <class Decide>
bool by_holder(Run& run, NodeRef ref, std::string_view lease, const Policy& policy, Time now, Decided& decided,
               Decide&& decide) {
  Slot& slot = run.at(ref);
  if (!holds_lease(slot.state, lease)) return false;
  Decision decision(run, policy, now, decided);
  if (is_orphan(run, ref))
    cancel_orphan(decision, slot);
  else
    decide(decision, slot);
  return true;
}

}  // namespace

bool give_back(Run& run, NodeRef ref, std::string_view lease, std::string_view reason, const Policy& policy,
               Time now, Decided& decided) {
  if (MUTANT(returned_task_forgotten)) return true;
  return by_holder(run, ref, lease, policy, now, decided, [&](Decision& decision, Slot& slot) {
    decision.event(EventType::node_lease_expired, &slot.state, json_object("reason", reason));
    decision.enqueue(slot);
  });
}

bool keep(Run& run, NodeRef ref, const AttemptLease& attempt, Time now) {
  const NodeState& state = run.at(ref).state;
  const bool is_over = attempt.retry_count < state.retry_count || is_terminal(state.status) || is_orphan(run, ref);
  if (is_over || MUTANT(keep_not_stored)) return true;
  const auto until_deadline = MUTANT(kept_task_redelivered) ? delivery::LeaseTime{Duration{1}} : std::nullopt;
  const std::string lease = MUTANT(old_delivery_kept) ? lease_token(state) : attempt.lease.value_or("");
  return renew(run, ref, lease, until_deadline, now);
}

bool abandon(Run& run, NodeRef ref, std::string_view lease, std::string_view reason, const Policy& policy, Time now,
             Decided& decided) {
  const std::int32_t deliveries = run.at(ref).state.delivery_count;
  if (deliveries >= policy.deliveries_max && !MUTANT(abandoned_for_ever))
    return give_up(run, ref, lease, "given up after " + as_text(deliveries) + " deliveries: " + std::string(reason),
                   policy, now, decided);
  if (MUTANT(abandon_keeps_lease)) return true;
  return by_holder(run, ref, lease, policy, now, decided, [&](Decision& decision, Slot& slot) {
    decision.event(EventType::node_lease_expired, &slot.state, json_object("reason", reason, "abandoned", true));
    decision.enqueue(slot);
  });
}

bool give_up(Run& run, NodeRef ref, std::string_view lease, std::string_view reason, const Policy& policy, Time now,
             Decided& decided) {
  return by_holder(run, ref, lease, policy, now, decided, [&](Decision& decision, Slot& slot) {
    slot.state.dead_at = now;
    decision.fail(ref, std::string(reason));
    decision.settle();
  });
}

bool progress(Run& run, NodeRef ref, const AttemptLease& attempt, Json progress) {
  Slot& slot = run.at(ref);
  if (!has_attempt(slot.state, attempt) || is_orphan(run, ref)) return false;
  slot.state.progress = std::move(progress);
  slot.changed = true;
  return true;
}

bool checkpoint(Run& run, NodeRef ref, const AttemptLease& attempt, Json data, const Policy& policy, Time now,
                Decided& decided) {
  Slot& slot = run.at(ref);
  if (!has_attempt(slot.state, attempt) || is_orphan(run, ref)) return false;
  Decision decision(run, policy, now, decided);
  decision.event(EventType::checkpoint, &slot.state, json_object("bytes", data.text.size()));
  slot.state.checkpoint = std::move(data);
  slot.changed = true;
  return true;
}

LogVerdict log(Run& run, NodeRef ref, const AttemptLease& attempt, std::vector<delivery::LogText> lines,
               const Policy& policy) {
  Slot& slot = run.at(ref);
  if (!has_attempt(slot.state, attempt) || is_orphan(run, ref)) return {};
  const LogVerdict verdict{true, delivery::take_log(slot.state.log_bytes, lines, policy)};
  lines.resize(verdict.stored);
  for (delivery::LogText& line : lines)
    run.logs.push_back({.job_id = run.job.job_id,
                        .node_id = slot.state.node_id,
                        .retry_count = slot.state.retry_count,
                        .stream = std::move(line.stream),
                        .logged_at = line.at,
                        .text = std::move(line.text)});
  if (verdict.stored > 0) slot.changed = true;
  return verdict;
}

namespace {

void lease_ran_out(Run& run, NodeRef ref, const Policy& policy, Time now, Decision& decision) {
  Slot& slot = run.at(ref);
  NodeState& state = slot.state;
  ENSURE(state.lease_until && state.started_at);
  const std::string worker = state.worker_id.value_or("");
  const auto expired = [&] {
    decision.event(EventType::node_lease_expired, &state,
                   json_object("worker", worker, "delivery_count", state.delivery_count));
  };
  std::visit(
      overloaded{
          [&](delivery::StillHeld held) {
            state.timer_due = state.lease_until = held.until;
            slot.changed = true;
          },
          [&](delivery::TimedOut) {
            decision.event(EventType::node_timeout, &state, json_object("worker", worker));
            decision.attempt_failed(ref, "timed out after " + as_text(run.node(ref).timeout.count()) + " s");
          },
          [&](delivery::Redeliver) {
            expired();
            decision.enqueue(slot);
          },
          [&](delivery::GivenUp) {
            expired();
            state.dead_at = now;
            decision.fail(ref, "given up after " + as_text(state.delivery_count) +
                                   " deliveries, each of whose workers went silent");
          },
      },
      delivery::expiry({*state.started_at, *state.lease_until, deadline(run, ref), state.delivery_count},
                       policy, now));
}

// The next chunk of what a fan-out has to do. A walk that cancels goes on whatever the job is; the others
// wait for a paused job.
void fan_out_step(Run& run, NodeIndex i, Decision& decision) {
  Slot& slot = run.at(i);
  if (slot.state.status == NodeStatus::ready) {
    decision.begin_fan_out(i);
  } else if (slot.state.status == NodeStatus::running && decision.is_paused()) {
    slot.state.timer_due.reset();
    slot.state.sweep_next.reset();  // resume begins a new one
    slot.changed = true;
  } else if (slot.state.sweep_next) {
    decision.sweep(i);
  } else {
    decision.expand(i);
  }
}

}  // namespace

void timer_fired(Run& run, NodeRef ref, const Policy& policy, Time now, Decided& decided) {
  Slot& slot = run.at(ref);
  NodeState& state = slot.state;
  if (!state.timer_due || *state.timer_due > now) return;  // it was moved or cleared in this very batch
  Decision decision(run, policy, now, decided);
  if (is_orphan(run, ref)) return cancel_orphan(decision, slot);
  if (ref.is_item() || run.node(ref).type == NodeType::task) {
    if (state.status == NodeStatus::ready)
      decision.dispatch(ref);
    else
      lease_ran_out(run, ref, policy, now, decision);
  } else {
    switch (run.node(ref).type) {
      case NodeType::start: decision.complete(ref, std::nullopt); break;
      case NodeType::conditional: decision.choose_branch(ref.node); break;  // it was put off
      case NodeType::wait:
        if (state.started_at)
          decision.complete(ref, std::nullopt);
        else
          decision.begin_wait(ref.node);
        break;
      case NodeType::fan_out: fan_out_step(run, ref.node, decision); break;
      case NodeType::fan_in: decision.gather(ref.node); break;
      case NodeType::approval:
        if (state.status == NodeStatus::ready) {
          decision.ask_for_approval(ref.node);
          break;
        }
        decision.event(EventType::node_timeout, &state);
        decision.settle_approval(ref.node, run.node(ref).approved_by_timeout, "",
                                 "nobody decided within " + as_text(run.node(ref).timeout.count()) + " s");
        break;
      default: ENSURE(!"this type has no timer");
    }
  }
  decision.settle();
}

bool may_fail_node(const Run& run, NodeRef ref, std::optional<bool> completed, std::int32_t retry_count,
                   const Policy& policy) {
  const Node& node = run.node(ref);
  if (completed == true || node.on_failure == Consequence::go_on ||
      (ref.is_item() && node.on_item_failure == Consequence::go_on))
    return false;
  const NodeState& state = ref.is_item() ? run.items.at(ref).state : run.nodes[ref.node]->state;
  // The attempt that the report names may begin in the same batch, by a message before it.
  const std::int32_t attempt = std::max(state.retry_count, retry_count) - state.retry_base;
  const bool last_attempt = run.job.nodes_failed > 0 || attempt + 1 >= node.retry.attempts_max;
  if (completed == false) return last_attempt;
  return state.status == NodeStatus::running &&
         (last_attempt || state.delivery_count >= policy.deliveries_max);
}

}  // namespace baton::workflow
