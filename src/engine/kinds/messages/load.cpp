// What a batch of messages needs to see: foreseen from its commands and timers, or asked for while deciding.
#include "base/mutant.hpp"
#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

using message::LoadRequest;
using message::Message;

namespace {

// Whole messages, of a mebibyte perhaps: so many are moved in one turn, then others have theirs.
constexpr std::size_t due_max = 64;
constexpr std::size_t due_bytes_max = 3 << 20;
constexpr std::size_t page_bytes_max = 4 << 20;
constexpr std::size_t history_max = 4'000;
constexpr std::size_t delete_max = 500;
constexpr std::size_t timers_max = 16;  // of a turn; the others wait for theirs

}  // namespace

Result<> MessageTransaction::know() {
  if (!state_.is_known()) {
    TRY_ASSIGN(auto all, turn_.store.load(LoadRequest{.entities = true, .locked = true}));
    state_.know(std::move(all), kind_.opened_at(), kind_.grace());
    if (!state_.problem().empty())
      turn_.effects.emplace_back(Warn{{Subject::Type::entity, "bus"}, "part of the bus cannot be used: " + state_.problem()});
  }
  generation_ = state_.generation();
  return {};
}

Result<> MessageTransaction::load(std::span<const Item> items, std::span<const Timer> timers) {
  LoadRequest needs = missing_;
  bool is_asked = false;
  const auto each_command = [&](auto&& visit) {
    std::size_t looks = 0;
    for (const Item& item : items) {
      if (is_look(item.command) && ++looks > looks_max) continue;  // is_full() comes before it
      std::visit([&](const auto& command) {
        if constexpr (requires { want(command, needs); }) visit(command);
      }, item.command);
    }
  };
  each_command([&](const auto&) { is_asked = true; });
  for (const Timer& timer : timers) is_asked = is_asked || kind_.owns_timer(timer);
  if (!is_asked && needs.empty()) return {};
  TRY(know());
  each_command([&](const auto& command) { want(command, needs); });
  for (const Timer& timer : timers)
    if (kind_.owns_timer(timer) && woken_.size() < timers_max) want(timer, needs);
  oldest_looked_at_ = kind_.gauges().to_look_at(turn_.now, 4);
  for (const std::int64_t id : oldest_looked_at_) needs.pages.push_back({id, Lane::active, 0, 1, false});
  TRY(bring(needs));
  LoadRequest named;
  each_command([&](const auto& command) {
    if constexpr (requires { want_content(command, named); }) want_content(command, named);
  });
  TRY(bring(named));
  TRY(bring_pages(needs));
  return bring_due(needs);
}

// Agendas are read without content: of what is due it is needed where a message goes on. All timers of a turn together move no
// more than that, but for one message, which may be larger.
Result<> MessageTransaction::bring_due(const LoadRequest& asked) {
  LoadRequest needs;
  std::size_t bytes = 0;
  for (const auto& [id, lane, limit] : asked.agendas) {
    const auto entity = state_.find(id);
    if (!entity) continue;
    const bool goes_on = lane == Lane::scheduled || entity->settings.dead_letter_on_expiry;
    const std::size_t copies = 1 + state_.subscriptions_of(id).size();
    const auto& all = agendas_.at({id, lane});
    for (std::size_t i = 0, taken = 0; i < all.size() && taken < due_max; ++i) {
      const Message& each = all[i];
      if (*each.due_at > turn_.as_of && !MUTANT(scheduled_too_early)) break;
      if (state_.lock(each.key())) continue;
      if (bytes > due_bytes_max) return bring(needs);
      bytes += static_cast<std::size_t>(each.size()) * (goes_on ? copies : 0) + copies * 256;
      due_taken_.insert(each.key());
      ++taken;
      if (goes_on) needs.messages.push_back(each.key());
    }
  }
  return bring(needs);
}

std::vector<const Message*> MessageTransaction::due_of(std::int64_t entity_id, Lane lane) {
  std::vector<const Message*> due;
  const auto* all = agenda({entity_id, lane});
  for (std::size_t i = 0; all && i < all->size(); ++i)
    if (due_taken_.contains((*all)[i].key()) && !state_.lock((*all)[i].key())) due.push_back(&(*all)[i]);
  return due;
}

Result<> MessageTransaction::bring_pages(const LoadRequest& asked) {
  LoadRequest needs;
  for (const auto& [id, lane, first, limit, whole] : asked.pages) {
    const auto entity = state_.find(id);
    if (!entity || entity->is_going()) continue;
    std::size_t bytes = 0;
    for (const Message& each : pages_.at({id, lane, first, limit})) {
      if (bytes > page_bytes_max) break;
      bytes += static_cast<std::size_t>(each.size()) + sizeof(Message);
      needs.messages.push_back(each.key());
    }
  }
  return bring(needs);
}

// Locked ones are among them.
std::size_t MessageTransaction::agenda_limit(std::int64_t entity_id) const { return due_max + 1 + state_.locks_of(entity_id); }

Result<> MessageTransaction::bring(const LoadRequest& needs) {
  if (needs.empty()) return {};
  TRY_ASSIGN(auto loaded, turn_.store.load(needs));
  absent_.insert(needs.messages.begin(), needs.messages.end());
  absent_.insert(needs.messages_light.begin(), needs.messages_light.end());
  for (Message& each : loaded.messages_light) {
    const Key key = each.key();
    absent_.erase(key);
    light_.insert_or_assign(key, std::move(each));
  }
  for (Message& each : loaded.messages) {
    const Key key = each.key();
    absent_.erase(key);
    loaded_.emplace(key, std::make_shared<Message>(std::move(each)));
  }
  for (std::size_t i = 0; i < needs.pages.size(); ++i) {
    const auto& asked = needs.pages[i];
    pages_[{asked.entity_id, asked.lane, asked.first, asked.limit}] = std::move(loaded.pages[i]);
  }
  for (std::size_t i = 0; i < needs.agendas.size(); ++i)
    agendas_[{needs.agendas[i].entity_id, needs.agendas[i].lane}] = std::move(loaded.agendas[i]);
  for (message::HistoryEntry& each : loaded.history) history_[{each.entity_id, std::move(each.message_id)}] = each.forget_at;
  for (std::size_t i = 0; i < needs.history_oldest.size(); ++i)
    history_oldest_[needs.history_oldest[i].entity_id] = std::move(loaded.history_oldest[i]);
  return {};
}

// ---- foreseen

void MessageTransaction::want(const SendMessages& c, LoadRequest& needs) {
  const auto to = find(c.to);
  if (!to || !(*to)->settings.detects_duplicates) return;
  for (const auto& transfer : c.transfers)
    for (const NewMessage& each : transfer) needs.history.push_back({(*to)->row.entity_id, each.message_id});
}

void MessageTransaction::want(const SettleMessages& c, LoadRequest& needs) {
  for (const Settlement& each : c.settlements) want_to_settle(each.lock.message, each.how, needs);
}

void MessageTransaction::want(const ReturnTasks& c, LoadRequest& needs) {
  for (const TaskLease& each : c.tasks)
    if (const auto key = message::parse_task_id(each.task_id)) want_to_settle(*key, Settlement::How::release, needs);
}

void MessageTransaction::want_to_settle(const Key& key, Settlement::How how, LoadRequest& needs) {
  const auto entity = state_.find(key.entity_id);
  const Locked* held = state_.lock(key);
  if (!entity || !held || !moves(*entity, key, *held, how)) return;
  if (settled_bytes_ > settled_bytes_max) return void(not_now_.insert(key));
  settled_bytes_ += static_cast<std::size_t>(held->size);
  needs.messages.push_back(key);
}

// What was foreseen is there by now. Of what is not, because it was changed in this very turn what becomes of it, all rounds
// together bring so much.
bool MessageTransaction::may_move(const Key& key, const Locked& held) {
  if (not_now_.contains(key)) return false;
  const auto slot = slots_.find(key);
  if ((slot != slots_.end() && slot->second.row) || loaded_.contains(key) || absent_.contains(key)) return true;
  if (unforeseen_bytes_ > settled_bytes_max) return false;
  unforeseen_bytes_ += static_cast<std::size_t>(held.size);
  return true;
}

void MessageTransaction::want(const PeekMessages& c, LoadRequest& needs) {
  const auto from = find(c.from);
  if (!from) return;
  for (const PageKey& key : peek_pages((*from)->row.entity_id, c)) needs.pages.push_back({key.entity_id, key.lane, key.first, key.limit, false});
}

void MessageTransaction::want(const ReceiveDeferred& c, LoadRequest& needs) {
  const auto from = find(c.from);
  if (!from) return;
  for (const std::int64_t number : c.sequence_numbers)
    needs.messages_light.push_back({(*from)->row.entity_id, c.dead ? Lane::shelved : Lane::deferred, number});
}
void MessageTransaction::want_content(const ReceiveDeferred& c, LoadRequest& needs) {
  if (const auto from = find(c.from)) want_content((*from)->row.entity_id, c.dead ? Lane::shelved : Lane::deferred, c.sequence_numbers, needs);
}

void MessageTransaction::want(const CancelScheduled& c, LoadRequest& needs) {
  const auto from = find(c.from);
  if (!from) return;
  for (const std::int64_t number : c.sequence_numbers) needs.messages_light.push_back({(*from)->row.entity_id, Lane::scheduled, number});
}

void MessageTransaction::want(const ReplayDeadLetters& c, LoadRequest& needs) {
  const auto from = find(c.from);
  if (!from) return;
  for (const std::int64_t number : c.sequence_numbers) needs.messages_light.push_back({(*from)->row.entity_id, Lane::dead, number});
  const PageKey page = replay_page((*from)->row.entity_id, c);
  if (c.sequence_numbers.empty()) needs.pages.push_back({page.entity_id, page.lane, page.first, page.limit, false});
}
void MessageTransaction::want_content(const ReplayDeadLetters& c, LoadRequest& needs) {
  if (const auto from = find(c.from)) want_content((*from)->row.entity_id, Lane::dead, c.sequence_numbers, needs);
}

// Of those that are named, when it is known how large they are: what is too much together is refused.
void MessageTransaction::want_content(std::int64_t entity_id, Lane lane, const std::vector<std::int64_t>& numbers, LoadRequest& needs) {
  std::vector<Key> found;
  std::int64_t bytes = 0;
  for (const std::int64_t number : numbers) {
    const auto light = light_.find({entity_id, lane, number});
    if (light == light_.end()) continue;
    bytes += light->second.size();
    found.push_back(light->first);
  }
  if (!is_too_large(numbers.size(), bytes)) needs.messages.insert(needs.messages.end(), found.begin(), found.end());
}

void MessageTransaction::want(const Timer& timer, LoadRequest& needs) {
  const std::int64_t id = std::strtoll(timer.subject.id.c_str(), nullptr, 10);
  const auto entity = state_.find(id);
  if (!entity) return;
  woken_.insert(id);
  if (entity->is_going()) {
    for (const Lane lane : {Lane::active, Lane::dead, Lane::scheduled, Lane::deferred, Lane::shelved})
      needs.pages.push_back({id, lane, 0, delete_max, false});
    return needs.history_oldest.push_back({id, delete_max});
  }
  for (const Lane lane : {Lane::scheduled, Lane::active, Lane::deferred}) needs.agendas.push_back({id, lane, agenda_limit(id)});
  if (entity->settings.detects_duplicates) needs.history_oldest.push_back({id, history_max});
  for (const Key& key : ended_locks(id)) {
    if (ended_bytes_ > due_bytes_max) break;  // first_lock_end() wakes it again
    ended_taken_.insert(key);
    const Locked& held = *state_.lock(key);
    if (!moves(*entity, key, held, Settlement::How::abandon)) continue;
    ended_bytes_ += static_cast<std::size_t>(held.size);
    needs.messages.push_back(key);
  }
}

// ---- asked for

MessageTransaction::MessagePtr MessageTransaction::row(const Key& key) {
  if (const auto slot = slots_.find(key); slot != slots_.end()) {
    if (slot->second.is_gone) return nullptr;
    if (slot->second.row) return slot->second.row;
  }
  auto found = loaded_.find(key);
  if (found == loaded_.end()) {
    if (auto recent = state_.take_recent(key)) found = loaded_.emplace(key, std::move(recent)).first;
  }
  if (found == loaded_.end()) {
    if (absent_.contains(key)) return nullptr;
    missing_.messages.push_back(key);
    is_incomplete_ = true;
    return nullptr;
  }
  // What this batch has changed of it already.
  const auto slot = slots_.find(key);
  if (slot == slots_.end()) return found->second;
  Slot& changed = slot->second;
  found->second->delivery_count = changed.change.delivery_count;
  found->second->locks = changed.change.locks;
  found->second->locked_until = changed.change.locked_until;
  found->second->changes = changed.change.changes;
  return changed.row = found->second;
}

std::optional<std::int64_t> MessageTransaction::stored_size(const Key& key) {
  if (const auto slot = slots_.find(key); slot != slots_.end()) {
    if (slot->second.is_gone) return std::nullopt;
    if (slot->second.row) return slot->second.row->size();
  }
  if (const auto found = loaded_.find(key); found != loaded_.end()) return found->second->size();
  if (const auto found = light_.find(key); found != light_.end()) return found->second.size();
  if (absent_.contains(key)) return std::nullopt;
  missing_.messages_light.push_back(key);
  is_incomplete_ = true;
  return std::nullopt;
}

const std::vector<Message>* MessageTransaction::page(const PageKey& key) {
  const auto found = pages_.find(key);
  if (found != pages_.end()) return &found->second;
  missing_.pages.push_back({key.entity_id, key.lane, key.first, key.limit, false});
  is_incomplete_ = true;
  return nullptr;
}

std::vector<MessageTransaction::MessagePtr> MessageTransaction::rows_of(const PageKey& key) {
  std::vector<MessagePtr> rows;
  const auto* all = page(key);
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    const Key each = (*all)[i].key();
    if (!loaded_.contains(each) && !slots_.contains(each)) break;  // it would be too much at once
    if (auto found = row(each)) rows.push_back(std::move(found));
  }
  return rows;
}

const std::vector<Message>* MessageTransaction::agenda(const LaneKey& key) {
  const auto found = agendas_.find(key);
  if (found != agendas_.end()) return &found->second;
  missing_.agendas.push_back({key.first, key.second, agenda_limit(key.first)});
  is_incomplete_ = true;
  return nullptr;
}

// Where something may have expired that waits, and its timer has not come to it yet, it is looked at without its content first.
Result<> MessageTransaction::load_tasks(std::span<const WaitingTask> tasks) {
  LoadRequest light, needs;
  if (!tasks.empty()) TRY(know());
  for (const WaitingTask& task : tasks) {
    if (task.type != Subject::Type::message) continue;
    const Key key = message_of(task);
    const auto slot = slots_.find(key);
    if (!state_.find(key.entity_id) || loaded_.contains(key) || (slot != slots_.end() && (slot->second.row || slot->second.is_gone))) continue;
    const auto& wake_at = state_.counters(key.entity_id).wake_at;
    if (auto recent = state_.take_recent(key)) loaded_.emplace(key, std::move(recent));
    else if (wake_at && *wake_at <= turn_.now) light.messages_light.push_back(key);
    else needs.messages.push_back(key);
  }
  TRY(bring(light));
  for (const Key& key : light.messages_light)
    if (!absent_.contains(key) && !is_known_expired(key)) needs.messages.push_back(key);
  return bring(needs);
}

bool MessageTransaction::is_known_expired(const Key& key) const {
  const auto found = light_.find(key);
  return found != light_.end() && is_expired(found->second, turn_.now);
}

}  // namespace baton::engine
