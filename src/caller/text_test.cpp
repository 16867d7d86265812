#include "caller/text.hpp"

#include <gtest/gtest.h>

namespace baton::caller {
namespace {

TEST(KeptText, AnyBytesBecomeText) {
  using namespace std::string_literals;
  const std::string bad = "\xef\xbf\xbd";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"plain\r\n", "plain\r\n"},
      {"b\xc3\xbc"
       "cher \xe2\x82\xac \xf0\x9f\x98\x80",
       "b\xc3\xbc"
       "cher \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"a\0b"s, "a" + bad + "b"},
      {"\xff\xfe", bad + bad},
      {"\x80", bad},
      {"\xc3", bad},
      {"\xc0\x80", bad + bad},
      {"\xe0\x80\x80", bad + bad + bad},
      {"\xed\xa0\x80", bad + bad + bad},
      {"\xf4\x90\x80\x80", bad + bad + bad + bad},
      {"\xe2\x82x", bad + bad + "x"},
      {"\x1f\x8b\x08", "\x1f" + bad + "\x08"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(to_text(bytes, 1024), text);
}

TEST(KeptText, NoCharacterIsCutInTheMiddle) {
  EXPECT_EQ(to_text("abc", 2), "ab");
  EXPECT_EQ(to_text("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(to_text("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  EXPECT_LE(to_text(std::string(2000, '\xff'), 1024).size(), 1024U);
}

}  // namespace
}  // namespace baton::caller
