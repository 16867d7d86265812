#include "http/api/auth.hpp"

#include <openssl/sha.h>

#include <array>
#include <utility>

namespace baton::http {

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

TokenCache::TokenCache(std::chrono::milliseconds keep, std::size_t entries_max)
    : keep_(keep), entries_max_(entries_max) {}

std::optional<TokenCache::Known> TokenCache::find(const std::string& hash, Instant now) {
  const auto it = entries_.find(hash);
  if (it == entries_.end() || now >= it->second.known.until) return std::nullopt;
  if (now >= it->second.ask_at) {
    it->second.ask_at = it->second.known.until;
    return std::nullopt;
  }
  return it->second.known;
}

TokenCache::Instant TokenCache::remember(const std::string& hash, std::optional<Token> token, Instant now) {
  // Starting over bounds the memory that somebody who tries random tokens can take.
  if (entries_.size() >= entries_max_ && !entries_.contains(hash)) entries_.clear();
  const Instant until = now + keep_;
  entries_.insert_or_assign(hash, Entry{{std::move(token), until}, now + keep_ / 2});
  return until;
}

}  // namespace baton::http
