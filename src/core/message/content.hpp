// What people are shown of a message: its content, which is kept as it was sent in the encoding of AMQP 1.0, as JSON. Nothing
// is decided by it; whoever receives the message gets the bytes.
//
// Pure, for any thread. The bytes are anybody's: whatever they are, reading ends in time that their number bounds.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.hpp"

namespace baton::message {

struct ShownContent {
  enum class Body {
    none,
    json,    // a JSON document, or a value of AMQP that is like one
    text,
    base64,  // bytes that are no text
  };
  Json properties{"{}"};              // those that are set, by their names in AMQP with _ for -: {"subject": …}
  Json application_properties{"{}"};  // binary values in Base64, times in ISO 8601
  Body body_type = Body::none;
  Json body{"null"};
};
[[nodiscard]] std::string_view name(ShownContent::Body body);

// None: the bytes are no sections of a message.
[[nodiscard]] std::optional<ShownContent> show_content(std::string_view content);

}  // namespace baton::message
