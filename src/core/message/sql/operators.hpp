// The operators, by the rules of C# that Service Bus refers to: an integer with a double is a double, the
// quotient of integers is one, `+` joins texts. Null and what is opaque make every result null, which is
// unknown. Private to the message folder.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "core/message/sql/program.hpp"
#include "core/message/value.hpp"

namespace baton::message::sql {

inline constexpr std::size_t text_bytes_max =
    64 << 10;  // built by `+`: all properties of a message together have no more

[[nodiscard]] bool is_unknown(const Value& value);

// A bool, or null when either is unknown or they cannot be compared: texts with texts, numbers with numbers,
// and so on.
[[nodiscard]] Value compare(Op op, const Value& left, const Value& right);

// From add to modulo; the error says what is wrong.
[[nodiscard]] std::expected<Value, std::string> calculate(Op op, const Value& left, const Value& right);
[[nodiscard]] std::expected<Value, std::string> negate(const Value& value);
[[nodiscard]] std::expected<Value, std::string> plus(const Value& value);

// Three-valued; the operands are bools or null.
[[nodiscard]] Value logical_not(const Value& value);
[[nodiscard]] Value logical_and(const Value& left, const Value& right);
[[nodiscard]] Value logical_or(const Value& left, const Value& right);

}  // namespace baton::message::sql
