// The SQL filter of a subscription's rule: `WorkerId = 'eu-1' AND sys.Label LIKE 'order-%'`, in the grammar
// that Service Bus documents. Compiled once, evaluated for each message.
//
// Pure: no clock, no I/O, no chance. A filter is immutable, cheap to copy and safe to share between threads.
// Whatever the text and the message are, parsing and evaluating end in bounded time, and neither throws.
//
// Logic has three values. A property that is missing or null, and a comparison of values that do not compare
// (a text with a number), are unknown, and a message is selected only by what is true.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/message/envelope.hpp"
#include "core/message/problem.hpp"
#include "core/message/value.hpp"

namespace baton::message {

enum class Truth { no, yes, unknown };

class SqlFilter {
 public:
  // At most 1,024 characters. Parameters are what `@name` stands for; their keys may have the @ or not.
  [[nodiscard]] static std::expected<SqlFilter, Problem> parse(std::string_view text,
                                                               const Properties& parameters = {});

  // As given to parse().
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const Properties& parameters() const;

  // A problem is of this message, such as a division by zero. Service Bus dead-letters the message then, if
  // the subscription says so.
  [[nodiscard]] std::expected<Truth, Problem> evaluate(const Envelope& envelope,
                                                       const NewId& new_id = {}) const;

  // The constant, if the filter is nothing but `property = 'constant'` for that property of the application,
  // however spelt.
  [[nodiscard]] std::optional<std::string> equality(std::string_view property) const;

 private:
  struct Compiled;
  explicit SqlFilter(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace baton::message
