#include "core/runbook/members/source_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json.hpp"

namespace baton::runbook {
namespace {

constexpr std::string_view digits = "0123456789";

std::string_view take_digits(std::string_view& text) {
  const std::string_view taken = text.substr(0, std::min(text.find_first_not_of(digits), text.size()));
  text.remove_prefix(taken.size());
  return taken;
}
bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == any_of.npos) return false;
  text.remove_prefix(1);
  return true;
}

template <class Number>
std::optional<Number> read_as(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A number of JSON: its digits without zeros around them, and the power of ten of the last one. Two texts with the same
// decimal are the same number.
struct Decimal {
  bool is_negative = false, is_whole = true;  // whole: written without fraction and exponent
  std::string figures;
  std::int64_t exponent = 0;
  [[nodiscard]] bool is_same(const Decimal& other) const {
    return is_negative == other.is_negative && figures == other.figures && exponent == other.exponent;
  }
};
std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal number{.is_negative = take(text, "-")};
  const std::string_view whole = take_digits(text);
  if (whole.empty() || (whole.size() > 1 && whole.front() == '0')) return std::nullopt;
  number.figures = whole;
  if (take(text, ".")) {
    const std::string_view fraction = take_digits(text);
    if (fraction.empty()) return std::nullopt;
    number.is_whole = false;
    number.figures += fraction;
    number.exponent = -static_cast<std::int64_t>(fraction.size());
  }
  if (take(text, "eE")) {
    number.is_whole = false;
    if (take(text, "+") && text.starts_with('-')) return std::nullopt;
    const auto power = read_as<std::int32_t>(text);
    if (!power) return std::nullopt;
    number.exponent += *power;
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  number.figures.erase(0, std::min(number.figures.find_first_not_of('0'), number.figures.size()));
  while (number.figures.ends_with('0')) number.figures.pop_back(), ++number.exponent;
  if (number.figures.empty()) number.exponent = 0;
  return number;
}

bool keeps_its_value(std::string_view text) {
  const auto number = read_decimal(text);
  if (!number) return false;
  if (number->is_whole) return read_as<std::int64_t>(text) || read_as<std::uint64_t>(text);
  const auto real = read_as<double>(text);
  if (!real || !std::isfinite(*real)) return false;
  std::string read;
  append_real(read, *real);
  const auto again = read_decimal(read);
  return again && again->is_same(*number);
}

}  // namespace

Cell Cell::number(std::string_view text) { return keeps_its_value(text) ? literal(text) : Cell(text); }

}  // namespace baton::runbook
