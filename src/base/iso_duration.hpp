// How long something lasts, as ISO 8601 and XML Schema write it: PT1M, P14D, P1DT2H3.5S. Years and months, whose length
// depends on when they begin, are not read. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace baton {

// Of one that is not negative: the fewest parts, in days, hours, minutes and seconds.
[[nodiscard]] std::string to_iso_duration(Duration duration);
// Rounded down to milliseconds. None: it is no duration, is negative, or is longer than thirty thousand years.
[[nodiscard]] std::optional<Duration> from_iso_duration(std::string_view text);

}  // namespace baton
