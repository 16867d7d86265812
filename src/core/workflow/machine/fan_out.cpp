// Fan-outs: their children in chunks, walks over them, and the fan_in that reads what they made.
#include <algorithm>
#include <boost/json/value.hpp>
#include <cmath>

#include "base/json_write.hpp"
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/workflow/machine/decision.hpp"

namespace baton::workflow {
namespace {

namespace json = boost::json;

// The part of an item's output that the fan_in asks for; null when there is none.
const json::value* find_field(const json::value& output, std::string_view path) {
  const json::value* at = &output;
  while (!path.empty()) {
    const auto dot = std::min(path.find('.'), path.size());
    at = at->is_object() ? at->get_object().if_contains(path.substr(0, dot)) : nullptr;
    if (!at) return nullptr;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

bool is_number(std::string_view text) {
  return !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
}

void append_element(std::string& list, std::string_view element) {
  if (element.empty()) return;
  if (!list.empty()) list += ',';
  list += element;
}

// False: it is not a number.
bool add_number(Gathering& so_far, const std::string& text) {
  if (!is_number(text)) return false;
  const json::value number = parsed(text);
  so_far.real_sum += number.to_number<double>();
  if (!number.is_int64() || __builtin_add_overflow(so_far.sum, number.get_int64(), &so_far.sum))
    so_far.whole_numbers = false;
  return true;
}

// Takes one item's output; what is wrong with it, or empty.
std::string take(Gathering& so_far, const Node& node, std::string text) {
  if (!node.field.empty()) {
    const json::value output = parsed(text);
    const json::value* field = find_field(output, node.field);
    if (!field) return "its output has no '" + node.field + "'";
    text = json_text(*field);
  }
  switch (node.aggregation) {
    case Aggregation::collect: append_element(so_far.text, text); return {};
    case Aggregation::concat:
      if (text.front() != '[') return "concat needs a list of each item, found " + in_quotes(text);
      append_element(so_far.text, std::string_view(text).substr(1, text.size() - 2));
      return {};
    case Aggregation::sum:
      return add_number(so_far, text) ? "" : "sum needs a number of each item, found " + in_quotes(text);
    case Aggregation::first:
      if (so_far.text.empty()) so_far.text = std::move(text);
      return {};
    case Aggregation::last: so_far.text = std::move(text); return {};
  }
  return {};
}

Json gathered(const Gathering& all, Aggregation aggregation, std::int32_t total) {
  Json out{"{"};
  switch (aggregation) {
    case Aggregation::collect:
    case Aggregation::concat: append_member(out.text, "results", Json{"[" + all.text + "]"}); break;
    case Aggregation::sum:
      all.whole_numbers ? append_member(out.text, "result", all.sum)
                        : append_member(out.text, "result", all.real_sum);
      break;
    case Aggregation::first:
    case Aggregation::last: append_member(out.text, "result", Json{all.text}); break;
  }
  append_members(out.text, "count", total, "failed", all.failed);
  out.text += '}';
  return out;
}

}  // namespace

// The list that a fan-out goes over; what is wrong with it instead.
std::expected<Expansion, std::string> Decision::source_of(NodeIndex i) {
  if (const auto known = run_.expansions.find(i); known != run_.expansions.end()) return known->second;
  const Node& node = run_.definition->nodes[i];
  const std::string what = "source of node '" + node.id + "'";
  RunScope names = scope();
  auto items = node.source->evaluate(names);
  if (!items) return std::unexpected(what + ": " + items.error().message);
  if (!items->is_array())
    return std::unexpected(what + " must be a list, found " + in_quotes(json_text(*items)));
  const std::size_t count = items->get_array().size();
  if (count > static_cast<std::size_t>(policy_.items_max))
    return std::unexpected(what + " has " + std::to_string(count) + " items; the limit is " +
                           as_text(policy_.items_max));
  const auto& known_count = run_.at(i).state.items_total;
  if (known_count && static_cast<std::size_t>(*known_count) != count)
    return std::unexpected(what + " had " + as_text(*known_count) + " items before and has " +
                           std::to_string(count) + " now");
  return run_.expansions[i] = {std::make_shared<const json::value>(*std::move(items)), run_.values};
}

// A fan-out has no attempts of its own. Its retry_base says, from when it is begun again by the retry of a
// job until all its children were walked over, that those that have failed are to be done again.
constexpr std::int32_t children_are_retried = 1;

void Decision::begin_fan_out(NodeIndex i) {
  Slot& slot = run_.at(i);
  if (is_paused()) return park(slot);
  if (slot.state.items_total) {  // it has run before, and the job is retried: its children go on
    set_status(slot, NodeStatus::running);
    start_job();
    slot.state.retry_base = children_are_retried;
    return begin_sweep(slot);
  }
  if (put_off(slot)) return;
  const auto source = source_of(i);
  if (!source) return fail(NodeRef{i}, source.error());
  const auto count = static_cast<std::int32_t>(source->items->get_array().size());
  set_status(slot, NodeStatus::running);
  start_job();
  slot.state.started_at = now_;
  slot.state.items_total = count;
  event(EventType::node_started, &slot.state, json_object("items", count));
  if (count == 0) return complete(NodeRef{i}, json_object("count", 0, "failed", 0));
  expand(i);
}

// A chunk ends early when the budget of the batch is used up. One that begins makes at least one child, even
// if finding the list took all of it: otherwise one whose list is forgotten in between would never go on.
void Decision::expand(NodeIndex i) {
  const Node& node = run_.definition->nodes[i];
  Slot& parent = run_.at(i);
  if (put_off(parent)) return;
  const auto source = source_of(i);  // again, if the server was restarted in between
  if (!source) return fail(NodeRef{i}, source.error());
  RunScope names = scope();
  const std::int32_t total = *parent.state.items_total;
  const auto has_room = [&] {
    return node.parallel_max == 0 ||
           parent.state.items_created - parent.state.items_done < node.parallel_max;
  };
  parent.state.timer_due.reset();
  parent.changed = true;
  const bool may_add = decided_.children_left > 0;
  for (std::int32_t n = 0;
       may_add && n < policy_.items_chunk && parent.state.items_created < total && has_room(); ++n) {
    if (n > 0 && (decided_.children_left <= 0 || !decided_.may_evaluate())) break;
    --decided_.children_left;
    const std::int32_t item = parent.state.items_created++;
    Slot child{.state = {.job_id = run_.job.job_id,
                         .item_index = item,
                         .node_id = item_name(node.id, item),
                         .edges_fired = 1,
                         .priority = run_.job.priority,
                         .tenant = run_.job.tenant},
               .is_new = true};
    run_.items.insert_or_assign(NodeRef{i, item}, std::move(child));
    names.set_item(&source->items->get_array()[static_cast<std::size_t>(item)], item);
    dispatch(NodeRef{i, item}, names);
    if (parent.state.status != NodeStatus::running)
      return;  // the item failed at once, and the fan-out with it
  }
  if (MUTANT(budget_drops_rest) && !decided_.may_evaluate()) return;
  if (parent.state.items_created < total && has_room() && !MUTANT(expand_one_chunk))
    parent.state.timer_due = now_;
}

void Decision::item_ended(NodeIndex i) {
  Slot& parent = run_.at(i);
  NodeState& state = parent.state;
  parent.changed = true;
  if (state.status != NodeStatus::running || state.sweep_next) return;
  if (state.items_done == *state.items_total)
    return complete(NodeRef{i}, json_object("count", *state.items_total, "failed", state.items_failed));
  if (state.items_created < *state.items_total && !is_paused()) state.timer_due = now_;
}

void Decision::begin_sweep(Slot& fan_out) {
  fan_out.state.sweep_next = 0;
  fan_out.state.timer_due = now_;
  fan_out.changed = true;
}

// A child whose fan-out goes on: what was parked by a pause, or ended by the end of a job that is retried. A
// walk after a pause leaves alone what has failed: it is nobody's wish that it be done again.
void Decision::revive(NodeRef ref) {
  Slot& child = run_.at(ref);
  const NodeStatus status = child.state.status;
  const bool parked = status == NodeStatus::ready && !child.state.timer_due;
  const bool retried = status == NodeStatus::failed &&
                       run_.at(ref.node).state.retry_base == children_are_retried &&
                       (run_.node(ref).on_item_failure == Consequence::fail || child.state.dead_at);
  if (retried) {
    NodeState& parent = run_.at(ref.node).state;
    --parent.items_done;
    --parent.items_failed;
  }
  if (!parked && !retried && status != NodeStatus::cancelled) return;
  if (is_terminal(status)) reopen(child);
  RunScope names = scope();
  if (const auto& params = run_.node(ref).params; params && !params->is_constant() && !child.state.params) {
    const auto source = source_of(ref.node);  // they could not be evaluated the last time
    if (!source) return fail(ref, source.error());
    names.set_item(&source->items->get_array()[static_cast<std::size_t>(ref.item)], ref.item);
  }
  dispatch(ref, names);
}

void Decision::sweep(NodeIndex i) {
  Slot& parent = run_.at(i);
  NodeState& state = parent.state;
  const ItemRange range = run_.item_ranges[i];
  if (range.from != *state.sweep_next) return;  // it was begun anew in this very batch
  if (state.status == NodeStatus::running && put_off(parent)) return;
  parent.changed = true;
  std::int32_t until = std::min(range.until, state.items_created);
  for (std::int32_t item = range.from; item < until; ++item) {
    Slot& child = run_.at(NodeRef{i, item});
    if (state.status == NodeStatus::running) {
      revive(NodeRef{i, item});
      if (state.status != NodeStatus::running) return;  // that failed it again, and begun another walk
      if (!decided_.may_evaluate()) until = item + 1;
    } else if (!is_terminal(child.state.status)) {
      set_status(child, NodeStatus::cancelled);
      event(EventType::node_cancelled, &child.state);
    }
  }
  state.sweep_next = until;
  state.timer_due = now_;
  if (until < state.items_created) return;
  state.sweep_next.reset();
  state.timer_due.reset();
  state.retry_base = 0;
  if (state.status == NodeStatus::running) item_ended(i);
}

void Decision::gather(NodeIndex i) {
  const Node& node = run_.definition->nodes[i];
  const NodeIndex fan_out = node.incoming.front();
  Gathering& so_far = run_.gatherings[i];
  const ItemRange range = run_.item_ranges[i];
  const NodeState& parent = run_.at(fan_out).state;
  // A fan-out that failed and was gone on without may have fewer children than items.
  const std::int32_t total = parent.items_created;
  if (so_far.next < total && put_off(run_.at(i))) return;
  if (so_far.next < total && range.from != so_far.next) {  // begun anew: the next batch loads from the start
    so_far = {};
    return;
  }
  for (bool first = true; so_far.next < std::min(range.until, total); ++so_far.next, first = false) {
    if (!first && !decided_.may_evaluate()) break;
    const NodeState& child = run_.at(NodeRef{fan_out, so_far.next}).state;
    if (child.status != NodeStatus::completed) {
      ++so_far.failed;
      if (node.aggregation == Aggregation::collect) append_element(so_far.text, "null");
      continue;
    }
    if (child.output) decided_.spend(child.output->text.size() / json_per_step);
    const std::string wrong = take(so_far, node, child.output ? child.output->text : "null");
    if (!wrong.empty()) return fail(NodeRef{i}, "item " + as_text(so_far.next) + ": " + wrong);
    if (so_far.text.size() > policy_.gathered_max)
      return fail(NodeRef{i},
                  "the results are larger than " + std::to_string(policy_.gathered_max >> 20) + " MiB");
  }
  if (so_far.next < total) {
    run_.at(i).state.timer_due = now_;  // behind the others that wait for their turn
    run_.at(i).changed = true;
    return;
  }
  complete(NodeRef{i}, gathered(so_far, node.aggregation, total));
}

}  // namespace baton::workflow
