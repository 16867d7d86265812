#include "http/wire/streams.hpp"

#include <gtest/gtest.h>

namespace baton::http {
namespace {

using namespace std::chrono_literals;

TEST(OpenStreamsTest, are_counted_by_tenant) {
  OpenStreams streams;
  EXPECT_EQ(streams.open("a"), 1U);
  EXPECT_EQ(streams.open("b"), 2U);
  EXPECT_EQ(streams.open("a"), 3U);
  EXPECT_EQ(streams.count("a"), 2U);
  EXPECT_EQ(streams.count("c"), 0U);
  EXPECT_EQ(streams.close("a"), 2U);
  EXPECT_EQ(streams.close("a"), 1U);
  EXPECT_EQ(streams.count("a"), 0U);
  EXPECT_EQ(streams.count(), 1U);
}

TEST(OpenStreamsTest, few_are_served_at_once_and_many_ten_thousand_times_a_second) {
  OpenStreams streams;
  for (int i = 0; i < 19; ++i) streams.open("a");
  EXPECT_EQ(streams.rest_time(), 0us);
  while (streams.count() < 2'000) streams.open("a");
  EXPECT_EQ(streams.rest_time(), 200ms);
}

TEST(EventTextsTest, are_written_once_and_not_kept_for_ever) {
  EventTexts texts;
  int written = 0;
  const auto write = [&](std::string& out) { out = std::string(1'000, 'x') + std::to_string(++written); };
  const std::string first = texts.of({1, 1}, write);
  EXPECT_EQ(texts.of({1, 1}, write), first);
  EXPECT_NE(texts.of({1, 2}, write), first);
  EXPECT_NE(texts.of({2, 1}, write), first);
  EXPECT_EQ(written, 3);
  for (std::size_t i = 0; i < 5'000; ++i) (void)texts.of({3, i}, write);
  EXPECT_NE(texts.of({1, 1}, write), first);
}

}  // namespace
}  // namespace baton::http
