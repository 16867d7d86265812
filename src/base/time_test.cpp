#include "base/time.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

constexpr std::int64_t year_10000 =
    253'402'300'800'000;  // the first millisecond that four digits cannot write

TEST(ToIso, writes_milliseconds_and_a_z) {
  EXPECT_EQ(to_iso(from_millis(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_iso(from_millis(1'770'071'453'123)), "2026-02-02T22:30:53.123Z");
  EXPECT_EQ(to_iso(from_millis(year_10000 - 1)), "9999-12-31T23:59:59.999Z");
}

TEST(FromIso, reads_the_forms_that_people_and_databases_write) {
  const Time expected = from_millis(1'770'071'453'120);
  for (const char* text :
       {"2026-02-02T22:30:53.120Z", "2026-02-02 22:30:53.12Z", "2026-02-02t22:30:53.120999999z",
        "2026-02-03T00:30:53.12+02:00", "2026-02-03T00:30:53.12+0200", "2026-02-02T22:30:53.12+00",
        "2026-02-02T17:00:53.12-05:30"})
    EXPECT_EQ(from_iso(text), expected) << text;
  EXPECT_EQ(from_iso("2024-02-29T00:00:00Z"), from_millis(1'709'164'800'000));
}

TEST(FromIso, takes_what_has_no_offset_for_utc_where_that_is_allowed) {
  const Time expected = from_millis(1'770'071'453'123);
  for (const char* text : {"2026-02-02T22:30:53.123Z", "2026-02-02 22:30:53.1234567", "2026-02-02T22:30:53.123",
                           "2026-02-03T00:30:53.123+02:00"})
    EXPECT_EQ(from_iso_or_utc(text), expected) << text;
  for (const char* text : {"", "2026-02-02", "2026-02-02T22:30", "2026-02-02T22:30:53.", "2026-02-02T22:30:53 ",
                           "soon", "1770071453"})
    EXPECT_FALSE(from_iso_or_utc(text)) << text;
}

TEST(FromIso, refuses_everything_else) {
  for (const char* text : {"",
                           "2026-02-02",
                           "2026-02-02T22:30:53",
                           "2026-02-02T22:30:53.Z",
                           "2026-02-02T22:30:53.1234567890Z",
                           "2026-02-30T00:00:00Z",
                           "2025-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-02-02T24:00:00Z",
                           "2026-02-02T22:60:00Z",
                           "2026-02-02T22:30:60Z",
                           "1969-12-31T23:59:59Z",
                           "2026-02-02T22:30:53+24:00",
                           "2026-02-02T22:30:53+02:60",
                           "2026-02-02T22:30:53Z ",
                           " 2026-02-02T22:30:53Z",
                           "2026-2-2T22:30:53Z",
                           "+026-02-02T22:30:53Z",
                           "20260202T223053Z"})
    EXPECT_EQ(from_iso(text), std::nullopt) << text;
}

RC_GTEST_PROP(Iso, what_is_written_reads_back, ()) {
  const Time time = from_millis(*rc::gen::inRange<std::int64_t>(0, year_10000));
  RC_ASSERT(from_iso(to_iso(time)) == time);
}

RC_GTEST_PROP(Iso, text_sorts_as_time_does, ()) {
  const auto a = *rc::gen::inRange<std::int64_t>(0, year_10000);
  const auto b = *rc::gen::inRange<std::int64_t>(0, year_10000);
  RC_ASSERT((to_iso(from_millis(a)) < to_iso(from_millis(b))) == (a < b));
}

RC_GTEST_PROP(FromIso, any_bytes_are_read_or_refused, (const std::string& text)) { (void)from_iso(text); }

}  // namespace
}  // namespace baton
