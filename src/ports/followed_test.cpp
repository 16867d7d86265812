#include "ports/followed.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace baton {
namespace {

TEST(FollowedTest, NobodyWaitsForWhatIsShown) {
  Followed followed;
  followed.committed(3);
  followed.followed(3);
  bool woken = false;
  followed.on_wanted([&] { woken = true; });
  EXPECT_TRUE(followed.wait());
  EXPECT_FALSE(woken);
}

TEST(FollowedTest, AReaderWakesTheEngineAndReadsWhenTheTablesShowWhatWasCommittedBefore) {
  Followed followed;
  followed.committed(7);
  std::thread engine;
  followed.on_wanted([&] {
    engine = std::thread([&] {
      EXPECT_TRUE(followed.is_wanted());
      followed.followed(7);
    });
  });
  EXPECT_TRUE(followed.wait());
  engine.join();
  EXPECT_FALSE(followed.is_wanted());
}

// Otherwise two readers, five seconds each, would be all that a server can do while one row is held.
TEST(FollowedTest, NobodyWaitsForAStoreThatIsAway) {
  Followed followed;
  followed.committed(7);
  followed.set_away(true);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(followed.wait());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{4});
  followed.set_away(false);
  followed.followed(7);
  EXPECT_TRUE(followed.wait());
}

TEST(FollowedTest, NobodyWaitsForAnEngineThatHasStopped) {
  Followed followed;
  followed.committed(7);
  followed.close();
  const auto outcome = followed.wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::unavailable);
}

}  // namespace
}  // namespace baton
