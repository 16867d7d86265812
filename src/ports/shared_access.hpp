// Shared access signatures: how clients of Service Bus show that they know a key without sending it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace baton {

struct SharedAccess {
  std::string resource;   // as it was signed, still escaped
  std::string signature;  // base64
  std::string key_name;
  Time expires{};
};

// SharedAccessSignature sr=…&sig=…&se=…&skn=…, in any order.
[[nodiscard]] std::optional<SharedAccess> parse_shared_access(std::string_view token);
// In a time that does not depend on where the two differ.
[[nodiscard]] bool is_signed_with(const SharedAccess& access, std::string_view key);
// The token of who knows the key, for that resource, until then.
[[nodiscard]] std::string sign_shared_access(std::string_view resource, std::string_view key_name, std::string_view key, Time expires);

}  // namespace baton
