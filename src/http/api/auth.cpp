#include "http/api/auth.hpp"

#include <utility>

namespace baton::http {

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
