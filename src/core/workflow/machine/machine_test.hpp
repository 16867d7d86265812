// A job in the hands of a test: one clock, workers that do as they are told, and the walks over the children
// of fan-outs as the engine makes them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/workflow/machine/machine.hpp"

namespace baton::workflow {

using namespace std::chrono_literals;

inline const JobId test_job{"01a3185c-8f0a-7b0c-a1b0-83be19ecabac"};
inline const Time test_begin = from_millis(1'800'000'000'000);  // 2027-01-15T08:00:00Z

struct Machine {
  struct Options {
    std::string input = "{}";
    std::string head = {};  // other keys of the document, each with its line break
    Policy policy = {};
    std::optional<Time> due_at = {};
  };

  // `nodes` are those of the document, two blanks before each name.
  explicit Machine(const std::string& nodes) : Machine(nodes, Options{}) {}
  Machine(const std::string& nodes, Options options)
      : policy(std::move(options.policy)),
        run(create({.job_id = test_job,
                    .tenant = {"default"},
                    .version = 1,
                    .input_data = Json{options.input},
                    .traceparent = {},
                    .tags = {},
                    .due_at = options.due_at,
                    .rerun_of = {}},
                   read(options.head + "workflow_id: w\nnodes:\n" + nodes), policy, now, decided)) {}

  static std::shared_ptr<const Definition> read(const std::string& yaml) {
    auto parsed = parse(yaml);
    std::string problems;
    for (const Diagnostic& each : parsed.diagnostics) problems += render("w", each) + "\n";
    if (!parsed.definition) throw std::runtime_error("a wrong definition in a test:\n" + problems + yaml);
    return parsed.definition;
  }

  [[nodiscard]] NodeRef ref(std::string_view node) const { return run.definition->locate(node).value(); }
  NodeState& state(std::string_view node) { return run.at(ref(node)).state; }
  NodeStatus status(std::string_view node) { return state(node).status; }
  std::string output(std::string_view node) { return state(node).output.value_or(Json{"none"}).text; }
  std::string error(std::string_view node) { return state(node).error.value_or("none"); }
  std::string params(std::string_view node) { return task_params(run, ref(node)).text; }

  bool give(std::string_view node, bool heartbeats = true) {
    const auto lease_time = heartbeats ? delivery::LeaseTime{policy.short_lease} : std::nullopt;
    return hand_out(run, ref(node), "w1", lease_time, policy, now, decided);
  }
  Verdict complete(std::string_view node, std::string output = "1", std::optional<std::string> lease = {}) {
    return say(node, {.retry_count = state(node).retry_count,
                      .completed = true,
                      .output = Json{std::move(output)},
                      .error = {},
                      .lease = std::move(lease)});
  }
  Verdict fail(std::string_view node, std::string error = "no") {
    return say(node, {.retry_count = state(node).retry_count, .output = {}, .error = std::move(error)});
  }
  Verdict say(std::string_view node, const TaskReport& said) {
    return report(run, ref(node), said, nullptr, policy, now, decided);
  }
  void finish(std::string_view node, const std::string& output = "1") {
    EXPECT_TRUE(give(node)) << node;
    EXPECT_EQ(complete(node, output), Verdict::accepted) << node;
  }
  void finish_with_error(std::string_view node, const std::string& error = "no") {
    EXPECT_TRUE(give(node)) << node;
    EXPECT_EQ(fail(node, error), Verdict::accepted) << node;
  }
  [[nodiscard]] AttemptLease attempt_lease(std::string_view node) {
    return {state(node).retry_count, lease_token(state(node))};
  }

  // Lets the node's timer fire, at its time or now.
  void tick(std::string_view node) {
    const auto due = state(node).timer_due;
    ASSERT_TRUE(due) << node << " has no timer";
    now = std::max(now, *due);
    load_items(ref(node).node);
    timer_fired(run, ref(node), policy, now, decided);
  }
  // Whatever is due at once: the chunks of fan-outs and fan-ins. Answers how many there were.
  int chunks() {
    for (int done = 0;; ++done) {
      const auto due = std::ranges::find_if(run.nodes, [&](const auto& slot) {
        const NodeType type = run.definition->nodes[static_cast<std::size_t>(&slot - run.nodes.data())].type;
        return (type == NodeType::fan_out || type == NodeType::fan_in) && slot->state.timer_due &&
               *slot->state.timer_due <= now;
      });
      if (due == run.nodes.end()) return done;
      if (done > 10'000) throw std::runtime_error("the chunks never end");
      tick((*due)->state.node_id);
    }
  }
  void load_items(NodeIndex node) {
    const NodeType type = run.definition->nodes[node].type;
    const auto range = [&](std::int32_t from) { return ItemRange{from, from + policy.items_chunk}; };
    if (type == NodeType::fan_out && run.at(node).state.sweep_next)
      run.item_ranges[node] = range(*run.at(node).state.sweep_next);
    if (type == NodeType::fan_in)
      run.item_ranges[node] = range(run.gatherings[node].next);
  }

  // The names of what waits for a worker or a person, in the order of the definition and of the items.
  std::vector<std::string> dispatched() {
    std::vector<std::string> names;
    for (const auto& slot : run.nodes)
      if (slot->state.status == NodeStatus::dispatched) names.push_back(slot->state.node_id);
    for (const auto& [key, slot] : run.items)
      if (slot.state.status == NodeStatus::dispatched) names.push_back(slot.state.node_id);
    return names;
  }
  [[nodiscard]] int count(EventType type) const {
    return static_cast<int>(std::ranges::count(decided.events, type, &Event::event_type));
  }
  [[nodiscard]] std::vector<std::string> nodes_of(EventType type) const {
    std::vector<std::string> names;
    for (const Event& event : decided.events)
      if (event.event_type == type) names.push_back(event.node_id.value_or(""));
    return names;
  }

  Policy policy;
  Time now = test_begin;
  Decided decided;
  Run run;
};

using Names = std::vector<std::string>;

}  // namespace baton::workflow
