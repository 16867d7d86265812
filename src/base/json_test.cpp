#include "base/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <limits>

namespace baton {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

constexpr std::string_view replacement = "\xef\xbf\xbd";

std::string replaced(int times) {
  std::string text = "\"";
  for (int i = 0; i < times; ++i) text += replacement;
  return text + '"';
}

TEST(Quoted, escapes_what_json_must_and_nothing_more) {
  EXPECT_EQ(quoted(""), R"("")");
  EXPECT_EQ(quoted("plain / text"), R"("plain / text")");
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(quoted("\x01\x1f\x7f"), "\"\\u0001\\u001f\x7f\"");
  EXPECT_EQ(quoted("a\0b"sv), "\"a\\u0000b\"");
}

TEST(Quoted, keeps_valid_utf8_as_it_is) {
  for (const std::string_view text :
       {"\u00e9", "\u20ac", "\U0001f600", "\ud7ff", "\ue000", "\U0010ffff", "\u0080", "\u0800"})
    EXPECT_EQ(quoted(text), '"' + std::string(text) + '"');
}

TEST(Quoted, replaces_each_broken_sequence_once) {
  EXPECT_EQ(quoted("\x80"), replaced(1));              // continues nothing
  EXPECT_EQ(quoted("\xc3"), replaced(1));              // cut off
  EXPECT_EQ(quoted("\xf0\x9f\x98"), replaced(1));      // cut off late
  EXPECT_EQ(quoted("\xc0\xaf"), replaced(2));          // overlong
  EXPECT_EQ(quoted("\xe0\x80\x80"), replaced(3));      // overlong
  EXPECT_EQ(quoted("\xed\xa0\x80"), replaced(3));      // a surrogate
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), replaced(4));  // above U+10FFFF
  EXPECT_EQ(quoted("\xff\xfe"), replaced(2));
  EXPECT_EQ(quoted("a\xc3z"), "\"a" + std::string(replacement) + "z\"");
}

TEST(AppendQuoted, leaves_what_is_there) {
  std::string out = "[1,";
  append_quoted(out, "x");
  EXPECT_EQ(out, "[1,\"x\"");
}

TEST(AppendReal, a_real_stays_one_and_reads_back) {
  const auto real = [](double value) {
    std::string out;
    append_real(out, value);
    return out;
  };
  EXPECT_EQ(real(1), "1.0");
  EXPECT_EQ(real(-0.1), "-0.1");
  EXPECT_EQ(real(1e300), "1e+300");
  EXPECT_EQ(real(std::numeric_limits<double>::infinity()), "null");
}

TEST(IsUtf8, tells_text_from_bytes) {
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("a\xc3"));
  EXPECT_FALSE(is_utf8("\xff"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
}

RC_GTEST_PROP(Quoted, any_bytes_become_valid_json, (const std::string& bytes)) {
  boost::json::error_code error;
  const auto value = boost::json::parse(baton::quoted(bytes), error);
  RC_ASSERT(!error);
  RC_ASSERT(value.is_string());
}

RC_GTEST_PROP(Quoted, ascii_reads_back_unchanged, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::map(rc::gen::inRange(0, 128), [](int c) { return static_cast<char>(c); }));
  RC_ASSERT(boost::json::parse(baton::quoted(text)).as_string() == text);
}

}  // namespace
}  // namespace baton
