// Fan-outs, their children in chunks, and the fan_in behind them.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>

#include "core/workflow/machine/machine_test.hpp"

namespace baton::workflow::fan_out_test {
namespace {

std::string fan(const std::string& keys = "", const std::string& task_keys = "",
                const std::string& fan_in_keys = "") {
  return "  start: {type: start, next: split}\n"
         "  split:\n    type: fan_out\n    source: '{{ inputs.list }}'\n" +
         keys + "    task: {handler: work, queue: q" + task_keys +
         "}\n    next: merge\n"
         "  merge: {type: fan_in, " +
         fan_in_keys + "next: end}\n  end: {type: end}\n";
}

std::string numbers(int count) {
  std::string list = "[";
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::to_string(i * 10);
  return "{\"list\":" + list + "]}";
}

Machine::Options with(std::string input, std::int32_t chunk = 3) {
  Machine::Options options{.input = std::move(input)};
  options.policy.items_chunk = chunk;
  return options;
}

std::string child(int item) { return "split_" + std::to_string(item); }

// ---- fan_out ----

TEST(FanOut, OfAnEmptyListIsOverAtOnce) {
  Machine m(fan(), with(R"({"list":[]})"));
  EXPECT_EQ(m.output("split"), R"({"count":0,"failed":0})");
  m.chunks();
  EXPECT_EQ(m.output("merge"), R"({"results":[],"count":0,"failed":0})");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(FanOut, GivesEachItemATaskOfItsOwnWithItemAndIndexInItsParams) {
  Machine m(fan("", ", params: {url: '{{ item.url }}', n: '{{ index }}', all: '{{ inputs.list | length }}'}"),
            with(R"({"list":[{"url":"a"},{"url":"b"}]})"));
  EXPECT_EQ(m.status("split"), NodeStatus::running);
  EXPECT_EQ(m.dispatched(), (Names{"split_0", "split_1"}));
  EXPECT_EQ(m.params("split_1"), R"({"url":"b","n":1,"all":2})");
  EXPECT_EQ(*m.state("split_1").task_id, task_id(test_job, "split_1", 0));
  EXPECT_EQ(m.state("split_1").item_index, 1);
  EXPECT_EQ(m.run.job.nodes_active, 1);  // children are counted in their fan-out
  EXPECT_EQ(m.run.job.status, JobStatus::running);
}

TEST(FanOut, CreatesItsChildrenInChunks) {
  Machine m(fan(), with(numbers(8)));
  EXPECT_EQ(m.state("split").items_created, 3);
  m.tick("split");
  EXPECT_EQ(m.state("split").items_created, 6);
  m.tick("split");
  EXPECT_EQ(m.state("split").items_created, 8);
  EXPECT_FALSE(m.state("split").timer_due);
  EXPECT_EQ(m.dispatched().size(), 8u);
}

TEST(FanOut, GoesOnWithItsChunksAfterARestartThatForgotTheItems) {
  Machine m(fan("", ", params: {n: '{{ item }}'}"), with(numbers(5)));
  m.run.expansions.clear();
  m.run.values.reset();
  m.tick("split");
  EXPECT_EQ(m.params("split_4"), R"({"n":40})");
}

TEST(FanOut, CompletesWhenAllItsChildrenHave) {
  Machine m(fan(), with(numbers(4)));
  for (const int i : {2, 0, 1}) m.finish(child(i));
  EXPECT_EQ(m.chunks(), 1);  // the fourth child
  EXPECT_EQ(m.status("split"), NodeStatus::running);
  m.finish(child(3));
  EXPECT_EQ(m.status("split"), NodeStatus::completed);
  EXPECT_EQ(m.output("split"), R"({"count":4,"failed":0})");
  EXPECT_EQ(m.status("merge"), NodeStatus::ready);
}

TEST(FanOut, NeverHasMoreChildrenAtWorkThanMaxParallel) {
  Machine m(fan("    max_parallel: 2\n"), with(numbers(5), 3));
  EXPECT_EQ(m.dispatched(), (Names{"split_0", "split_1"}));
  EXPECT_FALSE(m.state("split").timer_due);
  m.finish("split_1");
  m.chunks();
  EXPECT_EQ(m.dispatched(), (Names{"split_0", "split_2"}));
  m.finish("split_0");
  m.finish("split_2");
  m.chunks();
  EXPECT_EQ(m.dispatched(), (Names{"split_3", "split_4"}));
  m.finish("split_3");
  m.finish("split_4");
  EXPECT_EQ(m.status("split"), NodeStatus::completed);
}

TEST(FanOut, AChildThatWaitsForItsRetryStillTakesItsPlaceOfMaxParallel) {
  Machine m(fan("    max_parallel: 1\n", ", retry: {max_attempts: 2, initial_delay_seconds: 5}"),
            with(numbers(2)));
  m.finish_with_error("split_0");
  m.chunks();
  EXPECT_EQ(m.dispatched(), Names{});
  m.tick("split_0");
  EXPECT_EQ(m.dispatched(), Names{"split_0"});
  EXPECT_EQ(*m.state("split_0").task_id, task_id(test_job, "split_0", 1));
}

TEST(FanOut, AnItemThatFailsFailsItAndTheRestIsCancelledInChunks) {
  Machine m(fan(), with(numbers(8)));
  m.chunks();
  ASSERT_TRUE(m.give("split_0"));
  m.finish("split_1");
  m.finish_with_error("split_7", "broken");
  EXPECT_EQ(m.status("split"), NodeStatus::failed);
  EXPECT_EQ(m.error("split"), "item 7 failed: broken");
  EXPECT_EQ(m.run.job.error, "node 'split' failed: item 7 failed: broken");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
  EXPECT_EQ(m.complete("split_0"), Verdict::stale);  // before the walk is there
  EXPECT_FALSE(m.give("split_2"));
  EXPECT_EQ(m.status("split_2"), NodeStatus::cancelled);
  EXPECT_EQ(m.chunks(), 3);
  EXPECT_EQ(m.status("split_0"), NodeStatus::cancelled);
  EXPECT_EQ(m.status("split_1"), NodeStatus::completed);
  EXPECT_EQ(m.status("split_6"), NodeStatus::cancelled);
  EXPECT_EQ(m.count(EventType::node_cancelled), 2 + 6);  // merge and end, and the children
  EXPECT_FALSE(m.state("split").sweep_next || m.state("split").timer_due);
}

TEST(FanOut, ThatGoesOnWithoutFailedItemsCountsThem) {
  Machine m(fan("    on_item_failure: continue\n"), with(numbers(4)));
  m.finish_with_error("split_0");
  m.finish_with_error("split_2");
  m.chunks();
  m.finish("split_1", "11");
  m.finish("split_3", "33");
  EXPECT_EQ(m.output("split"), R"({"count":4,"failed":2})");
  m.chunks();
  EXPECT_EQ(m.output("merge"), R"({"results":[null,11,null,33],"count":4,"failed":2})");
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
  EXPECT_EQ(m.run.job.nodes_failed, 0);
}

TEST(FanOut, CancellingAJobCancelsItsChildrenInChunks) {
  Machine m(fan(), with(numbers(7)));
  m.chunks();
  ASSERT_TRUE(m.give("split_0"));
  EXPECT_TRUE(cancel(m.run, "", "", m.policy, m.now, m.decided));
  EXPECT_FALSE(renew(m.run, m.ref("split_0"), lease_token(m.state("split_0")), m.policy.short_lease, m.now));
  EXPECT_EQ(m.chunks(), 3);
  EXPECT_TRUE(m.dispatched().empty());
  EXPECT_EQ(m.status("split_0"), NodeStatus::cancelled);
}

TEST(FanOut, NeedsAListAndSaysWhatItFoundInstead) {
  EXPECT_EQ(Machine(fan(), with(R"({"list":{"a":1}})")).error("split"),
            R"(source of node 'split' must be a list, found '{"a":1}')");
  EXPECT_EQ(Machine(fan(), with(R"({"list":"text"})")).error("split"),
            R"(source of node 'split' must be a list, found '"text"')");
  Machine m(fan(), with("{}"));
  EXPECT_TRUE(m.error("split").starts_with("source of node 'split': 'inputs.list' is not defined"))
      << m.error("split");
  EXPECT_EQ(m.run.job.status, JobStatus::failed);
}

TEST(FanOut, OfMoreItemsThanTheLimitFails) {
  auto options = with(numbers(6));
  options.policy.items_max = 5;
  Machine m(fan(), options);
  EXPECT_EQ(m.error("split"), "source of node 'split' has 6 items; the limit is 5");
  EXPECT_TRUE(m.run.items.empty());
}

TEST(FanOut, ParamsThatCannotBeEvaluatedNameThePathAndTheChild) {
  Machine m(fan("", ", params: {url: '{{ item.url }}'}"), with(R"({"list":[{"url":"a"},{}]})"));
  EXPECT_EQ(m.status("split_1"), NodeStatus::failed);
  EXPECT_TRUE(m.error("split_1").starts_with("params of node 'split_1': 'item.url' is not defined"))
      << m.error("split_1");
  EXPECT_TRUE(m.error("split").starts_with("item 1 failed: params of node 'split_1'")) << m.error("split");
}

TEST(FanOut, ParamsThatCannotBeEvaluatedFailOnlyTheirItemWhenItGoesOn) {
  Machine m(fan("    on_item_failure: continue\n", ", params: {url: '{{ item.url }}'}"),
            with(R"({"list":[{},{},{},{"url":"a"},{}]})"));
  m.chunks();
  EXPECT_EQ(m.dispatched(), Names{"split_3"});
  m.finish("split_3", "3");
  EXPECT_EQ(m.output("split"), R"({"count":5,"failed":4})");
  m.chunks();
  EXPECT_EQ(m.output("merge"), R"({"results":[null,null,null,3,null],"count":5,"failed":4})");
}

TEST(FanOut, TheChildOfASilentWorkerIsADeadLetter) {
  Machine m(fan(), with(numbers(1)));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(m.give("split_0"));
    m.tick("split_0");
  }
  EXPECT_TRUE(m.state("split_0").dead_at);
  EXPECT_EQ(m.status("split"), NodeStatus::failed);
}

TEST(FanOut, ThatFailedAndIsGoneOnWithoutLeavesTheItemsThatWereMade) {
  Machine m(fan("    on_failure: continue\n"), with(numbers(5)));
  m.finish("split_0", "0");
  m.finish_with_error("split_1");
  EXPECT_EQ(m.status("split"), NodeStatus::failed);
  EXPECT_EQ(m.run.job.status, JobStatus::running);
  m.chunks();
  EXPECT_EQ(m.output("merge"), R"({"results":[0,null,null],"count":3,"failed":2})");
  EXPECT_EQ(m.status("split_2"), NodeStatus::cancelled);
  EXPECT_EQ(m.run.job.status, JobStatus::completed);
}

TEST(FanOut, TwoFanInsMayReadTheSameChildren) {
  Machine m(
      "  start: {type: start, next: split}\n"
      "  split: {type: fan_out, source: '{{ inputs.list }}', task: {handler: work}, next: [all, total]}\n"
      "  all: {type: fan_in, next: end}\n  total: {type: fan_in, aggregation: sum, next: end}\n  end: {type: "
      "end}\n",
      with(numbers(5)));
  m.chunks();
  for (int i = 0; i < 5; ++i) m.finish(child(i), std::to_string(i));
  m.chunks();
  EXPECT_EQ(m.output("all"), R"({"results":[0,1,2,3,4],"count":5,"failed":0})");
  EXPECT_EQ(m.output("total"), R"({"result":10,"count":5,"failed":0})");
}

TEST(FanOut, WhoseSourceIsGoneAfterARestartFailsAndDoesNotEndTheServer) {
  const auto go_on_elsewhere = [] {
    auto options = with("{}");
    options.policy.environment["LIST"] = "[1,2,3,4,5]";
    std::string nodes = fan();
    nodes.replace(nodes.find("inputs.list"), 11, "env.LIST | fromjson");
    Machine m(nodes, options);
    m.run.expansions.clear();  // a restart, and another environment
    m.run.values.reset();
    m.policy.environment.clear();
    m.tick("split");
    std::exit(m.status("split") == NodeStatus::failed ? 0 : 1);
  };
  EXPECT_EXIT(go_on_elsewhere(), testing::ExitedWithCode(0), "");
}

TEST(FanOut, WhoseSourceHasFewerItemsAfterARestartFailsAndDoesNotEndTheServer) {
  const auto go_on_elsewhere = [] {
    auto options = with("{}");
    options.policy.environment["LIST"] = "[1,2,3,4,5]";
    std::string nodes = fan("", ", params: {n: '{{ item }}'}");
    nodes.replace(nodes.find("inputs.list"), 11, "env.LIST | fromjson");
    Machine m(nodes, options);
    m.run.expansions.clear();
    m.run.values.reset();
    m.policy.environment["LIST"] = "[1]";
    m.tick("split");
    std::exit(m.status("split") == NodeStatus::failed ? 0 : 1);
  };
  EXPECT_EXIT(go_on_elsewhere(), testing::ExitedWithCode(0), "");
}

// ---- fan_in ----

// The output of a fan_in behind children with these outputs; an empty one: it failed.
std::string gathered(const std::string& fan_in_keys, const std::vector<std::string>& outputs,
                     Machine** machine = nullptr) {
  static std::unique_ptr<Machine> m;
  m = std::make_unique<Machine>(fan("    on_item_failure: continue\n", "", fan_in_keys),
                                with(numbers(static_cast<int>(outputs.size()))));
  m->chunks();
  for (int i = 0; const std::string& output : outputs) {
    if (output.empty())
      m->finish_with_error(child(i++));
    else
      m->finish(child(i++), output);
  }
  m->chunks();
  if (machine) *machine = m.get();
  return m->status("merge") == NodeStatus::failed ? m->error("merge") : m->output("merge");
}

TEST(FanIn, CollectsTheOutputsInTheOrderOfTheItemsWithNullForThoseThatFailed) {
  EXPECT_EQ(gathered("", {"1", "", R"({"a":[]})", "null", "\"x\""}),
            R"({"results":[1,null,{"a":[]},null,"x"],"count":5,"failed":1})");
  EXPECT_EQ(gathered("aggregation: collect, ", {"1"}), R"({"results":[1],"count":1,"failed":0})");
}

TEST(FanIn, ConcatenatesListsWithoutThoseThatFailed) {
  EXPECT_EQ(gathered("aggregation: concat, ", {"[1,2]", "[]", "", "[[3]]"}),
            R"({"results":[1,2,[3]],"count":4,"failed":1})");
  EXPECT_EQ(gathered("aggregation: concat, ", {"[]"}), R"({"results":[],"count":1,"failed":0})");
}

TEST(FanIn, SumsIntegersAsIntegers) {
  EXPECT_EQ(gathered("aggregation: sum, ", {"1", "", "-5", "9007199254740993"}),
            R"({"result":9007199254740989,"count":4,"failed":1})");
}

double real_sum(const std::vector<std::string>& outputs) {
  const auto output = boost::json::parse(gathered("aggregation: sum, ", outputs));
  EXPECT_TRUE(output.at("result").is_double());
  return output.at("result").to_number<double>();
}

TEST(FanIn, SumsRealsAsReals) {
  EXPECT_EQ(real_sum({"1.5", "2", "0.25"}), 3.75);
  EXPECT_EQ(real_sum({"1.5", "", "2.5"}), 4.0);
}

TEST(FanIn, ASumBeyondIntegersBecomesAReal) {
  EXPECT_EQ(real_sum({"9223372036854775807", "1"}), 9223372036854775808.0);
  EXPECT_EQ(real_sum({"18446744073709551615"}), 18446744073709551616.0);
}

TEST(FanIn, ASumBeyondRealsFailsOrIsStillJson) {
  Machine* m = nullptr;
  const std::string output = gathered("aggregation: sum, ", {"1e308", "1e308"}, &m);
  boost::json::error_code error;
  if (m->status("merge") != NodeStatus::failed) (void)boost::json::parse(output, error);
  EXPECT_FALSE(error) << output;
}

TEST(FanIn, TakesTheFirstOrTheLastThatDidNotFail) {
  EXPECT_EQ(gathered("aggregation: first, ", {"", "2", "3", ""}), R"({"result":2,"count":4,"failed":2})");
  EXPECT_EQ(gathered("aggregation: last, ", {"", "2", "3", ""}), R"({"result":3,"count":4,"failed":2})");
  EXPECT_EQ(gathered("aggregation: first, ", {"", ""}), R"({"result":null,"count":2,"failed":2})");
}

TEST(FanIn, LooksAtAFieldOfEachOutput) {
  EXPECT_EQ(gathered("aggregation: sum, field: stats.rows, ",
                     {R"({"stats":{"rows":2}})", R"({"stats":{"rows":3}})"}),
            R"({"result":5,"count":2,"failed":0})");
  EXPECT_EQ(gathered("field: x, ", {R"({"x":"é"})", R"({"x":[1]})"}),
            R"({"results":["é",[1]],"count":2,"failed":0})");
}

TEST(FanIn, LooksAtAFieldOfAnOutputAsDeepAsOutputsMayBe) {
  const std::string deep = "{\"x\":1,\"y\":" + std::string(50, '[') + std::string(50, ']') + "}";
  std::string output;
  EXPECT_NO_THROW(output = gathered("field: x, ", {deep}));
  EXPECT_EQ(output, R"({"results":[1],"count":1,"failed":0})");
}

TEST(FanIn, AnOutputOfTheWrongTypeFailsItAndNamesTheItem) {
  Machine* m = nullptr;
  EXPECT_EQ(gathered("aggregation: concat, ", {"[1]", "[2]", "[3]", "[4]", "{}"}, &m),
            "item 4: concat needs a list of each item, found '{}'");
  EXPECT_EQ(m->run.job.status, JobStatus::failed);
  EXPECT_EQ(gathered("aggregation: sum, ", {"1", "\"2\""}),
            "item 1: sum needs a number of each item, found '\"2\"'");
  EXPECT_EQ(gathered("field: a.b, ", {R"({"a":{}})"}), "item 0: its output has no 'a.b'");
  EXPECT_EQ(gathered("field: a, ", {"5"}), "item 0: its output has no 'a'");
}

TEST(FanIn, ReadsItsItemsInChunksAndBeginsAgainWhenARestartForgotThem) {
  Machine m(fan("", "", "aggregation: sum, "), with(numbers(8)));
  m.chunks();
  for (int i = 0; i < 8; ++i) m.finish(child(i), std::to_string(i));
  m.tick("merge");
  EXPECT_EQ(m.run.gatherings[m.ref("merge").node].next, 3);
  EXPECT_EQ(m.status("merge"), NodeStatus::ready);
  m.run.gatherings.clear();
  EXPECT_EQ(m.chunks(), 3);
  EXPECT_EQ(m.output("merge"), R"({"result":28,"count":8,"failed":0})");
}

TEST(FanIn, OfMoreThanItMayCollectFails) {
  auto options = with(numbers(2));
  options.policy.gathered_max = 1 << 20;
  Machine m(fan(), options);
  m.finish("split_0", "\"" + std::string(600'000, 'x') + "\"");
  m.finish("split_1", "\"" + std::string(600'000, 'x') + "\"");
  m.chunks();
  EXPECT_EQ(m.error("merge"), "the results are larger than 1 MiB");
}

TEST(FanIn, WhatItGatheredIsThereForTheExpressionsBehindIt) {
  std::string nodes = fan();
  nodes.replace(nodes.find("next: end"), 9, "next: check");
  Machine m(nodes +
                "  check: {type: conditional, condition: '{{ nodes.merge.output.results | length > 1 }}', "
                "branches: "
                "{true: publish, false: end}}\n"
                "  publish: {type: task, handler: h, params: {all: '{{ nodes.merge.output }}'}, next: end}\n",
            with(numbers(2)));
  m.finish("split_0", "\"a\"");
  m.finish("split_1", "\"b\"");
  m.chunks();
  EXPECT_EQ(m.params("publish"), R"({"all":{"results":["a","b"],"count":2,"failed":0}})");
}

TEST(FanOut, APauseDoesNotDoAgainWhatHasFailed) {
  Machine::Options options{.input = R"({"list":[0,1]})"};
  options.policy.deliveries_max = 1;
  Machine m(
      "  start: {type: start, next: split}\n"
      "  split: {type: fan_out, source: '{{ inputs.list }}', on_item_failure: continue, max_parallel: 1,\n"
      "          task: {handler: work, queue: q}, next: merge}\n"
      "  merge: {type: fan_in, next: end}\n  end: {type: end}\n",
      options);
  ASSERT_TRUE(m.give("split_0"));
  m.tick("split_0");  // its worker was not heard of again, and there is no other try
  ASSERT_EQ(m.state("split_0").status, NodeStatus::failed);
  ASSERT_TRUE(m.state("split_0").dead_at);
  ASSERT_TRUE(pause(m.run, "", "", m.policy, m.now, m.decided));
  ASSERT_TRUE(resume(m.run, "", "", m.policy, m.now, m.decided));
  m.chunks();
  EXPECT_EQ(m.state("split_0").status, NodeStatus::failed);
  EXPECT_EQ(m.state("split").items_done, 1);
  EXPECT_EQ(m.dispatched(), std::vector<std::string>{"split_1"});
}

}  // namespace
}  // namespace baton::workflow::fan_out_test
