// What holds of every job, whatever its graph and whatever the order in which things happen.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/workflow/machine/machine_test.hpp"

namespace baton::workflow {
namespace {

// Evenly, whatever the size that the library is at: small ones would always be the first.
int any_in(int from, int until) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, until)); }
const std::string& any_of(const std::vector<std::string>& names) {
  return names[static_cast<std::size_t>(any_in(0, static_cast<int>(names.size())))];
}

// A graph of tasks and conditionals, n0 the start, the last one the end. Each node leads to later ones only,
// and to the next one when nothing else does, so that all are reached.
std::string random_graph() {
  const int count = any_in(3, 12);
  const auto name = [](int i) { return "n" + std::to_string(i); };
  std::vector<std::vector<int>> next(static_cast<std::size_t>(count));
  for (int i = 0; i + 1 < count; ++i) next[static_cast<std::size_t>(i)].push_back(any_in(i + 1, count));
  for (int i = 1; i < count; ++i) {  // each node is reached by one before it
    const int from = any_in(0, i);
    next[static_cast<std::size_t>(from)].push_back(i);
  }
  std::string yaml;
  for (int i = 0; i < count; ++i) {
    auto& targets = next[static_cast<std::size_t>(i)];
    std::ranges::sort(targets);
    targets.erase(std::ranges::unique(targets).begin(), targets.end());
    std::string list;
    for (const int to : targets) list += (list.empty() ? "" : ", ") + name(to);
    yaml += "  " + name(i) + ": {type: ";
    if (i == 0) {
      yaml += "start, next: [" + list + "]}\n";
    } else if (i + 1 == count) {
      yaml += "end}\n";
    } else if (targets.size() > 1 && any_in(0, 2) == 0) {
      const bool holds = *rc::gen::arbitrary<bool>();
      const auto cut = list.find(", ");
      yaml += std::string("conditional, condition: '{{ ") + (holds ? "true" : "false") +
              " }}', branches: {true: [" + list.substr(0, cut) + "], false: [" + list.substr(cut + 2) +
              "]}}\n";
    } else {
      yaml += "task, handler: work, next: [" + list + "]";
      if (any_in(0, 4) == 0) {
        std::string before;
        for (int from = 0; from < i; ++from) {
          const auto& led = next[static_cast<std::size_t>(from)];
          if (std::ranges::find(led, i) != led.end()) before += (before.empty() ? "" : ", ") + name(from);
        }
        yaml += ", depends_on: {any_of: [" + before + "]}";
      }
      yaml += "}\n";
    }
  }
  return yaml;
}

// Whether the edge between two nodes has fired, by what became of the first.
bool fired(Machine& m, NodeIndex from, NodeIndex to) {
  const Node& node = m.run.definition->nodes[from];
  const NodeState& state = m.run.at(from).state;
  if (state.status != NodeStatus::completed) return false;
  if (node.type != NodeType::conditional) return true;
  for (const Branch& branch : node.branches)
    if (state.output->text == "{\"branch\":\"" + branch.name + "\"}")
      return std::ranges::find(branch.next, to) != branch.next.end();
  return false;
}

RC_GTEST_PROP(Laws, every_graph_runs_to_an_end_in_whatever_order_its_tasks_finish, ()) {
  const std::string graph = random_graph();
  RC_LOG() << graph;
  Machine m(graph);
  while (!is_terminal(m.run.job.status)) {
    const auto waiting = m.dispatched();
    RC_ASSERT(!waiting.empty());
    const auto& chosen = any_of(waiting);
    RC_ASSERT(m.give(chosen));
    RC_ASSERT(m.complete(chosen) == Verdict::accepted);
  }
  RC_ASSERT(m.run.job.status == JobStatus::completed);
  RC_ASSERT(m.run.job.nodes_active == 0);
  bool ended = false;
  for (NodeIndex i = 0; i < m.run.nodes.size(); ++i) {
    const NodeState& state = m.run.at(i).state;
    const Node& node = m.run.definition->nodes[i];
    RC_ASSERT(state.status == NodeStatus::completed || state.status == NodeStatus::skipped);
    ended = ended || (node.type == NodeType::end && state.status == NodeStatus::completed);
    if (i == m.run.definition->start) continue;
    const bool reached =
        std::ranges::any_of(node.incoming, [&](NodeIndex from) { return fired(m, from, i); });
    RC_ASSERT(reached == (state.status == NodeStatus::completed));
  }
  RC_ASSERT(ended);
}

RC_GTEST_PROP(Laws, counters_tell_what_the_rows_are_after_every_step, ()) {
  const std::string graph = random_graph();
  RC_LOG() << graph;
  Machine m(graph);
  const auto check = [&] {
    int active = 0;
    for (NodeIndex i = 0; i < m.run.nodes.size(); ++i) {
      const NodeState& state = m.run.at(i).state;
      const NodeStatus s = state.status;
      active += s == NodeStatus::ready || s == NodeStatus::dispatched || s == NodeStatus::running ? 1 : 0;
      if (s != NodeStatus::pending) continue;
      int open = 0;
      for (const NodeIndex from : m.run.definition->nodes[i].incoming)
        open += is_terminal(m.run.at(from).state.status) ? 0 : 1;
      RC_ASSERT(state.waiting_for == open);
    }
    RC_ASSERT(m.run.job.nodes_active == active);
  };
  check();
  while (!is_terminal(m.run.job.status)) {
    const auto waiting = m.dispatched();
    if (waiting.empty()) {
      RC_ASSERT(m.run.job.paused_at);  // nothing is stuck
      RC_ASSERT(workflow::resume(m.run, "", "", m.policy, m.now, m.decided));
      continue;
    }
    const auto& chosen = any_of(waiting);
    switch (any_in(0, 8)) {
      case 0: RC_ASSERT(workflow::pause(m.run, "", "", m.policy, m.now, m.decided)); break;
      case 1: RC_ASSERT(workflow::resume(m.run, "", "", m.policy, m.now, m.decided)); break;
      case 2:
        RC_ASSERT(m.fail(chosen) == Verdict::accepted);
        check();
        RC_ASSERT(m.run.job.status == JobStatus::failed);
        RC_ASSERT(workflow::retry(m.run, "", "", m.policy, m.now, m.decided));
        break;
      default:
        if (m.give(chosen)) RC_ASSERT(m.complete(chosen) == Verdict::accepted);
    }
    check();
  }
  RC_ASSERT(m.run.job.status == JobStatus::completed);
}

RC_GTEST_PROP(Laws, the_same_report_twice_changes_nothing, ()) {
  Machine m(random_graph());
  while (!is_terminal(m.run.job.status)) {
    const auto waiting = m.dispatched();
    RC_ASSERT(!waiting.empty());
    const auto& chosen = any_of(waiting);
    RC_ASSERT(m.give(chosen));
    const TaskReport said{.retry_count = 0,
                      .completed = any_in(0, 10) > 0,
                      .output = Json{"1"},
                      .error = "no",
                      .lease = lease_token(m.state(chosen))};
    RC_ASSERT(m.say(chosen, said) == Verdict::accepted);
    const std::size_t events = m.decided.events.size();
    const std::size_t dispatched = m.decided.dispatched.size();
    const int active = m.run.job.nodes_active;
    const JobStatus status = m.run.job.status;
    RC_ASSERT(m.say(chosen, said) == Verdict::duplicate);
    RC_ASSERT(m.decided.events.size() == events && m.decided.dispatched.size() == dispatched);
    RC_ASSERT(m.run.job.nodes_active == active && m.run.job.status == status);
    RC_ASSERT(m.run.results.size() ==
              static_cast<std::size_t>(m.count(EventType::node_completed) + m.count(EventType::node_failed)) -
                  static_cast<std::size_t>(std::ranges::count_if(m.run.nodes, [&](const auto& slot) {
                    const auto i = static_cast<std::size_t>(&slot - m.run.nodes.data());
                    return m.run.definition->nodes[i].type == NodeType::conditional &&
                           slot->state.status == NodeStatus::completed;
                  })));
  }
}

// ---- fan-outs ----

void check_items(Machine& m) {
  const NodeState& parent = m.state("split");
  int done = 0, failed = 0, at_work = 0;
  for (const auto& [ref, slot] : m.run.items) {
    const NodeStatus s = slot.state.status;
    done += s == NodeStatus::completed || s == NodeStatus::failed ? 1 : 0;
    failed += s == NodeStatus::failed ? 1 : 0;
    at_work += is_terminal(s) ? 0 : 1;
  }
  RC_ASSERT(parent.items_created == static_cast<int>(m.run.items.size()));
  RC_ASSERT(parent.items_done == done);
  RC_ASSERT(parent.items_failed == failed);
  const int most = m.run.definition->nodes[m.ref("split").node].parallel_max;
  if (most > 0 && parent.status == NodeStatus::running) RC_ASSERT(at_work <= most);
  if (is_terminal(m.run.job.status)) RC_ASSERT(m.run.job.nodes_active == 0);
}

RC_GTEST_PROP(Laws, a_fan_out_ends_with_every_item_whatever_is_done_to_it_on_the_way, ()) {
  const int count = any_in(0, 9);
  const bool goes_on = any_in(0, 2) == 0;
  std::string keys = goes_on ? "on_item_failure: continue, " : "";
  if (const int most = any_in(0, 4); most > 0) keys += "max_parallel: " + std::to_string(most) + ", ";
  Machine::Options options{.input = "{\"list\":["};
  for (int i = 0; i < count; ++i) options.input += (i == 0 ? "" : ",") + std::to_string(i);
  options.input += "]}";
  options.policy.items_chunk = any_in(1, 5);
  options.policy.deliveries_max = 3;
  Machine m("  start: {type: start, next: split}\n  split: {type: fan_out, source: '{{ inputs.list }}', " +
                keys +
                "task: {handler: work, queue: q, params: {n: '{{ item }}'}, retry: {max_attempts: 2}}, next: "
                "merge}\n"
                "  merge: {type: fan_in, next: end}\n  end: {type: end}\n",
            options);
  for (int step = 0; m.run.job.status != JobStatus::completed; ++step) {
    RC_ASSERT(step < 2'000);
    check_items(m);
    if (m.run.job.status == JobStatus::failed) {
      if (step > 500 || any_in(0, 2) == 0) m.chunks();  // the walk that cancels may be there before the retry, or not
      check_items(m);
      RC_ASSERT(workflow::retry(m.run, "", "", m.policy, m.now, m.decided));
      continue;
    }
    const auto waiting = m.dispatched();
    std::vector<std::string> timers;
    for (const auto& slot : m.run.nodes)
      if (slot->state.timer_due) timers.push_back(slot->state.node_id);
    for (const auto& [ref, slot] : m.run.items)
      if (slot.state.timer_due) timers.push_back(slot.state.node_id);
    RC_ASSERT(!waiting.empty() || !timers.empty() || m.run.job.paused_at);  // nothing is stuck
    // Chance may pause it for ever. After a while everybody only works, in turn, and it must come to its end.
    const bool is_calm = step > 500;
    const auto one_of = [&](const std::vector<std::string>& all) {
      return is_calm ? all[static_cast<std::size_t>(step / 2) % all.size()] : any_of(all);
    };
    const int what = !is_calm ? any_in(0, 12) : m.run.job.paused_at ? 1 : step % 2 == 0 || waiting.empty() ? 2 : 11;
    if (what == 0) RC_ASSERT(workflow::pause(m.run, "", "", m.policy, m.now, m.decided));
    if (what == 1 || (waiting.empty() && timers.empty()))
      RC_ASSERT(workflow::resume(m.run, "", "", m.policy, m.now, m.decided));
    if (what >= 2 && what < 5 && !timers.empty()) m.tick(one_of(timers));
    if (what < 5 || waiting.empty()) continue;
    const std::string chosen = one_of(waiting);
    if (!m.give(chosen) || what == 5) continue;  // a worker that says nothing more
    if (what == 6)
      RC_ASSERT(m.fail(chosen) == Verdict::accepted);
    else
      RC_ASSERT(m.complete(chosen, m.params(chosen)) == Verdict::accepted);
  }
  check_items(m);
  std::string expected;
  for (int i = 0; i < count; ++i) {
    const NodeState& child = m.state("split_" + std::to_string(i));
    RC_ASSERT(child.status == NodeStatus::completed || (goes_on && child.status == NodeStatus::failed));
    expected += expected.empty() ? "" : ",";
    expected += child.status == NodeStatus::completed ? "{\"n\":" + std::to_string(i) + "}" : "null";
  }
  const std::string results = "{\"results\":[" + expected + "],\"count\":" + std::to_string(count) + ",";
  RC_ASSERT(m.output("merge").starts_with(results));
}

}  // namespace
}  // namespace baton::workflow
