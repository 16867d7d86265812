// What time does to an entity: locks end, scheduled messages are enqueued, others expire, what was sent lately is
// forgotten, and what is deleted goes. One timer for each entity, which is set to the next of these.
#include <algorithm>

#include "base/mutant.hpp"
#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

using message::Message;

namespace {

constexpr std::size_t locks_max = 500;  // that end in one turn
constexpr std::size_t timer_rows_max = 5'000, timer_bytes_max = 3 << 20;

}  // namespace

// What it changes is not counted among what commands change: timers must not keep them from their turn.
void MessageTransaction::fire(const Timer& timer) {
  const std::int64_t id = std::strtoll(timer.subject.id.c_str(), nullptr, 10);
  const auto entity = state_.find(id);
  if (entity && (!woken_.contains(id) || timer_rows_ >= timer_rows_max || timer_bytes_ >= timer_bytes_max)) return timers_left_.push_back(timer);
  timers_fired_.push_back(timer);
  if (!entity) {  // gone; or a row that cannot be read, and may be repaired
    if (!state_.problem().empty()) timers_put_off_.push_back({turn_.now + put_off_for, timer.subject, timer.what});
    return;
  }
  const std::size_t rows = rows_, bytes = bytes_;
  fire(*entity, timer);
  timer_rows_ += rows_ - std::exchange(rows_, rows);
  timer_bytes_ += bytes_ - std::exchange(bytes_, bytes);
}

// They are due still. Their rows say an earlier time than their timers then, which is no harm.
void MessageTransaction::timers_go_behind() {
  Time later = turn_.as_of;
  for (const Timer& timer : timers_left_) {
    timers_fired_.push_back(timer);
    timers_put_off_.push_back({later += Duration{1}, timer.subject, timer.what});
  }
  timers_left_.clear();
}

// One that was put off comes later than its entity says.
void MessageTransaction::fire(const Definition& of_timer, const Timer& timer) {
  const Definition* const entity = &of_timer;
  const std::int64_t id = entity->row.entity_id;
  message::Counters& of = counters(id);
  if (!of.wake_at || *of.wake_at > timer.due) return;  // it was set to another time
  of.wake_at.reset();
  fired_.insert(id);
  // A topic whose timer came before this one may have sent something here, which the agendas do not have.
  if (const auto asked = asked_.find(id); asked != asked_.end()) of.wake_at = asked->second;
  if (entity->is_going()) return delete_chunk(*entity);
  const Time now = turn_.as_of;
  const Time next = std::min({give_back_ended_locks(*entity), enqueue_scheduled(*entity, now), expire_due(*entity, Lane::active, now),
                              expire_due(*entity, Lane::deferred, now), forget_history(*entity, now), delete_if_idle(*entity, now)});
  if (next != Time::max() && !state_.find(id)->is_going()) wake(id, next);
}

std::vector<MessageTransaction::Key> MessageTransaction::ended_locks(std::int64_t entity_id) const {
  return state_.locks_ended(entity_id, MUTANT(message_lock_cut_short) ? Time::max() : turn_.as_of, locks_max);
}

Time MessageTransaction::give_back_ended_locks(const Definition& entity) {
  const std::int64_t id = entity.row.entity_id;
  for (const Key& key : ended_locks(id))
    if (ended_taken_.contains(key)) unlock(entity, key, true, {});
  return state_.first_lock_end(id).value_or(Time::max());
}

Time MessageTransaction::enqueue_scheduled(const Definition& entity, Time now) {
  for (const Message* each : due_of(entity.row.entity_id, Lane::scheduled)) {
    const MessagePtr found = row(each->key());
    if (!found) continue;
    Message message = *found;
    remove(each->key(), each->size());
    const auto envelope = message.envelope ? message::read_envelope(*message.envelope) : message::Envelope{};
    const message::Envelope seen = envelope ? *envelope : message::Envelope{};
    deliver(entity, std::move(message), &seen, next_sequence_number(entity.row.entity_id));
  }
  return next_due(entity.row.entity_id, Lane::scheduled, now);
}

Time MessageTransaction::next_due(std::int64_t entity_id, Lane lane, Time now) {
  const auto* all = agenda({entity_id, lane});
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    const Message& each = (*all)[i];
    const auto slot = slots_.find(each.key());
    if (state_.lock(each.key()) || (slot != slots_.end() && slot->second.is_gone)) continue;
    return std::max(*each.due_at, now);
  }
  return Time::max();
}

Time MessageTransaction::expire_due(const Definition& entity, Lane lane, Time now) {
  for (const Message* each : due_of(entity.row.entity_id, lane)) {
    const auto slot = slots_.find(each->key());
    if (slot == slots_.end() || !slot->second.is_gone) expire(entity, each->key(), each->size());
  }
  return next_due(entity.row.entity_id, lane, now);
}

// Not one by one as they come to their end: once in a while.
Time MessageTransaction::forget_history(const Definition& entity, Time now) {
  const auto found = history_oldest_.find(entity.row.entity_id);
  if (found == history_oldest_.end() || found->second.empty()) return Time::max();
  std::size_t forgotten = 0;
  for (const message::HistoryEntry& each : found->second) {
    if (each.forget_at > now) break;
    const message::HistoryKey key{each.entity_id, each.message_id};
    if (const auto known = history_.find(key); known != history_.end() && known->second > now) continue;  // it was sent again
    writes_.history_gone.push_back(key);
    ++rows_;
    ++forgotten;
  }
  if (forgotten == found->second.size()) return now;
  const Duration pause = std::clamp<Duration>(entity.settings.history_time / 10, std::chrono::seconds{1}, std::chrono::minutes{1});
  return std::max(found->second[forgotten].forget_at, now + pause);
}

Time MessageTransaction::delete_if_idle(const Definition& entity, Time now) {
  if (!entity.settings.delete_when_idle) return Time::max();
  std::vector<std::int64_t> all{entity.row.entity_id};  // a topic is as idle as its subscriptions are
  std::ranges::copy(state_.subscriptions_of(entity.row.entity_id), std::back_inserter(all));
  Time accessed{};
  for (const std::int64_t id : all) {
    const message::Counters& of = state_.counters(id);
    accessed = std::max(accessed, of.accessed_at);
    const auto is_polled = [&](Lane lane) { return turn_.matching.is_polled({entity.row.tenant_id, message::queue_name(id, lane)}); };
    if (of.scheduled > 0 || state_.locks_of(id) > 0 || is_polled(Lane::active) || is_polled(Lane::dead)) accessed = now;
  }
  const auto at = message::after(accessed, *entity.settings.delete_when_idle);
  if (!at || *at > now) return at.value_or(Time::max());
  remove_entity(entity);
  return Time::max();
}

// Of what is deleted a chunk, and the entity itself when nothing is left of it.
void MessageTransaction::delete_chunk(const Definition& entity) {
  const std::int64_t id = entity.row.entity_id;
  bool is_empty = true;
  std::size_t pages = 0;
  for (auto found = pages_.lower_bound({id, Lane::active, 0, 0}); found != pages_.end() && found->first.entity_id == id; ++found, ++pages)
    for (const Message& each : found->second) {
      if (MUTANT(deleted_entity_keeps_rows) && each.lane == Lane::dead) continue;
      is_empty = false;
      remove(each.key(), 0);
    }
  const auto oldest = history_oldest_.find(id);
  // It was deleted in this very turn: what it has is looked for in the next.
  if (pages == 0 || oldest == history_oldest_.end()) return wake(id, turn_.as_of);
  for (const message::HistoryEntry& each : oldest->second) {
    is_empty = false;
    writes_.history_gone.push_back({id, each.message_id});
    ++rows_;
  }
  if (is_empty) define_as(id, nullptr);
  else wake(id, turn_.as_of);
}

}  // namespace baton::engine
