#include "core/message/correlation_filter.hpp"

#include <algorithm>

#include "core/message/sql/operators.hpp"

namespace baton::message {

bool CorrelationFilter::matches(const Envelope& envelope) const {
  const auto same = [](const std::optional<std::string>& wanted, const std::optional<std::string>& found) {
    return !wanted || wanted == found;
  };
  const auto has = [&](const Properties::value_type& wanted) {
    const auto found = find_property(envelope.properties, wanted.first);
    return found != envelope.properties.end() &&
           sql::compare(sql::Op::equal, wanted.second, found->second) == Value(true);
  };
  return same(correlation_id, envelope.correlation_id) && same(message_id, envelope.message_id) &&
         same(to, envelope.to) && same(reply_to, envelope.reply_to) && same(label, envelope.label) &&
         same(session_id, envelope.session_id) && same(reply_to_session_id, envelope.reply_to_session_id) &&
         same(content_type, envelope.content_type) && std::ranges::all_of(properties, has);
}

std::optional<std::string> CorrelationFilter::equality(std::string_view property) const {
  if (properties.size() != 1 || !same_name(properties.begin()->first, property)) return std::nullopt;
  CorrelationFilter alone;
  alone.properties = properties;
  const std::string* const text = std::get_if<std::string>(&properties.begin()->second);
  return text && *this == alone ? std::optional(*text) : std::nullopt;
}

}  // namespace baton::message
