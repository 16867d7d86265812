// Who may do what: four roles, and tokens, of which only the SHA-256 is stored.
#pragma once

#include <string>
#include <string_view>

#include "ports/reads.hpp"

namespace baton {

// What is stored of a token: its SHA-256 in hex.
[[nodiscard]] std::string token_hash(std::string_view token);
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

// open: a request without a token acts as admin. A token that is sent must be valid in either mode.
enum class Access { open, required };

// What a request asks for.
enum class Permission { none, read, submit, publish, work };
[[nodiscard]] bool allows(Role role, Permission permission);

}  // namespace baton
