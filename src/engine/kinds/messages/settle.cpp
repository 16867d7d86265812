// What receivers do: they are given messages, renew their locks and settle them.
#include "base/mutant.hpp"
#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

using message::Message;

namespace {

constexpr std::size_t changes_bytes_max = 64 << 10;

Refused lock_lost() {
  return refused(Refusal::lock_lost, "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.");
}

}  // namespace

// ---- handing out

void MessageTransaction::take(const Definition& entity, Message& message, bool deletes) {
  const Key key = message.key();
  message::Counters& of = counters(key.entity_id);
  of.accessed_at = turn_.now;
  ++tally_.handed_out;
  if (message.delivery_count > 0) ++tally_.redelivered;
  lock(message, turn_.now, entity.settings);
  if (deletes) {
    message.locked_until.reset();
    ++tally_.completed;
    if (MUTANT(received_not_deleted)) return;
    return remove(key, message.size());
  }
  if (MUTANT(message_lock_not_stored)) return;
  Locked held{*message.locked_until, message.locks, message.delivery_count, message.size(), message.due_at, message.changes};
  change(key, held, message.locked_until, message.changes);
  set_lock(key, std::move(held));
  wake(key.entity_id, *message.locked_until);
}

Handout MessageTransaction::handout_of(const Definition& entity, const MessagePtr& message, bool deletes) {
  take(entity, *message, deletes);
  return {.task_id = message::task_id(message->key()),
          .lease = std::to_string(message->locks),
          .lease_until = message->locked_until.value_or(turn_.now),
          .message = message};
}

std::optional<Handout> MessageTransaction::hand_out(const WaitingTask& task, const Poll& poll) {
  const Key key = message_of(task);
  const auto entity = state_.find(key.entity_id);
  if (!entity || entity->is_going() || entity->row.tenant_id != poll.tenant || state_.lock(key)) return std::nullopt;
  const MessagePtr message = is_known_expired(key) ? nullptr : row(key);
  if (message ? is_expired(*message, turn_.now) : is_known_expired(key)) return wake(key.entity_id, turn_.now), std::nullopt;  // its timer comes to it
  if (!message || message->locked_until) return std::nullopt;
  return handout_of(*entity, message, !poll.heartbeats);
}

// The receiver was gone before it could be told: it never saw the message.
void MessageTransaction::give_back(const TaskLease& lease, const std::string&) {
  const auto key = message::parse_task_id(lease.task_id);
  const Locked* held = key ? state_.lock(*key) : nullptr;
  const auto entity = key ? state_.find(key->entity_id) : nullptr;
  if (!held || !entity) return;
  const MessageLock lock{*key, static_cast<std::int32_t>(std::strtol(lease.lease.c_str(), nullptr, 10))};
  if (!lock.is_numbered(held->number)) return;
  if (moves(*entity, *key, *held, Settlement::How::release) && !may_move(*key, *held)) return;  // its timer comes to it
  unlock(*entity, *key, false, {});
}

// ---- settling

std::expected<DefinitionPtr, Refused> MessageTransaction::entity_of_lock(const std::optional<Tenant>& tenant, const MessageLock& lock) const {
  auto entity = state_.find(lock.message.entity_id);
  const Locked* held = state_.lock(lock.message);
  const bool is_held = held && (lock.is_numbered(held->number) || MUTANT(old_lock_accepted));
  if (!entity || entity->is_going() || !is_held || (tenant && entity->row.tenant_id != *tenant && !MUTANT(message_tenant_not_checked))) return std::unexpected(lock_lost());
  return entity;
}

SettledReply MessageTransaction::decide(const SettleMessages& c) {
  SettledReply reply;
  reply.settled.reserve(c.settlements.size());
  for (const Settlement& each : c.settlements) {
    const auto entity = entity_of_lock(c.tenant, each.lock);
    reply.settled.push_back(entity ? settle(**entity, each) : std::optional{entity.error()});
  }
  return reply;
}

std::optional<Refused> MessageTransaction::settle(const Definition& entity, const Settlement& settlement) {
  using How = Settlement::How;
  const Key& key = settlement.lock.message;
  const Locked& held = *state_.lock(key);
  if (moves(entity, key, held, settlement.how) && !may_move(key, held)) return refused(Refusal::overloaded, "too much is settled at once: try again");
  if (!settlement.changes.empty() && with_changes(held.changes, settlement.changes)->text.size() > changes_bytes_max)
    return refused(Refusal::invalid_input, "the properties of a message can be changed by at most 64 KiB");
  counters(key.entity_id).accessed_at = turn_.now;
  switch (settlement.how) {
    case How::complete:
      ++tally_.completed;
      remove(key, held.size);
      break;
    case How::abandon: unlock(entity, key, true, settlement.changes); break;
    case How::release: unlock(entity, key, false, settlement.changes); break;
    case How::dead_letter: dead_letter(entity, key, {settlement.reason, settlement.description}, settlement.changes); break;
    case How::defer: {
      if (key.lane == Lane::deferred || key.lane == Lane::shelved) {  // it is one that was asked for by number
        unlock(entity, key, true, settlement.changes);
        break;
      }
      const MessagePtr message = row(key);
      if (!message) return forget_lock_without_row(key), lock_lost();
      Message to = deferred(*message);
      to.changes = with_changes(to.changes, settlement.changes);
      remove(key, message->size());
      add(std::move(to));
      break;
    }
  }
  return std::nullopt;
}

bool MessageTransaction::moves(const Definition& entity, const Key& key, const Locked& held, Settlement::How how) const {
  using How = Settlement::How;
  const bool is_asked_for = key.lane == Lane::deferred || key.lane == Lane::shelved;
  if (how == How::complete) return false;
  if (how == How::dead_letter || (how == How::defer && !is_asked_for)) return true;
  const bool has_expired = held.due_at && *held.due_at <= turn_.now && !is_dead(key.lane);
  return (how != How::release && message::is_exhausted(key.lane, held.deliveries, entity.settings)) || (has_expired && entity.settings.dead_letter_on_expiry);
}

// It waits again; or not, if it was handed out too often, or has expired meanwhile.
void MessageTransaction::unlock(const Definition& entity, const Key& key, bool counts, const message::Changes& changes) {
  const Locked held = *state_.lock(key);
  const bool is_exhausted = counts && message::is_exhausted(key.lane, held.deliveries, entity.settings) && !MUTANT(message_abandoned_for_ever);
  if (is_exhausted) return dead_letter(entity, key, message::too_many_deliveries(held.deliveries), changes);
  if (held.due_at && *held.due_at <= turn_.now && !is_dead(key.lane)) return expire(entity, key, held.size);
  set_lock(key, std::nullopt);
  Locked after = held;
  if (!counts) --after.deliveries;
  after.changes = with_changes(held.changes, changes);
  change(key, after, std::nullopt, held.changes);
  const bool is_deferred = key.lane == Lane::deferred || key.lane == Lane::shelved;
  if (!is_deferred) make_ready(entity, key);
  if (held.due_at && !is_dead(key.lane)) wake(key.entity_id, *held.due_at);  // what is locked does not expire, and the timer passed it over
}

void MessageTransaction::dead_letter(const Definition& entity, const Key& key, const message::DeadLetter& why, const message::Changes& changes) {
  const MessagePtr message = row(key);
  if (!message) return forget_lock_without_row(key);  // or it is asked for, and decided again
  if (key.lane == Lane::dead) return unlock(entity, key, true, changes);  // it is one already
  Message to = dead_lettered(*message, why, entity.row.path);
  to.changes = with_changes(to.changes, changes);
  ++tally_.dead_lettered;
  const Key there = to.key();
  remove(key, message->size());
  if (!MUTANT(dead_letter_lost)) add(std::move(to));
  make_ready(entity, there);
}

void MessageTransaction::expire(const Definition& entity, const Key& key, std::int64_t size) {
  ++tally_.expired;
  if (entity.settings.dead_letter_on_expiry) return dead_letter(entity, key, message::expired(), {});
  remove(key, size);
}

RenewedReply MessageTransaction::decide(const RenewLocks& c) {
  RenewedReply reply;
  for (const MessageLock& each : c.locks) {
    const auto entity = entity_of_lock(c.tenant, each);
    if (!entity) {
      reply.until.emplace_back(std::unexpected(entity.error()));
      continue;
    }
    Locked held = *state_.lock(each.message);
    held.until = turn_.now + (*entity)->settings.lock_time;
    counters(each.message.entity_id).accessed_at = turn_.now;
    if (!MUTANT(renewal_not_stored)) change(each.message, held, held.until, held.changes);
    reply.until.emplace_back(held.until);
    wake(each.message.entity_id, held.until);
    set_lock(each.message, std::move(held));
  }
  return reply;
}

}  // namespace baton::engine
