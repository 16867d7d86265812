#include "core/message/sql/operators.hpp"

#include <cmath>
#include <compare>
#include <limits>
#include <utility>

#include "base/result.hpp"

namespace baton::message::sql {
namespace {

using Calculated = std::expected<Value, std::string>;
using Integer = std::expected<std::int64_t, std::string>;

// Of an integer or a double.
std::optional<double> real(const Value& value) {
  if (const double* const number = std::get_if<double>(&value)) return *number;
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

// Of a time or a duration.
std::optional<std::int64_t> millis(const Value& value) {
  if (const Time* const time = std::get_if<Time>(&value)) return to_millis(*time);
  if (const Duration* const duration = std::get_if<Duration>(&value)) return duration->count();
  return std::nullopt;
}

// Of what `+` joins to a text.
std::optional<std::string> text(const Value& value) {
  if (const auto* const string = std::get_if<std::string>(&value)) return *string;
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return std::nullopt;
}

std::string_view name_of(const Value& value) {
  return std::visit(
      overloaded{[](const Null&) { return "null"; }, [](bool) { return "a boolean"; },
                 [](std::int64_t) { return "an integer"; }, [](double) { return "a number"; },
                 [](const std::string&) { return "a text"; }, [](Time) { return "a time"; },
                 [](Duration) { return "a duration"; }, [](const Opaque&) { return "binary data"; }},
      value);
}

std::string_view sign_of(Op op) {
  switch (op) {
    case Op::add: return "+";
    case Op::subtract: return "-";
    case Op::multiply: return "*";
    case Op::divide: return "/";
    default: return "%";
  }
}

// Nothing when they are of types that have no order between them.
std::optional<std::partial_ordering> order(const Value& left, const Value& right) {
  using Ordering = std::optional<std::partial_ordering>;
  if (left.index() == right.index())
    return std::visit(
        overloaded{[](const one_of<Null, Opaque> auto&) -> Ordering { return std::nullopt; },
                   [&]<class T>(const T& value) -> Ordering { return value <=> std::get<T>(right); }},
        left);
  const std::optional<double> a = real(left), b = real(right);
  return a && b ? Ordering(*a <=> *b) : std::nullopt;
}

std::unexpected<std::string> overflow() {
  return std::unexpected<std::string>("the result does not fit into 64 bits");
}

Integer calculate_integers(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &result)) return overflow();
      return result;
    case Op::subtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow();
      return result;
    case Op::multiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow();
      return result;
    default: break;
  }
  if (b == 0) return std::unexpected<std::string>("division by zero");
  // The one quotient that can overflow.
  if (b == -1) return op == Op::divide ? calculate_integers(Op::subtract, 0, a) : 0;
  return op == Op::divide ? a / b : a % b;
}

// The sanitizers object to a division by zero, though the hardware gives the same.
double divide_reals(double a, double b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (b != 0) return a / b;
  if (a == 0 || std::isnan(a)) return std::numeric_limits<double>::quiet_NaN();
  return std::signbit(a) == std::signbit(b) ? infinity : -infinity;
}

// As in C#, a division by zero is no error here: IEEE 754 says what it gives.
double calculate_reals(Op op, double a, double b) {
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return divide_reals(a, b);
    default: return std::fmod(a, b);
  }
}

Calculated joined(std::string left, std::string_view right) {
  if (left.size() + right.size() > text_bytes_max)
    return std::unexpected("the text is longer than " + std::to_string(text_bytes_max) + " bytes");
  return std::move(left.append(right));
}

template <class T>
Calculated from_millis(Integer count) {
  if (!count) return std::unexpected(std::move(count).error());
  return Value(T(Duration(*count)));
}

// A time less a time is a duration; a time and a duration make a time. Nothing for the rest.
std::optional<Calculated> calculate_times(Op op, const Value& left, const Value& right) {
  const std::optional<std::int64_t> a = millis(left), b = millis(right);
  if (!a || !b || (op != Op::add && op != Op::subtract)) return std::nullopt;
  const bool time_left = std::holds_alternative<Time>(left), time_right = std::holds_alternative<Time>(right);
  if (time_right && time_left == (op == Op::add)) return std::nullopt;
  if (time_left == time_right) return from_millis<Duration>(calculate_integers(op, *a, *b));
  return from_millis<Time>(calculate_integers(op, *a, *b));
}

}  // namespace

bool is_unknown(const Value& value) { return is_null(value) || std::holds_alternative<Opaque>(value); }

Value compare(Op op, const Value& left, const Value& right) {
  const std::optional<std::partial_ordering> found = order(left, right);
  if (!found) return Null{};
  switch (op) {
    case Op::equal: return std::is_eq(*found);
    case Op::not_equal: return std::is_neq(*found);
    case Op::less: return std::is_lt(*found);
    case Op::less_equal: return std::is_lteq(*found);
    case Op::greater: return std::is_gt(*found);
    default: return std::is_gteq(*found);
  }
}

Calculated calculate(Op op, const Value& left, const Value& right) {
  if (is_unknown(left) || is_unknown(right)) return Null{};
  const auto* const integer_left = std::get_if<std::int64_t>(&left);
  const auto* const integer_right = std::get_if<std::int64_t>(&right);
  if (integer_left && integer_right) return calculate_integers(op, *integer_left, *integer_right);
  if (const auto a = real(left), b = real(right); a && b) return calculate_reals(op, *a, *b);
  if (auto result = calculate_times(op, left, right)) return *std::move(result);
  if (auto a = text(left), b = text(right); a && b && op == Op::add) return joined(*std::move(a), *b);
  return std::unexpected('\'' + std::string(sign_of(op)) + "' does not take " + std::string(name_of(left)) +
                         " and " + std::string(name_of(right)));
}

Calculated negate(const Value& value) {
  if (is_unknown(value)) return Null{};
  if (const double* const real = std::get_if<double>(&value)) return -*real;
  if (const auto* const integer = std::get_if<std::int64_t>(&value))
    return calculate_integers(Op::subtract, 0, *integer);
  if (const auto* const duration = std::get_if<Duration>(&value))
    return from_millis<Duration>(calculate_integers(Op::subtract, 0, duration->count()));
  return std::unexpected("'-' does not take " + std::string(name_of(value)));
}

Calculated plus(const Value& value) {
  if (is_unknown(value)) return Null{};
  const bool fits =
      std::visit([]<class T>(const T&) { return one_of<T, std::int64_t, double, Duration>; }, value);
  if (fits) return value;
  return std::unexpected("'+' does not take " + std::string(name_of(value)));
}

Value logical_not(const Value& value) {
  const bool* const known = std::get_if<bool>(&value);
  return known ? Value(!*known) : Value(Null{});
}

Value logical_and(const Value& left, const Value& right) {
  if (left == Value(false) || right == Value(false)) return false;
  return left == Value(true) && right == Value(true) ? Value(true) : Value(Null{});
}

Value logical_or(const Value& left, const Value& right) {
  if (left == Value(true) || right == Value(true)) return true;
  return left == Value(false) && right == Value(false) ? Value(false) : Value(Null{});
}

}  // namespace baton::message::sql
