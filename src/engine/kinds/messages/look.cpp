// Messages that are asked for by number: peeked at, received after they were deferred, cancelled, replayed.
#include <algorithm>
#include <limits>

#include "base/mutant.hpp"
#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

using message::Message;

namespace {

constexpr std::size_t messages_max = 1'000;
constexpr std::int64_t peeked_bytes_max = 4 << 20;  // with one answer

std::optional<Refused> too_many(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() <= numbers_max) return std::nullopt;
  return refused(Refusal::invalid_input, "at most " + std::to_string(numbers_max) + " sequence numbers can be named at once");
}

Refused too_large() { return refused(Refusal::invalid_input, "these messages have more than 8 MiB together: name fewer"); }
Refused is_a_pool(const std::string& path, const std::string& pool) {
  return refused(Refusal::not_possible, "'" + path + "' is the pool '" + pool + "': its jobs are no messages. Those that were given up are listed by 'baton dead-letter list' and GET /api/v1/dead-letters");
}

Refused no_such_message(std::int64_t number) {
  return refused(Refusal::message_not_found, "there is no message with the sequence number " + std::to_string(number) + " to be had this way");
}

}  // namespace

std::vector<MessageTransaction::PageKey> MessageTransaction::peek_pages(std::int64_t entity_id, const PeekMessages& c) {
  const std::size_t limit = std::clamp<std::size_t>(c.max, 1, messages_max);
  std::vector<PageKey> pages;
  for (const Lane lane : c.dead ? std::vector{Lane::dead, Lane::shelved} : std::vector{Lane::active, Lane::scheduled, Lane::deferred})
    if (c.lane.value_or(lane) == lane) pages.push_back({entity_id, lane, c.first, limit});
  return pages;
}

MessageTransaction::PageKey MessageTransaction::replay_page(std::int64_t entity_id, const ReplayDeadLetters& c) {
  return {entity_id, Lane::dead, c.first, std::clamp<std::size_t>(c.max, 1, replays_max)};
}

Reply MessageTransaction::decide(const PeekMessages& c) {
  const auto from = find(c.from);
  if (!from) return from.error();
  if (const auto pool = pool_of(**from)) return is_a_pool(c.from.path, *pool);
  std::vector<MessagePtr> found;
  // Where a lane was cut because of its bytes, what lies behind that in the others is left for the next look too.
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const PageKey& key : peek_pages((*from)->row.entity_id, c)) {
    const auto rows = rows_of(key);
    const auto* all = page(key);
    if (all && !rows.empty() && rows.back()->sequence_number < all->back().sequence_number) last = std::min(last, rows.back()->sequence_number);
    found.insert(found.end(), rows.begin(), rows.end());
  }
  std::ranges::sort(found, {}, [](const MessagePtr& each) { return each->sequence_number; });
  MessagesReply reply;
  std::int64_t bytes = 0;
  for (const MessagePtr& each : found) {
    if (each->sequence_number > last || reply.messages.size() >= c.max || bytes > peeked_bytes_max) break;
    bytes += each->size();
    reply.messages.push_back(std::make_shared<const Message>(*each));
  }
  return reply;
}

Reply MessageTransaction::decide(const ReceiveDeferred& c) {
  const auto from = find(c.from);
  if (!from) return from.error();
  if (auto why = too_many(c.sequence_numbers)) return *std::move(why);
  if (!(*from)->settings.gives_messages()) return refused(Refusal::not_possible, "'" + c.from.path + "' is disabled for receiving");
  const Lane lane = c.dead ? Lane::shelved : Lane::deferred;
  std::int64_t bytes = 0;
  for (const std::int64_t number : c.sequence_numbers) {
    const Key key{(*from)->row.entity_id, lane, number};
    const auto size = stored_size(key);
    if (!size || state_.lock(key)) return no_such_message(number);
    bytes += *size;
  }
  if (is_too_large(c.sequence_numbers.size(), bytes)) return too_large();
  std::vector<MessagePtr> found;
  for (const std::int64_t number : c.sequence_numbers) {
    found.push_back(row({(*from)->row.entity_id, lane, number}));
    if (!found.back() || found.back()->locked_until) return no_such_message(number);
  }
  MessagesReply reply;
  for (const MessagePtr& message : found) {
    if (state_.lock(message->key())) continue;  // its number was named twice
    if (const auto slot = slots_.find(message->key()); slot != slots_.end() && slot->second.is_gone) continue;
    take(**from, *message, c.deletes);
    reply.messages.push_back(message);
  }
  return reply;
}

Reply MessageTransaction::decide(const CancelScheduled& c) {
  const auto from = find(c.from);
  if (!from) return from.error();
  if (auto why = too_many(c.sequence_numbers)) return *std::move(why);
  for (const std::int64_t number : c.sequence_numbers) {
    const Key key{(*from)->row.entity_id, Lane::scheduled, number};
    if (const auto size = MUTANT(cancelled_message_sent) ? std::nullopt : stored_size(key)) remove(key, *size);
  }
  return MessagesReply{};
}

// As many of the page as were brought; the rest would be too much at once.
std::vector<MessageTransaction::MessagePtr> MessageTransaction::rows_to_replay(const PageKey& key, std::int64_t up_to, ReplayedReply& reply) {
  std::vector<MessagePtr> rows;
  const auto* all = page(key);
  if (!all) return rows;
  for (const Message& each : *all) {
    reply.are_more = each.sequence_number <= up_to;
    if (!reply.are_more || (!loaded_.contains(each.key()) && !slots_.contains(each.key()))) return rows;
    reply.last = each.sequence_number;
    if (auto found = row(each.key())) rows.push_back(std::move(found));
  }
  reply.are_more = all->size() == key.limit;
  return rows;
}

void MessageTransaction::replay(const Definition& entity, const Message& dead) {
  const std::int64_t id = entity.row.entity_id;
  Message again = replayed(dead, next_sequence_number(id), turn_.now, entity.settings);
  const std::int64_t number = again.sequence_number;
  if (!MUTANT(replay_keeps_dead_letter)) remove(dead.key(), dead.size());
  add(std::move(again));
  make_ready(entity, {id, Lane::active, number});
}

Reply MessageTransaction::decide(const ReplayDeadLetters& c) {
  const auto from = find(c.from);
  if (!from) return from.error();
  if (const auto pool = pool_of(**from)) return is_a_pool(c.from.path, *pool);
  if (auto why = too_many(c.sequence_numbers)) return *std::move(why);
  const std::int64_t id = (*from)->row.entity_id;
  std::vector<MessagePtr> found;
  ReplayedReply reply;
  if (c.sequence_numbers.empty()) found = rows_to_replay(replay_page(id, c), c.up_to, reply);
  const std::set numbers(c.sequence_numbers.begin(), c.sequence_numbers.end());
  std::int64_t bytes = 0;
  for (const std::int64_t number : numbers) {
    const auto size = stored_size({id, Lane::dead, number});
    if (!size) return no_such_message(number);
    bytes += *size;
  }
  if (is_too_large(numbers.size(), bytes)) return too_large();
  for (const std::int64_t number : numbers) {
    found.push_back(row({id, Lane::dead, number}));
    if (!found.back()) return no_such_message(number);
  }
  for (const MessagePtr& message : found) {
    if (state_.lock(message->key())) continue;
    replay(**from, *message);
    ++reply.replayed;
  }
  return reply;
}

}  // namespace baton::engine
