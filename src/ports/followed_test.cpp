#include "ports/followed.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(FollowedTest, NobodyWaitsForWhatIsShown) {
  Followed followed;
  followed.committed(3);
  followed.followed(3);
  bool woken = false;
  followed.on_wanted([&] { woken = true; });
  EXPECT_FALSE(followed.want());
  EXPECT_FALSE(woken);
}

TEST(FollowedTest, AReaderWakesTheEngineAndIsToldWhenTheTablesShowWhatWasCommittedBefore) {
  Followed followed;
  followed.committed(7);
  int woken = 0, moved = 0;
  followed.on_wanted([&] { ++woken; });
  followed.on_moved([&] { ++moved; });
  const auto wanted = followed.want();
  ASSERT_TRUE(wanted);
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(followed.is_wanted());
  followed.committed(8);  // nobody asked for that
  followed.followed(6);
  EXPECT_FALSE(followed.shows(*wanted));
  followed.followed(7);
  EXPECT_TRUE(followed.shows(*wanted));
  EXPECT_EQ(moved, 2);
  EXPECT_FALSE(followed.is_wanted());
}

TEST(FollowedTest, AReaderIsToldThatTheStoreIsAwayAndDoesNotWakeTheEngine) {
  Followed followed;
  followed.committed(7);
  int woken = 0, moved = 0;
  followed.on_wanted([&] { ++woken; });
  followed.on_moved([&] { ++moved; });
  followed.set_away(true);
  followed.set_away(true);
  EXPECT_EQ(moved, 1);
  EXPECT_TRUE(followed.want());
  EXPECT_TRUE(followed.is_away());
  EXPECT_EQ(woken, 0);
  followed.set_away(false);
  followed.followed(7);
  EXPECT_FALSE(followed.want());
}

TEST(FollowedTest, TablesThatLostWhatTheyShowedAreInDoubtUntilTheStoreIsOpened) {
  Followed followed;
  followed.opened(7);
  int woken = 0, moved = 0;
  followed.on_wanted([&] { ++woken; });
  followed.on_moved([&] { ++moved; });
  followed.doubt(7);
  EXPECT_FALSE(followed.is_doubted() || woken > 0);
  followed.doubt(5);
  EXPECT_TRUE(followed.is_doubted());
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(followed.want(), 7);
  followed.followed(7);  // from before the crash
  EXPECT_FALSE(followed.shows(7));
  EXPECT_EQ(moved, 0);
  followed.opened(7);
  EXPECT_FALSE(followed.is_doubted() || followed.want());
  EXPECT_EQ(moved, 1);
}

TEST(FollowedTest, AnEngineThatHasStoppedIsAwayForGood) {
  Followed followed;
  followed.committed(7);
  followed.on_wanted([] { FAIL() << "nobody is there"; });
  followed.close();
  EXPECT_TRUE(followed.want());
  EXPECT_TRUE(followed.is_away());
}

}  // namespace
}  // namespace baton
