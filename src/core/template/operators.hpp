// What the operators do with values that are there. Private to the template folder.
#pragma once

#include "core/template/value.hpp"

namespace baton::expression {

[[nodiscard]] Outcome binary(Op op, Value left, Value right, Budget& budget);
[[nodiscard]] Outcome negate(const json::value& value);
// Numbers only; also what `sum` does.
[[nodiscard]] std::expected<json::value, Problem> calculate(Op op, const json::value& left,
                                                            const json::value& right);
[[nodiscard]] std::expected<bool, Problem> contains(const json::value& container, const json::value& value,
                                                    Budget& budget);
// container[from:to]; an absent end is the container's own.
[[nodiscard]] Outcome slice(Value container, const Value& from, const Value& to, Budget& budget);

}  // namespace baton::expression
