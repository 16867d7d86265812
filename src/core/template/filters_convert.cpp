// Filters between types, and of numbers.
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/template/filters.hpp"
#include "core/template/operators.hpp"
#include "core/template/read_json.hpp"
#include "core/template/text.hpp"

namespace baton::expression::filter {
namespace {

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && text.size() > 1 && is_digit(text[1])) text.remove_prefix(1);
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

std::optional<double> read_real(std::string_view text) {
  const auto real = read_number<double>(text);
  return real && std::isfinite(*real) ? real : std::nullopt;
}

std::optional<std::int64_t> truncated(double value) {
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (!(value >= -limit && value < limit)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// The default, or else an error: quietly going on with 0 is what nobody wants.
Outcome unreadable(FilterCall& call, std::string_view what) {
  if (call.has(0)) return std::move(call.arguments[0]);
  const auto* text = call.subject->if_string();
  return problem("invalid_value",
                 (text ? in_quotes(view(*text)) : std::string(describe(call.subject->kind()))) + " is not " +
                     std::string(what),
                 "give a default for this case, as in 'int(0)'");
}

}  // namespace

Outcome preset(FilterCall& call) {
  const bool missing = call.subject.undefined() || (call.has(1) && !call.arguments[1].undefined() &&
                                                    flag_argument(call, 1) && !truthy(*call.subject));
  if (!missing) return std::move(call.subject);
  if (!call.has(0)) return json::value(json::string());
  return std::move(call.arguments[0]);
}

Outcome tojson(FilterCall& call) {
  std::string text;
  if (!append_json(text, *call.subject, call.budget)) return call.budget.exceeded();
  return json::value(json::string(text));
}

Outcome fromjson(FilterCall& call) {
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  constexpr std::size_t parser_steps = 8;  // each text has a parser of its own
  if (!call.budget.steps(parser_steps) || !call.budget.scan(text.size()) || !call.budget.text(text.size()))
    return call.budget.exceeded();
  auto value = read_json(text);
  if (!value) return problem("invalid_value", "the text is not JSON: " + value.error());
  return *std::move(value);
}

Outcome to_int(FilterCall& call) {
  const json::value& subject = *call.subject;
  if (subject.is_string() && !call.budget.scan(subject.get_string().size())) return call.budget.exceeded();
  std::optional<std::int64_t> number;
  switch (subject.kind()) {
    case json::kind::int64:
    case json::kind::uint64: return std::move(call.subject);
    case json::kind::bool_: number = subject.get_bool() ? 1 : 0; break;
    case json::kind::double_: number = truncated(subject.get_double()); break;
    case json::kind::string: {
      number = read_number<std::int64_t>(view(subject.get_string()));
      const auto real = number ? std::nullopt : read_real(view(subject.get_string()));
      if (real) number = truncated(*real);
      break;
    }
    default: break;
  }
  if (!number) return unreadable(call, "an integer");
  return json::value(*number);
}

Outcome to_float(FilterCall& call) {
  const json::value& subject = *call.subject;
  if (subject.is_string() && !call.budget.scan(subject.get_string().size())) return call.budget.exceeded();
  if (subject.is_number()) return json::value(subject.to_number<double>());
  if (const auto* flag = subject.if_bool()) return json::value(*flag ? 1.0 : 0.0);
  const auto* text = subject.if_string();
  const auto number = text ? read_real(view(*text)) : std::nullopt;
  if (!number) return unreadable(call, "a number");
  return json::value(*number);
}

Outcome to_text(FilterCall& call) {
  if (call.subject->is_string()) return std::move(call.subject);
  return tojson(call);
}

Outcome to_bool(FilterCall& call) {
  const auto* text = call.subject->if_string();
  if (!text) return json::value(truthy(*call.subject));
  std::string word;
  if (text->size() <= 5)
    for (const char c : view(*text)) word += to_lower(c);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return json::value(true);
  if (word == "false" || word == "no" || word == "off" || word == "0") return json::value(false);
  return problem("invalid_value", in_quotes(view(*text)) + " is neither true nor false",
                 "texts are true, yes, on, 1, false, no, off and 0");
}

Outcome absolute(FilterCall& call) {
  const json::value& subject = *call.subject;
  if (!subject.is_number()) return wrong_subject("a number", subject);
  if (subject.is_uint64()) return std::move(call.subject);
  if (const auto* real = subject.if_double()) return json::value(std::fabs(*real));
  if (subject.get_int64() < 0) return negate(subject);
  return std::move(call.subject);
}

// Halves away from zero. As in Jinja, the result is a float unless the subject is an integer.
Outcome round(FilterCall& call) {
  TRY_ASSIGN(const std::int64_t precision, integer_argument(call, 0, 0));
  TRY_ASSIGN(const std::string_view method, text_argument(call, 1, "common"));
  if (method != "common" && method != "ceil" && method != "floor")
    return problem("invalid_value", "the method of 'round' is 'common', 'ceil' or 'floor'");
  if (precision < 0 || precision > 15)
    return problem("invalid_value", "the precision of 'round' is between 0 and 15");
  const json::value& subject = *call.subject;
  if (!subject.is_number()) return wrong_subject("a number", subject);
  if (!subject.is_double()) return std::move(call.subject);
  const double factor = std::pow(10.0, static_cast<double>(precision));
  const double scaled = subject.get_double() * factor;
  if (std::fabs(scaled) >= 9007199254740992.0) return std::move(call.subject);  // no digits left to round
  const double rounded = method == "ceil"    ? std::ceil(scaled)
                         : method == "floor" ? std::floor(scaled)
                                             : std::round(scaled);
  return json::value(rounded / factor);
}

}  // namespace baton::expression::filter
