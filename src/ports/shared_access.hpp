// Shared access signatures: how clients of Service Bus show that they know a key without sending it.
//
// A signature is for a resource, an address such as `sb://host/queue`, and for what lies below it. SDKs of the management API sign
// the URL of each request with or without its query, or that of the namespace alone.
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

// Of an address the part behind scheme and host, without slashes around it.
[[nodiscard]] std::string_view path_of(std::string_view address);
// What a signature for that resource opens: a path in lower case. Empty: everything.
[[nodiscard]] std::string scope_of(std::string_view resource);
[[nodiscard]] bool covers(std::string_view scope, std::string_view address);

}  // namespace baton
