// Instants are UTC milliseconds; text is ISO 8601 with a Z. Nothing here reads a clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace baton {

using Duration = std::chrono::milliseconds;
using Time = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Writes 2026-02-02T22:30:53.123Z.
[[nodiscard]] std::string to_iso(Time time);
// Reads what to_iso writes, and also a blank for the T, 0 to 9 fraction digits (rounded down to
// milliseconds), and an offset (Z, +00, +02:00) which is required. Years 1970 to 9999.
[[nodiscard]] std::optional<Time> from_iso(std::string_view text);
// The same; without an offset it is UTC.
[[nodiscard]] std::optional<Time> from_iso_or_utc(std::string_view text);

[[nodiscard]] inline std::int64_t to_millis(Time time) { return time.time_since_epoch().count(); }
[[nodiscard]] inline Time from_millis(std::int64_t millis) { return Time{Duration{millis}}; }

}  // namespace baton
