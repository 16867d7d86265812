// What may happen to a message that is there, on its row. Pure; whoever calls writes what comes out.
#pragma once

#include "core/message/changes.hpp"
#include "core/message/rows.hpp"
#include "core/message/rule.hpp"
#include "core/message/settings.hpp"

namespace baton::message {

// Times from then on are never: nobody can write them down.
inline constexpr Time never{Duration{253'402'300'799'000}};
// None: it is never.
[[nodiscard]] inline std::optional<Time> after(Time now, Duration time) {
  if (time >= never - now) return std::nullopt;
  return now + time;
}

struct DeadLetter {
  std::string reason, description;
};

// Nobody is given it any more. What is locked goes on until it is not.
[[nodiscard]] inline bool is_expired(const Message& message, Time now) {
  return (message.lane == Lane::active || message.lane == Lane::deferred) && message.due_at && *message.due_at <= now;
}

// It was handed out as often as is allowed. Dead letters may be handed out for ever.
[[nodiscard]] inline bool is_exhausted(Lane lane, std::int32_t delivery_count, const Settings& settings) {
  return (lane == Lane::active || lane == Lane::deferred) && delivery_count >= settings.deliveries_max;
}

[[nodiscard]] inline bool is_dead(Lane lane) { return lane == Lane::dead || lane == Lane::shelved; }

// Somebody is given it.
inline void lock(Message& message, Time now, const Settings& settings) {
  ++message.delivery_count;
  ++message.locks;
  message.locked_until = now + settings.lock_time;
}

// A message that is sent, or whose time has come, in a queue or a subscription. What its time to live was when it was
// sent, the entity may shorten.
[[nodiscard]] Message enqueued(Message message, std::int64_t entity_id, std::int64_t sequence_number, Time now, const Settings& settings);

[[nodiscard]] Message dead_lettered(Message message, const DeadLetter& why, std::string_view path);
[[nodiscard]] Message deferred(Message message);
// As if it had been sent now.
[[nodiscard]] Message replayed(Message message, std::int64_t sequence_number, Time now, const Settings& settings);

// What receivers change of its properties when they settle it.
[[nodiscard]] OptionalJson with_changes(const OptionalJson& before, const Changes& more);

[[nodiscard]] DeadLetter too_many_deliveries(std::int32_t delivery_count);
[[nodiscard]] DeadLetter expired();
[[nodiscard]] DeadLetter filter_failed(const Failure& failure);

}  // namespace baton::message
