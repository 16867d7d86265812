#include "core/template/value.hpp"

#include <boost/json.hpp>
#include <cmath>
#include <compare>

#include "base/json.hpp"
#include "base/result.hpp"

namespace baton::expression {
namespace {

// About the size of its JSON text. Recursion ends at the depth limit.
bool charge(const json::value& value, Budget& budget, int depth) {
  constexpr std::size_t scalar_bytes = 4;
  if (const auto* text = value.if_string()) return budget.text(text->size() + scalar_bytes);
  if (const auto* array = value.if_array()) {
    if (!budget.depth(depth + 1) || !budget.text(scalar_bytes)) return false;
    for (const json::value& each : *array)
      if (!charge(each, budget, depth + 1)) return false;
    return true;
  }
  if (const auto* object = value.if_object()) {
    if (!budget.depth(depth + 1) || !budget.text(scalar_bytes)) return false;
    for (const auto& member : *object)
      if (!budget.text(member.key().size() + scalar_bytes) || !charge(member.value(), budget, depth + 1))
        return false;
    return true;
  }
  return budget.text(scalar_bytes);
}

std::partial_ordering compare_numbers(const json::value& a, const json::value& b) {
  // The mantissa of a long double holds each 64-bit integer and each double exactly.
  const auto number = [](const json::value& value) -> long double {
    if (const auto* i = value.if_int64()) return static_cast<long double>(*i);
    if (const auto* u = value.if_uint64()) return static_cast<long double>(*u);
    return value.get_double();
  };
  return number(a) <=> number(b);
}

bool are_equal_objects(const json::object& a, const json::object& b, Budget& budget, int depth) {
  if (a.size() != b.size()) return false;
  for (const auto& member : a) {
    const json::value* other = b.if_contains(member.key());
    if (!other || !is_equal(member.value(), *other, budget, depth)) return false;
  }
  return true;
}

}  // namespace

std::unexpected<Problem> problem(std::string code, std::string message, std::string hint) {
  return std::unexpected(Problem{0, std::move(message), std::move(hint), std::move(code)});
}

std::unexpected<Problem> Budget::exceeded() const {
  switch (short_of_) {
    case Short::steps:
      return problem("too_many_steps",
                     "the evaluation takes more than " + std::to_string(steps_max) + " steps");
    case Short::text:
      return problem("too_large",
                     "the evaluation builds more than " + std::to_string(text_bytes_max >> 20) + " MiB");
    case Short::depth:
    case Short::nothing: break;
  }
  return problem("too_deep", "the value is nested deeper than " + std::to_string(depth_max) + " levels");
}

std::expected<json::value, Problem> copy(const json::value& value, Budget& budget) {
  if (!charge(value, budget, 0)) return budget.exceeded();
  return json::value(value, json::storage_ptr());  // the scope's memory may be gone before the result is
}

std::expected<json::value, Problem> Value::take(Budget& budget) && {
  if (auto* owned = std::get_if<json::value>(&what_)) return std::move(*owned);
  return copy(**this, budget);
}

bool is_equal(const json::value& a, const json::value& b, Budget& budget, int depth) {
  if (!budget.steps() || !budget.depth(depth)) return false;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case json::kind::bool_: return a.get_bool() == b.get_bool();
    case json::kind::string:
      return a.get_string().size() == b.get_string().size() && budget.scan(a.get_string().size()) &&
             a.get_string() == b.get_string();
    case json::kind::array: {
      const json::array& x = a.get_array();
      const json::array& y = b.get_array();
      if (x.size() != y.size()) return false;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!is_equal(x[i], y[i], budget, depth + 1)) return false;
      return true;
    }
    case json::kind::object: return are_equal_objects(a.get_object(), b.get_object(), budget, depth + 1);
    default: return true;  // null
  }
}

std::expected<std::partial_ordering, Problem> compare(const json::value& a, const json::value& b,
                                                      Budget& budget) {
  if (a.is_number() && b.is_number()) {
    if (!budget.steps()) return budget.exceeded();
    return compare_numbers(a, b);
  }
  if (a.is_string() && b.is_string()) {
    const std::string_view x = view(a.get_string());
    const std::string_view y = view(b.get_string());
    if (!budget.scan(std::min(x.size(), y.size()))) return budget.exceeded();
    return std::partial_ordering(x <=> y);
  }
  return problem("wrong_type", "cannot order " + std::string(describe(a.kind())) + " and " +
                                   std::string(describe(b.kind())));
}

bool append_json(std::string& out, const json::value& value, Budget& budget, int depth) {
  const std::size_t before = out.size();
  bool first = true;
  const auto open = [&](char sign) {
    out += sign;
    return budget.depth(depth + 1) && budget.text(2);
  };
  const auto separate = [&] {
    if (!std::exchange(first, false)) out += ',';
    return budget.text(1);
  };
  switch (value.kind()) {
    case json::kind::null: out += "null"; break;
    case json::kind::bool_: out += value.get_bool() ? "true" : "false"; break;
    case json::kind::int64: out += std::to_string(value.get_int64()); break;
    case json::kind::uint64: out += std::to_string(value.get_uint64()); break;
    case json::kind::double_: append_real(out, value.get_double()); break;
    case json::kind::string: {
      const std::string_view text = view(value.get_string());
      if (!budget.text(text.size())) return false;
      append_quoted(out, text);
      return budget.text(out.size() - before - text.size());  // quotes and escapes
    }
    case json::kind::array:
      if (!open('[')) return false;
      for (const json::value& each : value.get_array())
        if (!separate() || !append_json(out, each, budget, depth + 1)) return false;
      out += ']';
      return true;
    case json::kind::object:
      if (!open('{')) return false;
      for (const auto& member : value.get_object()) {
        if (!separate() || !budget.text(member.key().size() + 3)) return false;
        append_quoted(out, {member.key().data(), member.key().size()});
        out += ':';
        if (!append_json(out, member.value(), budget, depth + 1)) return false;
      }
      out += '}';
      return true;
  }
  return budget.text(out.size() - before);
}

bool append_text(std::string& out, const json::value& value, Budget& budget) {
  const auto* text = value.if_string();
  if (!text) return append_json(out, value, budget);
  if (!budget.text(text->size())) return false;
  out += view(*text);
  return true;
}

bool truthy(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return false;
    case json::kind::bool_: return value.get_bool();
    case json::kind::int64: return value.get_int64() != 0;
    case json::kind::uint64: return value.get_uint64() != 0;
    case json::kind::double_: return value.get_double() != 0;
    case json::kind::string: return !value.get_string().empty();
    case json::kind::array: return !value.get_array().empty();
    case json::kind::object: return !value.get_object().empty();
  }
  return false;
}

std::string_view describe(json::kind kind) {
  switch (kind) {
    case json::kind::null: return "null";
    case json::kind::bool_: return "a boolean";
    case json::kind::int64:
    case json::kind::uint64: return "an integer";
    case json::kind::double_: return "a number";
    case json::kind::string: return "a string";
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "";
}

}  // namespace baton::expression
