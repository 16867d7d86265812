#include "core/template/document.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "core/template/read_json.hpp"

namespace baton::expression {
namespace {

namespace json = boost::json;

class InputsScope : public Scope {
 public:
  explicit InputsScope(std::string_view text) : inputs_(read_json(text).value()) {}
  [[nodiscard]] const json::value* inputs() const override { return &inputs_; }
  [[nodiscard]] const json::value* node(std::string_view, std::string_view) const override { return nullptr; }

 private:
  json::value inputs_;
};

struct Read {
  std::optional<Document> document;
  std::string problems;  // "line:column code", separated by commas
};

Read read(std::string_view yaml) {
  Read result;
  result.document = Document::read(yaml::parse(yaml).value(), [&](Position at, const Problem& problem) {
    result.problems += (result.problems.empty() ? "" : ", ") + std::to_string(at.line) + ':' +
                       std::to_string(at.column) + ' ' + problem.code;
  });
  EXPECT_EQ(result.document.has_value(), result.problems.empty());
  return result;
}

std::string filled(std::string_view yaml, std::string_view inputs) {
  const auto document = read(yaml).document;
  const auto value = document.value().evaluate(InputsScope(inputs));
  return value ? value->text : "error: " + value.error().message;
}

TEST(Document, templates_are_filled_in_at_any_depth) {
  EXPECT_EQ(filled("a: '{{ inputs.n }}'\nb: [x, {c: 'n={{ inputs.n }}', d: null}]\ne: 1.50", R"({"n": 7})"),
            R"({"a":7,"b":["x",{"c":"n=7","d":null}],"e":1.5})");
  EXPECT_EQ(filled("'{{ inputs }}'", R"({"n":[1.0,"\"",18446744073709551615]})"),
            R"({"n":[1.0,"\"",18446744073709551615]})");
  EXPECT_EQ(filled("|\n  {{ inputs.n }}\n", R"({"n": true})"), "true");
}

TEST(Document, without_templates_it_is_constant) {
  const auto constant = read("a: [1, 'two', '{# nothing #}three']").document;
  ASSERT_TRUE(constant);
  EXPECT_TRUE(constant->is_constant());
  EXPECT_EQ(constant->constant().text, R"({"a":[1,"two","three"]})");
  EXPECT_FALSE(read("'{{ 1 }}'").document->is_constant());
}

TEST(Document, problems_are_told_where_the_wrong_word_stands) {
  EXPECT_EQ(read("a: x {{ input.a }}").problems, "1:9 unknown_name");
  EXPECT_EQ(read("a: '{{ input.a }}'").problems, "1:8 unknown_name");
  EXPECT_EQ(read("a: '{{ ''it'' ~ input.a }}'").problems, "1:17 unknown_name");
  EXPECT_EQ(read(R"(a: "{{ \"it\" ~ input.a }}")").problems, "1:17 unknown_name");
  EXPECT_EQ(read(R"(a: "\x41\u00e9\U0001F600\N\L{{ input.a }}")").problems, "1:32 unknown_name");
  EXPECT_EQ(read("a: é{{ input.a }}").problems, "1:9 unknown_name");
  EXPECT_EQ(read("a: &anchor !!str '{{ input.a }}'").problems, "1:22 unknown_name");
  EXPECT_EQ(read("a:\n  - |\n    x\n    {{ input.a }}\n").problems, "2:5 unknown_name");
  EXPECT_EQ(read("a: '{{ 1 +'\nb: \"{{ inputs.x | nope }}\"\n'{{ c }}': 1").problems,
            "1:7 expression_syntax, 2:19 unknown_filter, 3:1 expression_in_key");
}

TEST(Document, references_are_told_with_their_place) {
  const auto document =
      read("a: '{{ inputs.x }}'\nb: plain\nc: [\"see {{ nodes.n.output }}{{ item }}\"]").document;
  ASSERT_TRUE(document);
  EXPECT_EQ(document->references().input_names.at(0).name, "x");
  EXPECT_TRUE(document->references().item);
  ASSERT_EQ(document->places().size(), 2u);
  const Document::Place& place = document->places()[1];
  EXPECT_EQ(place.at, (Position{3, 6}));
  EXPECT_EQ(place.position(place.references.nodes.at(0).offset), (Position{3, 13}));
  const auto value = document->evaluate(InputsScope(R"({"x": 1})"));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().place, 1u);
  EXPECT_EQ(place.position(value.error().offset), (Position{3, 13}));
}

TEST(Document, one_budget_covers_the_whole_tree) {
  const std::string text(1 << 20, 'x');
  std::string yaml;
  for (int i = 0; i < 15; ++i) yaml += "- '{{ inputs.text }}'\n";
  EXPECT_EQ(filled(yaml, "{\"text\": \"" + text + "\"}").size(), 15 * (text.size() + 3) + 1);
  yaml += "- '{{ inputs.text }}'\n";
  EXPECT_EQ(filled(yaml, "{\"text\": \"" + text + "\"}"), "error: the evaluation builds more than 16 MiB");
}

TEST(ReadJson, numbers_are_exact_and_depth_is_bounded) {
  EXPECT_EQ(read_json(" 1937802.1605844803 \n")->as_double(), 1937802.1605844803);
  EXPECT_EQ(read_json("18446744073709551615")->as_uint64(), 18446744073709551615u);
  EXPECT_EQ(*read_json(R"({"a": [1, -2, true, null, "\u00e9"]})"),
            json::parse(R"({"a": [1, -2, true, null, "\u00e9"]})"));
  EXPECT_FALSE(read_json(std::string(65, '[') + std::string(65, ']')));
  EXPECT_TRUE(read_json(std::string(64, '[') + std::string(64, ']')));
  for (const std::string_view wrong : {"", "[1", "{\"a\":}", "1 2", "nul", "'a'", "\"\xff\""})
    EXPECT_FALSE(read_json(wrong)) << wrong;
}

}  // namespace
}  // namespace baton::expression
