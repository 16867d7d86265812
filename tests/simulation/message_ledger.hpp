// What is promised about queues, topics and their messages, held against each commit and each answer. It knows what was
// asked of the engine, and each step of a row must follow from that or from time: so nothing is lost, handed out twice or
// taken from whoever has it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/memory/database.hpp"
#include "tests/simulation/workload.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

// A lock that was given: no two have the same number.
struct Grant {
  message::MessageKey key;
  std::int32_t number = 0;
  friend auto operator<=>(const Grant&, const Grant&) = default;
};

class MessageLedger {
 public:
  MessageLedger(const store::MemoryDatabase& database, const VirtualClock& clock) : database_(database), clock_(clock) {}

  void timers_may_be_put_off(bool may) { put_off_ = may; }  // other programs hold rows

  void arrived(const Command& command);
  void answered(const Command& command, const Reply& reply);
  void given_back(const TaskLease& task);
  void before_commit(const message::Writes& writes);
  void committed(const message::Writes& writes);
  void look_at_clock() { latest_ = std::max(latest_, clock_.now()); }
  void check_end() const;

 private:
  using Key = message::MessageKey;
  using Lane = message::Lane;
  using Message = message::Message;
  using How = Settlement::How;
  using Place = std::pair<std::int64_t, std::int64_t>;  // entity and number, in whatever lane

  // ---- what was asked for
  void note(const SettleMessages& command);
  void note(const ReturnTasks& command);

  // ---- steps of rows (message_steps.cpp)
  struct Commit;
  void check_gone(const Commit& commit, const Message& before);
  void check_changed(const Commit& commit, const Message& before, const Message& after);
  void check_new(const Commit& commit, const Message& row);
  void check_moved(const Commit& commit, const Message& before, const Message& after) const;
  void check_left_scheduled(const Commit& commit, const Message& before) const;
  void check_copies(const Commit& commit, const Message& audited);
  void locked(const Message& row);
  void taken(const Message& row);
  [[nodiscard]] bool is_settled(const Message& row, How how) const;
  [[nodiscard]] bool is_returned(const Message& row) const;
  // Nobody has it, or the lock may have ended before this commit.
  [[nodiscard]] bool is_free(const Message& row) const;
  [[nodiscard]] bool has_ended(const Commit& commit, const Message& row) const;

  // ---- after a commit
  void check_counters(std::int64_t entity_id) const;
  void check_wake(std::int64_t entity_id, const message::Counters& counters) const;
  void check_order() const;

  // ---- answers
  void check_sent(const SendMessages& command, const SentReply& reply) const;
  [[nodiscard]] bool has_copy(const Place& published, const NewMessage& sent) const;
  void check_polled(const Poll& command, const PollReply& reply);
  void check_settled(const SettleMessages& command, const SettledReply& reply);
  void check_renewed(const RenewLocks& command, const RenewedReply& reply) const;
  void check_messages(const Command& command, const MessagesReply& reply);
  void told(const Grant& grant, const Message& message);

  [[nodiscard]] const message::Entity* entity(std::int64_t id) const { return database_.bus.entities.get(id); }
  [[nodiscard]] const message::Entity* entity(const EntityKey& key) const;
  [[nodiscard]] static bool is_going(const message::Entity* row) { return !row || row->path.empty(); }
  static void expect(bool holds, const char* what, const Key& key);
  static void expect(bool holds, const char* what, const std::string& about);

  const store::MemoryDatabase& database_;
  const VirtualClock& clock_;
  Time latest_{};  // that the clock ever showed: it may be set back
  bool put_off_ = false;

  // What was asked for, by those who may.
  std::set<std::pair<Grant, How>> settlements_;
  std::map<std::pair<Tenant, std::string>, int> sent_;  // how often each content
  std::set<Grant> renewals_;
  std::set<Grant> returned_;
  std::set<Place> cancelled_;           // scheduled ones
  std::set<Place> deleted_by_number_;   // received by number, for good
  std::set<std::int64_t> replayed_;     // entities whose dead letters somebody sends again
  std::set<std::pair<std::int64_t, Lane>> deleted_from_;  // queues from which somebody receives for good

  // What has happened.
  std::map<std::int64_t, Tenant> tenants_;          // of entities, also of deleted ones
  std::map<std::int64_t, std::int64_t> highest_;    // number of an entity
  std::map<Place, std::string> contents_;           // of all messages there ever were
  std::set<Place> published_;                       // by topic and number there: its copies were seen
  std::map<std::pair<std::int64_t, std::string>, Time> accepted_;  // by entity and message id, when
  std::set<Grant> given_;                           // all locks that there ever were
  std::set<Grant> told_;
  std::set<Place> completed_;
  std::set<Place> ever_taken_;
  std::map<std::int64_t, std::int64_t> first_taken_;  // by this commit: of an entity the highest that nobody had before
};

}  // namespace baton::simulation
