// How long: seconds as a number, or a text as '90s', '1h30m', '2d'.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string_view>

#include "base/time.hpp"

namespace baton::workflow {

// None: neither, negative, or longer than ten years.
[[nodiscard]] std::optional<Duration> read_span(const boost::json::value& value);
[[nodiscard]] std::optional<Duration> read_span(std::string_view text);

}  // namespace baton::workflow
