#include "base/yaml_scalar.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

namespace baton::yaml {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text;
}

bool is_decimal(std::string_view text) {
  const std::string_view digits = without_sign(text);
  return !digits.empty() && std::ranges::all_of(digits, is_digit);
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  text = without_sign(text);
  const std::size_t whole = count_digits(text);
  text.remove_prefix(whole);
  std::size_t fraction = 0;
  if (text.starts_with('.')) {
    fraction = count_digits(text.substr(1));
    text.remove_prefix(1 + fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  const std::string_view exponent = without_sign(text.substr(1));
  return !exponent.empty() && count_digits(exponent) == exponent.size();
}

bool is_infinity(std::string_view text) { return is_one_of(without_sign(text), {".inf", ".Inf", ".INF"}); }
bool is_nan(std::string_view text) { return is_one_of(text, {".nan", ".NaN", ".NAN"}); }

int base_of(std::string_view text) { return text.starts_with("0x") ? 16 : text.starts_with("0o") ? 8 : 10; }

bool is_prefixed(std::string_view text) {
  const int base = base_of(text);
  if (base == 10 || text.size() == 2) return false;
  return text.find_first_not_of(base == 16 ? "0123456789abcdefABCDEF" : "01234567", 2) ==
         std::string_view::npos;
}

}  // namespace

std::optional<std::int64_t> to_int(std::string_view text) {
  const int base = base_of(text);
  if (base != 10) text.remove_prefix(2);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double to_real(const std::string& text) {
  if (is_nan(text)) return std::nan("");
  if (is_infinity(text)) return text.front() == '-' ? -HUGE_VAL : HUGE_VAL;
  if (base_of(text) != 10) {
    double value = 0;
    for (const char c : std::string_view(text).substr(2))
      value = value * base_of(text) + (is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    return value;
  }
  const char* const begin = text.c_str() + (text.starts_with('+') ? 1 : 0);
  double value = 0;
  const auto result = std::from_chars(begin, text.c_str() + text.size(), value);
  // from_chars does not say whether the value was too large or too small; strtod does.
  return result.ec == std::errc::result_out_of_range ? std::strtod(begin, nullptr) : value;
}

NodeKind resolve_plain(std::string_view text) {
  if (text.empty() || is_one_of(text, {"null", "Null", "NULL", "~"})) return NodeKind::null;
  if (is_one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return NodeKind::boolean;
  if (is_decimal(text) || is_prefixed(text)) return to_int(text) ? NodeKind::integer : NodeKind::real;
  if (is_float(text) || is_infinity(text) || is_nan(text)) return NodeKind::real;
  return NodeKind::string;
}

std::string_view big_integer_digits(std::string_view text) {
  if (!is_decimal(text)) return {};
  std::string_view digits = without_sign(text);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return digits.size() > 18 ? digits : std::string_view{};
}

}  // namespace baton::yaml
