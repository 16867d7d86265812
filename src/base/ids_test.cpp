#include "base/ids.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace baton {
namespace {

using JobId = Id<struct JobTag>;
using NodeId = Id<struct NodeTag>;
static_assert(!std::is_convertible_v<JobId, NodeId>);

TEST(Id, compares_and_hashes_by_its_text) {
  EXPECT_LT((JobId{"a"}), (JobId{"b"}));
  EXPECT_TRUE(JobId{}.empty());
  EXPECT_TRUE((std::unordered_set<JobId>{{"a"}}.contains(JobId{"a"})));
}

TEST(Uuid7, has_the_layout_of_rfc_9562) {
  const Time time = from_millis(0x017f'22e2'79b0);  // the example of the RFC
  EXPECT_EQ(uuid7(time, 0xcc3, 0x18c4'dc0c'0c07'398f), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(Uuid7, extra_random_bits_do_not_touch_version_and_variant) {
  EXPECT_EQ(uuid7(from_millis(0), ~0ull, ~0ull), "00000000-0000-7fff-bfff-ffffffffffff");
  EXPECT_EQ(uuid7(from_millis(0), 0, 0), "00000000-0000-7000-8000-000000000000");
}

TEST(IsUuid, accepts_both_cases_and_only_the_plain_form) {
  EXPECT_TRUE(is_uuid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
  EXPECT_TRUE(is_uuid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
  for (const char* text : {"", "017f22e279b07cc398c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
                           "017f22e2-79b0-7cc3-98c4-dc0c0c07398g", "017f22e2-79b0-7cc3-98c4dc-0c0c07398f",
                           "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}"})
    EXPECT_FALSE(is_uuid(text)) << text;
}

RC_GTEST_PROP(Uuid7, is_a_uuid_and_sorts_by_time, (std::uint64_t high, std::uint64_t low)) {
  const auto early = *rc::gen::inRange<std::int64_t>(0, 1ll << 47);
  const auto late = *rc::gen::inRange<std::int64_t>(early + 1, 1ll << 48);
  const std::string first = uuid7(from_millis(early), high, low);
  RC_ASSERT(is_uuid(first));
  RC_ASSERT(first < uuid7(from_millis(late), low, high));
}

}  // namespace
}  // namespace baton
