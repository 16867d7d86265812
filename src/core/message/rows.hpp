// The stored shape of queues, topics and subscriptions and of the messages in them: one struct per table, one field per
// column.
//
// A queue and a subscription hold messages, each in one lane. A message that goes to another lane is a row that goes and
// a row that comes, so that what is looked for in order (what waits, what is due) never lies behind what is not. A topic
// has messages in the lane `scheduled` only.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace baton::message {

enum class EntityType { queue, topic, subscription };
[[nodiscard]] std::string_view name(EntityType type);
[[nodiscard]] std::optional<EntityType> entity_type(std::string_view name);

enum class Lane {
  active,     // waits for a receiver, or is locked by one
  dead,       // the dead-letter queue: the same there
  scheduled,  // is enqueued when its time comes
  deferred,   // waits to be asked for by its number
  shelved,    // the same, of the dead-letter queue
};
[[nodiscard]] std::string_view name(Lane lane);
[[nodiscard]] std::optional<Lane> lane(std::string_view name);

// bus_entities, key entity_id. Ids are not used again. A path is unique in its tenant, in whatever case it is written.
struct Entity {
  std::int64_t entity_id = 0;
  Tenant tenant_id;
  EntityType entity_type{};
  std::string path;  // "orders"; of a subscription "events/Subscriptions/audit"
  Time created_at{};
  Time updated_at{};
  Json settings{"{}"};  // see settings.hpp
  Json rules{"[]"};     // of a subscription; see rule_description.hpp
  friend bool operator==(const Entity&, const Entity&) = default;
};

// bus_counters, key entity_id: what of an entity changes with its messages.
struct Counters {
  std::int64_t entity_id = 0;
  std::int64_t last_sequence_number = 0;  // that was given to a message
  std::int64_t active = 0, dead = 0, scheduled = 0, deferred = 0;  // messages; shelved ones are among the dead
  std::int64_t bytes = 0;                 // of them all
  Time accessed_at{};                     // something was sent or received
  std::optional<Time> wake_at;            // the time of its timer; none: there is no timer
  friend bool operator==(const Counters&, const Counters&) = default;
};

struct MessageKey {
  std::int64_t entity_id = 0;
  Lane lane{};
  std::int64_t sequence_number = 0;
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

// bus_messages, key (entity_id, lane, sequence_number).
struct Message {
  std::int64_t entity_id = 0;
  Lane lane{};
  std::int64_t sequence_number = 0;
  std::int32_t delivery_count = 0;      // how often it was handed out and neither settled nor given back unseen
  std::int32_t locks = 0;               // how often it was locked: the number of its last lock
  std::optional<Time> locked_until;     // a receiver has it
  OptionalJson changes;                 // of its properties, by rules and receivers; see changes.hpp
  std::string message_id;
  Time enqueued_at{};
  std::optional<Time> due_at;           // scheduled: is enqueued then; otherwise: expires then
  std::optional<std::int64_t> time_to_live_ms;
  std::int64_t enqueued_sequence_number = 0;  // that it had where it was sent to
  std::optional<std::string> dead_letter_source;  // the path of the entity in which it became a dead letter
  std::optional<std::string> dead_letter_reason;
  std::optional<std::string> dead_letter_description;
  std::int64_t bytes = 0;  // of annotations, content and message id
  OptionalJson envelope;  // what rules see of it; only of one that is scheduled in a topic
  Bytes annotations;      // as they were sent, encoded; may be empty
  Bytes content;          // properties, application properties and body, encoded, as they were sent

  [[nodiscard]] MessageKey key() const { return {entity_id, lane, sequence_number}; }
  // What it counts for in the size of its entity.
  [[nodiscard]] std::int64_t size() const {
    return bytes + (changes ? static_cast<std::int64_t>(changes->text.size()) : 0);
  }
  friend bool operator==(const Message&, const Message&) = default;
};

// bus_history, key (entity_id, message_id): what was sent lately to an entity that detects duplicates.
struct HistoryEntry {
  std::int64_t entity_id = 0;
  std::string message_id;
  Time forget_at{};
  friend bool operator==(const HistoryEntry&, const HistoryEntry&) = default;
};
struct HistoryKey {
  std::int64_t entity_id = 0;
  std::string message_id;
  friend auto operator<=>(const HistoryKey&, const HistoryKey&) = default;
};

// What one batch changes. A key may be both among those that go and those that come.
struct Writes {
  std::vector<Entity> entities_new;      // each with its counters among counters_new
  std::vector<Entity> entities_changed;
  std::vector<std::int64_t> entities_gone;  // with their counters; their messages and history have gone before
  std::vector<Counters> counters_new;
  std::vector<Counters> counters_changed;
  std::vector<Message> messages_new;
  std::vector<Message> messages_changed;  // key, delivery_count, locks, locked_until and changes; the rest may be empty
  std::vector<MessageKey> messages_gone;  // before the new ones
  std::vector<HistoryEntry> history_new;  // or a later time for one that is there
  std::vector<HistoryKey> history_gone;   // before the new ones
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t rows() const;
};

// What a batch needs to see. Keys that do not exist are absent from the answer; duplicates are allowed.
struct LoadRequest {
  bool entities = false;  // all of them, with their counters
  bool locked = false;    // all messages that are locked, without annotations and content

  std::vector<MessageKey> messages;
  std::vector<MessageKey> messages_light;  // without annotations and content

  // Messages of a lane with a sequence number from `first` on, in order.
  struct Page {
    std::int64_t entity_id = 0;
    Lane lane{};
    std::int64_t first = 0;
    std::size_t limit = 0;
    bool whole = true;  // false: without annotations and content
  };
  std::vector<Page> pages;

  // Messages of a lane with a due_at, those with the earliest first and then by sequence number, whether due or not; without
  // annotations and content.
  struct Agenda {
    std::int64_t entity_id = 0;
    Lane lane{};
    std::size_t limit = 0;
  };
  std::vector<Agenda> agendas;

  std::vector<HistoryKey> history;
  // Entries of the history, those that are forgotten first, first.
  struct Oldest {
    std::int64_t entity_id = 0;
    std::size_t limit = 0;
  };
  std::vector<Oldest> history_oldest;

  [[nodiscard]] bool empty() const {
    return !entities && !locked && messages.empty() && messages_light.empty() && pages.empty() && agendas.empty() && history.empty() && history_oldest.empty();
  }
};

struct Loaded {
  std::vector<Entity> entities;
  std::vector<Counters> counters;
  std::vector<Message> locked;
  std::vector<Message> messages, messages_light;
  std::vector<std::vector<Message>> pages;    // one for each that was asked for
  std::vector<std::vector<Message>> agendas;  // the same
  std::vector<HistoryEntry> history;
  std::vector<std::vector<HistoryEntry>> history_oldest;
};

// The name of a queue in which messages wait, among those that workers poll. No other queue has a name like that.
[[nodiscard]] std::string queue_name(std::int64_t entity_id, Lane lane);
struct QueueOfMessages {
  std::int64_t entity_id = 0;
  Lane lane{};
};
[[nodiscard]] std::optional<QueueOfMessages> parse_queue_name(std::string_view name);  // none: it is no such queue
inline constexpr std::string_view queue_prefix = "$bus/";

// The id of a message as a task that is handed out: "message-12-active-345".
[[nodiscard]] std::string task_id(const MessageKey& key);
[[nodiscard]] std::optional<MessageKey> parse_task_id(std::string_view id);

}  // namespace baton::message
