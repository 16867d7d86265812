#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>

#include "core/runbook/definition/template.hpp"

namespace baton::runbook {
namespace {

namespace json = boost::json;
using Names = std::vector<std::string>;

const Time new_year = from_millis(1'767'225'600'000);  // 2026-01-01T00:00:00Z

Scope member() {
  return Scope(
      Json{R"({"Upn":"ada@x.org","Display Name":"Ada \"L\"","Größe":"XL","TargetId":"old","Empty":null,)"
           R"("Aliases":["a","b"],"code":"lower","CODE":"upper"})"},
      Json{R"({"TargetId":"new","Count":3,"Ratio":1.0,"Big":18446744073709551615,"Ok":true,)"
           R"("Profile":{"mail":"m"}})"},
      42, new_year);
}

std::string text(const std::string& source) { return member().text(source).value_or("(none)"); }
std::string document(const std::string& source) {
  return member().json({source}).value_or(Json{"(none)"}).text;
}

// ---- names ----

TEST(RunbookTemplate, names_the_variables_of_a_text_once_and_in_order) {
  EXPECT_EQ(variables_in_text("{{b}} {{ a }}{{b}} {{Display Name}}"), (Names{"b", "a", "Display Name"}));
  EXPECT_EQ(variables_in_text("nothing } } {x}"), Names{});
}

TEST(RunbookTemplate, names_the_variables_of_a_document_but_not_those_in_keys) {
  EXPECT_EQ(variables_in_json({R"({"{{k}}":["{{a}}",{"x":"y {{b}} {{a}}"}],"n":1,"e":"\u007b{c}}"})"}),
            (Names{"a", "b", "c"}));
  EXPECT_EQ(variables_in_json({R"("{{a}}")"}), Names{"a"});
  EXPECT_EQ(variables_in_json({R"({"a":"\"{{b}}\\"})"}), Names{"b"});
}

TEST(RunbookTemplate, says_what_is_wrong_with_braces) {
  for (const char* good :
       {"", "a", "{{a}}", "{{ a b }}", "{{a.b-c_d}}", "{{Größe}}", "}}", "{a}", "{{a}}}", "{ {a} }"})
    EXPECT_EQ(template_error(good), "") << good;
  for (const char* bad : {"{{", "{{a", "{{a}", "{{}}", "{{ }}", "{{{{a}}}}", "{{a {{b}}", "{{{a}}}",
                          "{{a|b}}", "{{a}} {{", "{{a\"b}}", "{{a\tb}}"})
    EXPECT_NE(template_error(bad), "") << bad;
  EXPECT_NE(template_error("{{a(b)}}").find("'a(b)'"), std::string::npos);
  EXPECT_NE(template_error("{{" + std::string(201, 'a') + "}}"), "");
}

// ---- texts ----

TEST(RunbookTemplate, replaces_the_variables_of_a_text) {
  EXPECT_EQ(text("New-{{Upn}} for {{ Display Name }}, {{Größe}}"), "New-ada@x.org for Ada \"L\", XL");
  EXPECT_EQ(text("{{_batch_id}} at {{_batch_start_time}}"), "42 at 2026-01-01T00:00:00.000Z");
  EXPECT_EQ(text("no variable }}"), "no variable }}");
}

TEST(RunbookTemplate, other_values_than_texts_stand_as_JSON_and_nothing_stands_for_null) {
  EXPECT_EQ(text("{{Aliases}} {{Profile}} {{Count}} {{Ratio}} {{Big}} {{Ok}} [{{Empty}}]"),
            R"(["a","b"] {"mail":"m"} 3 1.0 18446744073709551615 true [])");
}

TEST(RunbookTemplate, what_a_step_put_out_wins_over_the_source) { EXPECT_EQ(text("{{TargetId}}"), "new"); }

TEST(RunbookTemplate, case_matters_only_where_there_is_a_choice) {
  EXPECT_EQ(text("{{upn}} {{TARGETID}}"), "ada@x.org new");
  EXPECT_EQ(text("{{code}} {{CODE}}"), "lower upper");
  EXPECT_EQ(text("{{größe}}"), "XL");
  const Scope scope(Json{R"({"Id":"exact"})"}, Json{R"({"ID":"loose"})"}, 1, new_year);
  EXPECT_EQ(scope.text("{{Id}}"), "exact");
}

TEST(RunbookTemplate, what_is_put_in_is_not_read_again) {
  const Scope scope(Json{R"({"a":"{{b}}","b":"no"})"}, std::nullopt, 1, new_year);
  EXPECT_EQ(scope.text("{{a}}"), "{{b}}");
  EXPECT_EQ(scope.json({R"({"x":"-{{a}}"})"}).value().text, R"({"x":"-{{b}}"})");
}

TEST(RunbookTemplate, the_variables_of_the_batch_hide_columns) {
  const Scope scope(Json{R"({"_batch_id":"7"})"}, Json{R"({"_batch_id":"8"})"}, 1, new_year);
  EXPECT_EQ(scope.text("{{_batch_id}}"), "1");
}

TEST(RunbookTemplate, the_first_unknown_variable_is_named) {
  EXPECT_EQ(member().text("{{Upn}} {{Nobody}} {{No one}}").error(), NotRendered{"Nobody"});
  EXPECT_EQ(member().json({R"({"a":"{{Upn}}","b":["{{No one}}"],"c":"{{Nobody}}"})"}).error(), NotRendered{"No one"});
  EXPECT_EQ(Scope(std::nullopt, std::nullopt, 1, std::nullopt).text("{{_batch_start_time}}").error(),
            NotRendered{"_batch_start_time"});
}

TEST(RunbookTemplate, broken_braces_are_never_sent) {
  EXPECT_EQ(member().text("a {{Upn").error(), NotRendered{"{{Upn"});
  EXPECT_EQ(member().text("{{Upn}} {{").error(), NotRendered{"{{"});
  EXPECT_FALSE(member().json({R"({"a":"{{Upn}} {{"})"}));
  EXPECT_FALSE(member().json({R"({"a":"{{}}"})"}));
}

// ---- lengths ----

// Cells of a quarter and of more than the whole of what a text may be long.
Scope long_cells() {
  const std::string quarter(rendered_bytes_max / 4, 'x');
  return Scope(Json{"{\"Quarter\":\"" + quarter + "\",\"Whole\":\"" + quarter + quarter + quarter + quarter + "x\"}"},
               std::nullopt, 1, new_year);
}

TEST(RunbookTemplate, a_text_becomes_a_mebibyte_long_and_no_longer) {
  const Scope scope = long_cells();
  const std::string four = "{{Quarter}}{{Quarter}}{{Quarter}}{{Quarter}}";
  EXPECT_EQ(scope.text(four).value().size(), rendered_bytes_max);
  EXPECT_EQ(scope.text(four + "{{_batch_id}}").error(), (NotRendered{"_batch_id", true}));
  EXPECT_EQ(scope.text(four + ".").error(), (NotRendered{"", true}));
  EXPECT_EQ(scope.text("{{Whole}}").error(), (NotRendered{"Whole", true}));
}

TEST(RunbookTemplate, a_document_becomes_a_mebibyte_long_and_no_longer) {
  const Scope scope = long_cells();
  EXPECT_TRUE(scope.json({R"({"a":"{{Quarter}}","b":["{{Quarter}}","{{Quarter}}!"]})"}));
  EXPECT_EQ(scope.json({R"({"a":"{{Quarter}}{{Quarter}}","b":"{{Quarter}}","c":"{{Quarter}}","d":"{{Nobody}}"})"}).error(),
            (NotRendered{"Quarter", true}))
      << "the quotes and names are too much, and what comes after is not looked at";
  EXPECT_EQ(scope.json({R"({"a":"{{Whole}}"})"}).error(), (NotRendered{"Whole", true}));
}

// Without an end it would be gigabytes, and this test would not come to its own.
TEST(RunbookTemplate, a_thousand_variables_of_a_large_cell_cost_no_more_than_the_first_few) {
  std::string many = "{\"a\":\"";
  for (int i = 0; i < 1'000; ++i) many += "{{Cell}}";
  const Scope scope(Json{"{\"Cell\":\"" + std::string(std::size_t{4} << 20, 'x') + "\"}"}, std::nullopt, 1, new_year);
  EXPECT_EQ(scope.json({many + "\"}"}).error(), (NotRendered{"Cell", true}));
}

// Of a list no length is known before it is written; control characters become six times as long.
TEST(RunbookTemplate, what_grows_while_it_is_written_is_found_too_long_afterwards) {
  const std::string half(rendered_bytes_max / 2, 'x');
  std::string bells;
  for (std::size_t i = 0; i < rendered_bytes_max / 5; ++i) bells += "\\u0007";
  const Scope scope(Json{"{\"List\":[\"" + half + "\",\"" + half + "\"],\"Bell\":\"" + bells + "\"}"}, std::nullopt,
                    1, new_year);
  EXPECT_EQ(scope.json({R"({"a":"{{List}}"})"}).error(), (NotRendered{"List", true}));
  EXPECT_EQ(scope.json({R"({"a":"{{Bell}}"})"}).error(), (NotRendered{"Bell", true}));
  EXPECT_EQ(scope.json({R"({"a":"-{{Bell}}"})"}).error(), (NotRendered{"Bell", true}));
  EXPECT_TRUE(scope.text("{{Bell}}"));
}

TEST(RunbookTemplate, data_that_is_no_object_counts_as_absent) {
  for (const char* odd : {"", "null", "[1]", "\"a\"", "{", "{\"a\":1} x"})
    EXPECT_EQ(Scope(Json{odd}, Json{odd}, 5, new_year).text("{{_batch_id}}"), "5") << odd;
  EXPECT_EQ(Scope(Json{"[]"}, Json{R"({"a":"b"})"}, 5, new_year).text("{{a}}"), "b");
}

TEST(RunbookTemplate, a_scope_can_be_moved) {
  Scope first = member();
  Scope second = std::move(first);
  EXPECT_EQ(second.text("{{Upn}}"), "ada@x.org");
  first = std::move(second);
  EXPECT_EQ(first.text("{{Upn}}"), "ada@x.org");
}

// ---- documents ----

TEST(RunbookTemplate, a_string_that_is_one_variable_becomes_its_value) {
  EXPECT_EQ(
      document(
          R"({"a":"{{Aliases}}","b":" {{Aliases}}","c":"{{ Count }}","d":"{{Empty}}","e":"{{Profile}}"})"),
      R"({"a":["a","b"],"b":" [\"a\",\"b\"]","c":3,"d":null,"e":{"mail":"m"}})");
  EXPECT_EQ(document(R"({"a":"{{_batch_id}}","b":"{{Upn}}{{Upn}}"})"),
            R"({"a":"42","b":"ada@x.orgada@x.org"})");
}

TEST(RunbookTemplate, everything_else_of_a_document_stays_as_it_is) {
  const std::string plain = R"({"a":1.50,"b":1e400,"c":[true,null,"x\u0041\/"],"d":{}, "e" : "}}"})";
  EXPECT_EQ(document(plain), plain);
  EXPECT_EQ(document(R"({"n":1.50,"{{Upn}}":"{{Upn}}","q":"\"\\"})"),
            R"({"n":1.50,"{{Upn}}":"ada@x.org","q":"\"\\"})");
}

TEST(RunbookTemplate, a_document_is_replaced_at_any_depth) {
  EXPECT_EQ(document(R"([{"a":{"b":["x","{{Upn}}",{"c":"<{{Display Name}}>"}]}}])"),
            R"([{"a":{"b":["x","ada@x.org",{"c":"<Ada \"L\">"}]}}])");
  EXPECT_EQ(document(R"({"a":"\"{{Upn}}\"\n\u007b{Count}}"})"), R"({"a":"\"ada@x.org\"\n3"})");
}

// ---- outputs ----

using Outputs = std::map<std::string, std::string>;

TEST(RunbookTemplate, outputs_are_merged_into_what_is_there) {
  const Json result{R"({"Id":7,"profile":{"Mail":"m","tags":["x"]},"a.b":"dotted","null":null})"};
  const auto merged = merge_outputs(Json{R"({"Old":1,"TargetId":"x"})"}, result,
                                    Outputs{{"TargetId", "id"},
                                            {"Mail", "PROFILE.mail"},
                                            {"Tags", "profile.tags"},
                                            {"Dotted", "a.b"},
                                            {"Nothing", "null"}});
  EXPECT_EQ(
      json::parse(merged.value().text),
      json::parse(R"({"Old":1,"TargetId":7,"Mail":"m","Tags":["x"],"Dotted":"dotted","Nothing":null})"));
}

TEST(RunbookTemplate, a_field_that_is_not_there_changes_nothing) {
  const OptionalJson before = Json{R"({"a": 1.0})"};
  EXPECT_EQ(merge_outputs(before, {R"({"x":1})"}, Outputs{{"v", "y"}, {"w", "x.y"}}), before);
  EXPECT_EQ(merge_outputs(before, {R"({"x":1})"}, {}), before);
  EXPECT_EQ(merge_outputs(std::nullopt, {R"({"x":1})"}, Outputs{{"v", "y"}}), std::nullopt);
  for (const char* odd : {"null", "[{\"y\":1}]", "\"y\"", "", "{"})
    EXPECT_EQ(merge_outputs(before, {odd}, Outputs{{"v", "y"}}), before) << odd;
}

TEST(RunbookTemplate, outputs_begin_anew_where_there_was_no_object) {
  for (const OptionalJson& before : {OptionalJson{}, OptionalJson{Json{"[]"}}, OptionalJson{Json{"{"}}})
    EXPECT_EQ(merge_outputs(before, {R"({"y":1.0})"}, Outputs{{"v", "Y"}}),
              (OptionalJson{Json{R"({"v":1.0})"}}));
}

TEST(RunbookTemplate, the_exact_name_of_a_field_is_preferred) {
  EXPECT_EQ(merge_outputs(std::nullopt, {R"({"ID":1,"id":2})"}, Outputs{{"v", "id"}}),
            (OptionalJson{Json{R"({"v":2})"}}));
}

// ---- laws ----

std::string any_text() {
  return *rc::gen::container<std::string>(
      rc::gen::element('{', '}', '"', '\\', 'a', 'b', ' ', '_', '\n', '\t', ':', ',', '|'));
}

RC_GTEST_PROP(RunbookTemplate, a_text_is_replaced_exactly_if_its_braces_are_whole, ()) {
  const std::string source = any_text();
  json::object data;
  for (const std::string& name : variables_in_text(source)) data[name] = "v";
  const Scope scope(Json{json::serialize(data)}, std::nullopt, 1, new_year);
  const auto replaced = scope.text(source);
  RC_ASSERT(replaced.has_value() == template_error(source).empty());
}

RC_GTEST_PROP(RunbookTemplate, a_document_is_replaced_as_its_strings_are, ()) {
  const std::string source = any_text();
  const Scope scope(Json{R"({"a":"1","b":"\"\\2","a b":"3"})"}, std::nullopt, 1, new_year);
  const auto as_text = scope.text(source);
  const auto as_json = scope.json({json::serialize(json::object{{source, json::array{source, 1, source}}})});
  RC_ASSERT(as_text.has_value() == as_json.has_value());
  if (!as_text) return;
  const json::object expected{{source, json::array{*as_text, 1, *as_text}}};
  RC_ASSERT(json::parse(as_json->text) == json::value(expected));
}

RC_GTEST_PROP(RunbookTemplate, a_value_comes_out_as_it_went_in, (const std::string& text)) {
  std::string clean;
  append_quoted(clean, text);
  const Scope scope(Json{R"({"a":)" + clean + "}"}, std::nullopt, 1, new_year);
  const std::string value(json::parse(clean).as_string());
  RC_ASSERT(scope.text("{{a}}").value() == value);
  RC_ASSERT(json::parse(scope.json({R"(["{{a}}","<{{a}}>"])"}).value().text) ==
            json::value(json::array{value, "<" + value + ">"}));
}

RC_GTEST_PROP(RunbookTemplate, merging_outputs_twice_is_merging_them_once, (std::int64_t number)) {
  const Json result{R"({"x":{"y":)" + std::to_string(number) + "}}"};
  const Outputs outputs{{"v", "x.y"}, {"w", "x"}};
  const auto once = merge_outputs(Json{R"({"u":1})"}, result, outputs);
  RC_ASSERT(merge_outputs(once, result, outputs) == once);
}

}  // namespace
}  // namespace baton::runbook
