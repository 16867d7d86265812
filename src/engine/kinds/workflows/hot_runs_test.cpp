#include "engine/kinds/workflows/hot_runs.hpp"

#include <gtest/gtest.h>

#include "core/workflow/definition/definition.hpp"
#include "tests/support/one_task.hpp"

namespace baton::engine::hot_runs_test {
namespace {

using namespace workflow;

Run run_of(const std::string& id, std::size_t input_bytes = 2) {
  static const auto definition = std::make_shared<const Definition>(*parse(support::one_task_yaml).definition);
  return {definition, Job{.job_id = {id}, .workflow_id = "w", .input_data = {std::string(input_bytes, ' ')}}};
}

TEST(HotRunsTest, ARunIsTakenOnce) {
  HotRuns hot(1 << 20);
  hot.keep(run_of("a"));
  const auto taken = hot.take({"a"});
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->job.job_id.value, "a");
  EXPECT_FALSE(hot.take({"a"}));
  EXPECT_FALSE(hot.take({"b"}));
}

TEST(HotRunsTest, WhatWasNotTouchedForTheLongestTimeGoesFirst) {
  constexpr std::size_t input = 10'000;
  HotRuns hot(20 * run_of("0", input).bytes());
  for (int n = 0; n < 20; ++n) hot.keep(run_of(std::to_string(n), input));
  hot.keep(*hot.take({"0"}));
  for (int n = 20; n < 25; ++n) hot.keep(run_of(std::to_string(n), input));
  for (int n = 1; n <= 5; ++n) EXPECT_FALSE(hot.take({std::to_string(n)})) << n;
  for (int n : {0, 6, 19, 20, 24}) EXPECT_TRUE(hot.take({std::to_string(n)})) << n;
}

TEST(HotRunsTest, ALargeRunPushesOutNobody) {
  HotRuns hot(1 << 20);
  hot.keep(run_of("small"));
  hot.keep(run_of("large", 1 << 18));
  EXPECT_FALSE(hot.take({"large"}));
  EXPECT_TRUE(hot.take({"small"}));
}

}  // namespace
}  // namespace baton::engine::hot_runs_test
