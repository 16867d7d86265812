// Who hears of which record, and how much is told at a time.
#include "http/wire/subscriptions.hpp"

#include <gtest/gtest.h>

namespace baton::http {
namespace {

class Listener final : public Subscriber {
 public:
  Listener(Subscriptions& all, std::string_view id, Subject::Type subject = Subject::Type::job) : Subscriber(all) {
    listen(subject_topic(subject, "t", id));
  }
  std::vector<std::int64_t> heard;

 private:
  void hear(const Record& record) override { heard.push_back(record->number); }
};
using Numbers = std::vector<std::int64_t>;

class SubscriptionsTest : public testing::Test {
 protected:
  // One change of each of so many jobs, after this one.
  void publish(std::int64_t number, int jobs, std::optional<baton::Change> first = {}) {
    CommitRecord record{.number = number, .at = {}, .changes = {}, .untold = {}};
    if (first) record.changes.add(*first);
    for (int i = 0; i < jobs; ++i) {
      const std::string id = std::to_string(i);
      record.changes.add({.subject = Subject::Type::job, .tenant = "t", .id = id, .what = "changed"});
    }
    feed_.publish(std::move(record));
  }

  Feed feed_{"s", {.record_bytes_max = 1'000'000}};
  int reads_wanted_ = 0;
  Subscriptions all_{feed_, [this] { ++reads_wanted_; }, [](SteadyTime) {}};
};

TEST_F(SubscriptionsTest, a_record_with_many_changes_is_told_in_parts_and_to_each_once) {
  Listener first(all_, "0"), last(all_, "24999"), both(all_, "1");
  both.listen(subject_topic(Subject::Type::job, "t", "24998"));
  publish(1, 25'000);
  publish(2, 1);
  all_.read();
  EXPECT_EQ(first.heard, Numbers{1});
  EXPECT_EQ(last.heard, Numbers{}) << "requests get their turn before";
  EXPECT_EQ(reads_wanted_, 2);
  Listener late(all_, "24997");
  all_.read();
  EXPECT_EQ(last.heard, Numbers{});
  all_.read();
  EXPECT_EQ(last.heard, Numbers{1});
  EXPECT_EQ(both.heard, Numbers{1});
  EXPECT_EQ(first.heard, (Numbers{1, 2}));
  EXPECT_EQ(late.heard, Numbers{}) << "the record was there before it listened";
  EXPECT_EQ(reads_wanted_, 3) << "nothing is left";
  publish(3, 25'000);
  for (int part = 0; part < 3; ++part) all_.read();
  EXPECT_EQ(late.heard, Numbers{3});
}

TEST_F(SubscriptionsTest, a_record_that_nobody_waits_for_any_more_is_forgotten) {
  {
    const Listener first(all_, "0");
    publish(1, 25'000);
    all_.read();
  }
  Listener second(all_, "24999");
  for (int part = 0; part < 3; ++part) all_.read();
  EXPECT_EQ(second.heard, Numbers{});
}

TEST_F(SubscriptionsTest, a_version_that_is_published_in_a_record_too_large_to_tell_is_followed) {
  Listener listener(all_, "move", Subject::Type::runbook);
  const baton::Change published{
      .subject = Subject::Type::runbook, .tenant = "t", .id = "move", .what = "published", .runbook_id = 7};
  const baton::Change batch{
      .subject = Subject::Type::batch, .tenant = "t", .id = "1", .what = "changed", .runbook_id = 7};
  publish(1, 100'000, published);
  ASSERT_TRUE(feed_.after(0)->front()->untold.contains("t"));
  publish(2, 0, batch);
  all_.read();
  EXPECT_EQ(listener.heard, (Numbers{1, 2}));
}

TEST_F(SubscriptionsTest, who_listens_to_a_topic_twice_hears_once_and_leaves_nothing_behind) {
  {
    Listener twice(all_, "0");
    twice.listen(subject_topic(Subject::Type::job, "t", "0"));
    publish(1, 1);
    all_.read();
    EXPECT_EQ(twice.heard, Numbers{1});
  }
  EXPECT_EQ(feed_.subscriptions(), 0U);
}

// A search through all topics for each one would take billions of comparisons, many seconds.
TEST_F(SubscriptionsTest, a_stream_of_a_runbook_with_very_many_versions_listens_and_leaves_at_once) {
  const auto begin = std::chrono::steady_clock::now();
  {
    Listener listener(all_, "move", Subject::Type::runbook);
    for (std::int64_t version = 1; version <= 100'000; ++version) listener.listen(batches_topic("t", version));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{3});
}

}  // namespace
}  // namespace baton::http
