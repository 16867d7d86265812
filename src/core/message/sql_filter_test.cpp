#include "core/message/sql_filter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace baton::message::sql_filter_test {
namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

const Envelope& order() {
  static const Envelope envelope = [] {
    Envelope order;
    order.message_id = "m-1";
    order.label = "order-17";
    order.enqueued_time = from_millis(1'000);
    order.time_to_live = Duration(500);
    order.sequence_number = 42;
    order.properties = {{"Color", std::string("red")},
                        {"quantity", std::int64_t{10}},
                        {"weight", 2.5},
                        {"urgent", true},
                        {"nothing", Null{}},
                        {"blob", Opaque{"bytes"}},
                        {"sent", from_millis(900)},
                        {"least", least},
                        {"two words", std::string("x")},
                        {"which", std::string("color")},
                        {"Größe", std::int64_t{3}}};
    return order;
  }();
  return envelope;
}

const Properties& parameters() {
  static const Properties given{{"@color", std::string("red")},
                                {"limit", std::int64_t{9}},
                                {"@then", from_millis(950)},
                                {"@age", Duration(100)}};
  return given;
}

std::expected<Truth, Problem> evaluated(std::string_view text) {
  auto filter = SqlFilter::parse(text, parameters());
  if (!filter) return std::unexpected(std::move(filter).error());
  return filter->evaluate(order(), [] { return std::string("new"); });
}

std::string shown(std::string_view text) {
  const auto truth = evaluated(text);
  if (!truth) return describe(truth.error(), text);
  return *truth == Truth::unknown ? "unknown" : *truth == Truth::yes ? "yes" : "no";
}

void expect_all(std::string_view answer, std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) EXPECT_EQ(shown(text), answer) << text;
}

// The text where a filter is wrong, and the message.
void expect_refused(std::string_view text, std::string_view at, std::string_view message) {
  const auto filter = SqlFilter::parse(text, parameters());
  ASSERT_FALSE(filter) << text;
  EXPECT_EQ(text.substr(filter.error().offset), at) << text << ": " << filter.error().message;
  EXPECT_TRUE(filter.error().message.contains(message)) << text << ": " << filter.error().message;
}

TEST(SqlFilter, ComparesPropertiesWithConstants) {
  expect_all("yes", {"Color = 'red'", "quantity = 10", "quantity > 9", "quantity >= 10", "quantity < 11",
                     "quantity <= 10", "quantity <> 11", "quantity != 11", "weight = 2.5", "urgent = TRUE",
                     "urgent <> false", "Color > 'blue'", "'red' = Color", "1=1"});
  expect_all("no",
             {"Color = 'Red'", "quantity = 11", "quantity > 10", "quantity <> 10", "urgent = FALSE", "1=0"});
}

TEST(SqlFilter, ComparesNumbersOfBothKinds) {
  expect_all("yes", {"quantity = 10.0", "weight > 2", "weight < quantity", "1E1 = quantity", "10. = quantity",
                     ".5 < weight", "0.5E-2 < 1"});
  expect_all("no", {"quantity > 10.5", "quantity < weight"});
}

TEST(SqlFilter, ComparesTimesAndDurations) {
  expect_all("yes", {"sent < @then", "sys.EnqueuedTimeUtc > @then", "sys.EnqueuedTimeUtc - sent <= @age",
                     "sent + @age = sys.EnqueuedTimeUtc", "sys.TimeToLive > @age", "-@age < @age",
                     "@age + @age < sys.TimeToLive"});
}

TEST(SqlFilter, FindsNamesAndWordsInAnyCase) {
  expect_all("yes",
             {"color = 'red'", "COLOR = 'red'", "user.Color = 'red'", "USER.color = 'red'",
              "sys.label = 'order-17'", "SYS.LABEL LIKE 'order%'", "sys.Subject = sys.Label",
              "color in ('red') and not quantity is null", "Exists(COLOR)", "@COLOR = color", "Größe = 3"});
}

TEST(SqlFilter, TakesNamesInBracketsAndQuotes) {
  expect_all("yes", {"[two words] = 'x'", "\"two words\" = 'x'", "user.[Two Words] = 'x'",
                     "[user].[color] = 'red'", "\"sys\".\"Label\" = 'order-17'"});
  expect_all("unknown", {"[not] = 1", "[a]]b] = 1", "\"a\"\"b\" = 1", "color = \"red\""});
}

TEST(SqlFilter, WhatIsMissingOrNullIsUnknown) {
  expect_all("unknown", {"missing = 1", "missing <> 1", "nothing = 1", "nothing = NULL", "NULL = NULL",
                         "blob = 'bytes'", "missing + 1 > 0", "-missing < 0", "missing LIKE 'a'",
                         "color LIKE missing", "color LIKE 'r' ESCAPE missing", "missing IN (1)",
                         "missing NOT IN (1)", "sys.To = 'x'", "NOT missing = 1", "sys.LockToken = 'x'"});
}

TEST(SqlFilter, WhatDoesNotCompareIsUnknown) {
  expect_all("unknown", {"color = 1", "color <> 1", "quantity > 'a'", "urgent = 'true'", "urgent = 1",
                         "sent > 5", "sent = @age", "quantity LIKE '1%'"});
}

TEST(SqlFilter, TestsForNullAndExistence) {
  expect_all("yes",
             {"missing IS NULL", "nothing IS NULL", "color IS NOT NULL", "blob IS NOT NULL", "sys.To IS NULL",
              "sys.Label IS NOT NULL", "EXISTS(color)", "EXISTS (user.nothing)", "EXISTS([two words])",
              "EXISTS(sys.Label)", "NOT EXISTS(missing)", "NOT EXISTS(sys.To)"});
  expect_all("no", {"missing IS NOT NULL", "color IS NULL", "EXISTS(missing)"});
}

TEST(SqlFilter, LogicHasThreeValues) {
  const std::string values[] = {"1=0", "missing=1",
                                "1=1"};  // from no over unknown to yes: AND is the least, OR the greatest
  const std::string answers[] = {"no", "unknown", "yes"};
  for (std::size_t a = 0; a < 3; ++a) {
    EXPECT_EQ(shown("NOT " + values[a]), answers[2 - a]);
    for (std::size_t b = 0; b < 3; ++b) {
      EXPECT_EQ(shown(values[a] + " AND " + values[b]), answers[std::min(a, b)]) << values[a] << values[b];
      EXPECT_EQ(shown(values[a] + " OR " + values[b]), answers[std::max(a, b)]) << values[a] << values[b];
    }
  }
}

TEST(SqlFilter, NotBindsTighterThanAndWhichBindsTighterThanOr) {
  expect_all("yes",
             {"1=1 OR 1=1 AND 1=0", "NOT 1=0 OR 1=1", "NOT 1=1 OR 1=1", "1=1 AND NOT 1=0", "NOT NOT 1=1"});
  expect_all("no", {"(1=1 OR 1=1) AND 1=0", "NOT (1=1 OR 1=1)", "NOT 1=1 AND 1=0"});
}

TEST(SqlFilter, WhatIsDecidedIsNotEvaluatedFurther) {
  expect_all("no", {"1=0 AND 1/0 = 1"});
  expect_all("yes", {"1=1 OR 1/0 = 1"});
  EXPECT_TRUE(shown("missing = 1 AND 1/0 = 1").contains("division by zero"));
}

TEST(SqlFilter, InIsEqualToAnyOfTheList) {
  expect_all("yes", {"color IN ('blue', 'red')", "color NOT IN ('blue', 'green')", "quantity IN (1, 10.0)",
                     "quantity + 1 IN (5 + 6)", "color IN (missing, 'red')", "color IN(@color)"});
  expect_all("no", {"color IN ('blue')", "color NOT IN ('red')", "color NOT IN ('red', NULL)"});
  expect_all("unknown", {"color IN ('blue', NULL)", "color NOT IN ('blue', missing)", "color IN (1)"});
}

TEST(SqlFilter, LikeHasWildcards) {
  expect_all("yes", {"color LIKE 'red'", "color LIKE 'r%'", "color LIKE '%d'", "color LIKE '%e%'",
                     "color LIKE '_e_'", "color LIKE '%'", "color LIKE 'r%%d%'", "color NOT LIKE 'b%'",
                     "color LIKE 'r' + '%'", "'' LIKE ''", "'' LIKE '%'", "'é😀' LIKE '__'",
                     "'a%b' LIKE 'a\\%b' ESCAPE '\\'", "'ab' LIKE 'a!b' ESCAPE '!'",
                     "'a!' LIKE 'a!!' ESCAPE '!'", "'aé' LIKE 'aéé' ESCAPE 'é'", "'[a]' LIKE '[a]'"});
  expect_all("no", {"color LIKE 'Red'", "color LIKE 're'", "color LIKE '_'", "color LIKE ''", "'' LIKE '_'",
                    "'axb' LIKE 'a\\%b' ESCAPE '\\'", "color NOT LIKE 'r%'"});
}

TEST(SqlFilter, LikeSaysWhatIsWrongWithItsPattern) {
  EXPECT_EQ(shown("color LIKE 5"), "at character 7: the pattern of LIKE must be a text");
  EXPECT_EQ(shown("color LIKE 'a' ESCAPE 'ab'"),
            "at character 7: the escape character of LIKE must be a text of one character");
  EXPECT_EQ(shown("color LIKE 'a!' ESCAPE '!'"),
            "at character 7: the pattern of LIKE ends with its escape character");
}

TEST(SqlFilter, LikeEndsHoweverLongTextAndPatternAre) {
  Envelope envelope;
  envelope.properties["text"] = std::string(30'000, 'a');
  std::string pattern = "%";
  for (int i = 0; i < 400; ++i) pattern += "a%";
  EXPECT_EQ(SqlFilter::parse("text LIKE '" + pattern + "b'")->evaluate(envelope), Truth::no);
  EXPECT_EQ(SqlFilter::parse("text LIKE '" + pattern + "'")->evaluate(envelope), Truth::yes);
  const auto costly = SqlFilter::parse("text LIKE '%" + std::string(500, '_') + "b%'")->evaluate(envelope);
  ASSERT_FALSE(costly);
  EXPECT_EQ(costly.error().message, "LIKE takes too many steps");
}

TEST(SqlFilter, CalculatesAsCSharpDoes) {
  expect_all("yes", {"quantity + 1 = 11",  "quantity - 1 = 9",     "quantity * 2 = 20",
                     "quantity / 4 = 2",   "quantity / 4.0 = 2.5", "quantity % 4 = 2",
                     "-7 / 2 = -3",        "-7 % 2 = -1",          "7.5 % 2 = 1.5",
                     "2 + 3 * 4 = 14",     "(2 + 3) * 4 = 20",     "10 - 4 - 3 = 3",
                     "-quantity = -10",    "+quantity = 10",       "- -5 = 5",
                     "'a' + 'b' = 'ab'",   "color + 1 = 'red1'",   "1 + color = '1red'",
                     "weight / 0 > 1e300", "0.0 / 0 <> 0.0 / 0",   "-9223372036854775808 = least",
                     "least % -1 = 0",     "quantity -1 = 9"});
}

TEST(SqlFilter, AnEvaluationThatFailsSaysWhere) {
  EXPECT_EQ(shown("quantity / 0 = 1"), "at character 10: division by zero");
  EXPECT_EQ(shown("quantity % 0 = 1"), "at character 10: division by zero");
  EXPECT_EQ(shown("least - 1 = 1"), "at character 7: the result does not fit into 64 bits");
  EXPECT_EQ(shown("9223372036854775807 + 1 = 1"), "at character 21: the result does not fit into 64 bits");
  EXPECT_EQ(shown("9223372036854775807 * 2 = 1"), "at character 21: the result does not fit into 64 bits");
  EXPECT_EQ(shown("-least = 1"), "at character 1: the result does not fit into 64 bits");
  EXPECT_EQ(shown("least / -1 = 1"), "at character 7: the result does not fit into 64 bits");
  EXPECT_EQ(shown("color * 2 = 1"), "at character 7: '*' does not take a text and an integer");
  EXPECT_EQ(shown("color - 'r' = 1"), "at character 7: '-' does not take a text and a text");
  EXPECT_EQ(shown("sent + sent = 1"), "at character 6: '+' does not take a time and a time");
  EXPECT_EQ(shown("urgent + 1 = 1"), "at character 8: '+' does not take a boolean and an integer");
  EXPECT_EQ(shown("-color = 1"), "at character 1: '-' does not take a text");
  EXPECT_EQ(shown("p(5) = 1"), "at character 1: the name of a property must be a text");
}

TEST(SqlFilter, HasFunctions) {
  expect_all("yes", {"property('Color') = 'red'", "p('color') = 'red'", "P(which) = 'red'",
                     "p('two' + ' words') = 'x'", "newid() = 'new'", "p('missing') IS NULL"});
  expect_all("unknown", {"p(missing) = 1", "p = 1", "property = 1", "newid = 1"});
  EXPECT_EQ(SqlFilter::parse("newid() = ''")->evaluate(order()).error().message, "there are no new ids here");
}

TEST(SqlFilter, ReadsNumbersToTheirLimits) {
  expect_all("yes", {"9223372036854775807 > 0", "-9223372036854775808 < 0", "- 9223372036854775808 < 0",
                     "1.7976931348623157e308 > 0", "0001 = 1"});
  expect_refused("9223372036854775808 > 0", "9223372036854775808 > 0", "does not fit into 64 bits");
  expect_refused("1e309 > 0", "1e309 > 0", "does not fit into 64 bits");
  expect_refused("1e > 0", "1e > 0", "is not a number");
  expect_refused("5x > 0", "5x > 0", "is not a number");
}

TEST(SqlFilter, TakesParametersWithAndWithoutTheirSign) {
  expect_all("yes", {"color = @color", "quantity > @limit", "@Limit = 9"});
  expect_refused("color = @other", "@other", "'@other' has no value");
  expect_refused("color = @", "@", "the name of a parameter");
}

TEST(SqlFilter, SaysWhereTheTextIsWrong) {
  expect_refused("", "", "expected a value or a condition, found the end of the text");
  expect_refused("  ", "", "found the end of the text");
  expect_refused("color", "color", "expected a condition, found a value");
  expect_refused("TRUE", "TRUE", "expected a condition, found a value");
  expect_refused("NOT urgent", "urgent", "expected a condition, found a value");
  expect_refused("urgent AND 1=1", "urgent AND 1=1", "expected a condition, found a value");
  expect_refused("1=1 OR urgent", "urgent", "expected a condition, found a value");
  expect_refused("(1=1) = TRUE", "(1=1) = TRUE", "expected a value, found a condition");
  expect_refused("1 = (1=1)", "(1=1)", "expected a value, found a condition");
  expect_refused("1 + (1=1) = 2", "(1=1) = 2", "expected a value, found a condition");
  expect_refused("-(1=1) = 2", "(1=1) = 2", "expected a value, found a condition");
  expect_refused("color =", "", "expected a value or a condition, found the end of the text");
  expect_refused("color == 'red'", "= 'red'", "expected a value or a condition");
  expect_refused("1 < 2 < 3", "< 3", "comparisons cannot be chained");
  expect_refused("color = 'red", "'red", "the text is not closed by '");
  expect_refused("[color = 'red'", "[color = 'red'", "the name is not closed by ]");
  expect_refused("[] = 1", "[] = 1", "the name is empty");
  expect_refused("(color = 'red'", "", "expected ')'");
  expect_refused("color = 'red')", ")", "unexpected ')'");
  expect_refused("color = 'red' quantity = 1", "quantity = 1", "unexpected 'quantity'");
  expect_refused("color = 'red';", ";", "unexpected ';'");
  expect_refused("color IS 5", "5", "expected NULL after IS");
  expect_refused("color NOT 5", "5", "expected IN or LIKE after NOT");
  expect_refused("color IN 5", "5", "expected '('");
  expect_refused("color IN ()", ")", "expected a value");
  expect_refused("EXISTS(5)", "5)", "expected the name of a property");
  expect_refused("EXISTS color", "color", "expected '('");
  expect_refused("like = 1", "like = 1", "is a keyword");
  expect_refused("user.and = 1", "and = 1", "is a keyword");
  expect_refused("other.color = 1", "other.color = 1", "unknown scope 'other'");
  expect_refused("sys.Colour = 1", "Colour = 1", "there is no system property 'Colour'");
  expect_refused("upper(color) = 'RED'", "upper(color) = 'RED'", "there is no function 'upper'");
  expect_refused("newid(1) = 'a'", "1) = 'a'", "expected ')'");
  expect_refused("color = 'a' && 1=1", "&& 1=1", "unexpected '&'");
  expect_refused("_x = 1", "_x = 1", "unexpected '_'");
  expect_refused("a = 1 # b", "# b", "unexpected '#'");
  EXPECT_EQ(SqlFilter::parse("sys.Lable = 1").error().hint, "did you mean sys.Label?");
}

TEST(SqlFilter, HasAtMost1024Characters) {
  const auto padded = [](std::size_t blanks) { return "x='" + std::string(blanks, 'a') + "'"; };
  EXPECT_TRUE(SqlFilter::parse(padded(1'020)));
  EXPECT_FALSE(SqlFilter::parse(padded(1'021)));
  std::string wide;
  for (int i = 0; i < 1'020; ++i) wide += "😀";
  EXPECT_TRUE(SqlFilter::parse("x='" + wide + "'"));
  EXPECT_FALSE(SqlFilter::parse(std::string(5'000, '\x80')));
}

TEST(SqlFilter, NestsNotTooDeep) {
  const auto nested = [](const std::string& open, const std::string& inner, const std::string& close,
                         int depth) {
    std::string text = inner;
    for (int i = 0; i < depth; ++i) text = open + text + close;
    return text;
  };
  EXPECT_TRUE(SqlFilter::parse(nested("(", "1=1", ")", 64)));
  for (const std::string& text :
       {nested("(", "1=1", ")", 65), nested("(", "1=1", ")", 500), nested("NOT ", "1=1", "", 200),
        nested("-", "x", "", 65) + "=1", nested("p(", "x", ")", 200) + "=1", std::string(1'024, '(')}) {
    const auto filter = SqlFilter::parse(text);
    ASSERT_FALSE(filter) << text;
  }
  std::string chain = "x";
  while (chain.size() < 1'000) chain += "+x";
  EXPECT_TRUE(SqlFilter::parse(chain + "=1"));
}

TEST(SqlFilter, KnowsWhenItIsNothingButAnEquality) {
  for (const std::string_view text :
       {"WorkerId = 'x'", "workerid='x'", "user.WorkerId = 'x'", "[WorkerId] = 'x'", "user.[WORKERID]='x'",
        "\"WorkerId\" = 'x'", "((WorkerId) = ('x'))", "'x' = WorkerId", "WorkerId = @x",
        "\n WorkerId\t= 'x' "})
    EXPECT_EQ(SqlFilter::parse(text, {{"x", std::string("x")}})->equality("WorkerId"), "x") << text;
  for (const std::string_view text :
       {"WorkerId <> 'x'", "NOT WorkerId = 'x'", "WorkerId = 5", "WorkerId = NULL", "Other = 'x'",
        "sys.To = 'x'", "WorkerId = Other", "WorkerId = 'x' AND 1=1", "WorkerId = 'x' + ''",
        "WorkerId IN ('x')", "WorkerId LIKE 'x'", "p('WorkerId') = 'x'", "'x' = 'x'"})
    EXPECT_EQ(SqlFilter::parse(text)->equality("WorkerId"), std::nullopt) << text;
}

TEST(SqlFilter, KeepsItsSource) {
  const auto filter = SqlFilter::parse(" color=@color ", parameters());
  EXPECT_EQ(filter->text(), " color=@color ");
  EXPECT_EQ(filter->parameters(), parameters());
}

}  // namespace
}  // namespace baton::message::sql_filter_test
