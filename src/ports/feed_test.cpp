#include "ports/feed.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

CommitRecord record(std::int64_t number, std::string_view id = "j") {
  CommitRecord made{.number = number};
  made.changes.add({.subject = Subject::Type::job, .tenant = "t", .id = id, .what = "job_started"});
  return made;
}

std::vector<std::int64_t> numbers(const std::vector<Record>& records) {
  std::vector<std::int64_t> found;
  for (const Record& each : records) found.push_back(each->number);
  return found;
}

TEST(Feed, ChangesReadBackAsTheyWereAdded) {
  const std::string large(70'000, 'x');
  const std::vector<Change> added{
      {.subject = Subject::Type::job,
       .tenant = "t",
       .id = "j",
       .what = "node_completed",
       .status = "RUNNING",
       .node = "n",
       .workflow_id = "w",
       .version = 300},
      {.subject = Subject::Type::job, .tenant = "t", .id = "j", .what = "job_completed", .status = "COMPLETED"},
      {.subject = Subject::Type::job, .tenant = "u", .id = "j", .what = "job_started"},
      {.subject = Subject::Type::batch, .tenant = "u", .id = "j", .what = "changed", .runbook_id = 1LL << 40},
      {.subject = Subject::Type::queue, .tenant = "", .id = large, .what = "changed"},
  };
  Changes changes;
  for (const Change& each : added) changes.add(each);
  EXPECT_EQ(changes.count(), added.size());
  Changes::Reader reader(changes);
  Change read;
  for (const Change& each : added) {
    ASSERT_TRUE(reader.next(read));
    EXPECT_EQ(read, each) << each.what;
  }
  EXPECT_FALSE(reader.next(read));
}

TEST(Feed, AReaderResumesAfterTheNumberThatItHasSeen) {
  Feed feed;
  EXPECT_EQ(feed.last(), 0);
  for (const int number : {3, 4, 7}) feed.publish(record(number));
  EXPECT_EQ(feed.last(), 7);
  EXPECT_EQ(numbers(*feed.after(0)), (std::vector<std::int64_t>{3, 4, 7}));
  EXPECT_EQ(numbers(*feed.after(3)), (std::vector<std::int64_t>{4, 7}));
  EXPECT_EQ(numbers(*feed.after(5)), (std::vector<std::int64_t>{7}));
  EXPECT_TRUE(feed.after(7)->empty());
}

TEST(Feed, WhatIsTooOldIsToldToBeGone) {
  Feed feed("s", {.records_max = 2});
  for (const int number : {3, 4, 7}) feed.publish(record(number));
  EXPECT_FALSE(feed.after(2));
  EXPECT_EQ(numbers(*feed.after(3)), (std::vector<std::int64_t>{4, 7}));
}

TEST(Feed, BytesAreBounded) {
  Feed feed("s", {.bytes_max = 10'000, .record_bytes_max = 5'000});
  for (int number = 1; number <= 100; ++number) feed.publish(record(number, std::string(2'000, 'x')));
  const auto kept = feed.after(97);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 3U);
  EXPECT_FALSE(feed.after(90));
}

TEST(Feed, WhatIsKeptHoldsNoMoreMemoryThanItNeeds) {
  Changes changes;
  for (int n = 0; n < 1'000; ++n) changes.add({.subject = Subject::Type::job, .tenant = "t", .id = "job-" + std::to_string(n), .what = "changed"});
  Feed feed;
  feed.publish({.number = 1, .changes = std::move(changes)});
  const auto kept = feed.after(0);
  ASSERT_TRUE(kept);
  EXPECT_LT(kept->front()->changes.bytes_held(), kept->front()->changes.bytes() + 16);
}

TEST(Feed, OfACommitThatIsTooLargeTheTenantWithTheMostChangesOnlyHearsThatThereWereSome) {
  Feed feed("s", {.record_bytes_max = 1'000});
  CommitRecord large{.number = 1};
  for (int i = 0; i < 20; ++i) {
    const std::string id = std::to_string(i) + std::string(100, 'x');
    large.changes.add({.subject = Subject::Type::job, .tenant = "greedy", .id = id, .what = "job_cancelled"});
    if (i % 10 == 0)
      large.changes.add({.subject = Subject::Type::job, .tenant = "small", .id = id, .what = "job_created"});
  }
  feed.publish(std::move(large));
  const auto kept = feed.after(0);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->front()->untold, (std::set<std::string, std::less<>>{"greedy"}));
  EXPECT_EQ(kept->front()->changes.count(), 2U);
  Changes::Reader reader(kept->front()->changes);
  for (Change change; reader.next(change);) EXPECT_EQ(change.tenant, "small");
}

TEST(Feed, ARunbookThatWasPublishedIsToldAlsoOfATenantWithTooManyChanges) {
  Feed feed("s", {.record_bytes_max = 1'000});
  CommitRecord large{.number = 1};
  large.changes.add({.subject = Subject::Type::runbook,
                     .tenant = "greedy",
                     .id = "move",
                     .what = "published",
                     .version = 2,
                     .runbook_id = 7});
  for (int i = 0; i < 20; ++i) {
    const std::string id = std::to_string(i) + std::string(100, 'x');
    large.changes.add({.subject = Subject::Type::batch, .tenant = "greedy", .id = id, .what = "changed"});
  }
  feed.publish(std::move(large));
  const auto kept = feed.after(0);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->front()->untold.contains("greedy"));
  ASSERT_EQ(kept->front()->changes.count(), 1U);
  Changes::Reader reader(kept->front()->changes);
  Change change;
  ASSERT_TRUE(reader.next(change));
  EXPECT_EQ(change.id, "move");
  EXPECT_EQ(change.runbook_id, 7);
}

TEST(Feed, ManyPublishedRunbooksAreAllTold) {
  Feed feed("s", {.record_bytes_max = 1'000});
  CommitRecord large{.number = 1};
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i) + std::string(100, 'x');
    large.changes.add({.subject = Subject::Type::runbook, .tenant = "t", .id = name, .what = "published"});
  }
  feed.publish(std::move(large));
  EXPECT_EQ(feed.after(0)->front()->changes.count(), 20U);
  EXPECT_TRUE(feed.after(0)->front()->untold.empty());
}

TEST(Feed, SubscribersAreWokenUntilTheyLeave) {
  Feed feed;
  int woken = 0;
  auto subscription = feed.subscribe([&] { ++woken; });
  feed.publish(record(1));
  feed.publish(record(2));
  EXPECT_EQ(woken, 2);
  subscription.reset();
  feed.publish(record(3));
  EXPECT_EQ(woken, 2);
}

}  // namespace
}  // namespace baton
