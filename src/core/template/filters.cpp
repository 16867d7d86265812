#include "core/template/filters.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "base/result.hpp"

namespace baton::expression {
namespace {

using namespace filter;

// By name, so that it can be searched by halves.
constexpr std::array<Filter, 40> table{{
    {"abs", absolute},
    {"b64decode", b64decode},
    {"b64encode", b64encode},
    {"bool", to_bool},
    {"capitalize", capitalize},
    {"count", length},
    {"d", preset, {"value", "boolean"}, 0, true},
    {"default", preset, {"value", "boolean"}, 0, true},
    {"first", first},
    {"float", to_float, {"default"}},
    {"fromjson", fromjson},
    {"int", to_int, {"default"}},
    {"items", items},
    {"join", join, {"separator", "attribute"}},
    {"keys", keys},
    {"last", last},
    {"length", length},
    {"list", list},
    {"lower", lower},
    {"map", map, {"filter", "attribute", "default"}},
    {"max", max, {"attribute"}},
    {"min", min, {"attribute"}},
    {"reject", reject, {"test", "value"}},
    {"rejectattr", rejectattr, {"attribute", "test", "value"}, 1},
    {"replace", replace, {"old", "new", "count"}, 2},
    {"reverse", reverse},
    {"round", round, {"precision", "method"}},
    {"select", select, {"test", "value"}},
    {"selectattr", selectattr, {"attribute", "test", "value"}, 1},
    {"sort", sort, {"reverse", "attribute"}},
    {"split", split, {"separator"}},
    {"string", to_text},
    {"sum", sum, {"attribute", "start"}},
    {"title", title},
    {"tojson", tojson},
    {"trim", trim},
    {"unique", unique, {"attribute"}},
    {"upper", upper},
    {"urlencode", urlencode},
    {"values", values},
}};

constexpr std::array<TestName, 8> test_table{{{"defined", Test::defined},
                                              {"none", Test::none},
                                              {"string", Test::string},
                                              {"number", Test::number},
                                              {"boolean", Test::boolean},
                                              {"mapping", Test::mapping},
                                              {"sequence", Test::sequence},
                                              {"iterable", Test::iterable}}};

}  // namespace

std::span<const Filter> filters() { return table; }

const Filter* find_filter(std::string_view name) {
  const auto found = std::ranges::lower_bound(table, name, {}, &Filter::name);
  return found != table.end() && found->name == name ? &*found : nullptr;
}

std::span<const TestName> tests() { return test_table; }

const TestName* find_test(std::string_view name) {
  const auto found = std::ranges::find(test_table, name, &TestName::name);
  return found == test_table.end() ? nullptr : &*found;
}

bool passes(Test test, const Value& value) {
  if (test == Test::defined) return value.undefined() == nullptr;
  switch (test) {
    case Test::none: return value->is_null();
    case Test::string: return value->is_string();
    case Test::number: return value->is_number();
    case Test::boolean: return value->is_bool();
    case Test::mapping: return value->is_object();
    case Test::sequence: return value->is_array() || value->is_string();
    default: return value->is_structured() || value->is_string();
  }
}

std::unexpected<Problem> wrong_subject(std::string_view expected, const json::value& found) {
  return problem("wrong_type",
                 "expected " + std::string(expected) + ", found " + std::string(describe(found.kind())));
}

std::expected<std::string_view, Problem> text_of(const json::value& value) {
  if (const auto* text = value.if_string()) return view(*text);
  return wrong_subject("a string", value);
}

std::expected<std::string_view, Problem> text_argument(const FilterCall& call, std::size_t i,
                                                       std::string_view preset) {
  if (!call.has(i)) return preset;
  return text_of(call.argument(i));
}

std::expected<std::int64_t, Problem> integer_argument(const FilterCall& call, std::size_t i,
                                                      std::int64_t preset) {
  if (!call.has(i)) return preset;
  if (const auto* number = call.argument(i).if_int64()) return *number;
  return wrong_subject("an integer", call.argument(i));
}

bool flag_argument(const FilterCall& call, std::size_t i) { return call.has(i) && truthy(call.argument(i)); }

Outcome made_text(std::string text, Budget& budget) {
  if (!budget.text(text.size())) return budget.exceeded();
  return json::value(json::string(text));
}

}  // namespace baton::expression
