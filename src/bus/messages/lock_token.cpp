#include "bus/messages/lock_token.hpp"

#include <cstddef>

namespace baton::bus {
namespace {

void put_bytes(LockToken& token, std::size_t at, std::size_t count, std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i) token[at + i] = static_cast<char>(value >> ((count - 1 - i) * 8));
}

std::uint64_t get_bytes(const LockToken& token, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(token[at + i]);
  return value;
}

}  // namespace

LockToken token_of(const MessageLock& lock) {
  LockToken token;
  put_bytes(token, 0, 4, static_cast<std::uint64_t>(lock.message.entity_id));
  put_bytes(token, 4, 1, static_cast<std::uint64_t>(lock.message.lane));
  put_bytes(token, 5, 3, static_cast<std::uint64_t>(lock.number));
  put_bytes(token, 8, 8, static_cast<std::uint64_t>(lock.message.sequence_number));
  return token;
}

std::optional<MessageLock> lock_of(const LockToken& token) {
  const std::uint64_t lane = get_bytes(token, 4, 1);
  if (lane > static_cast<std::uint64_t>(message::Lane::shelved)) return std::nullopt;
  const auto number = static_cast<std::int64_t>(get_bytes(token, 8, 8));
  if (number <= 0) return std::nullopt;
  return MessageLock{{static_cast<std::int64_t>(get_bytes(token, 0, 4)), static_cast<message::Lane>(lane), number},
                     static_cast<std::int32_t>(get_bytes(token, 5, 3))};
}

}  // namespace baton::bus
