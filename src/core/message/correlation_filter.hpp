// The correlation filter of a subscription's rule: what is set must be equal in the message, all of it.
//
// Pure data, for any thread. Texts are equal with their case, names of properties without. Numbers are equal
// by value, whether integer or double, since JavaScript knows but one kind; a text is never equal to a
// number. A filter in which nothing is set selects every message; whoever makes rules should refuse it, as
// Service Bus does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/message/envelope.hpp"
#include "core/message/value.hpp"

namespace baton::message {

struct CorrelationFilter {
  std::optional<std::string> correlation_id;
  std::optional<std::string> message_id;
  std::optional<std::string> to;
  std::optional<std::string> reply_to;
  std::optional<std::string> label;
  std::optional<std::string> session_id;
  std::optional<std::string> reply_to_session_id;
  std::optional<std::string> content_type;
  Properties properties;

  [[nodiscard]] bool empty() const { return *this == CorrelationFilter{}; }
  [[nodiscard]] bool matches(const Envelope& envelope) const;
  // The text, if this property of the application is all that is compared.
  [[nodiscard]] std::optional<std::string> equality(std::string_view property) const;

  friend bool operator==(const CorrelationFilter&, const CorrelationFilter&) = default;
};

}  // namespace baton::message
