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

struct Call {
  Value subject;
  std::span<Value> arguments;  // by the parameters; those not given are absent or beyond the end
  Budget& budget;

  [[nodiscard]] bool has(std::size_t i) const { return i < arguments.size() && !arguments[i].is_absent(); }
  [[nodiscard]] const json::value& argument(std::size_t i) const { return *arguments[i]; }
};

struct Filter {
  std::string_view name;
  Outcome (*apply)(Call& call);
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
[[nodiscard]] std::expected<std::string_view, Problem> text_argument(const Call& call, std::size_t i,
                                                                     std::string_view preset = {});
[[nodiscard]] std::expected<std::int64_t, Problem> integer_argument(const Call& call, std::size_t i,
                                                                    std::int64_t preset);
[[nodiscard]] bool flag_argument(const Call& call, std::size_t i);
[[nodiscard]] Outcome made_text(std::string text, Budget& budget);

// The families of filters; the table in filters.cpp names each.
namespace filter {
// of text
Outcome lower(Call&), upper(Call&), trim(Call&), title(Call&), capitalize(Call&), replace(Call&),
    split(Call&);
Outcome b64encode(Call&), b64decode(Call&), urlencode(Call&);
// of lists and objects
Outcome length(Call&), join(Call&), first(Call&), last(Call&), sort(Call&), unique(Call&), reverse(Call&);
Outcome min(Call&), max(Call&), sum(Call&), map(Call&), select(Call&), reject(Call&), selectattr(Call&);
Outcome rejectattr(Call&), list(Call&), keys(Call&), values(Call&), items(Call&);
// between types
Outcome preset(Call&), tojson(Call&), fromjson(Call&), to_int(Call&), to_float(Call&), to_text(Call&);
Outcome to_bool(Call&), absolute(Call&), round(Call&);
}  // namespace filter

}  // namespace baton::expression
