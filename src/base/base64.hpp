// Bytes as text (RFC 4648): the form for URLs, without padding, and the usual one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

[[nodiscard]] std::string base64url(std::string_view bytes);
[[nodiscard]] std::optional<std::string> from_base64url(std::string_view text);
// Padded to a multiple of four characters, without blanks.
[[nodiscard]] std::string base64(std::string_view bytes);
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace baton
