#include "bus/messages/rule_encoding.hpp"

#include <gtest/gtest.h>

namespace baton::bus {
namespace {

wire::Item item_of(std::string_view bytes) {
  const auto item = wire::take(bytes);
  EXPECT_TRUE(item && bytes.empty() && wire::is_well_formed(*item));
  return item.value_or(wire::Item{});
}

TEST(Rules, are_read_as_the_sdks_send_them) {
  std::string bytes;
  wire::Writer writer(bytes);
  writer.map([&] {
    writer.text("sql-filter"), writer.map([&] { writer.text("expression"), writer.text("WorkerId = 'a'"); });
    writer.text("sql-rule-action"), writer.map([&] { writer.text("expression"), writer.text("SET x = 1"); });
  });
  const auto rule = read_rule("mine", item_of(bytes));
  ASSERT_TRUE(rule) << rule.error();
  EXPECT_EQ(rule->name, "mine");
  EXPECT_EQ(std::get<message::SqlText>(rule->filter).expression, "WorkerId = 'a'");
  EXPECT_EQ(rule->action->expression, "SET x = 1");
}

TEST(Rules, with_a_correlation_filter_have_what_is_set) {
  std::string bytes;
  wire::Writer writer(bytes);
  writer.map([&] {
    writer.text("correlation-filter");
    writer.map([&] {
      writer.text("label"), writer.text("red"), writer.text("to"), writer.null();
      writer.text("properties"), writer.map([&] { writer.text("n"), writer.uint(3); });
    });
  });
  const auto rule = read_rule("mine", item_of(bytes));
  ASSERT_TRUE(rule) << rule.error();
  const auto& filter = std::get<message::CorrelationFilter>(rule->filter);
  EXPECT_EQ(filter.label, "red");
  EXPECT_FALSE(filter.to);
  EXPECT_EQ(filter.properties.at("n"), message::Value(std::int64_t{3}));
}

TEST(Rules, without_a_filter_are_refused) {
  std::string bytes;
  wire::Writer writer(bytes);
  writer.map([&] { writer.text("sql-filter"), writer.map([&] { writer.text("expression"), writer.uint(3); }); });
  EXPECT_FALSE(read_rule("mine", item_of(bytes)));
  bytes.clear();
  writer.map([] {});
  EXPECT_FALSE(read_rule("mine", item_of(bytes)));
}

TEST(Rules, are_written_with_the_numbers_that_the_sdks_know) {
  message::RuleDescription rule{.name = "r", .filter = message::TrueFilter{}, .action = std::nullopt, .created_at = {}};
  const auto parts_of = [&] {
    std::string bytes;
    wire::Writer writer(bytes);
    write_rule(writer, rule);
    const auto whole = wire::described(item_of(bytes));
    EXPECT_EQ(wire::integer_of(whole->descriptor), 0x13700000004);
    std::vector<std::int64_t> numbers;
    wire::for_each(whole->value, [&](const wire::Item& part) {
      if (const auto what = wire::described(part)) numbers.push_back(*wire::integer_of(what->descriptor));
      return true;
    });
    return numbers;
  };
  EXPECT_EQ(parts_of(), (std::vector<std::int64_t>{0x1370000007, 0x13700000005}));
  rule.filter = message::SqlText{"1=1", {}};
  rule.action = message::SqlText{"SET a = 1", {}};
  EXPECT_EQ(parts_of(), (std::vector<std::int64_t>{0x1370000006, 0x13700000006}));
  rule.filter = message::CorrelationFilter{};
  EXPECT_EQ(parts_of(), (std::vector<std::int64_t>{0x1370000009, 0x13700000006}));
}

}  // namespace
}  // namespace baton::bus
