#include "bus/messages/lock_token.hpp"

namespace baton::bus {
LockToken token_of(const MessageLock& lock) {
  LockToken token;
  put_number(token, 0, 4, static_cast<std::uint64_t>(lock.message.entity_id));
  put_number(token, 4, 1, static_cast<std::uint64_t>(lock.message.lane));
  put_number(token, 5, 3, static_cast<std::uint64_t>(lock.number));
  put_number(token, 8, 8, static_cast<std::uint64_t>(lock.message.sequence_number));
  return token;
}

std::optional<MessageLock> lock_of(const LockToken& token) {
  const std::uint64_t lane = number_in(token, 4, 1);
  if (lane > static_cast<std::uint64_t>(message::Lane::shelved)) return std::nullopt;
  const auto number = static_cast<std::int64_t>(number_in(token, 8, 8));
  if (number <= 0) return std::nullopt;
  return MessageLock{{static_cast<std::int64_t>(number_in(token, 0, 4)), static_cast<message::Lane>(lane), number},
                     static_cast<std::int32_t>(number_in(token, 5, 3))};
}

}  // namespace baton::bus
