// The SQL action of a subscription's rule: `SET quantity = quantity / 2; SET sys.Label = 'half'; REMOVE
// priority`. Compiled once, applied to the copy of a message that the rule's filter has selected.
//
// Pure, immutable, cheap to copy and safe to share between threads, as filters are; the expressions are
// theirs. The statements run in their order, and each sees what those before it did.
//
// SET makes or changes a property. An integer that is put where a double was becomes one; otherwise the type
// is the value's. What is unknown sets null. Names find properties in any case, and an existing spelling
// stays. Of the system properties those can be set and removed that Service Bus does not document as
// read-only, but for the time to be enqueued at.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "core/message/envelope.hpp"
#include "core/message/problem.hpp"
#include "core/message/value.hpp"

namespace baton::message {

inline constexpr std::size_t statements_max = 32;  // as Service Bus has it

class SqlAction {
 public:
  // At most 1,024 characters. Between statements there may be a semicolon, a comma or nothing.
  [[nodiscard]] static std::expected<SqlAction, Problem> parse(std::string_view text,
                                                               const Properties& parameters = {});

  // As given to parse().
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const Properties& parameters() const;

  // The envelope with its changes, or why it cannot be changed. All statements count, or none.
  [[nodiscard]] std::expected<Envelope, Problem> apply(Envelope envelope, const NewId& new_id = {}) const;

 private:
  struct Compiled;
  explicit SqlAction(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace baton::message
