#include "bus/job_lock.hpp"

#include <gtest/gtest.h>

#include <set>

namespace baton::bus {
namespace {

const std::string job = "01a1efc6-b7ce-7dab-8402-b1cd68de4b86";

Handout task(const std::string& node, std::int32_t retry, std::int32_t delivery) {
  Handout one;
  one.job_id = workflow::JobId{job};
  one.node_id = node;
  one.retry_count = retry;
  one.delivery_count = delivery;
  one.task_id = job + "_" + node + "_" + std::to_string(retry);
  one.lease = std::to_string(retry) + "." + std::to_string(delivery);
  return one;
}

Handout step(std::int64_t id, const std::string& job_id, std::int32_t delivery) {
  Handout one;
  one.runbook = RunbookJob{.batch_id = 1, .ref = {runbook::RowType::step, id}, .runbook_name = "r", .runbook_version = 1};
  one.task_id = job_id;
  one.delivery_count = delivery;
  one.lease = std::to_string(delivery);
  return one;
}

TEST(JobLock, BeginsWithTheJob) {
  const LockToken token = token_of(task("a", 0, 1));
  EXPECT_EQ(number_in(token, 0, 8), 0x01a1efc6b7ce7dabULL);
  EXPECT_EQ(number_in(token, 8, 3), 0U);
  EXPECT_EQ(number_in(token, 11, 1), 1U);
  EXPECT_EQ(number_in(token_of(task("split_41", 0, 1)), 8, 3), 42U);
  const LockToken of_step = token_of(step(7, "step-7", 2));
  EXPECT_EQ(number_in(of_step, 0, 6), 7U);
  EXPECT_EQ(number_in(of_step, 6, 1), 0U) << "no UUIDv7 has that there";
  EXPECT_EQ(number_in(of_step, 11, 1), 2U);
}

TEST(JobLock, HasOneTokenForEachDelivery) {
  std::set<LockToken> tokens;
  std::size_t count = 0;
  const auto add = [&](const Handout& one) {
    EXPECT_EQ(token_of(one), token_of(one));
    tokens.insert(token_of(one));
    ++count;
  };
  for (const char* node : {"a", "b", "split_0", "split_1"})
    for (std::int32_t retry = 0; retry < 20; ++retry)
      for (std::int32_t delivery = 1; delivery <= 20; ++delivery) add(task(node, retry, delivery));
  for (std::int64_t id = 1; id <= 20; ++id)
    for (const char* more : {"", "-retry-1", "-poll-1", "-retry-1-poll-1"})
      for (std::int32_t delivery = 1; delivery <= 10; ++delivery) add(step(id, "step-" + std::to_string(id) + more, delivery));
  EXPECT_EQ(tokens.size(), count);
}

TEST(JobLock, OfAJobWithAnotherIdIsNoneThatIsFoundAgain) {
  Handout odd = task("a", 0, 1);
  odd.job_id = workflow::JobId{"job-1"};
  EXPECT_NE(token_of(odd), token_of(odd));
}

}  // namespace
}  // namespace baton::bus
