#include "base/iso_duration.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

using namespace std::chrono_literals;

TEST(IsoDuration, is_written_in_the_fewest_parts) {
  EXPECT_EQ(to_iso_duration(60s), "PT1M");
  EXPECT_EQ(to_iso_duration(std::chrono::days{14}), "P14D");
  EXPECT_EQ(to_iso_duration(90'061'250ms), "P1DT1H1M1.250S");
  EXPECT_EQ(to_iso_duration(0ms), "PT0S");
  EXPECT_EQ(to_iso_duration(5ms), "PT0.005S");
}

TEST(IsoDuration, is_read_as_it_is_written) {
  for (const Duration each : {Duration{0}, Duration{1}, Duration{60s}, Duration{3661s}, Duration{std::chrono::days{14}}, Duration{90'061'250ms}})
    EXPECT_EQ(from_iso_duration(to_iso_duration(each)), each) << to_iso_duration(each);
}

TEST(IsoDuration, may_be_the_longest_of_dot_net) {
  EXPECT_EQ(from_iso_duration("P10675199DT2H48M5.4775807S"), Duration{922'337'203'685'477});
}

TEST(IsoDuration, may_be_in_weeks_and_in_more_than_its_unit) {
  EXPECT_EQ(from_iso_duration("P2W"), Duration{std::chrono::days{14}});
  EXPECT_EQ(from_iso_duration("PT90S"), Duration{90s});
}

TEST(IsoDuration, that_is_none_is_refused) {
  for (const char* text : {"", "P", "PT", "1M", "P1", "PT1", "P-1D", "-P1D", "PT1M1H", "PT1M1M", "P1M", "P1Y", "PT1.5M", "PT1.S", "PT.5S", "P1DT", "PT1S ",
                           "PT1ST1S", "P99999999999999999999D", "P999999999999D", "PT1.0000000000S"})
    EXPECT_FALSE(from_iso_duration(text)) << text;
}

}  // namespace
}  // namespace baton
