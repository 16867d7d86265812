#include "ports/access.hpp"

#include <openssl/sha.h>

#include <array>

namespace baton {

std::string sha256_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  hex.reserve(digest.size() * 2);
  for (const auto byte : digest) {
    hex += digits[byte >> 4U];
    hex += digits[byte & 15U];
  }
  return hex;
}

std::string token_hash(std::string_view token) { return sha256_hex(token); }

bool allows(Role role, Permission permission) {
  switch (permission) {
    case Permission::none: return true;
    case Permission::read: return role != Role::worker;
    case Permission::submit:
    case Permission::publish: return role == Role::admin || role == Role::operator_;
    case Permission::work: return role == Role::admin || role == Role::worker;
  }
  return false;
}

}  // namespace baton
