#include "core/workflow/machine/decision.hpp"

#include <algorithm>
#include <boost/json/value.hpp>
#include <cmath>

#include "base/json_write.hpp"
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/workflow/definition/span.hpp"

namespace baton::workflow {
namespace {

bool is_active(NodeStatus s) {
  return s == NodeStatus::ready || s == NodeStatus::dispatched || s == NodeStatus::running;
}

// What a store refuses would stop more than this node: whatever is said of a failure is made fit for it.
constexpr std::size_t error_bytes_max = 16 << 10;

OptionalJson attempt_data(const NodeState& state) {
  if (state.retry_count == 0) return std::nullopt;
  return json_object("retry_count", state.retry_count);
}

}  // namespace

Json error_data(const std::string& error) { return json_object("error", error); }

void Decision::event(EventType type, const NodeState* node, OptionalJson data) {
  Event e{.job_id = run_.job.job_id,
          .event_type = type,
          .event_data = std::move(data),
          .created_at = now_,
          .tenant = run_.job.tenant};
  if (node) e.node_id = node->node_id;
  decided_.events.push_back(std::move(e));
}

void Decision::set_status(Slot& slot, NodeStatus to) {
  NodeStatus& from = slot.state.status;
  ENSURE(!is_terminal(from));
  if (slot.state.item_index == no_item) run_.job.nodes_active += int{is_active(to)} - int{is_active(from)};
  from = to;
  slot.changed = true;
  slot.state.timer_due.reset();
  slot.state.lease_until.reset();
  if (is_terminal(to)) slot.state.completed_at = now_;
}

// ---- along the edges ----

void Decision::edge_fired(NodeIndex i) {
  Slot& slot = run_.at(i);
  if (slot.state.status != NodeStatus::pending) return;
  const bool any = run_.definition->nodes[i].join == Join::any_of || MUTANT(join_does_not_wait);
  ++slot.state.edges_fired;
  slot.state.waiting_for = any ? 0 : slot.state.waiting_for - 1;
  slot.changed = true;
  if (slot.state.waiting_for == 0) resolved(i);
}

void Decision::edge_dead(NodeIndex i) {
  Slot& slot = run_.at(i);
  if (slot.state.status != NodeStatus::pending) return;
  --slot.state.waiting_for;
  slot.changed = true;
  if (slot.state.waiting_for == 0) resolved(i);
}

void Decision::resolved(NodeIndex i) {
  if (run_.at(i).state.edges_fired > 0 || MUTANT(run_skipped_nodes))
    make_ready(i);
  else
    skip(i);
}

void Decision::make_ready(NodeIndex i) {
  Slot& slot = run_.at(i);
  set_status(slot, NodeStatus::ready);
  event(EventType::node_ready, &slot.state);
  switch (run_.definition->nodes[i].type) {
    case NodeType::start: return;
    case NodeType::end: return set_status(slot, NodeStatus::completed);  // by itself, without an event
    case NodeType::task: return dispatch(NodeRef{i});
    case NodeType::conditional: return choose_branch(i);
    case NodeType::wait: return begin_wait(i);
    case NodeType::approval: return ask_for_approval(i);
    case NodeType::fan_out: return begin_fan_out(i);
    case NodeType::fan_in: slot.state.timer_due = now_; return;  // it reads its items in chunks
  }
}

void Decision::complete(NodeRef ref, OptionalJson output) {
  Slot& slot = run_.at(ref);
  slot.state.output = std::move(output);
  slot.state.error.reset();  // of an earlier attempt
  set_status(slot, NodeStatus::completed);
  const Node& node = run_.node(ref);
  if (node.type != NodeType::start) event(EventType::node_completed, &slot.state);
  if (ref.is_item()) {
    ++run_.at(ref.node).state.items_done;
    return item_ended(ref.node);
  }
  for (const NodeIndex next : node.next) {
    if (run_.job.nodes_failed > 0) return;  // finish_running: what runs may finish, nothing new begins
    edge_fired(next);
  }
}

void Decision::skip(NodeIndex i) {
  Slot& slot = run_.at(i);
  set_status(slot, NodeStatus::skipped);
  event(EventType::node_skipped, &slot.state);
  if (MUTANT(skip_does_not_spread)) return;
  for (const NodeIndex next : run_.definition->nodes[i].next) {
    if (run_.job.nodes_failed > 0) return;
    edge_dead(next);
  }
}

// ---- tasks ----

void Decision::start_job() {
  if (run_.job.status != JobStatus::pending) return;
  run_.job.status = JobStatus::running;
  run_.job.started_at = now_;
  run_.changed = true;
  event(EventType::job_started);
}

// True: the expressions of this batch have cost what they may. The node stays READY with a timer that is due
// at once, and goes on in a later batch, when others have had their turn.
bool Decision::put_off(Slot& slot) {
  if (decided_.may_evaluate()) return false;
  if (slot.state.timer_due && *slot.state.timer_due <= now_) return true;  // it stays due
  slot.state.timer_due = now_;
  slot.changed = true;
  return true;
}

bool Decision::may_give_out() const { return !is_paused() || MUTANT(dispatch_while_paused); }

// The job is paused: what is READY without a timer goes on when it is resumed.
void Decision::park(Slot& slot) {
  slot.state.timer_due.reset();
  slot.changed = true;
}

bool Decision::needs_params(NodeRef ref) {
  const auto& params = run_.node(ref).params;
  return params && !params->is_constant() && !run_.at(ref).state.params;
}

// False: they cannot be, and the node has failed for it.
bool Decision::resolve_params(NodeRef ref, RunScope& scope) {
  const Node& node = run_.node(ref);
  NodeState& state = run_.at(ref).state;
  if (!needs_params(ref)) return true;
  auto params = node.params->evaluate(scope, &scope.memo);
  if (params) decided_.params_bytes_left -= static_cast<std::int64_t>(params->text.size());
  if (!params) {
    fail(ref, "params of node '" + state.node_id + "': " + params.error().message);
    return false;
  }
  if (ref.is_item() && params->text.size() > policy_.item_params_max) {
    fail(ref, "params of node '" + state.node_id + "' have " + std::to_string(params->text.size()) +
                  " bytes; those of an item may have " + std::to_string(policy_.item_params_max));
    return false;
  }
  state.params = *std::move(params);
  return true;
}

void Decision::dispatch(NodeRef ref) {
  RunScope names = scope();
  dispatch(ref, names);
}

void Decision::dispatch(NodeRef ref, RunScope& names) {
  const Node& node = run_.node(ref);
  Slot& slot = run_.at(ref);
  NodeState& state = slot.state;
  if (!may_give_out()) {
    if (state.status != NodeStatus::ready) set_status(slot, NodeStatus::ready);
    return park(slot);
  }
  // Walks over children look at the budget themselves.
  if (!ref.is_item() && needs_params(ref) && put_off(slot)) return;
  if (!resolve_params(ref, names)) return;
  // An attempt that was held back by a pause keeps its count, and with it the leases that are used up.
  if (auto id = task_id(run_.job.job_id, state.node_id, state.retry_count); state.task_id != id) {
    state.task_id = std::move(id);
    state.delivery_count = 0;
    state.log_bytes = 0;
    state.progress.reset();
  }
  const bool builtin = node.queue.empty() && policy_.builtin && is_builtin(node.handler);
  state.queue = builtin              ? std::string{builtin_queue}
                : node.queue.empty() ? std::string{default_queue}
                                     : node.queue;
  state.tenant = builtin ? Tenant{} : run_.job.tenant;
  event(EventType::node_dispatched, &state, attempt_data(state));
  enqueue(slot);
  start_job();
}

void Decision::enqueue(Slot& slot) {
  set_status(slot, NodeStatus::dispatched);
  slot.state.dispatched_at = now_;
  decided_.dispatched.push_back({slot.state.tenant, *slot.state.queue, slot.state.priority, now_,
                                 run_.job.job_id, slot.state.item_index, slot.state.node_id});
}

// The attempt did not succeed: another one if the policy has one left, else the node has failed.
void Decision::attempt_failed(NodeRef ref, const std::string& said) {
  const std::string error = clean_text(said, error_bytes_max);
  const RetryPolicy& retry = run_.node(ref).retry;
  Slot& slot = run_.at(ref);
  slot.state.error = error;
  const std::int32_t attempt = slot.state.retry_count - slot.state.retry_base + 1;
  if (run_.job.nodes_failed > 0 || attempt >= retry.attempts_max) return fail(ref, error);
  ++slot.state.retry_count;
  const Duration delay = retry.delay_before(attempt);
  set_status(slot, NodeStatus::ready);
  event(EventType::node_retry, &slot.state,
        json_object("retry_count", slot.state.retry_count, "delay_ms", delay.count(), "error", error));
  if (delay > Duration::zero())
    slot.state.timer_due = now_ + delay;
  else
    dispatch(ref);
}

void Decision::fail(NodeRef ref, const std::string& said) {
  const std::string error = clean_text(said, error_bytes_max);
  Slot& slot = run_.at(ref);
  const Node& node = run_.node(ref);
  slot.state.error = error;
  set_status(slot, NodeStatus::failed);
  event(EventType::node_failed, &slot.state, error_data(error));
  if (ref.is_item()) {
    Slot& parent = run_.at(ref.node);
    ++parent.state.items_done;
    ++parent.state.items_failed;
    parent.changed = true;
    if (node.on_item_failure == Consequence::go_on || parent.state.status != NodeStatus::running)
      return item_ended(ref.node);
    return fail(NodeRef{ref.node}, "item " + as_text(ref.item) + " failed: " + error);
  }
  slot.state.sweep_next.reset();
  if (slot.state.items_created > slot.state.items_done) begin_sweep(slot);
  if (node.on_failure == Consequence::go_on) {
    for (const NodeIndex next : node.next) {
      if (run_.job.nodes_failed > 0) return;
      edge_fired(next);
    }
    return;
  }
  ++run_.job.nodes_failed;
  if (!run_.job.error) run_.job.error = "node '" + slot.state.node_id + "' failed: " + error;
  run_.changed = true;
  if (run_.definition->on_failure == OnFailure::fail_fast) cancel_after_failure();
}

// ---- the other types ----

const Branch* Decision::branch_taken(NodeIndex i, std::string& error) {
  RunScope names = scope();
  const Branch* otherwise = nullptr;
  for (const Branch& branch : run_.definition->nodes[i].branches) {
    if (branch.is_default) otherwise = &branch;
    if (!branch.condition) continue;
    const auto holds = branch.condition->evaluate(names);
    if (!holds) {
      error = "condition of node '" + run_.definition->nodes[i].id + "': " + holds.error().message;
      return nullptr;
    }
    if (expression::truthy(*holds)) return &branch;
  }
  if (!otherwise)
    error = "no branch of node '" + run_.definition->nodes[i].id + "' fits, and none is the default";
  return otherwise;
}

void Decision::choose_branch(NodeIndex i) {
  if (put_off(run_.at(i))) return;
  std::string error;
  const Branch* taken = branch_taken(i, error);
  if (!taken) return fail(NodeRef{i}, error);
  Slot& slot = run_.at(i);
  slot.state.output = json_object("branch", taken->name);
  set_status(slot, NodeStatus::completed);
  event(EventType::node_completed, &slot.state, slot.state.output);
  for (const NodeIndex next : run_.definition->nodes[i].next) {
    if (run_.job.nodes_failed > 0) return;
    if (std::ranges::find(taken->next, next) != taken->next.end())
      edge_fired(next);
    else
      edge_dead(next);
  }
}

std::optional<Time> Decision::wait_ends(const Node& node, std::string& error) {
  RunScope names = scope();
  const auto& text = node.until ? *node.until : *node.duration;
  const std::string what = std::string(node.until ? "until" : "duration") + " of node '" + node.id + "'";
  const auto value = text.evaluate(names);
  if (!value) {
    error = what + ": " + value.error().message;
    return std::nullopt;
  }
  std::optional<Time> ends;
  if (node.until) {
    if (value->is_string()) ends = from_iso(std::string_view(value->get_string()));
    if (!ends)
      error = what + " must be an instant as 2026-01-31T08:00:00Z, found " + json_text(*value);
  } else if (const auto span = read_span(*value)) {
    ends = now_ + *span;
  } else {
    error = what + " must be seconds or a text as '1h30m', found " + json_text(*value);
  }
  return ends;
}

void Decision::begin_wait(NodeIndex i) {
  const Node& node = run_.definition->nodes[i];
  Slot& slot = run_.at(i);
  slot.state.started_at.reset();  // its timer begins it, if it is put off
  if (!(node.until ? node.until : node.duration)->is_constant() && put_off(slot)) return;
  std::string error;
  const auto ends = wait_ends(node, error);
  if (!ends) return fail(NodeRef{i}, error);
  start_job();
  slot.state.started_at = now_;
  event(EventType::node_started, &slot.state, json_object("until", *ends));
  if (*ends <= now_) return complete(NodeRef{i}, std::nullopt);
  slot.state.timer_due = *ends;
  slot.changed = true;
}

void Decision::ask_for_approval(NodeIndex i) {
  const Node& node = run_.definition->nodes[i];
  Slot& slot = run_.at(i);
  if (is_paused()) return park(slot);
  if (node.message && !slot.state.params) {
    if (put_off(slot)) return;
    RunScope names = scope();
    const auto message = node.message->evaluate(names);
    if (!message) return fail(NodeRef{i}, "message of node '" + node.id + "': " + message.error().message);
    slot.state.params = json_object("message", *message);
  }
  slot.state.queue = approval_queue;
  set_status(slot, NodeStatus::dispatched);
  slot.state.dispatched_at = now_;
  if (node.timeout.count() > 0) slot.state.timer_due = now_ + node.timeout;
  event(EventType::node_dispatched, &slot.state, slot.state.params);
  start_job();
}

// `by` is empty when nobody decided in time.
void Decision::settle_approval(NodeIndex i, bool approved, const std::string& by,
                               const std::string& comment) {
  const Node& node = run_.definition->nodes[i];
  Slot& slot = run_.at(i);
  const bool timed_out = by.empty();
  if (!approved && node.on_reject == Consequence::fail) {
    std::string error = timed_out ? comment : "rejected by " + by;
    if (!timed_out && !comment.empty()) error += ": " + comment;
    return fail(NodeRef{i}, error);
  }
  if (!timed_out) slot.state.worker_id = by;
  complete(NodeRef{i}, json_object("approved", approved, "by", timed_out ? std::nullopt : std::optional(by),
                                   "comment", comment, "timed_out", timed_out, "at", now_));
}

// ---- the job ----

void Decision::cancel_rest() {
  for (NodeIndex i = 0; i < run_.nodes.size(); ++i) {
    Slot& slot = run_.at(i);
    if (is_terminal(slot.state.status)) continue;
    set_status(slot, NodeStatus::cancelled);
    event(EventType::node_cancelled, &slot.state);
    if (slot.state.items_created > slot.state.items_done && !MUTANT(forget_children)) begin_sweep(slot);
  }
}

void Decision::cancel_after_failure() {
  if (!MUTANT(keep_running_after_failure)) cancel_rest();
}

void Decision::settle() {
  if (is_terminal(run_.job.status) || run_.job.nodes_active > 0) return;
  if (run_.job.nodes_failed > 0) {
    cancel_after_failure();
    return end(JobStatus::failed, EventType::job_failed);
  }
  run_.job.result_data = outputs();
  end(JobStatus::completed, EventType::job_completed);
}

void Decision::end(JobStatus status, EventType type, OptionalJson data) {
  run_.job.status = status;
  run_.job.completed_at = now_;
  run_.job.paused_at.reset();
  run_.job.paused_by.reset();
  run_.changed = true;
  if (!data && run_.job.error) data = error_data(*run_.job.error);
  event(type, nullptr, std::move(data));
  decided_.ended.push_back(run_.job.job_id);
}

Json Decision::outputs() {
  Json all{"{"};
  for (NodeIndex i = 0; i < run_.nodes.size(); ++i) {
    const NodeState& state = run_.at(i).state;
    if (state.output) append_member(all.text, state.node_id, *state.output);
  }
  all.text += '}';
  return all;
}

// Whoever still works on an attempt from before must not be taken for the new one: it gets a number of its
// own.
void Decision::reopen(Slot& slot) {
  NodeState& state = slot.state;
  ENSURE(is_terminal(state.status));
  state.status = NodeStatus::pending;
  if (state.task_id && !MUTANT(retry_keeps_attempt)) ++state.retry_count;
  state.retry_base = state.retry_count;
  state.delivery_count = 0;
  state.task_id.reset();
  state.completed_at.reset();
  state.dead_at.reset();
  state.error.reset();
  state.output.reset();
  slot.changed = true;
}

}  // namespace baton::workflow
