#include "core/workflow/definition/span.hpp"

#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>

namespace baton::workflow {
namespace {

constexpr double seconds_max = 10 * 366.0 * 24 * 3600;

std::optional<Duration> from_seconds(double seconds) {
  if (!(seconds >= 0 && seconds <= seconds_max)) return std::nullopt;
  return Duration{std::llround(seconds * 1000)};
}

// Milliseconds of "ms", "s", "m", "h", "d"; 0: none of them.
double unit_millis(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s") return 1'000;
  if (unit == "m") return 60'000;
  if (unit == "h") return 3'600'000;
  if (unit == "d") return 86'400'000;
  return 0;
}

}  // namespace

std::optional<Duration> read_span(std::string_view text) {
  double millis = 0;
  bool any = false;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || !(number >= 0)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto letters = std::min(text.find_first_of("0123456789."), text.size());
    const std::string_view unit = text.substr(0, letters);
    if (unit.empty()) return any ? std::nullopt : from_seconds(number);  // '90' is seconds
    if (unit_millis(unit) == 0) return std::nullopt;
    millis += number * unit_millis(unit);
    text.remove_prefix(letters);
    any = true;
  }
  return any ? from_seconds(millis / 1000) : std::nullopt;
}

std::optional<Duration> read_span(const boost::json::value& value) {
  if (value.is_string()) return read_span(std::string_view(value.get_string()));
  if (!value.is_number()) return std::nullopt;
  return from_seconds(value.to_number<double>());
}

}  // namespace baton::workflow
