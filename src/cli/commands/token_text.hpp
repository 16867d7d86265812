// The secret part of access tokens. Only its hash is ever stored.
#pragma once

#include <string>

namespace baton::cli {

[[nodiscard]] std::string new_token_text();  // baton_ and 43 base64url characters of 32 random bytes
[[nodiscard]] std::string new_bus_key();     // 32 random bytes in base64, as the keys of Service Bus are
[[nodiscard]] std::string new_token_id();    // public and short: 12 hex digits

}  // namespace baton::cli
