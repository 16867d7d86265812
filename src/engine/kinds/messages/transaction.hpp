// Messages on their way through a batch. What commands and timers name is loaded once, decided on in order, and written.
//
// What the kind remembers (state.hpp) is changed while deciding, so that each decision sees those before it; until the
// commit is on its way, the transaction can put back what was there.
#pragma once

#include <set>

#include "core/message/transitions.hpp"
#include "engine/kinds/messages/messages_kind.hpp"

namespace baton::engine {

class MessageTransaction final : public Transaction {
 public:
  MessageTransaction(MessagesKind& kind, Turn turn);
  ~MessageTransaction() override { undo(); }

  [[nodiscard]] Result<> load(std::span<const Item> items, std::span<const Timer> timers) override;
  void decide(std::size_t place, const Item& item) override;
  void fire(const Timer& timer) override;
  void timers_go_behind() override;
  [[nodiscard]] bool is_full() const override;

  [[nodiscard]] std::vector<Ready> take_ready() override { return std::exchange(ready_, {}); }
  [[nodiscard]] Result<> load_tasks(std::span<const WaitingTask> tasks) override;
  [[nodiscard]] std::optional<Handout> hand_out(const WaitingTask& task, const Poll& poll) override;
  void give_back(const TaskLease& lease, const std::string& reason) override;

  [[nodiscard]] bool is_incomplete() const override { return is_incomplete_; }
  [[nodiscard]] Result<> restart() override;
  void write(WriteSet& out, std::int64_t commit_number) override;
  void committed(const WriteSet& written) override;

 private:
  using Key = message::MessageKey;
  using Lane = message::Lane;
  using MessagePtr = std::shared_ptr<message::Message>;

  // A message that this batch changes.
  struct Slot {
    MessagePtr row;  // none: only what is written of a change is known, see `change`
    message::Message change;
    bool is_new = false, is_changed = false, is_gone = false;
    bool was_stored = false;  // of one that is new: another row of this key goes before it
  };
  struct PageKey {
    std::int64_t entity_id = 0;
    Lane lane{};
    std::int64_t first = 0;
    std::size_t limit = 0;
    friend auto operator<=>(const PageKey&, const PageKey&) = default;
  };
  using LaneKey = std::pair<std::int64_t, Lane>;

  // ---- loading (load.cpp)
  [[nodiscard]] Result<> know();
  [[nodiscard]] Result<> bring(const message::LoadRequest& request);
  void want(const SendMessages& command, message::LoadRequest& needs);
  void want(const SettleMessages& command, message::LoadRequest& needs);
  void want(const ReturnTasks& command, message::LoadRequest& needs);
  void want_to_settle(const Key& key, Settlement::How how, message::LoadRequest& needs);
  void want(const RenewLocks&, message::LoadRequest&) {}
  void want(const PeekMessages& command, message::LoadRequest& needs);
  void want(const ReceiveDeferred& command, message::LoadRequest& needs);
  void want(const CancelScheduled& command, message::LoadRequest& needs);
  void want(const ReplayDeadLetters& command, message::LoadRequest& needs);
  void want(const one_of<ChangeEntity, ChangeRule, FindEntity, ListEntities> auto&, message::LoadRequest&) {}
  void want(const Timer& timer, message::LoadRequest& needs);
  // When what was wanted before is there.
  void want_content(const ReceiveDeferred& command, message::LoadRequest& needs);
  void want_content(const ReplayDeadLetters& command, message::LoadRequest& needs);
  void want_content(std::int64_t entity_id, Lane lane, const std::vector<std::int64_t>& numbers, message::LoadRequest& needs);
  // As it is by now; none: there is none, or it is not loaded, and then the batch is incomplete.
  [[nodiscard]] MessagePtr row(const Key& key);
  // The same without its content.
  [[nodiscard]] std::optional<std::int64_t> stored_size(const Key& key);
  [[nodiscard]] bool is_known_expired(const Key& key) const;
  // Without content, which is brought for the first of them, as much as is not too large together.
  [[nodiscard]] const std::vector<message::Message>* page(const PageKey& key);
  [[nodiscard]] Result<> bring_pages(const message::LoadRequest& asked);
  // Those of a page that were brought, as they are by now.
  [[nodiscard]] std::vector<MessagePtr> rows_of(const PageKey& key);
  [[nodiscard]] const std::vector<message::Message>* agenda(const LaneKey& key);
  [[nodiscard]] std::size_t agenda_limit(std::int64_t entity_id) const;
  // What is due and not locked, as much of it as this turn takes.
  [[nodiscard]] std::vector<const message::Message*> due_of(std::int64_t entity_id, Lane lane);
  [[nodiscard]] Result<> bring_due(const message::LoadRequest& asked);
  // When the first of what is not due yet will be; now, if something is due still.
  [[nodiscard]] Time next_due(std::int64_t entity_id, Lane lane, Time now);

  // ---- rows (transaction.cpp)
  [[nodiscard]] message::Counters& counters(std::int64_t entity_id);
  [[nodiscard]] std::int64_t& count_of(message::Counters& of, Lane lane);
  void define_as(std::int64_t entity_id, DefinitionPtr definition);
  void add(message::Message message);
  void remove(const Key& key, std::int64_t size);
  void set_lock(const Key& key, std::optional<Locked> locked);
  // `before`: its changes until now, which count in the size of its entity.
  void change(const Key& key, const Locked& as, std::optional<Time> locked_until, const OptionalJson& before);
  void forget_lock_without_row(const Key& key);
  void make_ready(const Definition& entity, const Key& key);
  void wake(std::int64_t entity_id, Time at);
  void undo();
  void write_messages(message::Writes& out);
  void write_counters(WriteSet& out);
  void show_gauges();

  // ---- sending (send.cpp)
  [[nodiscard]] SentReply decide(const SendMessages& command);
  using Sent = std::expected<std::vector<std::int64_t>, Refused>;
  [[nodiscard]] Sent send(const Definition& to, const std::vector<NewMessage>& transfer);
  [[nodiscard]] std::optional<Refused> refusal(const Definition& to, const std::vector<NewMessage>& transfer);
  [[nodiscard]] std::int64_t send(const Definition& to, const NewMessage& message);
  [[nodiscard]] bool is_duplicate(const Definition& to, const std::string& message_id);
  // To a queue, or through the rules of a topic's subscriptions.
  void deliver(const Definition& to, message::Message message, const message::Envelope* envelope, std::int64_t sequence_number);
  void deliver_to_subscription(const Definition& topic, const Definition& to, const message::Message& message, const message::Envelope& envelope);
  void enqueue(const Definition& to, message::Message message);
  [[nodiscard]] std::int64_t next_sequence_number(std::int64_t entity_id);

  // ---- receivers (settle.cpp)
  [[nodiscard]] SettledReply decide(const SettleMessages& command);
  [[nodiscard]] RenewedReply decide(const RenewLocks& command);
  [[nodiscard]] std::expected<DefinitionPtr, Refused> entity_of_lock(const std::optional<Tenant>& tenant, const MessageLock& lock) const;
  [[nodiscard]] std::optional<Refused> settle(const Definition& entity, const Settlement& settlement);
  // Whether it goes to another lane then: it is written anew, with its content.
  [[nodiscard]] bool moves(const Definition& entity, const Key& key, const Locked& held, Settlement::How how) const;
  // Whether there is room for its content in this turn.
  [[nodiscard]] bool may_move(const Key& key, const Locked& held);
  void unlock(const Definition& entity, const Key& key, bool counts, const message::Changes& changes);
  void dead_letter(const Definition& entity, const Key& key, const message::DeadLetter& why, const message::Changes& changes);
  void expire(const Definition& entity, const Key& key, std::int64_t size);
  [[nodiscard]] Handout handout_of(const Definition& entity, const MessagePtr& message, bool deletes);
  // Somebody is given it, for the time of a lock or for good.
  void take(const Definition& entity, message::Message& message, bool deletes);

  // ---- by number (look.cpp)
  [[nodiscard]] Reply decide(const PeekMessages& command);
  [[nodiscard]] Reply decide(const ReceiveDeferred& command);
  [[nodiscard]] Reply decide(const CancelScheduled& command);
  [[nodiscard]] Reply decide(const ReplayDeadLetters& command);
  [[nodiscard]] std::vector<MessagePtr> rows_to_replay(const PageKey& key, std::int64_t up_to, ReplayedReply& reply);
  void replay(const Definition& entity, const message::Message& dead);
  [[nodiscard]] static std::vector<PageKey> peek_pages(std::int64_t entity_id, const PeekMessages& command);
  // Commands that bring much to look at: of these a turn takes looks_max.
  static constexpr std::size_t looks_max = 8;
  [[nodiscard]] static bool is_look(const Command& command);
  // Messages that are named, to be taken with one command.
  [[nodiscard]] static bool is_too_large(std::size_t count, std::int64_t bytes) { return count > 1 && bytes > named_bytes_max; }
  static constexpr std::int64_t named_bytes_max = 8 << 20;
  [[nodiscard]] static PageKey replay_page(std::int64_t entity_id, const ReplayDeadLetters& command);

  // ---- entities (entities.cpp)
  [[nodiscard]] Reply decide(const ChangeEntity& command);
  [[nodiscard]] Reply decide(const ChangeRule& command);
  [[nodiscard]] Reply decide(const FindEntity& command);
  [[nodiscard]] Reply decide(const ListEntities& command);
  [[nodiscard]] Reply create(const ChangeEntity& command);
  [[nodiscard]] std::optional<Refused> problem_of_idleness(const ChangeEntity& command) const;
  [[nodiscard]] Reply update(const Definition& entity, const ChangeEntity& command);
  void remove_entity(const Definition& entity);
  void make_reserved(const Tenant& tenant);
  DefinitionPtr make_entity(const Tenant& tenant, message::EntityType type, std::string path, const message::Settings& settings,
                            const std::vector<message::RuleDescription>& rules);
  [[nodiscard]] Reply replace_rules(const Definition& subscription, std::vector<message::RuleDescription> rules);
  [[nodiscard]] bool is_reserved(std::string_view path) const;
  [[nodiscard]] std::size_t rules_of_topic(std::string_view subscription_path, const Tenant& tenant) const;
  [[nodiscard]] EntityInfo info_of(const Definition& entity);
  // None: it is no subscription of the topic of jobs, or no pool.
  [[nodiscard]] std::optional<std::string> pool_of(const Definition& entity) const;
  [[nodiscard]] std::expected<DefinitionPtr, Refused> find(const EntityKey& key) const;

  // ---- time (wake.cpp)
  void fire(const Definition& entity, const Timer& timer);
  [[nodiscard]] std::vector<Key> ended_locks(std::int64_t entity_id) const;
  [[nodiscard]] Time give_back_ended_locks(const Definition& entity);
  [[nodiscard]] Time enqueue_scheduled(const Definition& entity, Time now);
  [[nodiscard]] Time expire_due(const Definition& entity, Lane lane, Time now);
  [[nodiscard]] Time forget_history(const Definition& entity, Time now);
  [[nodiscard]] Time delete_if_idle(const Definition& entity, Time now);
  void delete_chunk(const Definition& entity);

  MessagesKind& kind_;
  BusState& state_;
  const Turn turn_;

  // What is there, as the store has it.
  std::unordered_map<Key, MessagePtr, HashMessageKey> loaded_;
  std::unordered_map<Key, message::Message, HashMessageKey> light_;  // without content
  std::set<Key> absent_;  // asked for, and not there
  std::map<PageKey, std::vector<message::Message>> pages_;
  std::map<LaneKey, std::vector<message::Message>> agendas_;
  std::map<message::HistoryKey, Time> history_;
  std::map<std::int64_t, std::vector<message::HistoryEntry>> history_oldest_;
  std::vector<std::int64_t> oldest_looked_at_;  // for the gauges
  std::set<std::int64_t> woken_;  // entities whose timers this turn takes
  std::set<Key> due_taken_;       // what is due and is moved in this turn
  std::set<Key> ended_taken_;     // whose lock has ended, and that go on in this turn
  std::set<Key> not_now_;         // settlements that would bring too much at once
  static constexpr std::size_t settled_bytes_max = 16 << 20;
  std::size_t settled_bytes_ = 0, ended_bytes_ = 0;
  std::size_t unforeseen_bytes_ = 0;  // in all rounds
  message::LoadRequest missing_;  // nobody foresaw
  bool is_incomplete_ = false;

  // What is changed.
  std::unordered_map<Key, Slot, HashMessageKey> slots_;
  std::vector<Key> order_;  // of the slots, so that rows are written in the order in which they came
  message::Writes writes_;  // of entities and history
  std::set<std::int64_t> entities_new_, entities_changed_, entities_gone_;
  std::vector<Timer> timers_fired_, timers_left_, timers_put_off_;
  std::set<std::int64_t> fired_;
  std::map<std::int64_t, Time> asked_;  // the earliest that this batch wants to be woken at
  std::vector<Ready> ready_;
  std::size_t rows_ = 0, bytes_ = 0;              // of commands
  std::size_t timer_rows_ = 0, timer_bytes_ = 0;  // of timers, which have a budget of their own
  std::size_t looks_ = 0;                         // commands that bring messages to look at
  std::uint64_t uuids_ = 0;
  struct Tally {
    std::size_t sent = 0, duplicates = 0, handed_out = 0, completed = 0, redelivered = 0, dead_lettered = 0, expired = 0;
  } tally_;

  // What was there before, for undo().
  std::uint64_t generation_ = 0;
  std::map<std::int64_t, message::Counters> counters_before_;
  std::vector<std::pair<std::int64_t, DefinitionPtr>> definitions_before_;
  std::vector<std::pair<Key, std::optional<Locked>>> locks_before_;
  std::vector<Tenant> reserved_noted_;
};

[[nodiscard]] inline Refused refused(Refusal refusal, std::string why) { return {refusal, std::move(why), {}}; }

}  // namespace baton::engine
