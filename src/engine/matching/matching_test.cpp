#include "engine/matching/matching.hpp"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

TEST(Matching, AQueueThatWasToBeServedLastWasNotIfTheCommitFails) {
  const QueueKey first{{"t"}, "a"}, second{{"t"}, "b"};
  Matching matching(10);
  Effects earlier;
  earlier.emplace_back(MatchAgain{{}, first});
  matching.expect(earlier);
  ASSERT_EQ(matching.served_last(), first);
  Effects effects;
  effects.emplace_back(MatchAgain{{}, second});
  matching.expect(effects);
  EXPECT_EQ(matching.served_last(), second);
  matching.withdraw(effects);
  EXPECT_EQ(matching.served_last(), first);
  matching.expect(effects);  // it has happened after all
  EXPECT_EQ(matching.served_last(), second);
}

TEST(Matching, ABatchThatHasRoomLeavesTheTurnWhereItIs) {
  const QueueKey queue{{"t"}, "a"};
  Matching matching(10);
  Effects effects;
  effects.emplace_back(MatchAgain{{}, queue});
  effects.emplace_back(MatchAgain{});
  matching.expect(effects);
  EXPECT_EQ(matching.served_last(), queue);
}

}  // namespace
}  // namespace baton::engine
