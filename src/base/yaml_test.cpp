#include "base/yaml.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <cmath>

namespace baton::yaml {
namespace {

Node parsed(std::string_view text) {
  auto node = parse(text);
  if (node) return *std::move(node);
  ADD_FAILURE() << render("yaml", node.error().front()) << "\n" << text;
  return {};
}

std::string json(std::string_view text) { return to_json(parsed(text)).text; }

std::string repeat(std::string_view text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += text;
  return repeated;
}

// "line:column code" of all errors, separated by commas.
std::string errors(std::string_view text, const Limits& limits = {}) {
  const auto node = parse(text, limits);
  if (node) return "none";
  std::string all;
  for (const Diagnostic& d : node.error())
    all += (all.empty() ? "" : ", ") + std::to_string(d.at.line) + ':' + std::to_string(d.at.column) + ' ' +
           d.code;
  return all;
}

TEST(Yaml, plain_scalars_follow_the_core_schema) {
  struct Case {
    std::string_view text;
    NodeKind kind;
    std::string_view json;
  };
  for (const auto& [text, kind, expected] : std::vector<Case>{
           {"", NodeKind::null, "null"},
           {"~", NodeKind::null, "null"},
           {"Null", NodeKind::null, "null"},
           {"nULL", NodeKind::string, "\"nULL\""},
           {"true", NodeKind::boolean, "true"},
           {"FALSE", NodeKind::boolean, "false"},
           {"yes", NodeKind::string, "\"yes\""},
           {"no", NodeKind::string, "\"no\""},
           {"on", NodeKind::string, "\"on\""},
           {"2026-02-02", NodeKind::string, "\"2026-02-02\""},
           {"12:30:45", NodeKind::string, "\"12:30:45\""},
           {"0", NodeKind::integer, "0"},
           {"-17", NodeKind::integer, "-17"},
           {"+17", NodeKind::integer, "17"},
           {"007", NodeKind::integer, "7"},
           {"0o17", NodeKind::integer, "15"},
           {"0x1F", NodeKind::integer, "31"},
           {"0x", NodeKind::string, "\"0x\""},
           {"0o8", NodeKind::string, "\"0o8\""},
           {"1_000", NodeKind::string, "\"1_000\""},
           {"9223372036854775807", NodeKind::integer, "9223372036854775807"},
           {"-9223372036854775808", NodeKind::integer, "-9223372036854775808"},
           {"9223372036854775808", NodeKind::real, "9223372036854775808"},
           {"-099999999999999999999", NodeKind::real, "-99999999999999999999"},
           {"0xFFFFFFFFFFFFFFFF", NodeKind::real, "18446744073709551616.0"},
           {"1.0", NodeKind::real, "1.0"},
           {"-0.5", NodeKind::real, "-0.5"},
           {".5", NodeKind::real, "0.5"},
           {"5.", NodeKind::real, "5.0"},
           {"+1e3", NodeKind::real, "1000.0"},
           {"1e-400", NodeKind::real, "0.0"},
           {"1e400", NodeKind::real, "null"},
           {"-.inf", NodeKind::real, "null"},
           {".NaN", NodeKind::real, "null"},
           {".", NodeKind::string, "\".\""},
           {"1e", NodeKind::string, "\"1e\""},
           {"1.2.3", NodeKind::string, "\"1.2.3\""},
           {"'5'", NodeKind::string, "\"5\""},
           {"\"true\"", NodeKind::string, "\"true\""},
           {"|\n  5\n", NodeKind::string, "\"5\\n\""},
       }) {
    const Node node = parsed(text);
    EXPECT_EQ(node.kind, kind) << text;
    EXPECT_EQ(to_json(node).text, expected) << text;
  }
}

TEST(Yaml, scalars_give_their_values) {
  EXPECT_TRUE(parsed("True").as_bool());
  EXPECT_FALSE(parsed("false").as_bool());
  EXPECT_EQ(parsed("0x10").as_int(), 16);
  EXPECT_EQ(parsed("2.5").as_real(), 2.5);
  EXPECT_EQ(parsed("3").as_real(), 3.0);
  EXPECT_EQ(parsed("-.inf").as_real(), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(parsed(".nan").as_real()));
}

TEST(Yaml, core_tags_are_known) {
  EXPECT_EQ(json("[!!str 5, !!float 5, !!int 5, !!bool 'true', !!null '', ! x]"),
            R"(["5",5.0,5,true,null,"x"])");
  EXPECT_EQ(json("!!map {a: !!seq [1]}"), R"({"a":[1]})");
}

TEST(Yaml, collections_keep_the_order_of_the_document) {
  EXPECT_EQ(json("b: 1\na: [x, {c: d}]\n\"q\\n\": {}\ne: []\n"),
            R"({"b":1,"a":["x",{"c":"d"}],"q\n":{},"e":[]})");
  EXPECT_EQ(json("? key\n: value\n"), R"({"key":"value"})");
  EXPECT_EQ(json("true: 1\n1: 2\n"), R"({"true":1,"1":2})");
}

TEST(Yaml, keys_are_found_by_name) {
  const Node node = parsed("a: 1\nb: 2\n");
  ASSERT_NE(node.find("b"), nullptr);
  EXPECT_EQ(node.find("b")->as_int(), 2);
  EXPECT_EQ(node.find("c"), nullptr);
}

TEST(Yaml, an_empty_document_is_null) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n"})
    EXPECT_EQ(parsed(text).kind, NodeKind::null) << text;
}

TEST(Yaml, a_byte_order_mark_is_skipped) {
  EXPECT_EQ(json("\xef\xbb\xbf"
                 "a: 1"),
            R"({"a":1})");
}

TEST(Yaml, every_node_knows_its_line_and_column) {
  const Node node = parsed("# comment\na: 1\nbb:\n  - x\n  - {c: y}\n");
  EXPECT_EQ(node.at, (Position{2, 1}));
  EXPECT_EQ(node.entries[1].key_at, (Position{3, 1}));
  const Node& list = node.entries[1].value;
  EXPECT_EQ(list.at, (Position{4, 3}));
  EXPECT_EQ(list.items[0].at, (Position{4, 5}));
  EXPECT_EQ(list.items[1].at, (Position{5, 5}));
  EXPECT_EQ(list.items[1].entries[0].key_at, (Position{5, 6}));
  EXPECT_EQ(list.items[1].entries[0].value.at, (Position{5, 9}));
}

TEST(Yaml, columns_count_bytes) {
  const Node node = parsed("\u00e9: {\u20ac: x, \U0001f600: y}\r\n\u00fc: z\r\n");
  const Node& inner = node.entries[0].value;
  EXPECT_EQ(inner.at, (Position{1, 5}));
  EXPECT_EQ(inner.entries[0].value.at, (Position{1, 11}));
  EXPECT_EQ(inner.entries[1].key_at, (Position{1, 14}));
  EXPECT_EQ(inner.entries[1].value.at, (Position{1, 20}));
  EXPECT_EQ(node.entries[1].key_at, (Position{2, 1}));
  EXPECT_EQ(node.entries[1].value.at, (Position{2, 5}));
}

TEST(Yaml, aliases_are_expanded) {
  EXPECT_EQ(json("a: &x [1, &y 2]\nb: *x\nc: *y\n"), R"({"a":[1,2],"b":[1,2],"c":2})");
  EXPECT_EQ(json("a: &x 1\nb: &x 2\nc: *x\n"), R"({"a":1,"b":2,"c":2})");
  EXPECT_EQ(json("&k a: 1\nb: *k\n"), R"({"a":1,"b":"a"})");
  EXPECT_EQ(json("a: &k b\n*k : 1\n"), R"({"a":"b","b":1})");
}

TEST(Yaml, what_is_not_strict_is_refused_where_it_stands) {
  struct Case {
    std::string_view text;
    std::string_view expected;
  };
  for (const auto& [text, expected] : std::vector<Case>{
           {"a: 1\nb: 2\na: 3\n", "3:1 yaml_duplicate_key"},
           {"a: 1\n'a': 3\na: 4\nb: {c: 1, c: 2}\n",
            "2:1 yaml_duplicate_key, 3:1 yaml_duplicate_key, 4:11 yaml_duplicate_key"},
           {"a: !mine 1\nb: !!set {x}\n", "1:4 yaml_unknown_tag, 2:4 yaml_unknown_tag"},
           {"a: !!int x\n", "1:4 yaml_bad_value"},
           {"a: !!seq {x: 1}\n", "1:4 yaml_unknown_tag"},
           {"a: 1\n---\nb: 2\n", "2:1 yaml_second_document"},
           {"a: *nowhere\n", "1:4 yaml_unknown_alias"},
           {"a: &x [*x]\n", "1:8 yaml_recursive_alias"},
           {"a: &x {b: 1}\nc:\n  <<: *x\n", "3:3 yaml_merge_key"},
           {"[a, b]: 1\n", "1:1 yaml_complex_key"},
           {"? {a: 1}\n: 2\n", "1:3 yaml_complex_key"},
           {"a: &x []\n*x : 1\n", "2:1 yaml_complex_key"},
           {"a: b: c\n", "1:5 yaml_syntax"},
           {"a: [1, 2\n", "2:1 yaml_syntax"},
           {"a:\n\tb: 1\n", "2:1 yaml_syntax"},
           {"a: \"open\n", "2:1 yaml_syntax"},
           {"a: \xff\n", "1:4 yaml_encoding"},
           {"a: x\nb: \x01\n", "2:4 yaml_encoding"},
       })
    EXPECT_EQ(errors(text), expected) << text;
}

TEST(Yaml, a_tab_is_named_as_the_culprit) {
  const auto node = parse("a:\n\tb: 1\n");
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error()[0].hint, "indent with blanks, tabs are not allowed");
}

TEST(Yaml, limits_hold) {
  EXPECT_EQ(errors("abc", {.bytes = 2}), "1:1 yaml_too_large");
  EXPECT_EQ(errors("[1, 2, 3]", {.nodes = 4}), "none");
  EXPECT_EQ(errors("[1, 2, 3, 4]", {.nodes = 4}), "1:11 yaml_too_many_nodes");
  EXPECT_EQ(errors("[[1]]", {.depth = 2}), "none");
  EXPECT_EQ(errors("[[[1]]]", {.depth = 2}), "1:3 yaml_too_deep");
  EXPECT_EQ(errors("a: &x [[1]]\nb: [*x]", {.depth = 3}), "1:8 yaml_too_deep");
  EXPECT_EQ(errors(repeat("[", 200'000)), "1:65 yaml_too_deep");
  EXPECT_EQ(errors(repeat("- ", 200'000)), "1:129 yaml_too_deep");
}

TEST(Yaml, tag_directives_cannot_keep_the_reader_busy) {
  EXPECT_EQ(errors("%TAG !a! tag:x,2000:\n--- x\n"), "none");
  EXPECT_EQ(errors(repeat("%TAG !a! b\n", 101) + "--- x\n"), "1:1 yaml_too_many_directives");
}

TEST(Yaml, aliases_cannot_multiply_beyond_the_limits) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + repeat("*a" + std::to_string(i - 1) + ", ", 10) + "]\n";
  }
  EXPECT_TRUE(errors(bomb).ends_with("yaml_too_many_nodes"));
  const std::string long_text = repeat("x", 500'000);
  EXPECT_TRUE(errors("- &a " + long_text + "\n" + repeat("- *a\n", 50'000)).ends_with("yaml_too_many_nodes"));
  EXPECT_TRUE(
      errors("- &a " + long_text + "\n" + repeat("- {*a : 1}\n", 30'000)).ends_with("yaml_too_many_nodes"));
}

RC_GTEST_PROP(Yaml, any_text_quoted_as_json_reads_back, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::map(rc::gen::inRange(1, 127), [](int c) { return static_cast<char>(c); }));
  const auto node = parse(baton::quoted(text));
  RC_ASSERT(node.has_value());
  RC_ASSERT(node->kind == NodeKind::string);
  RC_ASSERT(node->text == text);
}

TEST(Yaml, each_byte_of_a_scalar_on_one_line_has_its_position) {
  const auto column = [](std::string_view document, std::size_t offset) {
    return parsed(document).written.position(offset).column;
  };
  EXPECT_EQ(column("abc", 2), 3);
  EXPECT_EQ(column("'abc'", 2), 4);
  EXPECT_EQ(column("'a''c'", 2), 5);
  EXPECT_EQ(column(R"("\x41\u00e9\U0001F600\N\Lx")", 12), 26);
  EXPECT_EQ(column("&a !!str 'abc'", 2), 13);
  EXPECT_EQ(parsed("|\n  a\n  b\n").written.position(2), (Position{1, 1}));
}

RC_GTEST_PROP(Yaml, positions_lead_to_the_byte_or_its_escape, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::map(rc::gen::inRange(1, 127), [](int c) { return static_cast<char>(c); }));
  const std::string document = baton::quoted(text);
  const auto node = parse(document);
  RC_ASSERT(node.has_value());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char written = document.at(static_cast<std::size_t>(node->written.position(i).column) - 1);
    RC_ASSERT(written == text[i] || written == '\\');
  }
}

RC_GTEST_PROP(Yaml, any_bytes_are_read_to_json_or_refused, (const std::string& bytes)) {
  if (const auto node = parse(bytes)) (void)boost::json::parse(to_json(*node).text);
}

}  // namespace
}  // namespace baton::yaml
