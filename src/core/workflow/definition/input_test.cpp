#include "core/workflow/definition/input.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace baton::workflow {
namespace {

using Problems = std::vector<std::string>;

Definition declaring(std::vector<Input> inputs) {
  Definition definition;
  definition.inputs = std::move(inputs);
  return definition;
}

const Definition& thumbnails() {
  static const Definition definition = declaring({{"urls", InputType::array, true, std::nullopt},
                                                  {"size", InputType::integer, false, Json{"256"}},
                                                  {"label", InputType::string, false, Json{R"("x")"}},
                                                  {"scale", InputType::number, false, std::nullopt}});
  return definition;
}

Problems problems(const Definition& definition, std::string text) {
  const auto checked = check_input(definition, {std::move(text)});
  return checked ? Problems{} : checked.error();
}

TEST(CheckInput, defaults_are_filled_in) {
  EXPECT_EQ(check_input(thumbnails(), {R"({"urls":[]})"}), Json{R"({"urls":[],"size":256,"label":"x"})"});
  EXPECT_EQ(check_input(thumbnails(), {R"({"size":1,"urls":["a"],"label":"y"})"}),
            Json{R"({"size":1,"urls":["a"],"label":"y"})"});
  EXPECT_EQ(check_input(declaring({{"a", InputType::any, false, Json{"null"}}}), {"{}"}),
            Json{R"({"a":null})"});
}

TEST(CheckInput, numbers_stay_as_they_were_written) {
  const Definition definition =
      declaring({{"n", InputType::number, true, std::nullopt}, {"d", InputType::any, false, Json{"1"}}});
  EXPECT_EQ(check_input(definition, {R"({"n":1.10})"}), Json{R"({"n":1.10,"d":1})"});
}

TEST(CheckInput, everything_wrong_is_reported_at_once) {
  EXPECT_EQ(problems(thumbnails(), R"({"size":"big","lable":"x","colour":1,"scale":null})"),
            (Problems{"input 'urls' is required", "input 'size' must be an integer, found a string",
                      "input 'scale' must be a number, found null",
                      "unknown input 'lable'; did you mean 'label'?", "unknown input 'colour'"}));
}

TEST(CheckInput, each_type_takes_its_own_values_only) {
  const std::vector<std::pair<InputType, std::vector<std::string>>> fitting{
      {InputType::string, {R"("x")"}},
      {InputType::integer, {"1", "-1", "18446744073709551615"}},
      {InputType::number, {"1", "-1", "18446744073709551615", "1.5"}},
      {InputType::boolean, {"true"}},
      {InputType::array, {"[1]"}},
      {InputType::object, {R"({"a":1})"}},
  };
  const std::vector<std::string> values{R"("x")", "1",          "-1",  "18446744073709551615", "1.5", "true",
                                        "[1]",    R"({"a":1})", "null"};
  for (const auto& [type, own] : fitting)
    for (const std::string& value : values) {
      const bool fits = std::ranges::find(own, value) != own.end();
      EXPECT_EQ(problems(declaring({{"i", type, false, std::nullopt}}), R"({"i":)" + value + "}").empty(),
                fits)
          << to_string(type) << ' ' << value;
    }
  for (const std::string& value : values)
    EXPECT_EQ(problems(declaring({{"i", InputType::any, true, std::nullopt}}), R"({"i":)" + value + "}"),
              Problems{});
}

TEST(CheckInput, only_an_object_is_an_input) {
  for (const char* text : {"[]", "null", "5", R"("{}")"}) {
    EXPECT_EQ(problems(thumbnails(), text), Problems{"the input must be an object"});
    EXPECT_EQ(problems(Definition{}, text), Problems{"the input must be an object"});
  }
}

TEST(CheckInput, without_declared_inputs_any_object_passes_unread) {
  EXPECT_EQ(check_input(Definition{}, {R"({"anything":[1,2]})"}), Json{R"({"anything":[1,2]})"});
  EXPECT_EQ(check_input(Definition{}, {"{not even read"}), Json{"{not even read"});
}

TEST(CheckInput, nesting_beyond_the_limit_is_refused_and_not_a_crash) {
  const std::string deep = R"({"urls":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  ASSERT_EQ(problems(thumbnails(), deep).size(), 1u);
}

TEST(CheckInput, the_number_of_messages_is_bounded) {
  std::string text = R"({"urls":[])";
  for (int i = 0; i < 1000; ++i) text += ",\"zzzzzz" + std::to_string(i) + "\":1";
  const Problems all = problems(thumbnails(), text + "}");
  ASSERT_EQ(all.size(), 101u);
  EXPECT_EQ(all.back(), "and 900 more unknown inputs");
}

}  // namespace
}  // namespace baton::workflow
