#include "core/workflow/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/mutant.hpp"
#include "base/result.hpp"

namespace baton::workflow {
namespace {

constexpr std::size_t uuid_length = 36;

bool is_active(NodeStatus s) {
  return s == NodeStatus::ready || s == NodeStatus::dispatched || s == NodeStatus::running;
}

std::string as_text(std::int64_t number) { return std::to_string(number); }

// One decision about one job: the run, the time and the journal at hand, so that the steps below read as
// sentences.
class Decision {
 public:
  Decision(Run& run, const Policy& policy, Time now, Journal& journal)
      : run_(run), policy_(policy), now_(now), journal_(journal) {}

  void event(EventType type, const NodeState* node = nullptr, OptionalJson data = std::nullopt) {
    Event e{.job_id = run_.job.job_id, .event_type = type, .event_data = std::move(data), .created_at = now_};
    if (node) e.node_id = node->node_id;
    journal_.events.push_back(std::move(e));
  }

  void set_status(Slot& slot, NodeStatus to) {
    NodeStatus& from = slot.state.status;
    ENSURE(!is_terminal(from));
    run_.job.nodes_active += int{is_active(to)} - int{is_active(from)};
    if (to == NodeStatus::failed) ++run_.job.nodes_failed;
    from = to;
    slot.changed = true;
    slot.state.timer_due.reset();
    slot.state.lease_until.reset();
    if (is_terminal(to)) slot.state.completed_at = now_;
  }

  // An incoming edge of `i` has fired.
  void edge_fired(NodeIndex i) {
    Slot& slot = run_.at(i);
    if (slot.state.status != NodeStatus::pending) return;
    const bool any = run_.definition->nodes[i].join == Join::any_of || MUTANT(join_does_not_wait);
    slot.state.waiting_for = any ? 0 : slot.state.waiting_for - 1;
    slot.changed = true;
    if (slot.state.waiting_for == 0) make_ready(i);
  }

  void make_ready(NodeIndex i) {
    Slot& slot = run_.at(i);
    set_status(slot, NodeStatus::ready);
    event(EventType::node_ready, &slot.state);
    if (run_.definition->nodes[i].type == NodeType::task)
      dispatch(i);
    else
      set_status(slot, NodeStatus::completed);  // END completes by itself
  }

  void dispatch(NodeIndex i) {
    const Node& node = run_.definition->nodes[i];
    Slot& slot = run_.at(i);
    NodeState& state = slot.state;
    state.task_id = task_id(run_.job.job_id, node.id, state.retry_count);
    state.delivery_count = 0;
    const bool builtin = node.queue.empty() && policy_.builtin && is_builtin(node.handler);
    state.queue = builtin              ? std::string{builtin_queue}
                  : node.queue.empty() ? std::string{default_queue}
                                       : node.queue;
    state.tenant = builtin ? Tenant{} : run_.job.tenant;
    event(EventType::node_dispatched, &state, task_data(state));
    enqueue(slot);
    if (run_.job.status == JobStatus::pending) {
      run_.job.status = JobStatus::running;
      run_.job.started_at = now_;
      run_.changed = true;
      event(EventType::job_started);
    }
  }

  void enqueue(Slot& slot) {
    set_status(slot, NodeStatus::dispatched);
    slot.state.dispatched_at = now_;
    journal_.dispatched.push_back(
        {slot.state.tenant, *slot.state.queue, run_.job.job_id, slot.state.node_id});
  }

  void complete(NodeIndex i, OptionalJson output) {
    Slot& slot = run_.at(i);
    slot.state.output = std::move(output);
    set_status(slot, NodeStatus::completed);
    if (run_.definition->nodes[i].type != NodeType::start) event(EventType::node_completed, &slot.state);
    if (run_.job.nodes_failed > 0) return;  // finish_running: what runs may finish, nothing new begins
    for (const NodeIndex next : run_.definition->nodes[i].next) edge_fired(next);
  }

  // The attempt did not succeed: another one if the policy has one left, else the node has failed.
  void attempt_failed(NodeIndex i, const std::string& error) {
    const RetryPolicy& retry = run_.definition->nodes[i].retry;
    Slot& slot = run_.at(i);
    slot.state.error = error;
    if (run_.job.nodes_failed > 0 || slot.state.retry_count + 1 >= retry.attempts_max) return fail(i, error);
    ++slot.state.retry_count;
    const Duration delay = retry.delay_before(slot.state.retry_count);
    set_status(slot, NodeStatus::ready);
    event(EventType::node_retry, &slot.state,
          Json{"{\"retry_count\":" + as_text(slot.state.retry_count) +
               ",\"delay_ms\":" + as_text(delay.count()) + ",\"error\":" + quoted(error) + "}"});
    if (delay > Duration::zero())
      slot.state.timer_due = now_ + delay;
    else
      dispatch(i);
  }

  void fail(NodeIndex i, const std::string& error) {
    Slot& slot = run_.at(i);
    slot.state.error = error;
    set_status(slot, NodeStatus::failed);
    event(EventType::node_failed, &slot.state, Json{"{\"error\":" + quoted(error) + "}"});
    if (!run_.job.error) run_.job.error = "node '" + slot.state.node_id + "' failed: " + error;
    run_.changed = true;
    if (MUTANT(keep_running_after_failure)) return;
    if (run_.definition->on_failure == OnFailure::fail_fast) cancel_rest();
  }

  void cancel_rest() {
    for (auto& slot : run_.nodes) {
      ENSURE(slot);
      if (is_terminal(slot->state.status)) continue;
      set_status(*slot, NodeStatus::cancelled);
      event(EventType::node_cancelled, &slot->state);
    }
  }

  // Ends the job when nothing of it is left to run.
  void settle() {
    if (is_terminal(run_.job.status) || run_.job.nodes_active > 0) return;
    if (run_.job.nodes_failed > 0) {
      if (MUTANT(keep_running_after_failure)) return end(JobStatus::failed, EventType::job_failed);
      cancel_rest();
      return end(JobStatus::failed, EventType::job_failed);
    }
    run_.job.result_data = outputs();
    end(JobStatus::completed, EventType::job_completed);
  }

  void end(JobStatus status, EventType type, OptionalJson data = std::nullopt) {
    run_.job.status = status;
    run_.job.completed_at = now_;
    run_.changed = true;
    if (!data && run_.job.error) data = Json{"{\"error\":" + quoted(*run_.job.error) + "}"};
    event(type, nullptr, std::move(data));
    journal_.ended.push_back(run_.job.job_id);
  }

  static OptionalJson task_data(const NodeState& state) {
    if (state.retry_count == 0) return std::nullopt;
    return Json{"{\"retry_count\":" + as_text(state.retry_count) + "}"};
  }

 private:
  Json outputs() const {
    std::string text = "{";
    for (const auto& slot : run_.nodes) {
      ENSURE(slot);
      if (!slot->state.output) continue;
      if (text.size() > 1) text += ',';
      append_quoted(text, slot->state.node_id);
      text += ':';
      text += slot->state.output->text;
    }
    text += '}';
    return Json{std::move(text)};
  }

  Run& run_;
  const Policy& policy_;
  Time now_;
  Journal& journal_;
};

Time deadline(const Run& run, NodeIndex i) {
  const NodeState& state = run.nodes[i]->state;
  return state.started_at.value_or(Time{}) + run.definition->nodes[i].timeout;
}

bool same_result(const TaskResult& earlier, const Report& now) {
  return (earlier.status == "completed") == now.completed && earlier.output == now.output &&
         earlier.error == now.error && (!now.lease || earlier.lease == now.lease);
}

bool holds_lease(const NodeState& state, std::string_view lease) {
  return state.status == NodeStatus::running && lease_token(state) == lease;
}

}  // namespace

bool is_builtin(std::string_view handler) {
  static constexpr std::array<std::string_view, 4> names{"echo", "sleep", "fail", "flaky"};
  return std::ranges::find(names, handler) != names.end();
}

Run::Run(std::shared_ptr<const Definition> d, Job j)
    : definition(std::move(d)),
      job(std::move(j)),
      stored_active(job.nodes_active),
      stored_failed(job.nodes_failed),
      nodes(definition->nodes.size()) {}

void Run::add(NodeState stored) {
  const auto index = definition->find(stored.node_id);
  ENSURE(index);
  if (nodes[*index]) return;
  const auto timer = stored.timer_due;
  nodes[*index] = Slot{.state = std::move(stored), .stored_timer = timer};
}

Slot& Run::at(NodeIndex i) {
  ENSURE(nodes[i]);
  return *nodes[i];
}

bool Run::row_changed() const {
  return changed || job.nodes_active != stored_active || job.nodes_failed != stored_failed;
}

Run create(const NewJob& job, std::shared_ptr<const Definition> definition, const Policy& policy, Time now,
           Journal& journal) {
  Run run(std::move(definition), Job{.job_id = job.job_id,
                                     .tenant = job.tenant,
                                     .workflow_version = job.version,
                                     .input_data = job.input_data,
                                     .traceparent = job.traceparent,
                                     .created_at = now});
  const Definition& def = *run.definition;
  run.job.workflow_id = def.workflow_id;
  run.is_new = true;
  for (NodeIndex i = 0; i < def.nodes.size(); ++i) {
    run.nodes[i] = Slot{.state = {.job_id = job.job_id,
                                  .node_id = def.nodes[i].id,
                                  .waiting_for = def.nodes[i].dependencies,
                                  .tenant = job.tenant},
                        .is_new = true};
  }
  Decision decision(run, policy, now, journal);
  decision.event(EventType::job_created);
  decision.set_status(run.at(def.start), NodeStatus::ready);
  decision.complete(def.start, std::nullopt);
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
  TaskName name{.job_id = {std::string(text.substr(0, uuid_length))},
                .node_id = std::string(text.substr(uuid_length + 1, last - uuid_length - 1))};
  const auto digits = text.substr(last + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name.retry_count);
  if (error != std::errc{} || end != digits.data() + digits.size() || name.retry_count < 0 ||
      !is_uuid(name.job_id.value))
    return std::nullopt;
  if (task_id(name.job_id, name.node_id, name.retry_count) != text) return std::nullopt;  // 00 is not 0
  return name;
}

std::string lease_token(const NodeState& node) {
  return as_text(node.retry_count) + "." + as_text(node.delivery_count);
}

std::optional<Json> task_params(const Run& run, NodeIndex node) {
  const auto& params = run.definition->nodes[node].params;
  return params ? *params : run.job.input_data;
}

bool hand_out(Run& run, NodeIndex i, const std::string& worker, bool heartbeats, const Policy& policy,
              Time now, Journal& journal) {
  Slot& slot = run.at(i);
  NodeState& state = slot.state;
  if (state.status != NodeStatus::dispatched) return false;
  Decision decision(run, policy, now, journal);
  decision.set_status(slot, NodeStatus::running);
  if (!MUTANT(deliveries_never_counted) || state.delivery_count == 0) ++state.delivery_count;
  state.worker_id = worker;
  state.started_at = now;
  state.lease_until = heartbeats ? std::min(now + policy.short_lease, deadline(run, i)) : deadline(run, i);
  if (!MUTANT(forget_lease_timer)) state.timer_due = state.lease_until;
  std::string data = "{\"worker\":" + quoted(worker);
  if (state.delivery_count > 1) data += ",\"delivery_count\":" + as_text(state.delivery_count);
  decision.event(EventType::node_started, &state, Json{data + "}"});
  if (MUTANT(lease_not_persisted)) slot.changed = slot.is_new;
  return true;
}

bool result_may_be_repeated(const NodeState& node, std::int32_t retry_count) {
  return retry_count < node.retry_count ||
         !(node.status == NodeStatus::dispatched || node.status == NodeStatus::running);
}

Verdict report(Run& run, NodeIndex i, const Report& report, const TaskResult* earlier, const Policy& policy,
               Time now, Journal& journal) {
  Slot& slot = run.at(i);
  NodeState& state = slot.state;
  if (result_may_be_repeated(state, report.retry_count)) {
    if (MUTANT(accept_old_attempt) && state.status == NodeStatus::running) {
      // falls through: the old attempt's word is taken for the new one's
    } else {
      const auto mine = std::ranges::find(
          run.results, task_id(run.job.job_id, state.node_id, report.retry_count), &TaskResult::task_id);
      if (mine != run.results.end()) earlier = &*mine;
      if (MUTANT(skip_duplicate_guard) && earlier && !is_terminal(run.job.status)) {
        for (const NodeIndex next : run.definition->nodes[i].next)
          if (run.has(next)) Decision(run, policy, now, journal).edge_fired(next);
        return Verdict::accepted;
      }
      return earlier && same_result(*earlier, report) ? Verdict::duplicate : Verdict::stale;
    }
  } else if (report.retry_count > state.retry_count) {
    return Verdict::stale;
  }
  // A lease that ran out is still the last one given until somebody else is handed the task.
  if (report.lease && !MUTANT(accept_stale_lease) && lease_token(state) != *report.lease)
    return Verdict::stale;

  Decision decision(run, policy, now, journal);
  if (state.status ==
      NodeStatus::dispatched) {  // a worker that was not handed the task by us, as the seed's may be
    decision.set_status(slot, NodeStatus::running);
    state.started_at = now;
    decision.event(EventType::node_started, &state);
  }
  if (report.worker) state.worker_id = report.worker;
  run.results.push_back({.task_id = *state.task_id,
                         .job_id = run.job.job_id,
                         .node_id = state.node_id,
                         .status = report.completed ? "completed" : "failed",
                         .output = report.output,
                         .error = report.error,
                         .worker_id = report.worker,
                         .lease = report.lease,
                         .execution_duration_ms = report.execution_duration_ms,
                         .received_at = now});
  if (report.completed)
    decision.complete(i, report.output ? report.output : Json{"null"});
  else
    decision.attempt_failed(i, report.error.value_or("the worker gave no reason"));
  decision.settle();
  return Verdict::accepted;
}

bool renew(Run& run, NodeIndex i, std::string_view lease, const Policy& policy, Time now) {
  Slot& slot = run.at(i);
  NodeState& state = slot.state;
  if (!holds_lease(state, lease)) return false;
  state.lease_until = std::min(now + policy.short_lease, deadline(run, i));
  // The timer is moved only when it would be late; an early one finds the longer lease when it fires and
  // waits on.
  if (!state.timer_due || *state.lease_until < *state.timer_due) state.timer_due = state.lease_until;
  slot.changed = true;
  return true;
}

bool give_back(Run& run, NodeIndex i, std::string_view lease, std::string_view reason, const Policy& policy,
               Time now, Journal& journal) {
  Slot& slot = run.at(i);
  if (!holds_lease(slot.state, lease)) return false;
  Decision decision(run, policy, now, journal);
  decision.event(EventType::node_lease_expired, &slot.state, Json{"{\"reason\":" + quoted(reason) + "}"});
  decision.enqueue(slot);
  return true;
}

void timer_fired(Run& run, NodeIndex i, const Policy& policy, Time now, Journal& journal) {
  Slot& slot = run.at(i);
  NodeState& state = slot.state;
  if (!state.timer_due || *state.timer_due > now) return;  // it was moved or cleared in this very batch
  Decision decision(run, policy, now, journal);
  if (state.status == NodeStatus::ready) return decision.dispatch(i);
  ENSURE(state.status == NodeStatus::running && state.lease_until);
  if (*state.lease_until > now && !MUTANT(fire_timer_early)) {
    state.timer_due = state.lease_until;
    slot.changed = true;
    return;
  }
  if (state.started_at < policy.opened_at && now < policy.opened_at + policy.short_lease) {
    state.timer_due = state.lease_until = policy.opened_at + policy.short_lease;
    slot.changed = true;
    return;
  }
  const std::string worker = quoted(state.worker_id.value_or(""));
  if (now >= deadline(run, i)) {
    decision.event(EventType::node_timeout, &state, Json{"{\"worker\":" + worker + "}"});
    decision.attempt_failed(i, "timed out after " + as_text(run.definition->nodes[i].timeout.count()) + " s");
  } else {
    decision.event(
        EventType::node_lease_expired, &state,
        Json{"{\"worker\":" + worker + ",\"delivery_count\":" + as_text(state.delivery_count) + "}"});
    if (state.delivery_count >= policy.deliveries_max)
      decision.fail(i, "given up after " + as_text(state.delivery_count) +
                           " deliveries, each of whose workers went silent");
    else
      decision.enqueue(slot);
  }
  decision.settle();
}

bool cancel(Run& run, std::string_view reason, Time now, Journal& journal) {
  if (is_terminal(run.job.status)) return false;
  const Policy none;
  Decision decision(run, none, now, journal);
  decision.cancel_rest();
  OptionalJson data;
  if (!reason.empty()) data = Json{"{\"reason\":" + quoted(reason) + "}"};
  decision.end(JobStatus::cancelled, EventType::job_cancelled, std::move(data));
  return true;
}

bool may_fail_node(const Run& run, NodeIndex i, std::optional<bool> completed, std::int32_t retry_count,
                   const Policy& policy) {
  const NodeState& state = run.nodes[i]->state;
  if (completed == true) return false;
  // The attempt that the report names may begin in the same batch, by a message before it.
  const std::int32_t attempt = std::max(state.retry_count, retry_count);
  const bool last_attempt =
      run.job.nodes_failed > 0 || attempt + 1 >= run.definition->nodes[i].retry.attempts_max;
  if (completed == false) return last_attempt;
  return state.status == NodeStatus::running &&
         (last_attempt || state.delivery_count >= policy.deliveries_max);
}

}  // namespace baton::workflow
