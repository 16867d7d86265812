#include "base/base64.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Base64, ForUrlsComesBackAsItWent) {
  for (const std::string bytes : {"", "a", "ab", "abc", "\xff\x00\x7f", "01a1e215-d52d"}) {
    EXPECT_EQ(from_base64url(base64url(bytes)), bytes);
  }
  EXPECT_EQ(from_base64url("a+b"), std::nullopt);
}

TEST(Base64, OfTheUsualSortIsPadded) {
  using namespace std::string_literals;
  EXPECT_EQ(from_base64(""), "");
  EXPECT_EQ(from_base64("Zg=="), "f");
  EXPECT_EQ(from_base64("Zm8="), "fo");
  EXPECT_EQ(from_base64("Zm9v"), "foo");
  EXPECT_EQ(from_base64("AP/+"), "\0\xff\xfe"s);
  for (const char* bytes : {"", "f", "fo", "foo", "foob"}) EXPECT_EQ(from_base64(base64(bytes)), bytes);
  EXPECT_EQ(base64("fo"), "Zm8=");
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9v\n", "Zm 9", "Zm9_", "=Zm9"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace baton
