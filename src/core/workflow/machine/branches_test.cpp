// Conditionals, joins, and what becomes of the branches that are not taken.
#include <gtest/gtest.h>

#include "core/workflow/machine/machine_test.hpp"

namespace baton::workflow::branches_test {
namespace {

std::string task(const std::string& id, const std::string& rest) {
  return "  " + id + ": {type: task, handler: work, queue: q, " + rest + "}\n";
}
const std::string end = "  end: {type: end}\n";

// start -> check -> yes | no -> join -> end, with another task behind `no`.
std::string diamond(const std::string& condition = "{{ inputs.n > 10 }}") {
  return "  start: {type: start, next: check}\n  check: {type: conditional, condition: '" + condition +
         "', branches: {true: yes_, false: no_}}\n" + task("yes_", "next: join") + task("no_", "next: more") +
         task("more", "next: join") + task("join", "next: end") + end;
}

std::string cases(const std::string& branches) {
  return "  start: {type: start, next: check}\n"
         "  check:\n    type: conditional\n    condition_field: inputs.amount\n    branches:\n" +
         branches + task("big", "next: end") + task("small", "next: end") + task("other", "next: end") + end;
}
const std::string three_cases =
    "      - {name: large, condition: '>= 1000', next: big}\n"
    "      - {name: tiny, condition: '< 10', next: small}\n"
    "      - {name: rest, default: true, next: other}\n";

TEST(Conditional, TakesTheTrueBranchAndSkipsWhatOnlyTheOtherReaches) {
  Machine m(diamond(), {.input = R"({"n":11})"});
  EXPECT_EQ(m.status("check"), NodeStatus::completed);
  EXPECT_EQ(m.output("check"), R"({"branch":"true"})");
  EXPECT_EQ(m.status("yes_"), NodeStatus::dispatched);
  EXPECT_EQ(m.status("no_"), NodeStatus::skipped);
  EXPECT_EQ(m.status("more"), NodeStatus::skipped);
  EXPECT_EQ(m.nodes_of(EventType::node_skipped), (Names{"no_", "more"}));
  EXPECT_EQ(m.status("join"), NodeStatus::pending);
}

TEST(Conditional, AJoinAfterASkippedAndATakenBranchRunsOnceTheTakenOneIsThere) {
  Machine m(diamond(), {.input = R"({"n":11})"});
  EXPECT_EQ(m.state("join").waiting_for, 1);
  m.finish("yes_");
  EXPECT_EQ(m.status("join"), NodeStatus::dispatched);
  EXPECT_EQ(m.state("join").edges_fired, 1);
  m.finish("join");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
  EXPECT_EQ(m.run.job.result_data, Json{R"({"check":{"branch":"true"},"yes_":1,"join":1})"});
}

TEST(Conditional, TakesTheFalseBranchOtherwise) {
  Machine m(diamond(), {.input = R"({"n":10})"});
  EXPECT_EQ(m.output("check"), R"({"branch":"false"})");
  EXPECT_EQ(m.status("yes_"), NodeStatus::skipped);
  EXPECT_EQ(m.dispatched(), Names{"no_"});
  m.finish("no_");
  m.finish("more");
  m.finish("join");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Conditional, TruthIsThatOfJinjaWhateverTheTypeOfTheValue) {
  for (const auto& [value, taken] : std::vector<std::pair<std::string, std::string>>{{"0", "false"},
                                                                                     {"[]", "false"},
                                                                                     {"\"\"", "false"},
                                                                                     {"null", "false"},
                                                                                     {"\"false\"", "true"},
                                                                                     {"[0]", "true"}})
    EXPECT_EQ(Machine(diamond("{{ inputs.n }}"), {.input = "{\"n\":" + value + "}"}).output("check"),
              R"({"branch":")" + taken + "\"}")
        << value;
}

TEST(Conditional, TheOrderOfTrueAndFalseInTheDocumentDoesNotMatter) {
  const std::string nodes =
      "  start: {type: start, next: c}\n  c: {type: conditional, condition: '{{ inputs.x }}', branches: "
      "{false: a, "
      "true: b}}\n" +
      task("a", "next: end") + task("b", "next: end") + end;
  EXPECT_EQ(Machine(nodes, {.input = R"({"x":true})"}).dispatched(), Names{"b"});
  EXPECT_EQ(Machine(nodes, {.input = R"({"x":false})"}).dispatched(), Names{"a"});
}

TEST(Conditional, ABranchMayBeginSeveralNodesAndShareThemWithTheOther) {
  const std::string nodes =
      "  start: {type: start, next: c}\n  c: {type: conditional, condition: '{{ inputs.x }}', branches: "
      "{true: [a, b], "
      "false: [b, d]}}\n" +
      task("a", "next: end") + task("b", "next: end") + task("d", "next: end") + end;
  Machine m(nodes, {.input = R"({"x":true})"});
  EXPECT_EQ(m.dispatched(), (Names{"a", "b"}));
  EXPECT_EQ(m.status("d"), NodeStatus::skipped);
}

TEST(Conditional, TheFirstCaseThatFitsIsTakenElseTheDefault) {
  const auto taken = [](const std::string& amount) {
    return Machine(cases(three_cases), {.input = "{\"amount\":" + amount + "}"}).output("check");
  };
  EXPECT_EQ(taken("1000"), R"({"branch":"large"})");
  EXPECT_EQ(taken("9.5"), R"({"branch":"tiny"})");
  EXPECT_EQ(taken("10"), R"({"branch":"rest"})");
}

TEST(Conditional, CasesMayCompareWithTextListsAndOtherNodes) {
  const std::string branches =
      "      - {name: gold, condition: \"== 'gold'\", next: big}\n"
      "      - {name: metal, condition: \"in ['iron', 'tin']\", next: small}\n"
      "      - {name: none, condition: is none, next: other}\n"
      "      - {name: rest, condition: \"not in inputs.all\", default: true, next: other}\n";
  const auto taken = [&](const std::string& amount) {
    return Machine(cases(branches), {.input = "{\"all\":[],\"amount\":" + amount + "}"}).output("check");
  };
  EXPECT_EQ(taken("\"gold\""), R"({"branch":"gold"})");
  EXPECT_EQ(taken("\"tin\""), R"({"branch":"metal"})");
  EXPECT_EQ(taken("null"), R"({"branch":"none"})");
  EXPECT_EQ(taken("\"wood\""), R"({"branch":"rest"})");
}

TEST(Conditional, FailsWhenNoCaseFitsAndNoneIsTheDefault) {
  Machine m(cases("      - {name: large, condition: '>= 1000', next: [big, small, other]}\n"),
            {.input = R"({"amount":1})"});
  EXPECT_EQ(m.error("check"), "no branch of node 'check' fits, and none is the default");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.status("big"), NodeStatus::cancelled);
}

TEST(Conditional, AConditionThatCannotBeEvaluatedFailsTheNodeAndNamesIt) {
  Machine m(diamond(), {.input = "{}"});
  EXPECT_TRUE(m.error("check").starts_with("condition of node 'check': 'inputs.n' is not defined"))
      << m.error("check");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(Conditional, LooksAtWhatNodesBeforeItHaveMade) {
  Machine m("  start: {type: start, next: a}\n" + task("a", "next: c") +
            "  c: {type: conditional, condition: '{{ nodes.a.output.rows | length > 1 }}', branches: {true: "
            "b, false: "
            "end}}\n" +
            task("b", "next: end") + end);
  m.finish("a", R"({"rows":[1]})");
  EXPECT_EQ(m.status("b"), NodeStatus::skipped);
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Skipping, GoesThroughConditionalsToTheEndsThatNobodyReaches) {
  Machine m(
      "  start: {type: start, next: c}\n"
      "  c: {type: conditional, condition: '{{ inputs.x }}', branches: {true: d, false: a}}\n"
      "  d: {type: conditional, condition: '{{ inputs.never_looked_at }}', branches: {true: b, false: "
      "end2}}\n" +
          task("a", "next: end") + task("b", "next: end2") + "  end2: {type: end}\n" + end,
      {.input = R"({"x":false})"});
  for (const char* node : {"d", "b", "end2"}) EXPECT_EQ(m.status(node), NodeStatus::skipped) << node;
  m.finish("a");
  EXPECT_EQ(m.status("end"), NodeStatus::completed);
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Skipping, AWholeFanOutWithItsFanInIsSkipped) {
  Machine m(
      "  start: {type: start, next: c}\n"
      "  c: {type: conditional, condition: '{{ false }}', branches: {true: split, false: end}}\n"
      "  split: {type: fan_out, source: '{{ inputs.l }}', task: {handler: h}, next: merge}\n"
      "  merge: {type: fan_in, next: end}\n" +
      end);
  EXPECT_EQ(m.status("split"), NodeStatus::skipped);
  EXPECT_EQ(m.status("merge"), NodeStatus::skipped);
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(Skipping, WhatASkippedNodeMadeIsNotDefinedAndItsStatusSaysWhy) {
  Machine m(diamond().replace(
                diamond().find("next: end"), 9,
                "params: {s: '{{ nodes.no_.status }}', o: '{{ nodes.no_.output | default(0) }}'}, next: end"),
            {.input = R"({"n":11})"});
  m.finish("yes_");
  EXPECT_EQ(m.params("join"), R"({"s":"SKIPPED","o":0})");
}

// ---- any_of ----

std::string race(const std::string& branch) {
  return "  start: {type: start, next: [c, b]}\n"
         "  c: {type: conditional, condition: '{{ " +
         branch + " }}', branches: {true: a, false: other}}\n" + task("a", "next: first") +
         task("b", "next: first") + task("other", "next: end") +
         task("first", "depends_on: {any_of: [a, b]}, next: end") + end;
}

TEST(AnyOf, RunsOnceTheFirstOfItsEdgesHasFiredAndOnlyOnce) {
  Machine m(race("true"));
  m.finish("b");
  EXPECT_EQ(m.status("first"), NodeStatus::dispatched);
  m.finish("a");
  EXPECT_EQ(m.count(EventType::node_dispatched), 3);
  m.finish("first");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(AnyOf, ADeadEdgeIsNotOneThatHasFired) {
  Machine m(race("false"));
  EXPECT_EQ(m.status("a"), NodeStatus::skipped);
  EXPECT_EQ(m.status("first"), NodeStatus::pending);
  EXPECT_EQ(m.state("first").waiting_for, 1);
  m.finish("b");
  EXPECT_EQ(m.status("first"), NodeStatus::dispatched);
}

TEST(AnyOf, IsSkippedWhenAllItsEdgesAreDead) {
  Machine m(
      "  start: {type: start, next: c}\n"
      "  c: {type: conditional, condition: '{{ true }}', branches: {true: end, false: [a, b]}}\n" +
      task("a", "next: d") + task("b", "next: d") + task("d", "depends_on: {any_of: [a, b]}, next: end") +
      end);
  EXPECT_EQ(m.status("d"), NodeStatus::skipped);
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

// ---- waits ----

std::string waiting(const std::string& keys) {
  return "  start: {type: start, next: nap}\n  nap: {type: wait, " + keys + ", next: a}\n" +
         task("a", "next: end") + end;
}

TEST(Wait, LastsAsLongAsItsDurationSaysInWhateverForm) {
  for (const auto& [duration, expected] :
       std::vector<std::pair<std::string, Duration>>{{"90", 90s},
                                                     {"1.5", 1500ms},
                                                     {"'90'", 90s},
                                                     {"90s", 90s},
                                                     {"1h30m", 90min},
                                                     {"2d", 48h},
                                                     {"250ms", 250ms},
                                                     {"1.5h", 90min},
                                                     {"1d2h3m4s5ms", 24h + 2h + 3min + 4s + 5ms},
                                                     {"'{{ inputs.seconds }}'", 7s},
                                                     {"'{{ inputs.text }}'", 10min},
                                                     {"'{{ inputs.seconds }}m'", 7min}}) {
    Machine m(waiting("duration: " + duration), {.input = R"({"seconds":7,"text":"10m"})"});
    EXPECT_EQ(m.status("nap"), NodeStatus::ready) << duration;
    EXPECT_EQ(m.state("nap").timer_due, test_begin + expected) << duration;
    EXPECT_EQ(m.run.job.status, JobStatus::running);
    m.tick("nap");
    EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
  }
}

TEST(Wait, OfNoTimeIsOverAtOnce) {
  Machine m(waiting("duration: 0"));
  EXPECT_EQ(m.status("nap"), NodeStatus::completed);
  EXPECT_EQ(m.status("a"), NodeStatus::dispatched);
}

TEST(Wait, UntilAnInstantThatIsToComeOrPast) {
  Machine later(waiting("until: 2027-01-15T10:00:00+01:00"));
  EXPECT_EQ(later.state("nap").timer_due, test_begin + 1h);
  Machine computed(waiting("until: '{{ inputs.at }}'"), {.input = R"({"at":"2027-01-15T08:00:01Z"})"});
  EXPECT_EQ(computed.state("nap").timer_due, test_begin + 1s);
  Machine past(waiting("until: 1999-12-31T23:59:59Z"));
  EXPECT_EQ(past.status("a"), NodeStatus::dispatched);
}

TEST(Wait, ForWhatIsNoTimeFailsAndSaysWhatItFound) {
  const auto why = [](const std::string& keys, const std::string& value) {
    return Machine(waiting(keys), {.input = "{\"x\":" + value + "}"}).error("nap");
  };
  EXPECT_EQ(why("duration: '{{ inputs.x }}'", "-1"),
            "duration of node 'nap' must be seconds or a text as '1h30m', found -1");
  EXPECT_EQ(why("duration: '{{ inputs.x }}'", "[1]"),
            "duration of node 'nap' must be seconds or a text as '1h30m', found [1]");
  EXPECT_EQ(why("until: '{{ inputs.x }}'", "\"tomorrow\""),
            "until of node 'nap' must be an instant as 2026-01-31T08:00:00Z, found \"tomorrow\"");
  EXPECT_TRUE(
      why("until: '{{ inputs.y }}'", "1").starts_with("until of node 'nap': 'inputs.y' is not defined"));
}

}  // namespace
}  // namespace baton::workflow::branches_test
