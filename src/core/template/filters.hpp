// `value | name(arguments)`: the filters by name. Private to the template folder.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/template/value.hpp"

namespace baton::expression {

struct FilterCall {
  Value subject;
  std::span<Value> arguments;  // by the parameters; those not given are absent or beyond the end
  Budget& budget;

  [[nodiscard]] bool has(std::size_t i) const { return i < arguments.size() && !arguments[i].is_absent(); }
  [[nodiscard]] const json::value& argument(std::size_t i) const { return *arguments[i]; }
};

struct Filter {
  std::string_view name;
  Outcome (*apply)(FilterCall& call);
  std::array<std::string_view, 3> parameters{};
  std::size_t required = 0;      // of the parameters, the first ones
  bool takes_undefined = false;  // the subject and the arguments may be undefined

  [[nodiscard]] std::size_t parameter_count() const {
    std::size_t count = 0;
    while (count < parameters.size() && !parameters[count].empty()) ++count;
    return count;
  }
};

[[nodiscard]] std::span<const Filter> filters();  // by name
[[nodiscard]] const Filter* find_filter(std::string_view name);

// ---- Tests: `value is name` ----

enum class Test : std::uint8_t { defined, none, string, number, boolean, mapping, sequence, iterable };
struct TestName {
  std::string_view name;
  Test test;
};
[[nodiscard]] std::span<const TestName> tests();
[[nodiscard]] const TestName* find_test(std::string_view name);
[[nodiscard]] bool passes(Test test, const Value& value);

// ---- What filters share ----

[[nodiscard]] std::unexpected<Problem> wrong_subject(std::string_view expected, const json::value& found);
[[nodiscard]] std::expected<std::string_view, Problem> text_of(const json::value& value);
// An argument that must be a string, or a default when it is not given.
[[nodiscard]] std::expected<std::string_view, Problem> text_argument(const FilterCall& call, std::size_t i,
                                                                     std::string_view preset = {});
[[nodiscard]] std::expected<std::int64_t, Problem> integer_argument(const FilterCall& call, std::size_t i,
                                                                    std::int64_t preset);
[[nodiscard]] bool flag_argument(const FilterCall& call, std::size_t i);
[[nodiscard]] Outcome made_text(std::string text, Budget& budget);

// The families of filters; the table in filters.cpp names each.
namespace filter {
// of text
Outcome lower(FilterCall&), upper(FilterCall&), trim(FilterCall&), title(FilterCall&),
    capitalize(FilterCall&), replace(FilterCall&), split(FilterCall&);
Outcome b64encode(FilterCall&), b64decode(FilterCall&), urlencode(FilterCall&);
// of lists and objects
Outcome length(FilterCall&), join(FilterCall&), first(FilterCall&), last(FilterCall&), sort(FilterCall&),
    unique(FilterCall&), reverse(FilterCall&);
Outcome min(FilterCall&), max(FilterCall&), sum(FilterCall&), map(FilterCall&), select(FilterCall&),
    reject(FilterCall&), selectattr(FilterCall&);
Outcome rejectattr(FilterCall&), list(FilterCall&), keys(FilterCall&), values(FilterCall&),
    items(FilterCall&);
// between types
Outcome preset(FilterCall&), tojson(FilterCall&), fromjson(FilterCall&), to_int(FilterCall&),
    to_float(FilterCall&), to_text(FilterCall&);
Outcome to_bool(FilterCall&), absolute(FilterCall&), round(FilterCall&);
}  // namespace filter

}  // namespace baton::expression
