#include "bus/messages/wire.hpp"

#include <gtest/gtest.h>

#include <random>

namespace baton::bus::wire {
namespace {

using namespace std::string_view_literals;

Item only(std::string_view bytes) {
  const auto item = take(bytes);
  EXPECT_TRUE(item && bytes.empty() && is_well_formed(*item));
  return item.value_or(Item{});
}

TEST(ValuesOnTheWire, are_read_whatever_form_they_have) {
  EXPECT_EQ(value_of(only("\x40"sv)), message::Value(message::Null{}));
  EXPECT_EQ(value_of(only("\x41"sv)), message::Value(true));
  EXPECT_EQ(value_of(only("\x56\x00"sv)), message::Value(false));
  EXPECT_EQ(value_of(only("\x43"sv)), message::Value(std::int64_t{0}));
  EXPECT_EQ(value_of(only("\x52\xff"sv)), message::Value(std::int64_t{255}));
  EXPECT_EQ(value_of(only("\x54\xff"sv)), message::Value(std::int64_t{-1}));
  EXPECT_EQ(value_of(only("\x71\xff\xff\xff\xfe"sv)), message::Value(std::int64_t{-2}));
  EXPECT_EQ(value_of(only("\x81\x80\x00\x00\x00\x00\x00\x00\x00"sv)), message::Value(INT64_MIN));
  EXPECT_EQ(value_of(only("\x80\x80\x00\x00\x00\x00\x00\x00\x00"sv)), message::Value(9223372036854775808.0));
  EXPECT_EQ(value_of(only("\x72\x3f\x80\x00\x00"sv)), message::Value(1.0));
  EXPECT_EQ(value_of(only("\xa1\x02it"sv)), message::Value(std::string("it")));
  EXPECT_EQ(value_of(only("\xb3\x00\x00\x00\x02it"sv)), message::Value(std::string("it")));
  EXPECT_EQ(value_of(only("\x83\x00\x00\x00\x00\x00\x00\x00\x05"sv)), message::Value(from_millis(5)));
  EXPECT_EQ(value_of(only("\xa0\x01\x00"sv)), message::Value(message::Opaque{std::string("\xa0\x01\x00"sv)}));
}

TEST(ValuesOnTheWire, that_dotnet_describes_are_times_and_durations) {
  std::string bytes;
  Writer writer(bytes);
  writer.value(Duration{1'500});
  EXPECT_EQ(value_of(only(bytes)), message::Value(Duration{1'500}));
  bytes.clear();
  writer.descriptor("com.microsoft:datetime-offset"), writer.long_integer(621'355'968'000'000'000 + 70'000);
  EXPECT_EQ(value_of(only(bytes)), message::Value(from_millis(7)));
}

TEST(ValuesOnTheWire, are_written_as_they_are_read) {
  const message::Value values[] = {message::Null{}, true, std::int64_t{-7}, 1.5, std::string(300, 'x'), from_millis(1'800'000'000'000),
                                   message::Opaque{std::string("\xa0\x01\x00"sv)}};
  for (const message::Value& value : values) {
    std::string bytes;
    Writer(bytes).value(value);
    EXPECT_EQ(value_of(only(bytes)), value);
  }
}

TEST(ValuesOnTheWire, may_hold_others) {
  std::string bytes;
  Writer writer(bytes);
  writer.map([&] {
    writer.text("list"), writer.list([&] { writer.integer(1), writer.null(); });
    writer.symbol("array"), writer.array(0x81, [&] { writer.element(5), writer.element(-6); });
    writer.text("nothing"), writer.null();
  });
  const Item map = only(bytes);
  EXPECT_EQ(map.count, 6U);
  std::vector<std::int64_t> numbers;
  for_each(*find(map, "array"), [&](const Item& item) { return numbers.push_back(*integer_of(item)), true; });
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{5, -6}));
  EXPECT_EQ(find(map, "list")->count, 2U);
  EXPECT_FALSE(find(map, "nothing"));
  EXPECT_FALSE(find(map, "else"));
}

TEST(ValuesOnTheWire, that_are_none_are_not_taken) {
  for (const std::string_view bytes : {""sv, "\x3f"sv, "\x46"sv, "\x71\x00"sv, "\xa1\x05it"sv, "\xb1\xff\xff\xff\xffx"sv, "\xc0\x00"sv, "\x00\x53"sv, "\x00\x00\x00"sv}) {
    std::string_view rest = bytes;
    EXPECT_FALSE(take(rest));
  }
}

TEST(ValuesOnTheWire, that_are_wrong_inside_are_not_well_formed) {
  const auto is_wrong = [](std::string_view bytes) {
    const auto item = take(bytes);
    return item && !is_well_formed(*item);
  };
  EXPECT_TRUE(is_wrong("\xc0\x02\x02\x40"sv));              // a list of two has one
  EXPECT_TRUE(is_wrong("\xc1\x02\x01\x40"sv));              // a map of a key alone
  EXPECT_TRUE(is_wrong("\xa1\x01\xff"sv));                  // a text that is no UTF-8
  EXPECT_TRUE(is_wrong("\xe0\x03\x02\x50\x01"sv));          // an array of two has one
  EXPECT_TRUE(is_wrong("\xf0\x00\x00\x00\x06\xff\xff\xff\xff\x40\x40"sv));
  std::string deep = "\x40";
  for (int i = 0; i < 40; ++i) deep = "\xc0" + std::string(1, static_cast<char>(deep.size() + 1)) + "\x01" + deep;
  EXPECT_TRUE(is_wrong(deep));
}

TEST(ValuesOnTheWire, of_any_bytes_end) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 4 == 0 ? "\x00\xc0\xc1\xe0\xf0\xa1\x53"[random() % 7] : random());
    std::string_view rest = bytes;
    const auto item = take(rest);
    if (!item) continue;
    (void)is_well_formed(*item), (void)value_of(*item);
    for_each(*item, [](const Item&) { return true; });
    for_each_pair(*item, [](const Item&, const Item&) { return true; });
  }
}

}  // namespace
}  // namespace baton::bus::wire
