#include "base/time.hpp"

#include <charconv>

namespace baton {
namespace {

void put(char* at, int width, int value) {
  for (int i = width - 1; i >= 0; --i, value /= 10) at[i] = static_cast<char>('0' + value % 10);
}

// Takes exactly `width` digits from the front of `text`.
std::optional<int> take_digits(std::string_view& text, std::size_t width) {
  if (text.size() < width) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(width);
  return value;
}

bool take_char(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// The fraction after the dot, in milliseconds.
std::optional<int> take_fraction(std::string_view& text) {
  int millis = 0;
  int digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), ++digits) {
    if (digits == 9) return std::nullopt;
    if (digits < 3) millis = millis * 10 + (text.front() - '0');
  }
  if (digits == 0) return std::nullopt;
  for (int i = digits; i < 3; ++i) millis *= 10;
  return millis;
}

std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
  using std::chrono::minutes;
  if (take_char(text, "Zz")) return minutes{0};
  const bool negative = !text.empty() && text.front() == '-';
  if (!take_char(text, "+-")) return std::nullopt;
  const auto hours = take_digits(text, 2);
  if (!hours || *hours > 23) return std::nullopt;
  int minute = 0;
  if (!text.empty()) {
    take_char(text, ":");
    const auto parsed = take_digits(text, 2);
    if (!parsed || *parsed > 59) return std::nullopt;
    minute = *parsed;
  }
  const minutes offset{*hours * 60 + minute};
  return negative ? -offset : offset;
}

std::optional<Time> read_iso(std::string_view text, bool offset_required) {
  using namespace std::chrono;
  const auto y = take_digits(text, 4);
  if (!y || *y < 1970 || !take_char(text, "-")) return std::nullopt;
  const auto m = take_digits(text, 2);
  if (!m || !take_char(text, "-")) return std::nullopt;
  const auto d = take_digits(text, 2);
  if (!d || !take_char(text, "Tt ")) return std::nullopt;
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take_char(text, ":")) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59 || !take_char(text, ":")) return std::nullopt;
  const auto second = take_digits(text, 2);
  if (!second || *second > 59) return std::nullopt;
  int millis = 0;
  if (take_char(text, ".")) {
    const auto fraction = take_fraction(text);
    if (!fraction) return std::nullopt;
    millis = *fraction;
  }
  const bool is_utc = text.empty() && !offset_required;
  const auto offset = is_utc ? minutes{0} : take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*m)}, day{static_cast<unsigned>(*d)}};
  if (!date.ok()) return std::nullopt;
  const Time time{sys_days{date} + hours{*hour} + minutes{*minute} + seconds{*second} + milliseconds{millis} -
                  *offset};
  // The offset may have carried it over an edge of what can be written.
  if (time < Time{} || time >= Time{sys_days{year{10'000} / 1 / 1}}) return std::nullopt;
  return time;
}

}  // namespace

std::string to_iso(Time time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  std::string text = "0000-00-00T00:00:00.000Z";
  put(&text[0], 4, static_cast<int>(date.year()));
  put(&text[5], 2, static_cast<int>(static_cast<unsigned>(date.month())));
  put(&text[8], 2, static_cast<int>(static_cast<unsigned>(date.day())));
  put(&text[11], 2, static_cast<int>(clock.hours().count()));
  put(&text[14], 2, static_cast<int>(clock.minutes().count()));
  put(&text[17], 2, static_cast<int>(clock.seconds().count()));
  put(&text[20], 3, static_cast<int>(clock.subseconds().count()));
  return text;
}

std::optional<Time> from_iso(std::string_view text) { return read_iso(text, true); }

std::optional<Time> from_iso_or_utc(std::string_view text) { return read_iso(text, false); }

}  // namespace baton
