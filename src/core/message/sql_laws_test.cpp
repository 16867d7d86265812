// What holds for all filters: laws of three-valued logic, LIKE against a plain reference, and that nothing
// crashes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/utf8.hpp"
#include "core/message/rule.hpp"
#include "core/message/sql/like.hpp"
#include "core/message/sql/operators.hpp"

namespace baton::message::sql_laws_test {
namespace {

using Texts = std::vector<std::string>;

Value any_value() {
  switch (*rc::gen::inRange(0, 8)) {
    case 0: return Null{};
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(-3, 4), rc::gen::arbitrary<std::int64_t>());
    case 3: return *rc::gen::element(-1.5, 0.0, 1.0, 2.0, 1e300);
    case 4: return *rc::gen::container<std::string>(rc::gen::element('a', 'b', '%'));
    case 5: return from_millis(*rc::gen::inRange<std::int64_t>(0, 3));
    case 6: return Duration(*rc::gen::inRange<std::int64_t>(-2, 3));
    default: return Opaque{"x"};
  }
}

Envelope any_envelope() {
  Envelope envelope;
  for (const char* const name : {"a", "b", "c"})
    if (*rc::gen::arbitrary<bool>()) envelope.properties[name] = any_value();
  return envelope;
}

std::string any_condition(int depth = 3) {
  const auto value = [] {
    return *rc::gen::element<std::string>("a", "b", "c", "1", "-2.5", "'a'", "'%b'", "TRUE", "NULL",
                                          "p('c')");
  };
  const auto inner = [&] { return '(' + any_condition(depth - 1) + ')'; };
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 5)) {
    case 0:
      return value() + *rc::gen::element<std::string>(" = ", " <> ", " < ", " <= ", " > ", " >= ") + value();
    case 1: return value() + " IS NULL";
    case 2: return "EXISTS(" + *rc::gen::element<std::string>("a", "b", "d") + ')';
    case 3: return value() + " IN (" + value() + ", " + value() + ')';
    case 4: return value() + " LIKE " + *rc::gen::element<std::string>("'a%'", "'_'", "'%'");
    case 5: return "NOT " + inner();
    case 6: return inner() + " AND " + inner();
    default: return inner() + " OR " + inner();
  }
}

// As the fixed text of an outcome, so that errors compare too.
std::string outcome(const std::string& text, const Envelope& envelope) {
  const auto filter = SqlFilter::parse(text);
  RC_ASSERT(filter.has_value());
  const auto truth = filter->evaluate(envelope);
  return truth ? std::to_string(static_cast<int>(*truth)) : "error";
}

void expect_same(const std::string& one, const std::string& other, const Envelope& envelope) {
  if (outcome(one, envelope) != outcome(other, envelope)) RC_FAIL(one + " differs from " + other);
}

RC_GTEST_PROP(SqlLaws, DeMorganHoldsWithUnknown, ()) {
  const Envelope envelope = any_envelope();
  const std::string a = '(' + any_condition(1) + ')', b = '(' + any_condition(1) + ')';
  expect_same("NOT (" + a + " AND " + b + ')', "NOT " + a + " OR NOT " + b, envelope);
  expect_same("NOT (" + a + " OR " + b + ')', "NOT " + a + " AND NOT " + b, envelope);
}

RC_GTEST_PROP(SqlLaws, AndAndOrDoNotDependOnTheOrder, ()) {
  const Envelope envelope = any_envelope();
  const std::string a = '(' + any_condition(1) + ')', b = '(' + any_condition(1) + ')';
  expect_same(a + " AND " + b, b + " AND " + a, envelope);
  expect_same(a + " OR " + b, b + " OR " + a, envelope);
  expect_same("NOT NOT " + a, a, envelope);
}

RC_GTEST_PROP(SqlLaws, AndOverOrDistributes, ()) {
  const Envelope envelope = any_envelope();
  const std::string a = '(' + any_condition(0) + ')', b = '(' + any_condition(0) + ')',
                    c = '(' + any_condition(0) + ')';
  expect_same(a + " AND (" + b + " OR " + c + ')', a + " AND " + b + " OR " + a + " AND " + c, envelope);
}

RC_GTEST_PROP(SqlLaws, ComparisonsHaveTheirOpposites, ()) {
  Envelope envelope;
  envelope.properties = {{"a", any_value()}, {"b", any_value()}};
  expect_same("a = b", "b = a", envelope);
  expect_same("a <> b", "NOT a = b", envelope);
  expect_same("a < b", "b > a", envelope);
  expect_same("a >= b", "NOT a < b", envelope);  // there is no NaN among the values
  expect_same("a <= b", "a < b OR a = b", envelope);
}

RC_GTEST_PROP(SqlLaws, InIsAChainOfEqualities, ()) {
  Envelope envelope;
  envelope.properties = {{"a", any_value()}, {"b", any_value()}, {"c", any_value()}};
  expect_same("a IN (b, c)", "a = b OR a = c", envelope);
  expect_same("a NOT IN (b, c)", "a <> b AND a <> c", envelope);
}

RC_GTEST_PROP(SqlLaws, IsNullIsNeverUnknown, ()) {
  const Envelope envelope = any_envelope();
  RC_ASSERT(outcome("a IS NULL OR a IS NOT NULL", envelope) == std::to_string(static_cast<int>(Truth::yes)));
}

// By definition: each `%` tries everything.
bool plainly_like(const Texts& text, std::size_t at, const Texts& pattern, std::size_t element) {
  if (element == pattern.size()) return at == text.size();
  if (pattern[element] == "%") {
    for (std::size_t next = at; next <= text.size(); ++next)
      if (plainly_like(text, next, pattern, element + 1)) return true;
    return false;
  }
  return at < text.size() && (pattern[element] == "_" || pattern[element] == text[at]) &&
         plainly_like(text, at + 1, pattern, element + 1);
}

std::string joined(const Texts& characters) {
  std::string text;
  for (const std::string& each : characters) text += each;
  return text;
}

RC_GTEST_PROP(SqlLaws, LikeIsWhatItsDefinitionSays, ()) {
  const auto characters = [](auto... each) {
    return *rc::gen::resize(8, rc::gen::container<Texts>(rc::gen::element<std::string>(each...)));
  };
  const Texts text = characters("a", "b", "é", "😀");
  const Texts pattern = characters("a", "b", "é", "%", "_");
  std::size_t steps = 10'000;
  const std::string pattern_text = joined(pattern);  // the pattern read from it points into it
  const auto read = sql::Pattern::read(pattern_text, std::nullopt);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->matches(joined(text), steps) == plainly_like(text, 0, pattern, 0));
}

RC_GTEST_PROP(SqlLaws, AnEscapedTextIsLikeItselfOnly, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', '%', '_', '!'));
  const auto other = *rc::gen::container<std::string>(rc::gen::element('a', '%', '_', '!'));
  std::string escaped;
  for (const char c : text) escaped += std::string("!") + c;
  const auto pattern = sql::Pattern::read(escaped, "!");
  std::size_t steps = 10'000;
  RC_ASSERT(pattern->matches(text, steps) == true);
  RC_ASSERT(pattern->matches(other, steps) == (text == other));
}

RC_GTEST_PROP(SqlLaws, LikeTakesNoMoreStepsThanTheProductOfTheLengths, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b'));
  const auto pattern = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '%', '_'));
  const std::size_t given = 1'000'000;
  std::size_t steps = given;
  RC_ASSERT(sql::Pattern::read(pattern, std::nullopt)->matches(text, steps).has_value());
  RC_ASSERT(given - steps <= (text.size() + 1) * (pattern.size() + 1));
}

RC_GTEST_PROP(SqlLaws, IntegersAreCalculatedExactlyOrNotAtAll, (std::int64_t a, std::int64_t b)) {
  __extension__ using Wide = __int128;
  const auto check = [](const auto& result, Wide exact) {
    const bool fits = exact >= std::numeric_limits<std::int64_t>::min() &&
                      exact <= std::numeric_limits<std::int64_t>::max();
    RC_ASSERT(result.has_value() == fits);
    if (fits) RC_ASSERT(*result == Value(static_cast<std::int64_t>(exact)));
  };
  check(sql::calculate(sql::Op::add, a, b), Wide{a} + b);
  check(sql::calculate(sql::Op::subtract, a, b), Wide{a} - b);
  check(sql::calculate(sql::Op::multiply, a, b), Wide{a} * b);
  if (b == 0) RC_DISCARD("no quotient");
  check(sql::calculate(sql::Op::divide, a, b), Wide{a} / b);
  check(sql::calculate(sql::Op::modulo, a, b), Wide{a} % b);
}

RC_GTEST_PROP(SqlLaws, AnyTextIsReadOrRefusedAtAPlaceInIt, ()) {
  const auto words = *rc::gen::container<Texts>(rc::gen::element<std::string>(
      "a", "'x'", "1", "2.5", "(", ")", "AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "IS", "NULL", "EXISTS",
      ",", "=", "<>", "<", "+", "-", "*", "/", "%", ".", "sys", "Label", "user", "[b]", "\"c\"", "@p", "p",
      "newid", "SET", "REMOVE", ";", "'", "[", "é", "\x80", "#"));
  std::string text;
  for (const std::string& word : words) text += word + *rc::gen::element<std::string>("", " ");
  const Properties parameters{{"p", std::int64_t{1}}};
  const Envelope envelope = any_envelope();
  const auto filter = SqlFilter::parse(text, parameters);
  if (!filter) RC_ASSERT(filter.error().offset <= text.size() && !filter.error().message.empty());
  if (filter) (void)filter->evaluate(envelope);
  const auto action = SqlAction::parse(text, parameters);
  if (!action) RC_ASSERT(action.error().offset <= text.size() && !action.error().message.empty());
  if (action) (void)action->apply(envelope);
}

// A condition that is read again inside of parentheses is the same.
RC_GTEST_PROP(SqlLaws, ParenthesesChangeNothing, ()) {
  const Envelope envelope = any_envelope();
  const std::string condition = any_condition();
  expect_same(condition, "((" + condition + "))", envelope);
}

RC_GTEST_PROP(SqlLaws, ACorrelationFilterIsAConjunctionOfEqualities, ()) {
  const Envelope envelope = any_envelope();
  const Properties parameters{{"@x", any_value()}, {"@y", any_value()}};
  CorrelationFilter filter;
  filter.properties = {{"a", parameters.at("@x")}, {"b", parameters.at("@y")}};
  const auto truth = SqlFilter::parse("a = @x AND b = @y", parameters)->evaluate(envelope);
  RC_ASSERT(filter.matches(envelope) == (truth == Truth::yes));
}

}  // namespace
}  // namespace baton::message::sql_laws_test
