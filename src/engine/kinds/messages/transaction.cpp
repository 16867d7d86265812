#include "engine/kinds/messages/transaction.hpp"

#include <ranges>

#include "base/mutant.hpp"

namespace baton::engine {

using message::Counters;
using message::Message;

namespace {

template <class Command>
concept about_messages = one_of<Command, SendMessages, SettleMessages, RenewLocks, PeekMessages, ReceiveDeferred, CancelScheduled,
                                ReplayDeadLetters, ChangeEntity, ChangeRule, FindEntity, ListEntities>;

constexpr std::size_t turn_rows_max = 5'000, turn_bytes_max = 3 << 20;

Timer wake_timer(std::int64_t entity_id, Time at) { return {at, {Subject::Type::entity, std::to_string(entity_id)}, "wake"}; }

}  // namespace

MessageTransaction::MessageTransaction(MessagesKind& kind, Turn turn) : kind_(kind), state_(kind.state()), turn_(turn) {}

void MessageTransaction::decide(std::size_t, const Item& item) {
  Reply reply = std::visit(overloaded{
                               [&](const about_messages auto& command) -> Reply { return decide(command); },
                               [](const auto&) -> Reply {
                                 ENSURE(false);  // another kind's
                                 return {};
                               },
                           },
                           item.command);
  if (is_look(item.command)) ++looks_;
  turn_.effects.emplace_back(Answer{item.waiter, std::move(reply)});
}

bool MessageTransaction::is_look(const Command& command) {
  return std::visit([]<class Each>(const Each&) { return one_of<Each, PeekMessages, ReceiveDeferred, ReplayDeadLetters, CancelScheduled, ListEntities>; },
                    command);
}

// A commit of so much is one row of the journal, and a turn that nobody waits for long.
bool MessageTransaction::is_full() const { return rows_ >= turn_rows_max || bytes_ >= turn_bytes_max || looks_ >= looks_max; }

Result<> MessageTransaction::restart() {
  undo();
  slots_.clear();
  order_.clear();
  writes_ = {};
  entities_new_.clear();
  entities_changed_.clear();
  entities_gone_.clear();
  timers_fired_.clear();
  timers_left_.clear();
  timers_put_off_.clear();
  fired_.clear();
  asked_.clear();
  ready_.clear();
  rows_ = bytes_ = timer_rows_ = timer_bytes_ = looks_ = settled_bytes_ = ended_bytes_ = 0;
  woken_.clear();
  oldest_looked_at_.clear();
  due_taken_.clear();
  ended_taken_.clear();
  not_now_.clear();
  uuids_ = 0;
  tally_ = {};
  loaded_.clear();
  light_.clear();
  absent_.clear();
  pages_.clear();
  agendas_.clear();
  history_.clear();
  history_oldest_.clear();
  is_incomplete_ = false;
  return {};
}

// ---- what is remembered

// If everything was forgotten meanwhile there is nothing to put back.
void MessageTransaction::undo() {
  if (generation_ == state_.generation()) {
    for (auto& [key, before] : locks_before_ | std::views::reverse) state_.set_lock(key, std::move(before));
    for (auto& [id, before] : definitions_before_ | std::views::reverse) state_.set(id, std::move(before));
    for (auto& [id, before] : counters_before_) state_.counters(id) = before;
    for (const Tenant& tenant : reserved_noted_) state_.unnote_reserved(tenant);
  }
  reserved_noted_.clear();
  locks_before_.clear();
  definitions_before_.clear();
  counters_before_.clear();
}

Counters& MessageTransaction::counters(std::int64_t entity_id) {
  Counters& now = state_.counters(entity_id);
  counters_before_.try_emplace(entity_id, now);
  now.entity_id = entity_id;
  return now;
}

std::int64_t& MessageTransaction::count_of(Counters& of, Lane lane) {
  switch (lane) {
    case Lane::active: return of.active;
    case Lane::scheduled: return of.scheduled;
    case Lane::deferred: return of.deferred;
    case Lane::dead:
    case Lane::shelved: break;
  }
  return of.dead;
}

void MessageTransaction::define_as(std::int64_t entity_id, DefinitionPtr definition) {
  definitions_before_.emplace_back(entity_id, state_.find(entity_id));
  if (!definition) {
    entities_gone_.insert(entity_id);
    entities_changed_.erase(entity_id);
  } else if (!definitions_before_.back().second) {
    entities_new_.insert(entity_id);
  } else if (!entities_new_.contains(entity_id)) {
    entities_changed_.insert(entity_id);
  }
  state_.set(entity_id, std::move(definition));
  ++rows_;
}

void MessageTransaction::set_lock(const Key& key, std::optional<Locked> locked) {
  const Locked* before = state_.lock(key);
  locks_before_.emplace_back(key, before ? std::optional{*before} : std::nullopt);
  state_.set_lock(key, std::move(locked));
}

// ---- rows

void MessageTransaction::add(Message message) {
  const Key key = message.key();
  Counters& of = counters(key.entity_id);
  ++count_of(of, key.lane);
  of.bytes += message.size();
  ++rows_;
  bytes_ += static_cast<std::size_t>(message.size());
  if (message.due_at) wake(key.entity_id, *message.due_at);
  const auto [at, is_first] = slots_.try_emplace(key);
  if (is_first) order_.push_back(key);
  Slot& slot = at->second;
  slot.was_stored = slot.was_stored || (!is_first && !slot.is_new);
  slot.is_new = true;
  slot.is_gone = false;
  slot.row = std::make_shared<Message>(std::move(message));
}

void MessageTransaction::remove(const Key& key, std::int64_t size) {
  Counters& of = counters(key.entity_id);
  --count_of(of, key.lane);
  of.bytes -= size;
  ++rows_;
  const auto [slot, is_first] = slots_.try_emplace(key);
  if (is_first) order_.push_back(key);
  slot->second.is_gone = true;
  if (state_.lock(key)) set_lock(key, std::nullopt);
  (void)state_.take_recent(key);
}

void MessageTransaction::change(const Key& key, const Locked& as, std::optional<Time> locked_until, const OptionalJson& before) {
  const auto size = [](const OptionalJson& json) { return json ? static_cast<std::int64_t>(json->text.size()) : 0; };
  if (as.changes != before) counters(key.entity_id).bytes += size(as.changes) - size(before);
  bytes_ += static_cast<std::size_t>(size(as.changes));
  const auto [at, is_first] = slots_.try_emplace(key);
  if (is_first) order_.push_back(key);
  Slot& slot = at->second;
  Message& row = slot.row ? *slot.row : slot.change;
  if (!slot.row) row.entity_id = key.entity_id, row.lane = key.lane, row.sequence_number = key.sequence_number;
  row.delivery_count = as.deliveries;
  row.locks = as.number;
  row.locked_until = locked_until;
  row.changes = as.changes;
  slot.is_changed = true;
  ++rows_;
}

// What a lock is of is not there: somebody has deleted its row.
void MessageTransaction::forget_lock_without_row(const Key& key) {
  if (!is_incomplete_) set_lock(key, std::nullopt);
}

void MessageTransaction::make_ready(const Definition& entity, const Key& key) {
  ready_.push_back({{entity.row.tenant_id, message::queue_name(key.entity_id, key.lane)}, waiting_task(key)});
}

// Something is to be done then. There is one timer for each entity, at the earliest of these times.
void MessageTransaction::wake(std::int64_t entity_id, Time at) {
  Counters& of = counters(entity_id);
  const auto asked = asked_.try_emplace(entity_id, at).first;
  asked->second = std::min(asked->second, at);
  if (!of.wake_at || (at < *of.wake_at && !MUTANT(wake_not_earlier))) of.wake_at = at;
}

// ---- writing

void MessageTransaction::write_messages(message::Writes& out) {
  for (const Key& key : order_) {
    Slot& slot = slots_.at(key);
    const bool is_stored = !slot.is_new || slot.was_stored;
    if (is_stored && (slot.is_gone || slot.is_new)) out.messages_gone.push_back(key);
    if (slot.is_new && !slot.is_gone) out.messages_new.push_back(*slot.row);
    if (slot.is_new || slot.is_gone || !slot.is_changed) continue;
    const Message& changed = slot.row ? *slot.row : slot.change;
    out.messages_changed.push_back({.entity_id = key.entity_id,
                                    .lane = key.lane,
                                    .sequence_number = key.sequence_number,
                                    .delivery_count = changed.delivery_count,
                                    .locks = changed.locks,
                                    .locked_until = changed.locked_until,
                                    .changes = changed.changes});
  }
}

void MessageTransaction::write_counters(WriteSet& out) {
  for (const auto& [id, before] : counters_before_) {
    if (entities_gone_.contains(id)) {
      if (before.wake_at) out.timers_gone.push_back(wake_timer(id, *before.wake_at));
      continue;
    }
    const Counters& now = state_.counters(id);
    // One that has fired is set anew, though it be to the same time.
    if ((now.wake_at != before.wake_at || fired_.contains(id)) && !MUTANT(wake_forgotten)) {
      if (before.wake_at) out.timers_gone.push_back(wake_timer(id, *before.wake_at));
      if (now.wake_at) out.timers_new.push_back(wake_timer(id, *now.wake_at));
    }
    const bool is_new = before.entity_id == 0 && before == Counters{};  // one that was stored has its id, or has counted
    if (is_new) out.messages.counters_new.push_back(now);
    else if (now != before) out.messages.counters_changed.push_back(now);
  }
}

void MessageTransaction::write(WriteSet& out, std::int64_t) {
  out.messages = std::exchange(writes_, {});
  for (const std::int64_t id : entities_new_)
    if (!entities_gone_.contains(id)) out.messages.entities_new.push_back(state_.find(id)->row);
  for (const std::int64_t id : entities_changed_) out.messages.entities_changed.push_back(state_.find(id)->row);
  for (const std::int64_t id : entities_gone_)
    if (!entities_new_.contains(id)) out.messages.entities_gone.push_back(id);
  write_messages(out.messages);
  std::ranges::copy(timers_fired_, std::back_inserter(out.timers_gone));
  std::ranges::copy(timers_put_off_, std::back_inserter(out.timers_new));
  write_counters(out);
  const auto& counts = kind_.counts();
  count(turn_.effects, counts.sent, tally_.sent);
  count(turn_.effects, counts.duplicates, tally_.duplicates);
  count(turn_.effects, counts.handed_out, tally_.handed_out);
  count(turn_.effects, counts.completed, tally_.completed);
  count(turn_.effects, counts.redelivered, tally_.redelivered);
  count(turn_.effects, counts.dead_lettered, tally_.dead_lettered);
  count(turn_.effects, counts.expired, tally_.expired);
}

void MessageTransaction::show_gauges() {
  for (const auto& [id, before] : counters_before_) {
    const auto entity = state_.find(id);
    // Jobs of a pool are not counted here, and a 0 would not be true.
    if (entity && !entity->is_going() && !pool_of(*entity)) kind_.gauges().show(*entity, state_.counters(id));
    else kind_.gauges().gone(id);
  }
  for (const std::int64_t id : oldest_looked_at_) {
    const auto page = pages_.find({id, Lane::active, 0, 1});
    if (page == pages_.end()) continue;
    kind_.gauges().looked(id, page->second.empty() ? std::nullopt : std::optional{page->second.front().enqueued_at});
  }
}

void MessageTransaction::committed(const WriteSet&) {
  if (generation_ == state_.generation())
    for (const Key& key : order_) {
      const Slot& slot = slots_.at(key);
      if (!slot.is_new || slot.is_gone || slot.row->locked_until || key.lane != Lane::active) continue;
      const auto entity = state_.find(key.entity_id);  // what nobody waits for is not handed out soon
      if (entity && turn_.matching.is_polled({entity->row.tenant_id, message::queue_name(key.entity_id, key.lane)})) state_.remember(slot.row);
    }
  show_gauges();
  for (const std::int64_t id : entities_gone_) state_.forget_counters(id);
  locks_before_.clear();
  definitions_before_.clear();
  counters_before_.clear();
  reserved_noted_.clear();
}

}  // namespace baton::engine
