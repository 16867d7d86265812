#include "core/workflow/definition/publish.hpp"

#include <gtest/gtest.h>

namespace baton::workflow {
namespace {

const std::optional<VersionText> none;

TEST(PublishWorkflow, TheFirstTextIsVersionOneUnlessItNamesAnother) {
  EXPECT_EQ(place_version(0, "a", none, none), (Publication{1, true, true}));
  EXPECT_EQ(place_version(7, "a", none, none), (Publication{7, true, true}));
}

TEST(PublishWorkflow, ATextWithoutAVersionIsTheNextOneUnlessTheLatestHasIt) {
  const VersionText latest{3, "a"};
  EXPECT_EQ(place_version(0, "a", none, latest), (Publication{3, false, true}));
  EXPECT_EQ(place_version(0, "b", none, latest), (Publication{4, true, true}));
}

TEST(PublishWorkflow, AVersionNeverChanges) {
  const VersionText latest{3, "c"}, first{1, "a"};
  EXPECT_EQ(place_version(1, "a", first, latest), (Publication{1, false, false}));
  EXPECT_EQ(place_version(3, "c", latest, latest), (Publication{3, false, true}));
  const auto refused = place_version(1, "c", first, latest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().next_free, 4);
}

TEST(PublishWorkflow, AVersionMayBeLeftOutAndFilledInLater) {
  const VersionText latest{3, "a"};
  EXPECT_EQ(place_version(9, "a", none, latest), (Publication{9, true, true})) << "though the latest has that text";
  EXPECT_EQ(place_version(2, "b", none, latest), (Publication{2, true, false}));
}

}  // namespace
}  // namespace baton::workflow
