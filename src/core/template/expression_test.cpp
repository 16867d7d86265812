#include "core/template/expression.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "core/template/filters.hpp"
#include "core/template/read_json.hpp"
#include "core/template/value.hpp"
#include "tests/support/source_dir.hpp"

namespace baton::expression {
namespace {

// {"inputs": ..., "nodes": {"a": {"output": ...}}, "item": ..., "index": ..., "env": {...}}
class JsonScope : public Scope {
 public:
  explicit JsonScope(std::string_view text) : all_(read_json(text, 200).value()) {}
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

TEST(Expression, unknown_words_are_found_at_parse_with_a_guess) {
  struct Case {
    std::string_view text, code, hint;
    std::size_t offset;
  };
  const Case cases[]{
      {"{{ input.x }}", "unknown_name", "did you mean 'inputs'?", 3},
      {"{{ inputs.x | lenght }}", "unknown_filter", "did you mean 'length'?", 14},
      {"{{ inputs.x is strin }}", "unknown_test", "did you mean 'string'?", 15},
      {"{{ nodes.a.outptu }}", "unknown_name", "did you mean 'output'?", 11},
      {"{{ nodes.my-node.output }}", "unknown_name", "a name with '-' is written nodes['my-...']", 11},
      {"{{ inputs.a = 1 }}", "expression_syntax", "write '==' to compare", 12},
      {"{{ inputs.a && 1 }}", "expression_syntax", "write 'and'", 12},
      {"{{ inputs.name.upper() }}", "expression_syntax", "use the filter: | upper", 15},
      {"{{ inputs.rows.0 }}", "expression_syntax", "an element is written [0]", 15},
      {"{{- inputs.a }}", "expression_syntax", "put a blank before a minus sign: '{{ -x }}'", 0},
      {"x {{ inputs.a", "expression_syntax", "", 4},
      {"{{ }}", "expression_syntax", "", 3},
      {"{{ 007 }}", "expression_syntax", "", 3},
      {"{{ 'a\\q' }}", "expression_syntax", "write '\\\\' for a backslash", 5},
      {"{% for %}", "expression_statement", "only {{ expressions }} are", 0},
      {"{# x", "expression_syntax", "", 0},
      {"{{ 1 | replace('a') }}", "invalid_arguments", "", 7},
      {"{{ 1 | upper(2) }}", "invalid_arguments", "", 13},
      {"{{ 1 | join(sep=2) }}", "invalid_arguments", "", 12},
      {"{{ 1 | join('-', separator='+') }}", "invalid_arguments", "", 17},
      {"{{ 1 | sort(attribute='a', attribute='b') }}", "invalid_arguments", "", 27},
      {"{{ 1 | sort(attribute='a', true) }}", "invalid_arguments", "name it too: reverse, attribute", 27},
      {"{{ 1 | replace(count=1, new='b') }}", "invalid_arguments", "", 7},
      {"{{ 18446744073709551616 }}", "expression_syntax", "", 3},
  };
  for (const Case& each : cases) {
    const auto parsed = Template::parse(each.text);
    ASSERT_FALSE(parsed) << each.text;
    EXPECT_EQ(parsed.error().code, each.code) << each.text << ": " << parsed.error().message;
    EXPECT_EQ(parsed.error().hint, each.hint) << each.text;
    EXPECT_EQ(parsed.error().offset, each.offset) << each.text;
  }
}

TEST(Expression, named_arguments_come_in_any_order) {
  for (const std::string_view arguments :
       {"attribute='age', reverse=true", "reverse=true, attribute='age'", "true, attribute='age'"})
    EXPECT_EQ(value_of("inputs.people | sort(" + std::string(arguments) + ") | map(attribute='name')"),
              R"(["Bob","Ada"])")
        << arguments;
  EXPECT_EQ(value_of("'a-b-c' | replace(count=1, new='+', old='-')"), "\"a+b-c\"");
  EXPECT_EQ(value_of("'a-b-c' | replace('-', count=1, new='+')"), "\"a+b-c\"");
  EXPECT_EQ(value_of("inputs.x | default(boolean=true, value=inputs.rows[0])"), "1");
  // Code with jumps, and filters inside, is moved as a whole.
  EXPECT_EQ(value_of("[{'k': 2}, {}] | map(default='a-b' | replace(new='+' if inputs.n > 2 else '', old='-') "
                     "if inputs.n == 3 and true else 0, attribute='k' if inputs.rows else 'z')"),
            R"([2,"a+b"])");
}

TEST(Expression, everything_it_may_look_at_is_known_after_parsing) {
  const auto parsed = Template::parse(
      "{{ inputs.a ~ inputs['b-c'] ~ env.HOME }} {{ nodes.x.output[inputs.k].y | default(nodes['z-1'].error) "
      "}}"
      "{{ (inputs.g) is defined and (inputs.u + 1) is defined and inputs.rows[index] is not defined }}");
  ASSERT_TRUE(parsed);
  const References& references = parsed->references();
  EXPECT_TRUE(references.inputs);
  EXPECT_FALSE(references.item);
  EXPECT_TRUE(references.index);
  EXPECT_GT(references.item_offset, 0u);
  std::string inputs;
  for (const auto& each : references.input_names) inputs += each.name + (each.guarded ? "? " : " ");
  EXPECT_EQ(inputs, "a b-c k g? u rows? ");
  std::string nodes;
  for (const auto& each : references.nodes)
    nodes += each.node + '.' + each.field + (each.guarded ? "? " : " ");
  EXPECT_EQ(nodes, "x.output? z-1.error ");
  EXPECT_EQ(references.env, std::vector<std::string>{"HOME"});
  EXPECT_FALSE(parsed->is_constant());
  EXPECT_TRUE(Template::parse("just text {# and a comment #}")->is_constant());
}

TEST(Expression, long_chains_are_fine_and_deep_nesting_is_refused) {
  const auto repeated = [](std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_EQ(value_of("0" + repeated("+1", 4000)), "4000");
  EXPECT_EQ(value_of("0" + repeated(" or 0", 3000)), "0");
  EXPECT_EQ(value_of(repeated("(", 60) + "1" + repeated(")", 60)), "1");
  for (const std::string_view open : {"(", "[", "-", "not ", "{'a':", "1 if 1 else ", "[0][", "0|int("}) {
    const auto parsed = Template::parse_expression(repeated(open, 1000) + "1");
    ASSERT_FALSE(parsed) << open;
    EXPECT_EQ(parsed.error().code, "expression_too_deep") << open;
  }
  EXPECT_EQ(Template::parse_expression(repeated("1 +", 8000)).error().code, "expression_too_long");
}

TEST(Expression, an_evaluation_ends_when_its_budget_is_used_up) {
  json::object inputs;
  inputs["numbers"] = json::array();
  for (int i = 0; i < 300'000; ++i) inputs["numbers"].as_array().push_back(i * 7919L % 300'007);
  inputs["text"] = json::string(4 << 20, 'x');
  json::value deep = 1;
  for (int i = 0; i < 100; ++i) deep = json::array{std::move(deep)};
  inputs["deep"] = std::move(deep);
  const JsonScope scope(json::serialize(json::object{{"inputs", std::move(inputs)}}));
  const auto code = [&](std::string_view text) {
    const auto value = Template::parse(text)->evaluate(scope);
    return value ? "none" : value.error().code;
  };
  EXPECT_EQ(code("{{ inputs.numbers }}"), "none");
  EXPECT_EQ(code("{{ inputs.numbers | sum }}"), "none");
  EXPECT_EQ(code("{{ inputs.numbers | sort }}"), "too_many_steps");
  EXPECT_EQ(code("{{ [inputs.numbers == inputs.numbers, inputs.numbers == inputs.numbers,"
                 " inputs.numbers == inputs.numbers, inputs.numbers == inputs.numbers] }}"),
            "too_many_steps");
  EXPECT_EQ(code("{{ inputs.text ~ inputs.text ~ inputs.text ~ inputs.text }}"), "none");
  EXPECT_EQ(code("{{ inputs.text ~ inputs.text ~ inputs.text ~ inputs.text ~ 1 }}"), "too_large");
  EXPECT_EQ(code("{{ [inputs.text, inputs.text, inputs.text, inputs.text, inputs.text] }}"), "too_large");
  EXPECT_EQ(code("{{ inputs.text | replace('x', inputs.text) }}"), "too_large");
  EXPECT_EQ(code("{{ inputs.deep }}"), "too_deep");
  EXPECT_EQ(code("{{ inputs.deep == inputs.deep }}"), "too_deep");
  EXPECT_EQ(code("{{ inputs.deep | tojson }}"), "too_deep");
}

TEST(Expression, a_result_does_not_live_in_the_memory_of_the_scope) {
  class PoolScope : public Scope {
   public:
    explicit PoolScope(json::storage_ptr pool) : inputs_(json::parse(R"({"rows": [["a"]]})", pool)) {}
    [[nodiscard]] const json::value* inputs() const override { return &inputs_; }
    [[nodiscard]] const json::value* node(std::string_view, std::string_view) const override {
      return nullptr;
    }

   private:
    json::value inputs_;
  };
  json::monotonic_resource pool;
  for (const std::string_view text : {"inputs.rows", "inputs.rows[0]", "inputs.rows + [1]", "[inputs.rows]",
                                      "inputs.rows | first", "inputs | items", "inputs.rows | map('first')",
                                      "inputs.rows[0:1]", "inputs.x | default(inputs.rows)"}) {
    const auto value = Template::parse_expression(text)->evaluate(PoolScope(&pool));
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(*value->storage(), *json::storage_ptr()) << text;
  }
}

// ---- The guide ----

struct Example {
  std::string expression, result;
  int line;
};

// The cells of a row of a table; `\\|` is a stroke inside a cell.
std::vector<std::string> cells(std::string_view row) {
  std::vector<std::string> all(1);
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '|') {
      all.emplace_back();
    } else {
      if (row.substr(i).starts_with("\\|")) ++i;
      all.back() += row[i];
    }
  }
  return all;
}

std::string code_in(std::string_view cell) {
  const std::size_t from = cell.find('`') + 1;
  return std::string(cell.substr(from, cell.find('`', from) - from));
}

struct Guide {
  std::string scope;
  std::vector<Example> examples;
};

Guide read_guide() {
  std::ifstream file(support::source_dir() / "docs/guide/expressions.md");
  Guide guide;
  bool in_scope = false;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("```")) {
      in_scope = line == "```json";
    } else if (in_scope) {
      guide.scope += line;
    } else if (line.starts_with("| `")) {
      const auto row = cells(line);
      guide.examples.push_back({code_in(row.at(0)), code_in(row.at(1)), number});
    }
  }
  return guide;
}

TEST(Expression, each_example_of_the_guide_is_true) {
  const Guide guide = read_guide();
  ASSERT_GT(guide.examples.size(), 150u);
  const JsonScope scope(guide.scope);
  for (const Example& each : guide.examples) {
    const auto parsed = has_expression(each.expression) ? Template::parse(each.expression)
                                                        : Template::parse_expression(each.expression);
    EXPECT_EQ(evaluated(parsed, scope), each.result)
        << "docs/guide/expressions.md:" << each.line << ": " << each.expression;
  }
}

TEST(Expression, the_guide_has_an_example_of_each_filter_and_test) {
  const Guide guide = read_guide();
  std::string all;
  for (const Example& each : guide.examples) all += each.expression + ' ';
  for (const Filter& each : filters()) {
    const std::string use = "| " + std::string(each.name);
    EXPECT_TRUE(all.contains(use + ' ') || all.contains(use + '(')) << each.name;
  }
  for (const TestName& each : tests())
    EXPECT_TRUE(all.contains("is " + std::string(each.name) + ' ')) << each.name;
}

TEST(Expression, filters_are_in_order) { EXPECT_TRUE(std::ranges::is_sorted(filters(), {}, &Filter::name)); }

// ---- Properties ----

// Pieces that make up expressions, so that random texts get past the first token.
rc::Gen<std::string> random_text() {
  const auto piece = rc::gen::element<std::string>(
      "{{", "}}", "{#", "#}", " ", "inputs", ".", "rows", "[", "]", "(", ")", "{", "}", "'", "\"", "\\", "1",
      "0.5", "-", "+", "*", "//", "%", "~", "|", "default", "sort", "map", "join", "attribute", "=",
      "==", "<", "in", "not", "and", "or", "if", "else", "is", "defined", "none", ",", ":",
      "nodes.fetch.output", "item", "\xc3\xa9", "a");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const auto& pieces) {
    std::string text;
    for (const auto& each : pieces) text += each;
    return text;
  });
}

RC_GTEST_PROP(Expression, any_text_is_read_or_refused, ()) {
  const std::string text = *random_text();
  for (const auto& parsed : {Template::parse(text), Template::parse_expression(text)}) {
    const auto value = parsed ? parsed->evaluate(usual()) : std::unexpected(parsed.error());
    if (!value) RC_ASSERT(value.error().offset <= text.size() && !value.error().message.empty());
  }
  (void)Template::parse(*rc::gen::arbitrary<std::string>());
}

__extension__ typedef __int128 Wide;

// An expression of integers with what it must give; nothing when it divides by zero or leaves 64 bits.
struct Sum {
  std::string text;
  std::optional<std::int64_t> value;
};

Sum random_sum(int depth) {
  if (depth == 0 || *rc::gen::inRange(0, 4) == 0) {
    const auto number = *rc::gen::arbitrary<std::int32_t>();
    return {'(' + std::to_string(number) + ')', number};
  }
  const Sum a = random_sum(depth - 1);
  const Sum b = random_sum(depth - 1);
  const auto sign = *rc::gen::element<std::string>("+", "-", "*", "//", "%");
  Sum all{'(' + a.text + ' ' + sign + ' ' + b.text + ')', std::nullopt};
  if (!a.value || !b.value || (sign.find_first_of("/%") != sign.npos && *b.value == 0)) return all;
  const Wide x = *a.value;
  const Wide y = *b.value;
  Wide result = sign == "+" ? x + y : sign == "-" ? x - y : x * y;
  if (sign == "//" || sign == "%") {
    const Wide remainder = (x % y + y) % y;
    result = sign == "%" ? remainder : (x - remainder) / y;
  }
  if (result == static_cast<std::int64_t>(result)) all.value = static_cast<std::int64_t>(result);
  return all;
}

RC_GTEST_PROP(Expression, arithmetic_is_that_of_integers_or_an_error, ()) {
  const Sum sum = random_sum(5);
  const auto value = Template::parse_expression(sum.text)->evaluate(usual());
  RC_ASSERT(value.has_value() == sum.value.has_value());
  if (value) RC_ASSERT(value->as_int64() == *sum.value);
}

json::value random_value(int depth) {
  switch (*rc::gen::inRange(0, depth == 0 ? 5 : 7)) {
    case 0: return nullptr;
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::arbitrary<std::int64_t>();
    case 3: {
      const double number = *rc::gen::arbitrary<double>();
      return std::isfinite(number) ? number : 0.5;
    }
    case 4: return json::string(*rc::gen::string<std::string>());
    case 5: {
      json::array array;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) array.push_back(random_value(depth - 1));
      return array;
    }
    default: {
      json::object object;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
        object[*rc::gen::string<std::string>()] = random_value(depth - 1);
      return object;
    }
  }
}

// JSON is an expression: what is written as JSON reads back as itself.
RC_GTEST_PROP(Expression, a_value_written_as_json_is_a_literal_of_it, ()) {
  std::string text;
  Budget budget;
  RC_ASSERT(append_json(text, random_value(3), budget));
  RC_PRE(text.size() <= expression_bytes_max && !text.starts_with("{{"));
  RC_ASSERT(shown(Template::parse_expression(text)->evaluate(usual())) == text);
  JsonScope scope(R"({"inputs": {"text": )" + baton::quoted(text) + "}}");
  RC_ASSERT(
      shown(Template::parse_expression("inputs.text | fromjson | tojson | fromjson")->evaluate(scope)) ==
      text);
}

}  // namespace
}  // namespace baton::expression
