// Values as JSON that keeps their types: {"time": …} and {"duration": …} in milliseconds, {"bytes": …} in Base64, a real
// with a point or an exponent.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>

#include "core/message/value.hpp"

namespace baton::message {

void append_typed(std::string& out, const Value& value);
void append_typed(std::string& out, const Properties& properties);
[[nodiscard]] std::optional<Value> read_typed(const boost::json::value& json);
[[nodiscard]] std::optional<Properties> read_typed_properties(const boost::json::value& json);

}  // namespace baton::message
