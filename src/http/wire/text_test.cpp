#include "http/wire/text.hpp"

#include <gtest/gtest.h>

#include "http/json/json_body.hpp"

namespace baton::http {
namespace {

TEST(TextTest, a_query_is_split_at_ampersands) {
  const auto query = parse_query("a=1&b=x%3Dy&&c");
  ASSERT_TRUE(query);
  EXPECT_EQ(*query, (Query{{"a", "1"}, {"b", "x=y"}, {"c", ""}}));
}

TEST(TextTest, only_well_formed_trace_parents_pass) {
  EXPECT_TRUE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("x"));
}

TEST(TextTest, utf8_is_checked_strictly) {
  EXPECT_TRUE(is_utf8("aü€😀"));
  for (const auto* wrong : {"\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_FALSE(is_utf8(wrong));
}

TEST(JsonBodyTest, text_comes_out_compact_and_numbers_as_written) {
  const auto document = JsonDocument::parse(
      " { \"a\" : [ 1.50 , -0 , 1E5, 18446744073709551616 ], \"b\\n\" : \"\\u00fc\\u0000\" } ");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->root().json().text, "{\"a\":[1.50,-0,1E5,18446744073709551616],\"b\\n\":\"ü\\u0000\"}");
  EXPECT_EQ(document->root().find("a").items().size(), 4U);
}

TEST(JsonBodyTest, deep_values_are_kept_and_shallow_ones_found) {
  const auto document = JsonDocument::parse(R"({"r":[{"o":{"p":[[],{}]},"s":"x"},{"s":"y"}],"t":true})");
  ASSERT_TRUE(document);
  const auto items = document->root().find("r").items();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].find("o").json().text, R"({"p":[[],{}]})");
  EXPECT_EQ(items[1].find("s").string(), "y");
  EXPECT_TRUE(document->root().find("t").boolean());
  EXPECT_FALSE(document->root().find("u"));
}

TEST(JsonBodyTest, depth_is_limited) {
  EXPECT_TRUE(JsonDocument::parse(std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(JsonDocument::parse(std::string(65, '[') + std::string(65, ']')));
}

}  // namespace
}  // namespace baton::http
