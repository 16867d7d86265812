// An idempotency key stands for one request: who sends it again is answered as the first time, and who sends
// another request with it has made a mistake. One rule for jobs and for service calls; pure.
#pragma once

#include <string>
#include <string_view>

namespace baton::idempotency {

enum class Use { fresh, same, reused };

// stored_hash: of the request that the key was used for; null: it was not used.
[[nodiscard]] inline Use judge(const std::string* stored_hash, std::string_view request_hash) {
  if (!stored_hash) return Use::fresh;
  return *stored_hash == request_hash ? Use::same : Use::reused;
}

inline constexpr std::string_view reused_message = "this idempotency key was used before, for a different request";

}  // namespace baton::idempotency
