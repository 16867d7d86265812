#include "base/iso_duration.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace baton {
namespace {

constexpr std::int64_t amount_max = 1'000'000'000'000;                  // of any part: the sum of all fits 64 bits
constexpr Duration duration_max = std::chrono::days{365} * 30'000;

struct Part {
  char letter;
  Duration unit;
};
constexpr Part day_parts[] = {{'W', std::chrono::days{7}}, {'D', std::chrono::days{1}}};
constexpr Part time_parts[] = {{'H', std::chrono::hours{1}}, {'M', std::chrono::minutes{1}}, {'S', std::chrono::seconds{1}}};

// ".5477807" as milliseconds, and removes it.
std::optional<std::int64_t> take_millis_of_second(std::string_view& text) {
  std::int64_t millis = 0, weight = 100;
  std::size_t digits = 0;
  for (text.remove_prefix(1); !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), ++digits, weight /= 10)
    millis += weight * (text.front() - '0');
  if (digits == 0 || digits > 9) return std::nullopt;
  return millis;
}

// The parts of the text, in their order and each at most once; the rest of it is left.
template <std::size_t count>
bool take_parts(std::string_view& text, const Part (&parts)[count], Duration& sum) {
  std::size_t next = 0;
  while (!text.empty() && text.front() != 'T') {
    std::int64_t amount = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    if (error != std::errc{} || amount < 0 || amount > amount_max || text.front() == '-') return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    std::int64_t millis = 0;
    const bool has_fraction = text.starts_with('.');
    if (has_fraction) {
      const auto fraction = take_millis_of_second(text);
      if (!fraction) return false;
      millis = *fraction;
    }
    while (next < count && (text.empty() || parts[next].letter != text.front())) ++next;
    if (next == count || (has_fraction && parts[next].letter != 'S')) return false;
    if (amount > duration_max / parts[next].unit) return false;
    sum += parts[next].unit * amount + Duration{millis};
    if (sum > duration_max) return false;
    ++next;
    text.remove_prefix(1);
  }
  return true;
}

}  // namespace

std::string to_iso_duration(Duration duration) {
  const std::int64_t millis = duration.count();
  const std::int64_t days = millis / 86'400'000, hours = millis / 3'600'000 % 24, minutes = millis / 60'000 % 60, rest = millis % 60'000;
  std::string text = "P";
  if (days > 0) text += fmt::format("{}D", days);
  if (days > 0 && millis % 86'400'000 == 0) return text;
  text += 'T';
  if (hours > 0) text += fmt::format("{}H", hours);
  if (minutes > 0) text += fmt::format("{}M", minutes);
  if (rest % 1'000 != 0) return text + fmt::format("{}.{:03}S", rest / 1'000, rest % 1'000);
  if (rest > 0 || millis == 0) text += fmt::format("{}S", rest / 1'000);
  return text;
}

std::optional<Duration> from_iso_duration(std::string_view text) {
  if (!text.starts_with('P')) return std::nullopt;
  text.remove_prefix(1);
  Duration sum{};
  const bool has_days = !text.empty() && text.front() != 'T';
  if (!take_parts(text, day_parts, sum)) return std::nullopt;
  if (text.empty()) return has_days ? std::optional(sum) : std::nullopt;
  text.remove_prefix(1);
  if (text.empty() || !take_parts(text, time_parts, sum) || !text.empty()) return std::nullopt;
  return sum;
}

}  // namespace baton
