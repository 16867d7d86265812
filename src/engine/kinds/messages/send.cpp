// What is sent: to a queue, or through the rules of the subscriptions of a topic; at once, or when its time comes.
#include "base/mutant.hpp"
#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

using message::EntityType;
using message::Message;

namespace {

// What one transfer may make: the copies of a topic are in one transaction.
constexpr std::size_t copies_max = 50'000, copies_bytes_max = 64 << 20;
constexpr std::size_t message_id_max = 4 * 128;  // bytes

std::size_t size_of(const NewMessage& sent) { return sent.content.size() + sent.annotations.size() + sent.message_id.size(); }

Message made_of(const NewMessage& sent) {
  return {.message_id = sent.message_id,
          .time_to_live_ms = sent.time_to_live ? std::optional{sent.time_to_live->count()} : std::nullopt,
          .bytes = static_cast<std::int64_t>(size_of(sent)),
          .annotations = sent.annotations,
          .content = sent.content};
}

// An entity shortens the time that a message has, and never gives it more.
std::optional<std::int64_t> shortened(std::optional<std::int64_t> time_ms, const std::optional<Duration>& most) {
  return most ? std::min(time_ms.value_or(most->count()), most->count()) : time_ms;
}

message::Envelope envelope_of(const NewMessage& sent) {
  if (sent.envelope) return *sent.envelope;
  message::Envelope envelope;
  envelope.message_id = sent.message_id;
  return envelope;
}

}  // namespace

SentReply MessageTransaction::decide(const SendMessages& c) {
  SentReply reply;
  const auto to = find(c.to);
  for (const auto& transfer : c.transfers) {
    if (!to) reply.transfers.emplace_back(std::unexpected(to.error()));
    else if (bytes_ > copies_bytes_max) reply.transfers.emplace_back(std::unexpected(refused(Refusal::overloaded, "too much is sent at once: try again")));
    else reply.transfers.push_back(send(**to, transfer));
  }
  return reply;
}

std::optional<Refused> MessageTransaction::refusal(const Definition& to, const std::vector<NewMessage>& transfer) {
  if (to.row.entity_type == EntityType::subscription)
    return refused(Refusal::not_possible, "nobody sends to a subscription, but to its topic");
  if (equal_ignoring_case(to.row.path, kind_.options().jobs_topic))
    return refused(Refusal::not_possible, "jobs come from runbooks and workflows: nobody else sends to '" + to.row.path + "'");
  if (!to.settings.takes_messages())
    return refused(Refusal::not_possible, "'" + to.row.path + "' is " + std::string(name(to.settings.availability)) + ": nothing can be sent to it");
  for (const NewMessage& each : transfer) {
    if (each.message_id.empty() || clean_text(each.message_id, message_id_max) != each.message_id)
      return refused(Refusal::invalid_input, "a message id has 1 to 128 characters of text");
    if (each.scheduled_for && *each.scheduled_for >= message::never) return refused(Refusal::invalid_input, "no message is scheduled for so late a time");
  }
  std::int64_t bytes = 0;
  for (const NewMessage& each : transfer) bytes += static_cast<std::int64_t>(size_of(each));
  const std::int64_t room = to.settings.size_max_mb << 20;
  const auto is_over = [&](std::int64_t id) { return state_.counters(id).bytes + bytes > room; };
  const auto& subscriptions = state_.subscriptions_of(to.row.entity_id);
  if (is_over(to.row.entity_id) || std::ranges::any_of(subscriptions, is_over))
    return refused(Refusal::quota_exceeded, "'" + to.row.path + "' has reached its size of " + std::to_string(to.settings.size_max_mb) + " MB");
  if (transfer.size() * subscriptions.size() > copies_max || static_cast<std::size_t>(bytes) * subscriptions.size() > copies_bytes_max)
    return refused(Refusal::quota_exceeded, "a batch for so many subscriptions is too large: send fewer messages at once");
  return std::nullopt;
}

MessageTransaction::Sent MessageTransaction::send(const Definition& to, const std::vector<NewMessage>& transfer) {
  if (auto why = refusal(to, transfer)) return std::unexpected(*std::move(why));
  std::vector<std::int64_t> numbers;
  numbers.reserve(transfer.size());
  for (const NewMessage& each : transfer) numbers.push_back(send(to, each));
  return numbers;
}

std::int64_t MessageTransaction::send(const Definition& to, const NewMessage& sent) {
  const std::int64_t id = to.row.entity_id;
  counters(id).accessed_at = turn_.now;
  if (is_duplicate(to, sent.message_id)) {
    ++tally_.duplicates;
    return 0;
  }
  ++tally_.sent;
  const std::int64_t number = next_sequence_number(id);
  Message message = made_of(sent);
  if (sent.scheduled_for && *sent.scheduled_for > turn_.now) {
    message.entity_id = id;
    message.lane = Lane::scheduled;
    message.sequence_number = message.enqueued_sequence_number = number;
    message.enqueued_at = turn_.now;
    message.due_at = sent.scheduled_for;
    if (to.row.entity_type == EntityType::topic) message.envelope = to_json(envelope_of(sent));
    add(std::move(message));
    return number;
  }
  if (to.row.entity_type == EntityType::topic) {
    const message::Envelope envelope = envelope_of(sent);
    deliver(to, std::move(message), &envelope, number);
  } else {
    deliver(to, std::move(message), nullptr, number);
  }
  return number;
}

std::int64_t MessageTransaction::next_sequence_number(std::int64_t entity_id) { return ++counters(entity_id).last_sequence_number; }

bool MessageTransaction::is_duplicate(const Definition& to, const std::string& message_id) {
  if (!to.settings.detects_duplicates || MUTANT(duplicate_not_detected)) return false;
  const std::int64_t id = to.row.entity_id;
  const message::HistoryKey key{id, message_id};
  const auto known = history_.find(key);
  if (known != history_.end() && known->second > turn_.now) return true;
  const Time forget_at = turn_.now + to.settings.history_time;
  history_[key] = forget_at;
  writes_.history_new.push_back({id, message_id, forget_at});
  ++rows_;
  wake(id, forget_at);
  return false;
}

void MessageTransaction::deliver(const Definition& to, Message message, const message::Envelope* envelope, std::int64_t number) {
  message.enqueued_sequence_number = number;
  if (to.row.entity_type != EntityType::topic) {
    message.sequence_number = number;
    return enqueue(to, std::move(message));
  }
  message::Envelope seen = *envelope;
  seen.enqueued_time = turn_.now;
  seen.sequence_number = seen.enqueued_sequence_number = number;
  // The topic's time to live is the most that its subscriptions' copies have.
  message.time_to_live_ms = shortened(message.time_to_live_ms, to.settings.time_to_live);
  for (const std::int64_t id : state_.subscriptions_of(to.row.entity_id)) {
    deliver_to_subscription(to, *state_.find(id), message, seen);
    if (MUTANT(subscription_forgotten)) break;
  }
}

void MessageTransaction::deliver_to_subscription(const Definition& topic, const Definition& to, const Message& message, const message::Envelope& envelope) {
  const auto new_id = [&] {
    ++uuids_;
    return uuid7(turn_.now, static_cast<std::uint64_t>(*envelope.sequence_number) << 20 | uuids_, static_cast<std::uint64_t>(to.row.entity_id));
  };
  rows_ += to.rules.size() / 2;  // what rules cost counts too
  const message::Matches found = message::matches(to.rules, envelope, new_id);
  for (const message::Copy& copy : found.copies) {
    Message own = message;
    if (copy.changed) own.changes = to_json(changes_between(envelope, *copy.changed));
    if (copy.changed && copy.changed->time_to_live != envelope.time_to_live) {
      const auto& time = copy.changed->time_to_live;
      own.time_to_live_ms = shortened(time ? std::optional{std::max<std::int64_t>(time->count(), 0)} : std::nullopt, topic.settings.time_to_live);
    }
    own.sequence_number = next_sequence_number(to.row.entity_id);
    enqueue(to, std::move(own));
  }
  if (found.failures.empty() || !to.settings.dead_letter_on_filter_error) return;
  const std::int64_t number = next_sequence_number(to.row.entity_id);
  ++tally_.dead_lettered;
  add(dead_lettered(enqueued(message, to.row.entity_id, number, turn_.now, to.settings), message::filter_failed(found.failures.front()), to.row.path));
  make_ready(to, {to.row.entity_id, Lane::dead, number});
}

void MessageTransaction::enqueue(const Definition& to, Message message) {
  const std::int64_t number = message.sequence_number;
  add(enqueued(std::move(message), to.row.entity_id, number, turn_.now, to.settings));
  make_ready(to, {to.row.entity_id, Lane::active, number});
}

}  // namespace baton::engine
