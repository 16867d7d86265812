#include "base/json_write.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <vector>

namespace baton {
namespace {

TEST(JsonWrite, EachTypeIsWrittenInItsOwnWay) {
  const std::optional<std::string> none;
  const std::vector<std::int64_t> numbers{1, -2};
  const std::map<std::string, int> map{{"a\"b", 1}, {"c", 2}};
  EXPECT_EQ(
      json_object("text", "a\nb", "flag", true, "count", std::size_t{18'446'744'073'709'551'615U}, "real",
                  2.0, "time", from_millis(0), "json", Json{"[1]"}, "no_json", Json{}, "none", none, "list",
                  numbers, "empty", std::vector<std::string>{}, "map", map)
          .text,
      R"({"text":"a\nb","flag":true,"count":18446744073709551615,"real":2.0,"time":"1970-01-01T00:00:00.000Z",)"
      R"("json":[1],"no_json":null,"none":null,"list":[1,-2],"empty":[],"map":{"a\"b":1,"c":2}})");
}

// Byte for byte, numbers too: what is stored looks so.
TEST(JsonWrite, WhatWasReadIsWrittenAsItHasAlwaysBeen) {
  const auto value = boost::json::parse(
      R"({"a": [1, -2, 1.5, 1e300, 18446744073709551615, 0.1, -0.0, 100.0, 123456.789], "b": "\u00e9\u0001\u007f\"\\/\n",)"
      R"( "c": null, "d": true, "e": {}, "f": []})");
  const std::string text =
      R"({"a":[1,-2,1.5E0,1E300,18446744073709551615,1E-1,-0E0,1E2,1.23456789E5],)"
      "\"b\":\"\u00e9\\u0001\x7f\\\"\\\\/\\n\","
      R"("c":null,"d":true,"e":{},"f":[]})";
  EXPECT_EQ(json_text(value), text);
  EXPECT_EQ(json_text(value), boost::json::serialize(value));
  EXPECT_EQ(json_object("value", value, "list", std::vector{value}).text, R"({"value":)" + text + R"(,"list":[)" + text + "]}");
}

TEST(JsonWrite, MembersMayFollowWhateverWasWrittenBefore) {
  std::string out = "{";
  append_member(out, "a\"", 1);
  append_list(out, "list", std::vector{1, 2},
              [](std::string& to, int each) { append_object(to, "n", each); });
  append_member(out, "last", Json{"{}"});
  append_member(out, "more", 1);
  EXPECT_EQ(out, R"({"a\"":1,"list":[{"n":1},{"n":2}],"last":{},"more":1)");
}

TEST(JsonWrite, WhatIsNotGivenIsLeftOut) {
  EXPECT_EQ(
      json_object_of_given("by", std::string("ada"), "reason", std::string(), "n", 0, "all", false).text,
      R"({"by":"ada"})");
  EXPECT_EQ(json_object_of_given("by", std::string()).text, "{}");
}

}  // namespace
}  // namespace baton
