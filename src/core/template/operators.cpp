#include "core/template/operators.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>

#include "base/result.hpp"
#include "core/template/text.hpp"

namespace baton::expression {
namespace {

std::string named(const json::value& value) { return std::string(describe(value.kind())); }

std::unexpected<Problem> overflow() {
  return problem("out_of_range", "the result does not fit into 64 bits",
                 "calculate with floats: 1.0 * value");
}
std::unexpected<Problem> by_zero() { return problem("division_by_zero", "division by zero"); }

std::expected<json::value, Problem> finite(double value) {
  if (std::isfinite(value)) return value;
  return problem("out_of_range", "the result is not a finite number");
}

// Python's rules, which are Jinja's: the quotient is rounded down, the remainder has the divisor's sign.
std::expected<json::value, Problem> calculate_integers(Op op, std::int64_t a, std::int64_t b) {
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
    case Op::divide:
      if (b == 0) return by_zero();
      return finite(static_cast<double>(a) / static_cast<double>(b));
    case Op::floor_divide:
      if (b == 0) return by_zero();
      if (b == -1) return calculate_integers(Op::subtract, 0, a);  // the one quotient that can overflow
      return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    default:
      if (b == 0) return by_zero();
      if (b == -1) return 0;
      return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
  }
}

std::expected<json::value, Problem> calculate_reals(Op op, double a, double b) {
  switch (op) {
    case Op::add: return finite(a + b);
    case Op::subtract: return finite(a - b);
    case Op::multiply: return finite(a * b);
    case Op::divide:
      if (b == 0) return by_zero();
      return finite(a / b);
    case Op::floor_divide:
      if (b == 0) return by_zero();
      return finite(std::floor(a / b));
    default: {
      if (b == 0) return by_zero();
      const double remainder = std::fmod(a, b);
      return finite(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
    }
  }
}

std::string_view verb(Op op) {
  switch (op) {
    case Op::add: return "add";
    case Op::subtract: return "subtract";
    case Op::multiply: return "multiply";
    default: return "divide";
  }
}

std::unexpected<Problem> cannot_calculate(Op op, const json::value& left, const json::value& right) {
  const bool text = left.is_string() || right.is_string();
  return problem("wrong_type", "cannot " + std::string(verb(op)) + ' ' + named(left) + " and " + named(right),
                 op == Op::add && text ? "'~' joins values of any type as text" : "");
}

Outcome concatenate_lists(Value left, Value right, Budget& budget) {
  TRY_ASSIGN(json::value all, std::move(left).take(budget));
  TRY_ASSIGN(json::value more, std::move(right).take(budget));
  json::array& array = all.get_array();
  if (!budget.steps(more.get_array().size())) return budget.exceeded();
  array.reserve(array.size() + more.get_array().size());
  for (json::value& each : more.get_array()) array.push_back(std::move(each));
  return all;
}

// Appends to the left text in place when it is ours, so that a long chain of ~ does not copy it each time.
Outcome concatenate_text(Value left, const json::value& right, Budget& budget) {
  std::string tail;
  if (!append_text(tail, right, budget)) return budget.exceeded();
  if (left.is_owned() && left->is_string()) {
    TRY_ASSIGN(json::value text, std::move(left).take(budget));
    text.get_string().append(boost::json::string_view(tail));
    return text;
  }
  std::string text;
  if (!append_text(text, *left, budget)) return budget.exceeded();
  return json::value(json::string(text + tail));
}

Outcome add(Value left, Value right, Budget& budget) {
  if (left->is_string() && right->is_string()) return concatenate_text(std::move(left), *right, budget);
  if (left->is_array() && right->is_array())
    return concatenate_lists(std::move(left), std::move(right), budget);
  return calculate(Op::add, *left, *right);
}

Outcome ordered(Op op, const json::value& left, const json::value& right, Budget& budget) {
  TRY_ASSIGN(const std::partial_ordering order, compare(left, right, budget));
  switch (op) {
    case Op::less: return json::value(order < 0);
    case Op::less_equal: return json::value(order <= 0);
    case Op::greater: return json::value(order > 0);
    default: return json::value(order >= 0);
  }
}

// A limit of a slice as a place between 0 and size; negative ones count from the end.
std::expected<std::size_t, Problem> limit(const Value& value, std::size_t preset, std::size_t size) {
  if (value.is_absent() || value->is_null()) return preset;
  const auto* index = value->if_int64();
  if (!index) return problem("wrong_type", "a slice is written with integers, found " + named(*value));
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t place = *index < 0 ? std::max(*index, -length) + length : std::min(*index, length);
  return static_cast<std::size_t>(place);
}

// The byte at which the character with this number begins.
std::size_t byte_of(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  while (character-- > 0 && at < text.size()) at += character_size(text, at);
  return at;
}

}  // namespace

std::expected<json::value, Problem> calculate(Op op, const json::value& left, const json::value& right) {
  if (!left.is_number() || !right.is_number()) return cannot_calculate(op, left, right);
  if (left.is_int64() && right.is_int64()) return calculate_integers(op, left.get_int64(), right.get_int64());
  const bool real = left.is_double() || right.is_double();
  if (!real) return problem("out_of_range", "cannot calculate with integers beyond 64 bits with a sign");
  return calculate_reals(op, left.to_number<double>(), right.to_number<double>());
}

Outcome negate(const json::value& value) {
  constexpr std::uint64_t least = std::uint64_t{1} << 63;
  if (const auto* u = value.if_uint64(); u && *u == least)
    return json::value(std::numeric_limits<std::int64_t>::min());
  if (const auto* real = value.if_double()) return json::value(-*real);
  if (!value.is_number()) return problem("wrong_type", "cannot negate " + named(value));
  return calculate(Op::subtract, json::value(0), value);
}

Outcome binary(Op op, Value left, Value right, Budget& budget) {
  switch (op) {
    case Op::add: return add(std::move(left), std::move(right), budget);
    case Op::subtract:
    case Op::multiply:
    case Op::divide:
    case Op::floor_divide:
    case Op::modulo: return calculate(op, *left, *right);
    case Op::concatenate: return concatenate_text(std::move(left), *right, budget);
    case Op::equal:
    case Op::not_equal: return json::value(is_equal(*left, *right, budget) == (op == Op::equal));
    case Op::in:
    case Op::not_in: {
      TRY_ASSIGN(const bool found, contains(*right, *left, budget));
      return json::value(found == (op == Op::in));
    }
    default: return ordered(op, *left, *right, budget);
  }
}

std::expected<bool, Problem> contains(const json::value& container, const json::value& value,
                                      Budget& budget) {
  if (const auto* array = container.if_array()) {
    for (const json::value& each : *array)
      if (is_equal(each, value, budget)) return true;
    return false;
  }
  const auto* text = value.if_string();
  if (text && !budget.scan(text->size())) return budget.exceeded();
  if (const auto* object = container.if_object()) return text && object->contains(*text);
  if (!container.is_string() || !text)
    return problem("wrong_type", "cannot look for " + named(value) + " in " + named(container));
  const std::string_view all = view(container.get_string());
  if (!budget.scan(all.size())) return budget.exceeded();
  return find_text(all, view(*text)) != all.npos;
}

Outcome slice(Value container, const Value& from, const Value& to, Budget& budget) {
  if (const auto* text = container->if_string()) {
    const std::string_view all = view(*text);
    if (!budget.scan(all.size())) return budget.exceeded();
    const std::size_t size = character_count(all);
    TRY_ASSIGN(const std::size_t first, limit(from, 0, size));
    TRY_ASSIGN(const std::size_t last, limit(to, size, size));
    const std::size_t begin = byte_of(all, first);
    const std::size_t end = std::max(begin, byte_of(all, last));
    if (!budget.text(end - begin)) return budget.exceeded();
    return json::value(json::string(all.substr(begin, end - begin)));
  }
  const auto* array = container->if_array();
  if (!array) return problem("wrong_type", "cannot take a slice of " + named(*container));
  TRY_ASSIGN(const std::size_t first, limit(from, 0, array->size()));
  TRY_ASSIGN(const std::size_t last, limit(to, array->size(), array->size()));
  json::array part;
  if (!budget.steps(last > first ? last - first : 0)) return budget.exceeded();
  for (std::size_t i = first; i < last; ++i) {
    TRY_ASSIGN(json::value each, copy((*array)[i], budget));
    part.push_back(std::move(each));
  }
  return json::value(std::move(part));
}

}  // namespace baton::expression
