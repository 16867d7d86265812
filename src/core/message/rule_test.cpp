#include "core/message/rule.hpp"

#include <gtest/gtest.h>

#include "core/message/rule_description.hpp"

namespace baton::message::rule_test {
namespace {

Envelope order() {
  Envelope envelope;
  envelope.label = "order";
  envelope.properties = {{"color", std::string("red")}, {"quantity", std::int64_t{10}}};
  return envelope;
}

Rule rule(std::string name, std::string_view filter, std::string_view action = {}) {
  Rule made{std::move(name), SqlFilter::parse(filter).value(), std::nullopt};
  if (!action.empty()) made.action = SqlAction::parse(action).value();
  return made;
}

std::vector<std::string> names(const std::vector<Copy>& copies) {
  std::vector<std::string> all;
  for (const Copy& copy : copies) all.push_back(copy.rule + (copy.changed ? "*" : ""));
  return all;
}

using Names = std::vector<std::string>;

TEST(Rules, TheDefaultRuleSelectsEverything) {
  const Rule made = default_rule();
  EXPECT_EQ(made.name, "$Default");
  EXPECT_EQ(names(matches({{made}}, {}).copies), Names{"$Default"});
}

TEST(Rules, WithoutRulesThereIsNoCopy) { EXPECT_TRUE(matches({}, order()).copies.empty()); }

TEST(Rules, EachKindOfFilterSelects) {
  CorrelationFilter correlation;
  correlation.label = "order";
  const std::vector<std::pair<Filter, bool>> cases{{TrueFilter{}, true},
                                                   {FalseFilter{}, false},
                                                   {SqlFilter::parse("color = 'red'").value(), true},
                                                   {SqlFilter::parse("color = 'blue'").value(), false},
                                                   {SqlFilter::parse("missing = 'blue'").value(), false},
                                                   {correlation, true}};
  for (const auto& [filter, selected] : cases)
    EXPECT_EQ(matches({{Rule{"r", filter, std::nullopt}}}, order()).copies.size(), selected ? 1u : 0u);
}

TEST(Rules, WithoutActionsGiveOneCopyHoweverManyMatch) {
  const std::vector<Rule> rules{rule("a", "color = 'blue'"), rule("b", "color = 'red'"),
                                rule("c", "quantity = 10")};
  EXPECT_EQ(names(matches(rules, order()).copies), Names{"b"});
}

TEST(Rules, WithActionsGiveACopyEachBesideThatOfTheOthers) {
  const std::vector<Rule> rules{rule("a", "1=1"), rule("b", "1=1", "SET x = 1"),
                                rule("c", "1=1"), rule("d", "1=1", "REMOVE color"),
                                rule("e", "1=1"), rule("f", "1=0", "SET x = 2")};
  const Matches found = matches(rules, order());
  EXPECT_EQ(names(found.copies), (Names{"a", "b*", "d*"}));
  Envelope second = order();
  second.properties["x"] = std::int64_t{1};
  second.properties["RuleName"] = "b";
  EXPECT_EQ(found.copies[1].changed, second);
  Envelope third = order();
  third.properties.erase("color");
  third.properties["RuleName"] = "d";
  EXPECT_EQ(found.copies[2].changed, third);
}

TEST(Rules, AFailureNamesItsRule) {
  const std::vector<Rule> rules{rule("a", "1 / 0 = 1"), rule("b", "1=1", "SET x = 1 / 0"),
                                rule("c", "1=1", "SET x = 1")};
  const Matches found = matches(rules, order());
  EXPECT_EQ(names(found.copies), Names{"c*"});
  ASSERT_EQ(found.failures.size(), 2u);
  EXPECT_EQ(found.failures[0].rule, "b");
  EXPECT_EQ(found.failures[1].rule, "a");
  EXPECT_EQ(found.failures[1].problem.message, "division by zero");
}

TEST(Rules, WithoutActionsFailOnlyIfNoOtherGivesTheCopy) {
  const Rule fails = rule("a", "1 / 0 = 1"), selects = rule("b", "1=1");
  EXPECT_TRUE(matches({{fails, selects}}, order()).failures.empty());
  EXPECT_TRUE(matches({{selects, fails}}, order()).failures.empty());
  EXPECT_EQ(matches({{fails}}, order()).failures.size(), 1u);
}

TEST(Rules, KnowWhenAFilterIsNothingButAnEquality) {
  CorrelationFilter correlation;
  correlation.properties["WorkerId"] = "x";
  EXPECT_EQ(equality(SqlFilter::parse("WorkerId = 'x'").value(), "WorkerId"), "x");
  EXPECT_EQ(equality(correlation, "WorkerId"), "x");
  EXPECT_EQ(equality(TrueFilter{}, "WorkerId"), std::nullopt);
  EXPECT_EQ(equality(FalseFilter{}, "WorkerId"), std::nullopt);
}

TEST(TheRuleOfAPool, names_it_however_it_is_spelt) {
  EXPECT_EQ(pool_of({rule_of_pool("it's")}), "it's");
  RuleDescription rule = rule_of_pool("a");
  rule.filter = SqlText{"user.workerid = 'b'", {}};
  EXPECT_EQ(pool_of({rule}), "b");
  CorrelationFilter filter;
  filter.properties["WorkerId"] = std::string("c");
  rule.filter = filter;
  EXPECT_EQ(pool_of({rule}), "c");
  EXPECT_FALSE(pool_of({rule, rule_of_pool("a")}));
  rule.action = SqlText{"SET a = 1", {}};
  EXPECT_FALSE(pool_of({rule}));
  rule = rule_of_pool("a");
  rule.filter = TrueFilter{};
  EXPECT_FALSE(pool_of({rule}));
}

}  // namespace
}  // namespace baton::message::rule_test
