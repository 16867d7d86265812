// The budget of a batch: what exceeds it goes on in the next one, and comes to the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/workflow/machine/machine_test.hpp"

namespace baton::workflow::budget_test {
namespace {

constexpr std::string_view fan =
    "  start: {type: start, next: split}\n"
    "  split: {type: fan_out, source: '{{ inputs.list }}', task: {handler: work, queue: q, "
    "params: {n: '{{ item }}', all: '{{ inputs.list | sum }}'}}, next: merge}\n"
    "  merge: {type: fan_in, next: end}\n  end: {type: end}\n";

constexpr std::string_view wide =
    "  start: {type: start, next: [a, b, choice, pause, ask, split]}\n"
    "  a: {type: task, handler: work, params: {n: '{{ inputs.list | sum }}'}, next: end}\n"
    "  b: {type: task, handler: work, params: {n: '{{ inputs.list | length }}'}, next: end}\n"
    "  choice: {type: conditional, condition: '{{ inputs.list | length > 2 }}', branches: {true: c, false: d}}\n"
    "  c: {type: task, handler: work, next: end}\n"
    "  d: {type: task, handler: work, next: end}\n"
    "  pause: {type: wait, duration: '{{ inputs.list | length }}', next: end}\n"
    "  ask: {type: approval, message: '{{ inputs.list | length }} of them', next: end}\n"
    "  split: {type: fan_out, source: '{{ inputs.list }}', task: {handler: work, params: {n: '{{ item }}'}}, next: end}\n"
    "  end: {type: end}\n";

std::string list_of(int count) {
  std::string list = "{\"list\":[";
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
  return list + "]}";
}

// A machine whose batches have this budget: each call of next_batch() begins one.
struct Bounded : Machine {
  Bounded(std::string_view nodes, int items, std::int64_t budget)
      : Machine(std::string(nodes), options(items)), steps(budget) {}
  static Options options(int items) {
    Options all{.input = list_of(items)};
    all.due_at = test_begin + 1s;  // nothing begins before the test says so
    return all;
  }
  void next_batch() {
    decided.steps_left = steps;
    decided.children_left = 4'000;
    decided.params_bytes_left = 8 << 20;
  }
  // Everything that is due, each in a batch of its own or all in one.
  int run_due(bool together) {
    int batches = 0;
    while (true) {
      std::vector<std::string> due;
      for (const auto& slot : run.nodes)
        if (slot->state.timer_due && *slot->state.timer_due <= now) due.push_back(slot->state.node_id);
      if (due.empty()) return batches;
      if (++batches > 10'000) throw std::runtime_error("it never ends");
      next_batch();
      for (const std::string& name : due) {
        if (!together) next_batch();
        load_items(ref(name).node);
        timer_fired(run, ref(name), policy, now, decided);
      }
    }
  }
  std::string all_params() {
    std::string text;
    for (const auto& slot : run.nodes) text += slot->state.node_id + slot->state.params.value_or(Json{"-"}).text;
    for (const auto& [ref, slot] : run.items)
      text += slot.state.node_id + std::string(name(slot.state.status)) + slot.state.params.value_or(Json{"-"}).text;
    return text;
  }
  std::int64_t steps;
};

TEST(MachineBudget, AChunkEndsWhereTheStepsAreUsedUpAndGoesOnFromThere) {
  Bounded m(fan, 100, 200);
  m.now += 1s;
  m.next_batch();
  m.tick("start");
  const int first = m.state("split").items_created;
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 100);
  ASSERT_TRUE(m.state("split").timer_due);
  m.next_batch();
  m.tick("split");
  EXPECT_GT(m.state("split").items_created, first);
  m.run_due(true);
  EXPECT_EQ(m.state("split").items_created, 100);
  EXPECT_EQ(m.params("split_99"), R"({"n":99,"all":4950})");
}

TEST(MachineBudget, AChunkThatBeginsMakesAtLeastOneChildEvenIfItsListIsForgotten) {
  Bounded m(fan, 20, 1);
  m.now += 1s;
  int batches = 0;
  m.next_batch();
  m.tick("start");
  for (; m.state("split").items_created < 20; ++batches) {
    ASSERT_LT(batches, 50);
    m.run.expansions.clear();
    m.run.values.reset();
    m.next_batch();
    m.tick("split");
  }
  EXPECT_EQ(m.dispatched().size(), 20u);
}

TEST(MachineBudget, AChunkThatHasNoBudgetLeftStaysDue) {
  Bounded m(fan, 20, 1);
  m.now += 1s;
  m.next_batch();
  m.tick("start");
  const int created = m.state("split").items_created;
  const auto due = m.state("split").timer_due;
  m.decided.steps_left = 0;
  m.tick("split");
  EXPECT_EQ(m.state("split").items_created, created);
  EXPECT_EQ(m.state("split").timer_due, due);
}

TEST(MachineBudget, ParamsOfAFanOutAreBoundedTogetherAndSoAreItsChildren) {
  Bounded m(fan, 20, 1'000'000);
  m.now += 1s;
  m.next_batch();
  m.decided.params_bytes_left = 50;
  m.tick("start");
  EXPECT_LT(m.state("split").items_created, 10);
  m.next_batch();
  m.decided.children_left = 3;
  const int before = m.state("split").items_created;
  m.tick("split");
  EXPECT_EQ(m.state("split").items_created, before + 3);
}

TEST(MachineBudget, NodesThatBecomeReadyTogetherAreEvaluatedInTurn) {
  Bounded m(wide, 3, 1);
  m.now += 1s;
  m.next_batch();
  m.tick("start");
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
  for (const char* name : {"b", "choice", "pause", "ask", "split"}) {
    EXPECT_EQ(m.status(name), NodeStatus::ready) << name;
    EXPECT_EQ(m.state(name).timer_due, m.now) << name;
  }
  EXPECT_GT(m.run_due(true), 3);
  EXPECT_EQ(m.status("b"), NodeStatus::dispatched);
  EXPECT_EQ(m.output("choice"), R"({"branch":"true"})");
  EXPECT_EQ(m.status("c"), NodeStatus::dispatched);
  EXPECT_EQ(m.status("d"), NodeStatus::skipped);
  EXPECT_EQ(m.state("pause").timer_due, m.now + 3s);
  EXPECT_EQ(m.status("ask"), NodeStatus::dispatched);
  EXPECT_EQ(m.state("split").items_created, 3);
  m.tick("pause");
  EXPECT_EQ(m.status("pause"), NodeStatus::completed);
}

TEST(MachineBudget, WhatIsPutOffCanBePausedResumedAndCancelled) {
  Bounded m(wide, 3, 1);
  m.now += 1s;
  m.next_batch();
  m.tick("start");
  ASSERT_TRUE(pause(m.run, "", "", m.policy, m.now, m.decided));
  m.run_due(true);
  for (const char* name : {"b", "ask", "split"}) {
    EXPECT_EQ(m.status(name), NodeStatus::ready) << name;
    EXPECT_FALSE(m.state(name).timer_due) << name;
  }
  m.next_batch();
  ASSERT_TRUE(resume(m.run, "", "", m.policy, m.now, m.decided));
  m.run_due(true);
  EXPECT_EQ(m.status("b"), NodeStatus::dispatched);
  EXPECT_EQ(m.status("ask"), NodeStatus::dispatched);
  EXPECT_EQ(m.state("split").items_created, 3);
  Bounded other(wide, 3, 1);
  other.now += 1s;
  other.next_batch();
  other.tick("start");
  ASSERT_TRUE(cancel(other.run, "", "", other.policy, other.now, other.decided));
  EXPECT_EQ(other.status("b"), NodeStatus::cancelled);
  EXPECT_FALSE(other.state("b").timer_due);
}

TEST(MachineBudget, AFanInReadsItsItemsInTurn) {
  Bounded m(fan, 50, 1'000'000);
  m.now += 1s;
  m.next_batch();
  m.tick("start");
  for (int i = 0; i < 50; ++i) m.finish("split_" + std::to_string(i), "\"" + std::string(800, 'x') + "\"");
  m.steps = 300;  // a hundred for each item
  EXPECT_GT(m.run_due(true), 10);
  EXPECT_EQ(m.status("merge"), NodeStatus::completed);
  EXPECT_TRUE(m.output("merge").ends_with(R"("count":50,"failed":0})"));
}

// What a job becomes does not depend on the budget of the batches that it goes through.
RC_GTEST_PROP(MachineBudgetLaws, any_budget_comes_to_the_same, ()) {
  const int items = *rc::gen::inRange(0, 30);
  const auto steps = *rc::gen::inRange<std::int64_t>(1, 400);
  const bool is_wide = *rc::gen::arbitrary<bool>();
  const auto made = [&](std::int64_t budget, bool together) {
    Bounded m(is_wide ? wide : fan, items, budget);
    m.policy.items_chunk = 7;
    m.now += 1s;
    m.run_due(together);
    std::string all = m.all_params();
    for (const std::string& name : m.dispatched())
      if (name != "ask") m.finish(name, m.run.node(m.ref(name)).params ? m.params(name) : "1");
    m.run_due(together);
    for (const auto& slot : m.run.nodes)
      all += slot->state.node_id + std::string(name(slot->state.status)) + slot->state.output.value_or(Json{"-"}).text;
    return all;
  };
  const std::string unlimited = made(1'000'000'000, true);
  RC_ASSERT(made(steps, true) == unlimited);
  RC_ASSERT(made(steps, false) == unlimited);
}

}  // namespace
}  // namespace baton::workflow::budget_test
