#include "bus/address.hpp"

#include <gtest/gtest.h>

namespace baton::bus {
namespace {

TEST(Addresses, are_read_as_each_sdk_writes_them) {
  for (const char* text : {"worker-jobs/Subscriptions/worker-a", "/worker-jobs/subscriptions/worker-a",
                           "amqps://host:5671/worker-jobs/Subscriptions/worker-a", "worker%2Djobs/SUBSCRIPTIONS/worker-a/",
                           "worker-jobs%2FSubscriptions%2fworker-a", "worker-jobs%2fSubscriptions/worker-a%2F"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->entity, "worker-jobs");
    EXPECT_EQ(address->subscription, "worker-a");
    EXPECT_FALSE(address->is_management || address->is_dead_letters);
  }
}

TEST(Addresses, have_management_and_dead_letters_behind_them) {
  const auto management = parse_address("q/$Management");
  ASSERT_TRUE(management);
  EXPECT_TRUE(management->is_management);
  EXPECT_EQ(management->entity, "q");
  const auto dead = parse_address("t/Subscriptions/s/$deadletterqueue/$management");
  ASSERT_TRUE(dead);
  EXPECT_TRUE(dead->is_management && dead->is_dead_letters);
  EXPECT_EQ(dead->subscription, "s");
}

TEST(Addresses, are_the_same_however_they_are_escaped) {
  const auto dead = parse_address("orders%2Feu%2F%24deadletterqueue%2F%24management");
  ASSERT_TRUE(dead);
  EXPECT_TRUE(dead->is_management && dead->is_dead_letters);
  EXPECT_EQ(dead->entity, "orders/eu");
  const auto twice = parse_address("t%252FSubscriptions%252Fs");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->entity, "t%2FSubscriptions%2Fs") << "which no entity is called";
}

TEST(Addresses, may_have_names_with_slashes) {
  const auto queue = parse_address("orders/eu/new/$DeadLetterQueue");
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->entity, "orders/eu/new");
  EXPECT_TRUE(queue->is_dead_letters);
  const auto subscription = parse_address("amqps://host/events/eu/Subscriptions/audit/$management");
  ASSERT_TRUE(subscription);
  EXPECT_EQ(subscription->entity, "events/eu");
  EXPECT_EQ(subscription->subscription, "audit");
}

TEST(Addresses, that_name_nothing_are_none) {
  for (const char* text : {"", "/", "amqps://host", "a//b", "t/Subscriptions", "t/Subscriptions/a/b", "a%0", "a%00b", "t/Rules/r", "t/Rules%2Fr", "a%2F%2Fb", "%2Fa"})
    EXPECT_FALSE(parse_address(text)) << text;
}

}  // namespace
}  // namespace baton::bus
