// JSON text to a value, with each number as exact as its type allows: Boost's own parser (1.81) may be wrong
// in the last digit of a double, so that a number would not pass through unchanged.
#pragma once

#include <boost/json/value.hpp>
#include <expected>
#include <string>
#include <string_view>

#include "core/template/expression.hpp"

namespace baton::expression {

// The error is what is wrong, for a message. Of members with the same name the last one counts.
[[nodiscard]] std::expected<boost::json::value, std::string> read_json(std::string_view text,
                                                                       int depth = depth_max);

}  // namespace baton::expression
