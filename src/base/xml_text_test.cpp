#include "base/xml_text.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(XmlText, is_what_a_parser_takes) {
  for (const char* text : {"", "plain", "a <b> & ä", "\t\r\n", "\x7f", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80"}) EXPECT_TRUE(is_xml_text(text)) << text;
  for (const std::string_view text : {std::string_view("\0", 1), std::string_view("a\x01"), std::string_view("\x1b[0m"), std::string_view("\x1f"), std::string_view("\xEF\xBF\xBE"),
                                      std::string_view("a\xEF\xBF\xBF"), std::string_view("\xff")})
    EXPECT_FALSE(is_xml_text(text)) << text;
}

TEST(XmlText, has_a_replacement_for_what_is_not) {
  EXPECT_EQ(xml_text("a <b>\t\xC3\xA4"), "a <b>\t\xC3\xA4");
  EXPECT_EQ(xml_text(std::string_view("a\0b\x01", 4)), "a\xEF\xBF\xBD" "b\xEF\xBF\xBD");
  EXPECT_EQ(xml_text("\xEF\xBF\xBE\xEF\xBF\xBF\xff"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_TRUE(is_xml_text(xml_text("\x1b\xEF\xBF\xBF\xc3")));
}

}  // namespace
}  // namespace baton
