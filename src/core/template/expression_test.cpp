#include "core/template/expression.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "core/template/filters.hpp"
#include "core/template/value.hpp"

namespace baton::expression {
namespace {

// {"inputs": ..., "nodes": {"a": {"output": ...}}, "item": ..., "index": ..., "env": {...}}
class JsonScope : public Scope {
 public:
  explicit JsonScope(std::string_view text) : all_(json::parse(text)) {}
  [[nodiscard]] const json::value* inputs() const override { return at(&all_, "inputs"); }
  [[nodiscard]] const json::value* node(std::string_view name, std::string_view field) const override {
    return at(at(at(&all_, "nodes"), name), field);
  }
  [[nodiscard]] const json::value* item() const override { return at(&all_, "item"); }
  [[nodiscard]] std::optional<std::int64_t> index() const override {
    const json::value* index = at(&all_, "index");
    return index ? std::optional(index->as_int64()) : std::nullopt;
  }
  [[nodiscard]] const json::value* env(std::string_view name) const override {
    return at(at(&all_, "env"), name);
  }

 private:
  static const json::value* at(const json::value* object, std::string_view key) {
    return object && object->is_object() ? object->get_object().if_contains(key) : nullptr;
  }
  json::value all_;
};

std::string shown(const std::expected<json::value, Problem>& result) {
  if (!result) return "error: " + result.error().message;
  Budget budget;
  std::string text;
  EXPECT_TRUE(append_json(text, *result, budget));
  return text;
}

std::string evaluated(const std::expected<Template, Problem>& parsed, const Scope& scope) {
  if (!parsed) return "error: " + parsed.error().message;
  return shown(parsed->evaluate(scope));
}

const JsonScope& usual() {
  static const JsonScope scope(R"({
    "inputs": {"n": 3, "name": "Ada", "big": 18446744073709551615, "rows": [1, 2, 3],
               "nothing": null, "people": [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 41}]},
    "nodes": {"fetch": {"output": {"count": 2}, "status": "COMPLETED"}, "my-node": {"output": "x"}},
    "item": {"id": 7}, "index": 4, "env": {"REGION": "eu"}})");
  return scope;
}

std::string value_of(std::string_view expression) {
  return evaluated(Template::parse_expression(expression), usual());
}
std::string text_of_template(std::string_view text) { return evaluated(Template::parse(text), usual()); }

Problem problem_of(std::string_view text) {
  const auto parsed = Template::parse(text);
  if (!parsed) return parsed.error();
  const auto value = parsed->evaluate(usual());
  if (!value) return value.error();
  ADD_FAILURE() << text << " is right";
  return {};
}

TEST(Expression, a_lone_expression_keeps_its_type_and_others_become_text) {
  EXPECT_EQ(text_of_template("{{ inputs.rows }}"), "[1,2,3]");
  EXPECT_EQ(text_of_template("  {{ inputs.n }}\n"), "3");
  EXPECT_EQ(text_of_template("{# why #}{{ inputs.n }}"), "3");
  EXPECT_EQ(text_of_template("{{ inputs.n }}{{ inputs.n }}"), "\"33\"");
  EXPECT_EQ(text_of_template("{{ inputs.name }}: {{ inputs.rows }}"), "\"Ada: [1,2,3]\"");
  EXPECT_EQ(text_of_template("v{{ 1.0 }} {{ none }} {{ true }}"), "\"v1.0 null true\"");
  EXPECT_EQ(text_of_template("{{ '{{' }} x }}"), "\"{{ x }}\"");
  EXPECT_EQ(text_of_template("{{ {'a': {'b': '}}'}} }}"), R"({"a":{"b":"}}"}})");
  EXPECT_EQ(text_of_template("a {# b {{ c #} d"), "\"a  d\"");
  EXPECT_EQ(text_of_template(""), "\"\"");
  EXPECT_EQ(text_of_template("{ {x} }"), "\"{ {x} }\"");
}

TEST(Expression, filters_bind_tighter_than_arithmetic_and_comparison) {
  EXPECT_EQ(value_of("inputs.rows | length > 2"), "true");
  EXPECT_EQ(value_of("1 + inputs.rows | length * 2"), "7");
  EXPECT_EQ(value_of("-1 | abs"), "1");
  EXPECT_EQ(value_of("not inputs.rows | length == 3"), "false");
  EXPECT_EQ(value_of("'a' if inputs.n > 2 else 'b' if true else 'c'"), "\"a\"");
  EXPECT_EQ(value_of("1 if false"), "null");
  EXPECT_EQ(value_of("(1 if inputs.n > 5 else 2) + 1"), "3");
  EXPECT_EQ(value_of("1 ~ 2 * 3 ~ 4"), "\"164\"");
}

TEST(Expression, what_is_not_defined_is_told_with_its_path) {
  const Problem missing = problem_of("see {{ nodes.fetch.output.rows.first }}");
  EXPECT_EQ(missing.message,
            "'nodes.fetch.output.rows.first' is not defined: 'rows' is not a member of nodes.fetch.output");
  EXPECT_EQ(missing.code, "undefined");
  EXPECT_EQ(missing.offset, std::string_view("see {{ nodes.fetch.output.").size());
  EXPECT_EQ(problem_of("{{ inputs.rows[3] }}").message,
            "'inputs.rows[3]' is not defined: inputs.rows has 3 elements, and none at 3");
  EXPECT_EQ(problem_of("{{ inputs.n.x }}").message,
            "'inputs.n.x' is not defined: inputs.n is an integer and has no members");
  EXPECT_EQ(problem_of("{{ nodes.later.output + 1 }}").message,
            "'nodes.later.output' is not defined: node 'later' has no output here");
  EXPECT_EQ(problem_of("{{ env.NOPE }}").message, "'env.NOPE' is not defined: there is no 'NOPE' in env");
  EXPECT_EQ(value_of("nodes.later.output.a[2].b | default('x')"), "\"x\"");
  EXPECT_EQ(value_of("inputs.a is defined or inputs.n is not defined"), "false");
}

}  // namespace
}  // namespace baton::expression
