#include "core/message/content.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/json_document.hpp"

namespace baton::message {
namespace {

using namespace std::string_literals;

// A section: its descriptor, and then the encoded value.
std::string section(char code, const std::string& value) { return "\x00\x53"s + code + value; }
std::string short_text(const std::string& text) { return "\xa1"s + static_cast<char>(text.size()) + text; }
std::string data_of(const std::string& bytes) { return section('\x75', "\xa0"s + static_cast<char>(bytes.size()) + bytes); }
std::string compound(char code, char count, const std::string& items) { return code + std::string(1, static_cast<char>(items.size() + 1)) + count + items; }

TEST(MessageContent, that_is_json_is_shown_as_it) {
  const auto shown = show_content(data_of(R"({"a": 1.50})"));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->body_type, ShownContent::Body::json);
  EXPECT_EQ(shown->body.text, R"({"a":1.50})");
}

TEST(MessageContent, that_is_text_is_shown_as_text) {
  const auto shown = show_content(data_of("hello"));
  ASSERT_TRUE(shown);
  EXPECT_EQ(name(shown->body_type), "text");
  EXPECT_EQ(shown->body.text, "\"hello\"");
}

TEST(MessageContent, that_is_no_text_is_shown_in_base64) {
  const auto shown = show_content(data_of("\xff\x00\x01"s));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->body_type, ShownContent::Body::base64);
  EXPECT_EQ(shown->body.text, "\"/wAB\"");
}

TEST(MessageContent, in_several_parts_is_one) {
  const auto shown = show_content(data_of("hel") + data_of("lo"));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->body.text, "\"hello\"");
}

TEST(MessageContent, shows_the_properties_that_are_set) {
  const std::string list = compound('\xc0', 4, short_text("id-1") + "\x40"s + "\x40"s + short_text("order"));
  const std::string map = compound('\xc1', 6, short_text("n") + "\x55\xff"s + short_text("yes") + "\x41"s + short_text("at") + "\x83\x00\x00\x00\x00\x00\x00\x03\xe8"s);
  const auto shown = show_content(section('\x73', list) + section('\x74', map) + section('\x77', short_text("x")));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->properties.text, R"({"message_id":"id-1","subject":"order"})");
  EXPECT_EQ(shown->application_properties.text, R"({"n":-1,"yes":true,"at":"1970-01-01T00:00:01.000Z"})");
  EXPECT_EQ(shown->body.text, "\"x\"");
}

TEST(MessageContent, of_a_value_is_like_json) {
  const std::string inner = compound('\xc0', 2, "\x54\x02"s + "\x40"s);
  const auto shown = show_content(section('\x77', compound('\xc1', 2, "\x54\x07"s + inner)));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->body_type, ShownContent::Body::json);
  EXPECT_EQ(shown->body.text, R"({"7":[2,null]})");
}

TEST(MessageContent, without_a_body_is_shown_without) {
  const auto shown = show_content("");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->body_type, ShownContent::Body::none);
}

TEST(MessageContent, that_is_cut_or_nonsense_is_not_shown) {
  const std::string whole = section('\x74', compound('\xc1', 2, short_text("n") + "\x55\xff"s)) + data_of("hello");
  for (std::size_t size = 1; size < whole.size(); ++size) (void)show_content(whole.substr(0, size));  // none is read past its end
  EXPECT_FALSE(show_content(whole.substr(0, whole.size() - 1)));
  EXPECT_FALSE(show_content("nonsense"));
  EXPECT_FALSE(show_content(section('\x77', "\xc0\x02\xff\x40"s)));  // says that it has 255 items
  EXPECT_FALSE(show_content(section('\x74', short_text("no map"))));
}

TEST(MessageContent, whatever_it_is_is_shown_as_json) {
  const std::string whole = section('\x73', compound('\xc0', 2, short_text("id") + "\x40"s)) + section('\x74', compound('\xc1', 2, short_text("n") + "\x55\xff"s)) +
                            section('\x77', compound('\xc1', 2, short_text("k") + "\xa0\x02\xff\x00"s));
  std::mt19937 random(7);
  std::size_t count = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = whole;
    for (int changes = 0; changes < 3; ++changes) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto shown = show_content(bytes);
    if (!shown) continue;
    ++count;
    for (const Json& json : {shown->properties, shown->application_properties, shown->body}) ASSERT_TRUE(JsonDocument::parse(json.text)) << json.text;
  }
  EXPECT_GT(count, 100U);
}

TEST(MessageContent, that_is_deep_is_not_shown) {
  std::string nested = "\x40";
  for (int i = 0; i < 40; ++i) nested = compound('\xc0', 1, nested);
  EXPECT_FALSE(show_content(section('\x77', nested)));
}

}  // namespace
}  // namespace baton::message
