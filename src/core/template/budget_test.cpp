// What an evaluation costs: told to whoever pays, the same whatever is remembered, and in proportion to the time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <chrono>

#include "core/template/document.hpp"
#include "core/template/read_json.hpp"

namespace baton::expression {
namespace {

namespace json = boost::json;

class PayingScope : public Scope {
 public:
  explicit PayingScope(json::value inputs) : inputs_(std::move(inputs)) {}
  [[nodiscard]] const json::value* inputs() const override { return &inputs_; }
  [[nodiscard]] const json::value* node(std::string_view, std::string_view) const override { return nullptr; }
  [[nodiscard]] const json::value* item() const override { return &item_; }
  void spent(std::size_t steps) const noexcept override { paid += steps; }

  mutable std::size_t paid = 0;
  json::value item_ = 1;

 private:
  json::value inputs_;
};

json::value numbers(std::int64_t count, std::int64_t different) {
  json::array list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(i % different);
  return json::object{{"u", std::move(list)}};
}

Template expression(std::string_view text) { return Template::parse_expression(text).value(); }

Document document(std::string_view yaml) {
  return Document::read(yaml::parse(yaml).value(), [](Position, const Problem&) {}).value();
}

TEST(Budget, TellsWhatAnEvaluationCost) {
  const PayingScope scope(numbers(1'000, 1'000));
  ASSERT_TRUE(expression("inputs.u | length").evaluate(scope));
  EXPECT_LT(scope.paid, 10u);
  ASSERT_TRUE(expression("inputs.u | sum").evaluate(scope));
  EXPECT_GE(scope.paid, 1'000u);
  EXPECT_LT(scope.paid, 1'100u);
}

TEST(Budget, TellsWhatAnEvaluationCostThatExceededIt) {
  const PayingScope scope(numbers(300'000, 300'000));
  EXPECT_EQ(expression("inputs.u | sort | sum").evaluate(scope).error().code, "too_many_steps");
  EXPECT_GE(scope.paid, 300'000u);
}

TEST(Budget, WhatDoesNotLookAtTheItemIsEvaluatedOnceForAllOfThem) {
  const PayingScope scope(numbers(1'000, 1'000));
  const Document params = document("{all: '{{ inputs.u | sum }}', one: '{{ item }}'}");
  Document::Memo memo;
  EXPECT_EQ(params.evaluate(scope, &memo)->text, R"({"all":499500,"one":1})");
  const std::size_t first = std::exchange(scope.paid, 0);
  EXPECT_EQ(params.evaluate(scope, &memo)->text, R"({"all":499500,"one":1})");
  EXPECT_GT(first, 1'000u);
  EXPECT_LT(scope.paid, 50u);
}

// Otherwise it would depend on where a chunk ends which items fail.
TEST(Budget, WhatIsRememberedCountsAsIfItWereEvaluated) {
  PayingScope scope(numbers(300'000, 300'000));
  const Document params = document("{all: '{{ inputs.u | sum }}', mine: '{{ item | sum }}'}");
  Document::Memo memo;
  scope.item_ = json::array{1};
  ASSERT_TRUE(params.evaluate(scope, &memo));
  scope.item_ = numbers(900'000, 900'000).at("u");
  EXPECT_FALSE(params.evaluate(scope, &memo));
  EXPECT_FALSE(params.evaluate(scope));
}

TEST(Budget, UniqueTakesListsOfHundredsOfThousands) {
  const PayingScope scope(numbers(450'000, 400'000));
  EXPECT_EQ(expression("inputs.u | unique | length").evaluate(scope).value(), json::value(400'000));
}

TEST(Budget, UniqueTellsNumbersTextsAndOtherValuesApart) {
  const PayingScope scope(read_json(R"({"u":[1,"1",1.0,1.5,true,"true",null,"null",false,[1],[1],[1.0],{"a":1},
      {"a":1},"",18446744073709551615,-1,1.5]})")
                              .value());
  EXPECT_EQ(std::string_view(expression("inputs.u | unique | tojson").evaluate(scope)->get_string()),
            R"([1,"1",1.5,true,"true",null,"null",false,[1],[1.0],{"a":1},"",18446744073709551615,-1])");
}

RC_GTEST_PROP(BudgetLaws, unique_keeps_the_first_of_each_number, (const std::vector<std::int16_t>& list)) {
  json::array all, expected;
  std::set<std::int16_t> seen;
  for (const std::int16_t each : list) {
    all.emplace_back(each);
    if (seen.insert(each).second) expected.emplace_back(each);
  }
  const PayingScope scope(json::object{{"u", std::move(all)}});
  RC_ASSERT(expression("inputs.u | unique").evaluate(scope).value() == json::value(expected));
}

// A search that begins anew at every byte takes many seconds here.
TEST(Budget, LookingForATextTakesLinearTime) {
  const std::string text(1 << 20, 'a');
  const PayingScope scope(json::object{{"text", text}, {"word", text.substr(0, text.size() / 2) + "b"}});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(expression("inputs.word in inputs.text").evaluate(scope).value(), json::value(false));
  EXPECT_EQ(expression("inputs.text | replace(inputs.word, 'x') == inputs.text").evaluate(scope).value(),
            json::value(true));
  EXPECT_EQ(expression("inputs.text | split(inputs.word) | length").evaluate(scope).value(), json::value(1));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{2});
}

}  // namespace
}  // namespace baton::expression
