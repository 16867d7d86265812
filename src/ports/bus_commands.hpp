// What may be asked of the engine about queues, topics, subscriptions and their messages, and what it answers; see
// commands.hpp. What a message says is encoded by the bus, and nobody else looks inside.
#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/message/changes.hpp"
#include "core/message/envelope.hpp"
#include "core/message/rows.hpp"
#include "core/message/rule_description.hpp"
#include "core/message/settings.hpp"
#include "ports/refusal.hpp"

namespace baton {

// A queue "orders", a topic "events" or a subscription "events/Subscriptions/audit", in whatever case.
struct EntityKey {
  Tenant tenant;
  std::string path;
};

// ---- commands ----

inline constexpr std::size_t numbers_max = 250;    // of messages in one command: each may be a message of a mebibyte
inline constexpr std::size_t replays_max = 1'000;  // of one command that names none

struct NewMessage {
  std::string message_id;  // never empty
  std::optional<Duration> time_to_live;
  std::optional<Time> scheduled_for;  // in the past: at once
  Bytes annotations, content;
  // What rules see of it; without one, rules see its message id alone. Only topics look at it.
  std::shared_ptr<const message::Envelope> envelope;
};

// To a queue or a topic. The messages of a transfer are taken together or not at all; each transfer is answered by itself.
struct SendMessages {
  EntityKey to;
  std::vector<std::vector<NewMessage>> transfers;
};

// A message that somebody has: which one, and which lock of it. It is all that a lock token says.
struct MessageLock {
  message::MessageKey message;
  std::int32_t number = 0;  // `locks` of the message when it was handed out, or what of it has room in a token
  static constexpr std::int32_t number_mask = 0xff'ffff;
  // No two locks of a message that anybody may still remember have the same.
  [[nodiscard]] bool is_numbered(std::int32_t locks) const { return ((number ^ locks) & number_mask) == 0; }
};

struct Settlement {
  enum class How {
    complete,     // it is done, and gone
    abandon,      // the next receiver gets it
    defer,        // it waits until it is asked for by its number
    dead_letter,  // for a reason
    release,      // as abandon, and the delivery does not count: the receiver never looked at it
  };
  MessageLock lock;
  How how{};
  std::string reason, description;  // of a dead letter
  message::Changes changes;         // of its properties, if it stays
};
struct SettleMessages {
  std::optional<Tenant> tenant;  // none: a caller who may act for all of them
  std::vector<Settlement> settlements;
};

struct RenewLocks {
  std::optional<Tenant> tenant;
  std::vector<MessageLock> locks;
};

// Without receiving them: of the dead-letter queue, or active, deferred and scheduled ones, by number from `first` on.
struct PeekMessages {
  EntityKey from;
  bool dead = false;
  std::int64_t first = 0;
  std::uint32_t max = 1;  // fewer when they are large: about 4 MiB
  std::optional<message::Lane> lane;  // only those of this one
};

// By number. They are locked as if they had been handed out, or gone at once. All of them or none; 8 MiB at most, if they are several.
struct ReceiveDeferred {
  EntityKey from;
  bool dead = false;
  std::vector<std::int64_t> sequence_numbers;
  bool deletes = false;
};

// Those that are not there any more are not missed.
struct CancelScheduled {
  EntityKey from;
  std::vector<std::int64_t> sequence_numbers;
};

// Dead letters go back to where they came from, as if they had just been sent there, without what their dead-lettering
// added. Locked ones stay. Of those that are named all are there, or none is touched; 8 MiB at most, if they are several.
struct ReplayDeadLetters {
  EntityKey from;
  std::vector<std::int64_t> sequence_numbers;  // empty: the first `max`
  std::uint32_t max = 100;                     // at most replays_max
  // Of the first ones: those from `first` to `up_to`. A message that is replayed has a new number, so that whoever goes on
  // behind the last one, up to the number that was the last at the beginning, comes to an end.
  std::int64_t first = 0, up_to = std::numeric_limits<std::int64_t>::max();
};

// Makes, changes or deletes a queue, a topic or a subscription. Deleting takes its messages and subscriptions with it.
struct ChangeEntity {
  enum class What { create, update, remove };
  What what{};
  EntityKey key;
  message::EntityType type{};
  message::Settings settings;
  std::vector<message::RuleDescription> rules;  // of a new subscription; empty: the default rule
};

struct ChangeRule {
  enum class What { add, replace, remove };
  What what{};
  EntityKey subscription;
  message::RuleDescription rule;  // only the name, if it is removed
};

struct FindEntity {
  EntityKey key;
  bool is_attach = false;  // for a link: what baton has of its own is made for the tenant first. A look makes nothing.
};
// In the order of their paths: queues or topics, or the subscriptions of one topic, which must be there.
struct ListEntities {
  Tenant tenant;
  message::EntityType type{};
  std::string topic;
  std::size_t skip = 0, max = 100;
};

// ---- replies ----

struct SentReply {
  // Of each transfer, the sequence numbers of its messages; 0: it was a duplicate, and dropped.
  std::vector<std::expected<std::vector<std::int64_t>, Refused>> transfers;
};

struct SettledReply {  // one for each, in order; none: it is done
  std::vector<std::optional<Refused>> settled;
};

struct RenewedReply {
  std::vector<std::expected<Time, Refused>> until;
};

struct MessagesReply {
  std::vector<std::shared_ptr<const message::Message>> messages;
};

struct ReplayedReply {
  std::size_t replayed = 0;
  bool are_more = false;  // behind `last`
  std::int64_t last = 0;  // number that was looked at; 0: none
};

struct EntityInfo {
  message::Entity entity;
  message::Settings settings;
  std::vector<message::RuleDescription> rules;
  message::Counters counters;
  std::size_t subscriptions = 0;  // of a topic
  bool is_reserved = false;       // baton's own: it can be neither deleted nor changed
  // The pool of workers that this subscription is; its counters are nothing then, because jobs are no messages.
  std::optional<std::string> pool;
  bool counts_are_at_least = false;  // whoever counted the jobs of a pool has stopped at some number
};
struct EntitiesReply {
  std::vector<EntityInfo> entities;
};

}  // namespace baton
