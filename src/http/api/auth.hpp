// Bearer tokens, of which only the SHA-256 is known. What they allow is in ports/access.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ports/access.hpp"

namespace baton::http {

// Remembers what tokens are worth for a short while, so that a busy client costs no query per request and a
// revoked token is dead within the cache's time. Owned by the I/O thread.
class TokenCache {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  struct Known {
    std::optional<Token> token;  // none: it is worth nothing
    Instant until;
  };
  explicit TokenCache(std::chrono::milliseconds keep, std::size_t entries_max = 10'000);

  // None: ask the store. In the second half of its time one is told to ask, while the others go on with what
  // is known: thousands of streams with one token do not ask at the same moment.
  [[nodiscard]] std::optional<Known> find(const std::string& hash, Instant now);
  // Until when it is known.
  Instant remember(const std::string& hash, std::optional<Token> token, Instant now);

 private:
  struct Entry {
    Known known;
    Instant ask_at;
  };
  std::chrono::milliseconds keep_;
  std::size_t entries_max_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace baton::http
