#include "tests/simulation/message_ledger.hpp"

#include <algorithm>

#include "core/message/transitions.hpp"
#include "tests/simulation/message_rules.hpp"

namespace baton::simulation {

using message::EntityType;

void MessageLedger::expect(bool holds, const char* what, const Key& key) {
  if (!holds) throw Violation{std::string(what) + " (" + message::task_id(key) + ")"};
}

void MessageLedger::expect(bool holds, const char* what, const std::string& about) {
  if (!holds) throw Violation{std::string(what) + " (" + about + ")"};
}

const message::Entity* MessageLedger::entity(const EntityKey& key) const {
  for (const auto& [id, row] : database_.bus.entities)
    if (row.tenant_id == key.tenant && row.path == key.path) return &row;
  return nullptr;
}

// ---- what is asked for. Whoever may not ask for it is not noted, so that nothing follows from it.

void MessageLedger::arrived(const Command& command) {
  look_at_clock();
  const auto numbers = [&](const EntityKey& from, const std::vector<std::int64_t>& named, std::set<Place>& to) {
    const message::Entity* row = entity(from);
    for (const std::int64_t number : named)
      if (row) to.insert({row->entity_id, number});
  };
  std::visit(overloaded{
                 [&](const SettleMessages& c) { note(c); },
                 [&](const SendMessages& c) {
                   for (const auto& transfer : c.transfers)
                     for (const NewMessage& each : transfer) ++sent_[{c.to.tenant, each.content.value}];
                 },
                 [&](const ReturnTasks& c) { note(c); },
                 [&](const RenewLocks& c) {
                   for (const MessageLock& lock : c.locks)
                     if (c.tenant == tenants_[lock.message.entity_id]) renewals_.insert({lock.message, lock.number});
                 },
                 [&](const CancelScheduled& c) { numbers(c.from, c.sequence_numbers, cancelled_); },
                 [&](const ReceiveDeferred& c) {
                   if (c.deletes) numbers(c.from, c.sequence_numbers, deleted_by_number_);
                 },
                 [&](const ReplayDeadLetters& c) {
                   if (const message::Entity* row = entity(c.from)) replayed_.insert(row->entity_id);
                 },
                 [&](const Poll& c) {
                   const auto queue = message::parse_queue_name(c.queue);
                   if (queue && !c.heartbeats && tenants_[queue->entity_id] == c.tenant) deleted_from_.insert({queue->entity_id, queue->lane});
                 },
                 [](const auto&) {},
             },
             command);
}

void MessageLedger::note(const SettleMessages& command) {
  for (const Settlement& each : command.settlements)
    if (command.tenant == tenants_[each.lock.message.entity_id]) settlements_.insert({{each.lock.message, each.lock.number}, each.how});
}

void MessageLedger::note(const ReturnTasks& command) {
  for (const TaskLease& task : command.tasks) given_back(task);
}

void MessageLedger::given_back(const TaskLease& task) {
  const auto key = message::parse_task_id(task.task_id);
  if (key) returned_.insert({*key, static_cast<std::int32_t>(std::strtol(task.lease.c_str(), nullptr, 10))});
}

// ---- after a commit

void MessageLedger::committed(const message::Writes& writes) {
  std::set<std::int64_t> touched;
  for (const auto* rows : {&writes.counters_new, &writes.counters_changed})
    for (const message::Counters& row : *rows) touched.insert(row.entity_id);
  for (const auto* rows : {&writes.messages_new, &writes.messages_changed})
    for (const Message& row : *rows) touched.insert(row.entity_id);
  for (const Key& key : writes.messages_gone) touched.insert(key.entity_id);
  touched.erase(0);  // it counts entities
  for (const std::int64_t id : touched) check_counters(id);
  for (const std::int64_t id : writes.entities_gone) {
    expect(!database_.bus.counters.contains(id), "what is deleted leaves no counters", std::to_string(id));
    const auto left = database_.bus.messages.lower_bound({id, Lane::active, 0});
    expect(left == database_.bus.messages.end() || left->first.entity_id != id, "what is deleted leaves no message", std::to_string(id));
  }
  check_order();
}

void MessageLedger::check_counters(std::int64_t id) const {
  const message::Counters* counters = database_.bus.counters.get(id);
  if (!counters && !entity(id)) return;
  expect(counters != nullptr, "an entity has its counters", std::to_string(id));
  message::Counters counted;
  for (auto at = database_.bus.messages.lower_bound({id, Lane::active, 0}); at != database_.bus.messages.end() && at->first.entity_id == id; ++at) {
    const Message& row = at->second;
    counted.bytes += row.size();
    switch (row.lane) {
      case Lane::active: ++counted.active; break;
      case Lane::scheduled: ++counted.scheduled; break;
      case Lane::deferred: ++counted.deferred; break;
      case Lane::dead:
      case Lane::shelved: ++counted.dead;
    }
  }
  const auto numbers = [](const message::Counters& of) { return std::tie(of.active, of.dead, of.scheduled, of.deferred); };
  expect(numbers(*counters) == numbers(counted), "the counters of an entity equal a recount", std::to_string(id));
  expect(counters->bytes == counted.bytes || is_going(entity(id)), "the bytes of an entity equal a recount",
         std::to_string(id) + ": " + std::to_string(counters->bytes) + ", not " + std::to_string(counted.bytes));
  const auto highest = highest_.find(id);
  expect(highest == highest_.end() || counters->last_sequence_number >= highest->second, "numbers are given once", std::to_string(id));
  check_wake(id, *counters);
}

// What waits for its time has a timer that comes by then.
void MessageLedger::check_wake(std::int64_t id, const message::Counters&) const {
  std::optional<Time> needed;
  const bool going = is_going(entity(id));
  if (going) needed = latest_;
  for (auto at = database_.bus.messages.lower_bound({id, Lane::active, 0}); at != database_.bus.messages.end() && at->first.entity_id == id && !going; ++at) {
    const Message& row = at->second;
    // After a start locks last a little longer than their rows say.
    const auto then = row.locked_until ? std::optional{std::max(*row.locked_until, latest_ + Duration{31'000})}
                      : message::is_dead(row.lane) ? std::nullopt
                                                   : row.due_at;
    if (then && (!needed || *then < *needed)) needed = then;
  }
  if (!needed) return;
  const Subject subject{Subject::Type::entity, std::to_string(id)};
  const auto timer = std::ranges::find_if(database_.timers, [&](const Timer& each) { return each.subject == subject; });
  expect(timer != database_.timers.end(), "what waits for its time has a timer", std::to_string(id));
  expect(timer->due <= std::max(*needed, latest_ + Duration{1'000}) || put_off_, "what waits for its time is woken by then", std::to_string(id));
}

// Nobody is given a message while an older one waits that nobody had yet.
void MessageLedger::check_order() const {
  for (const auto& [id, taken] : first_taken_)
    for (auto at = database_.bus.messages.lower_bound({id, Lane::active, 0});
         at != database_.bus.messages.end() && at->first < Key{id, Lane::active, taken}; ++at) {
      const Message& row = at->second;
      const bool waits = !row.locked_until && !ever_taken_.contains({id, row.sequence_number}) && !message::is_expired(row, latest_);
      expect(!waits, "the oldest message is given first", row.key());
    }
}

// ---- answers

void MessageLedger::answered(const Command& command, const Reply& reply) {
  look_at_clock();
  if (const auto* sent = std::get_if<SentReply>(&reply)) return check_sent(std::get<SendMessages>(command), *sent);
  if (const auto* poll = std::get_if<PollReply>(&reply)) return check_polled(std::get<Poll>(command), *poll);
  if (const auto* settled = std::get_if<SettledReply>(&reply)) return check_settled(std::get<SettleMessages>(command), *settled);
  if (const auto* renewed = std::get_if<RenewedReply>(&reply)) return check_renewed(std::get<RenewLocks>(command), *renewed);
  if (const auto* messages = std::get_if<MessagesReply>(&reply)) return check_messages(command, *messages);
}

// A copy that came in the commit in which one of the same content went is not told from one that moved (check_copies).
bool MessageLedger::has_copy(const Place& published, const NewMessage& sent) const {
  return std::ranges::any_of(database_.bus.messages, [&](const auto& entry) {
    const Message& row = entry.second;
    return row.enqueued_sequence_number == published.second && row.message_id == sent.message_id && row.content.value == sent.content.value;
  });
}

// Whatever is acknowledged is there, or was; and what is called a duplicate was there before.
void MessageLedger::check_sent(const SendMessages& command, const SentReply& reply) const {
  for (std::size_t t = 0; t < reply.transfers.size(); ++t) {
    if (!reply.transfers[t]) continue;
    const auto& numbers = *reply.transfers[t];
    expect(numbers.size() == command.transfers[t].size(), "each message of a transfer is answered", command.to.path);
    const message::Entity* to = entity(command.to);
    if (!to) continue;  // it was deleted meanwhile
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const NewMessage& sent = command.transfers[t][i];
      const Place place{to->entity_id, numbers[i]};
      const bool is_topic = to->entity_type == EntityType::topic;
      if (numbers[i] == 0) {
        expect(is_topic || accepted_.contains({to->entity_id, sent.message_id}), "a duplicate was there before", sent.message_id);
        continue;
      }
      if (deleted_from_.contains({to->entity_id, Lane::active})) continue;  // it may be gone at once
      const auto content = contents_.find(place);
      expect(content != contents_.end() || (is_topic && (published_.contains(place) || has_copy(place, sent))), "what is acknowledged is stored",
             sent.message_id);
      expect(content == contents_.end() || content->second == sent.content.value, "a number is that of its message", sent.message_id);
    }
  }
}

void MessageLedger::told(const Grant& grant, const Message& message) {
  const Place place{grant.key.entity_id, grant.key.sequence_number};
  expect(!completed_.contains(place), "what was completed is handed out no more", grant.key);
  const auto content = contents_.find(place);
  expect(content == contents_.end() || content->second == message.content.value, "a message is handed out as it was sent", grant.key);
  expect(message.lane != Lane::scheduled, "what is scheduled is not handed out", grant.key);
  if (!message.locked_until) {
    expect(!database_.bus.messages.contains(grant.key), "what was received for good is gone", grant.key);
    completed_.insert(place);
    return;
  }
  expect(given_.contains(grant), "what is handed out is locked", grant.key);
  expect(told_.insert(grant).second, "a lock is given once", grant.key);
}

void MessageLedger::check_polled(const Poll& command, const PollReply& reply) {
  for (const Handout& each : reply.jobs) {
    if (!each.message) continue;
    const Message& message = *each.message;
    expect(tenants_[message.entity_id] == command.tenant, "a receiver is given messages of its own tenant", message.key());
    expect(command.queue == message::queue_name(message.entity_id, message.lane), "a receiver is given messages of its queue", message.key());
    expect(command.heartbeats == message.locked_until.has_value(), "a message is locked, or gone", message.key());
    told({message.key(), message.locks}, message);
  }
}

void MessageLedger::check_settled(const SettleMessages& command, const SettledReply& reply) {
  expect(reply.settled.size() == command.settlements.size(), "each settlement is answered", "");
  for (std::size_t i = 0; i < reply.settled.size(); ++i) {
    const Settlement& settlement = command.settlements[i];
    const Key& key = settlement.lock.message;
    if (reply.settled[i]) continue;
    expect(command.tenant == tenants_[key.entity_id], "nobody settles what is another tenant's", key);
    if (settlement.how != How::complete) continue;
    expect(!database_.bus.messages.contains(key), "what was completed is gone", key);
    completed_.insert({key.entity_id, key.sequence_number});
  }
}

void MessageLedger::check_renewed(const RenewLocks& command, const RenewedReply& reply) const {
  for (std::size_t i = 0; i < reply.until.size(); ++i) {
    const MessageLock& lock = command.locks[i];
    if (!reply.until[i]) continue;
    expect(command.tenant == tenants_.at(lock.message.entity_id), "nobody renews what is another tenant's", lock.message);
    const Message* row = database_.bus.messages.get(lock.message);
    const bool is_its = row && row->locked_until && row->locks == lock.number;
    expect(!is_its || *row->locked_until >= *reply.until[i] || clock_.set_back > Duration{}, "a renewed lock lasts as long as was said", lock.message);
  }
}

void MessageLedger::check_messages(const Command& command, const MessagesReply& reply) {
  if (const auto* peek = std::get_if<PeekMessages>(&command)) {
    std::int64_t last = peek->first - 1;
    for (const auto& each : reply.messages) {
      expect(tenants_[each->entity_id] == peek->from.tenant, "nobody sees what is another tenant's", each->key());
      expect(each->sequence_number > last, "messages are peeked at in order", each->key());
      expect(message::is_dead(each->lane) == peek->dead, "dead letters are apart", each->key());
      last = each->sequence_number;
    }
  }
  if (const auto* cancel = std::get_if<CancelScheduled>(&command)) {
    const message::Entity* from = entity(cancel->from);
    for (const std::int64_t number : cancel->sequence_numbers)
      expect(!from || !database_.bus.messages.contains({from->entity_id, Lane::scheduled, number}), "what was called back is gone", cancel->from.path);
  }
  if (!std::holds_alternative<ReceiveDeferred>(command)) return;
  for (const auto& each : reply.messages) told({each->key(), each->locks}, *each);
}

void MessageLedger::check_end() const {
  for (const auto& [key, row] : database_.bus.messages) expect(false, "every queue can be emptied", key);
  for (const auto& [id, row] : database_.bus.entities) expect(!is_going(&row), "what is deleted goes", std::to_string(id));
  for (const auto& [id, row] : database_.bus.counters) expect(id == 0 || entity(id), "what is deleted leaves no counters", std::to_string(id));
  for (const auto& [key, row] : database_.bus.history) expect(entity(key.entity_id), "what is deleted leaves no history", key.message_id);
  for (const Timer& timer : database_.timers)
    if (timer.subject.type == Subject::Type::entity)
      expect(put_off_ || entity(std::strtoll(timer.subject.id.c_str(), nullptr, 10)), "what is deleted leaves no timer", timer.subject.id);
}

}  // namespace baton::simulation
