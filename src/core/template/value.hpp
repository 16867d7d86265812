// The values an evaluation works on, and the budget it works within. Values of the scope and literals are
// borrowed, never copied until they must be. Private to the template folder.
#pragma once

#include <boost/json/value.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/template/expression.hpp"
#include "core/template/program.hpp"

namespace baton::expression {

[[nodiscard]] std::unexpected<Problem> problem(std::string code, std::string message, std::string hint = {});

struct Usage {
  std::size_t steps = 0;
  std::size_t text = 0;
};

// What an evaluation may still do. Once something is used up, everything that follows fails.
class Budget {
 public:
  [[nodiscard]] Usage used() const { return {steps_max - steps_left_, text_bytes_max - text_left_}; }
  [[nodiscard]] bool steps(std::size_t count = 1) { return take(steps_left_, count, Short::steps); }
  // For looking through text or comparing it.
  [[nodiscard]] bool scan(std::size_t bytes) { return steps(bytes / 64 + 1); }
  [[nodiscard]] bool text(std::size_t bytes) { return take(text_left_, bytes, Short::text); }
  [[nodiscard]] bool depth(int depth) {
    if (depth > depth_max) short_of_ = Short::depth;
    return depth <= depth_max;
  }
  [[nodiscard]] bool is_exceeded() const { return short_of_ != Short::nothing; }
  [[nodiscard]] std::unexpected<Problem> exceeded() const;

 private:
  enum class Short { nothing, steps, text, depth };
  bool take(std::size_t& left, std::size_t count, Short what) {
    if (count <= left) [[likely]] {
      left -= count;
      return true;
    }
    left = 0;
    short_of_ = what;
    return false;
  }

  std::size_t steps_left_ = steps_max;
  std::size_t text_left_ = text_bytes_max;
  Short short_of_ = Short::nothing;
};

// A path that leads nowhere. It travels until somebody needs its value; `default` and `is defined` do not.
struct Undefined {
  enum class Why { no_root, no_member, not_an_object, no_element, not_a_container };
  const Instruction* at = nullptr;  // the step that failed
  std::uint32_t path_end = 0;       // of the whole path, with the steps after it
  Why why{};
  json::kind kind{};       // of what the step was taken on
  std::int64_t index = 0;  // no_element
  std::size_t size = 0;    // no_element
};

class Value {
 public:
  struct Absent {};

  Value() : what_(Absent{}) {}
  explicit Value(Undefined undefined) : what_(undefined) {}
  Value(json::value owned) : what_(std::move(owned)) {}  // NOLINT: filters return plain JSON
  static Value borrow(const json::value& value) {
    Value borrowed;
    borrowed.what_ = &value;
    return borrowed;
  }

  [[nodiscard]] bool is_absent() const { return std::holds_alternative<Absent>(what_); }
  [[nodiscard]] const Undefined* undefined() const { return std::get_if<Undefined>(&what_); }
  [[nodiscard]] bool is_owned() const { return std::holds_alternative<json::value>(what_); }

  // Of values that are there.
  [[nodiscard]] const json::value& operator*() const {
    if (const auto* owned = std::get_if<json::value>(&what_)) return *owned;
    return *std::get<const json::value*>(what_);
  }
  [[nodiscard]] const json::value* operator->() const { return &**this; }

  // A value inside of this one, which is given up: moved out if it is ours, borrowed if it is not.
  [[nodiscard]] Value part(const json::value& inner) && {
    if (!is_owned()) return borrow(inner);
    return Value(std::move(const_cast<json::value&>(inner)));  // inside a value that is ours and not const
  }

  // Makes it ours, by a copy if it is borrowed.
  [[nodiscard]] std::expected<json::value, Problem> take(Budget& budget) &&;

 private:
  std::variant<Absent, Undefined, const json::value*, json::value> what_;
};

using Outcome = std::expected<Value, Problem>;

[[nodiscard]] std::expected<json::value, Problem> copy(const json::value& value, Budget& budget);

[[nodiscard]] inline std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

// Numbers are equal across types; otherwise values of different types never are. False when the budget is
// exceeded.
[[nodiscard]] bool is_equal(const json::value& a, const json::value& b, Budget& budget, int depth = 0);

// Of two numbers or two strings.
[[nodiscard]] std::expected<std::partial_ordering, Problem> compare(const json::value& a,
                                                                    const json::value& b, Budget& budget);

// These are false when the budget is exceeded.
[[nodiscard]] bool append_json(std::string& out, const json::value& value, Budget& budget, int depth = 0);
// As it stands in a text: a string as it is, everything else as JSON.
[[nodiscard]] bool append_text(std::string& out, const json::value& value, Budget& budget);

}  // namespace baton::expression
