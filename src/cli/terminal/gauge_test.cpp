#include "cli/terminal/gauge.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

using namespace std::chrono_literals;

const Time noon = *from_iso("2026-11-16T12:00:00Z");

TEST(RelativeTimes, HaveTheTwoLargestUnits) {
  EXPECT_EQ(relative(noon, noon), "now");
  EXPECT_EQ(relative(noon + 999ms, noon), "now");
  EXPECT_EQ(relative(noon + 45s, noon), "in 45 s");
  EXPECT_EQ(relative(noon + 2h, noon), "in 2 h");
  EXPECT_EQ(relative(noon + 2h + 5min + 59s, noon), "in 2 h 5 min");
  EXPECT_EQ(relative(noon + 99h, noon), "in 4 d 3 h");
  EXPECT_EQ(relative(noon - 3min - 1s, noon), "3 min ago");
  EXPECT_EQ(relative(noon - 240h, noon), "10 d ago");
}

TEST(RelativeTimes, StandBesideMinutesAndOffsets) {
  EXPECT_EQ(minute_text(noon + 5min), "2026-11-16 12:05");
  EXPECT_EQ(offset_text(0), "T-0");
  EXPECT_EQ(offset_text(7200), "T-5d");
  EXPECT_EQ(offset_text(240), "T-4h");
  EXPECT_EQ(offset_text(90), "T-90m");
  EXPECT_EQ(offset_text(-120), "T+2h");
}

TEST(Numbers, AreGroupedByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(10'000), "10,000");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
  EXPECT_EQ(counted(1, "member"), "1 member");
  EXPECT_EQ(counted(2, "batch"), "2 batches");
}

TEST(Tallies, PutTheEightStatusesOfAStepInFive) {
  Tally tally;
  for (const char* status : {"pending", "dispatched", "polling", "succeeded", "failed", "poll_timeout",
                             "rolled_back", "cancelled"})
    tally.add(status, 1);
  EXPECT_EQ(tally.failed, 3);
  EXPECT_EQ(tally.dispatched, 2);
  EXPECT_EQ(tally.ended(), 5);
  EXPECT_EQ(tally.total(), 8);
  EXPECT_EQ(words({.succeeded = 6200, .failed = 31, .dispatched = 1}),
            (std::vector<std::string>{"6,200 ok", "31 failed", "1 dispatched"}));
  EXPECT_EQ(words({.succeeded = 5, .skipped = 2}), (std::vector<std::string>{"3 ok", "2 skipped"}));
  EXPECT_EQ(words({.succeeded = 2, .skipped = 2}), std::vector<std::string>{"2 skipped"});
}

TEST(Tallies, HaveAHundredPercentOnlyWhenNothingIsLeft) {
  EXPECT_EQ((Tally{.succeeded = 9'999, .pending = 1}).percent(), 99);
  EXPECT_EQ((Tally{.succeeded = 9'999, .failed = 1}).percent(), 100);
  EXPECT_EQ(Tally{}.percent(), 0);
}

TEST(Bars, ShowEachPart) {
  EXPECT_EQ(bar({.succeeded = 5, .failed = 1, .dispatched = 2, .pending = 2}, 10, false), "#####x>>..");
  EXPECT_EQ(bar({}, 4, false), "....");
  EXPECT_EQ(bar({.succeeded = 9'999, .failed = 1}, 10, false), "#########x");
  EXPECT_EQ(bar({.succeeded = 1, .cancelled = 1}, 4, true), "\x1b[32m██\x1b[0m\x1b[33m▒▒\x1b[0m");
}

RC_GTEST_PROP(Bars, FillTheirColumnsAndHideNothing, ()) {
  const auto number = [] { return *rc::gen::inRange<std::int64_t>(0, *rc::gen::element(2, 100, 1'000'000)); };
  const Tally tally{number(), number(), number(), number(), number()};
  const auto columns = *rc::gen::inRange<std::size_t>(5, 100);
  const std::string text = bar(tally, columns, false);
  RC_ASSERT(columns_of(text) == columns);
  RC_ASSERT((text.find('x') != std::string::npos) == (tally.failed > 0));
  RC_ASSERT((text.find('#') != std::string::npos) == (tally.succeeded > 0));
  RC_ASSERT((text.find('>') != std::string::npos) == (tally.dispatched > 0));
}

}  // namespace
}  // namespace baton::cli
