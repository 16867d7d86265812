// The lock token of a message says all that there is to know of the lock: which message, and which handing-out of it. So no table
// of locks is kept, and a lock is good over another connection and after a restart too. Who makes a token up can do no more
// than who received the message: the engine checks the lock, and the link what it is a link to.
//
// 16 bytes, as they are in a delivery tag, each number with its largest byte first:
//   entity 4 | lane 1 | delivery 3, the lower bytes of its number | sequence number 8
#pragma once

#include <optional>

#include "bus/message.hpp"
#include "ports/bus_commands.hpp"

namespace baton::bus {

[[nodiscard]] LockToken token_of(const MessageLock& lock);
// None: nobody gave such a token.
[[nodiscard]] std::optional<MessageLock> lock_of(const LockToken& token);

inline constexpr std::int64_t entity_id_max = UINT32_MAX;  // that has room

[[nodiscard]] inline MessageLock lock_of(const message::Message& message) { return {message.key(), message.locks}; }

}  // namespace baton::bus
