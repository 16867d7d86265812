#include "core/message/rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace baton::message {
namespace {

constexpr std::array<std::string_view, 3> entity_types = {"queue", "topic", "subscription"};
static_assert(entity_types.size() == static_cast<std::size_t>(EntityType::subscription) + 1);
constexpr std::array<std::string_view, 5> lanes = {"active", "dead", "scheduled", "deferred", "shelved"};
static_assert(lanes.size() == static_cast<std::size_t>(Lane::shelved) + 1);

template <class Enum>
std::optional<Enum> find_word(const auto& words, std::string_view word) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

std::optional<std::int64_t> read_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

constexpr std::string_view task_prefix = "message-";

}  // namespace

std::string_view name(EntityType type) { return entity_types[static_cast<std::size_t>(type)]; }
std::optional<EntityType> entity_type(std::string_view name) { return find_word<EntityType>(entity_types, name); }
std::string_view name(Lane lane) { return lanes[static_cast<std::size_t>(lane)]; }
std::optional<Lane> lane(std::string_view name) { return find_word<Lane>(lanes, name); }

bool Writes::empty() const { return rows() == 0; }

std::size_t Writes::rows() const {
  const auto count = [](const auto&... lists) { return (lists.size() + ...); };
  return count(entities_new, entities_changed, entities_gone, counters_new, counters_changed, messages_new, messages_changed,
               messages_gone, history_new, history_gone);
}

std::string queue_name(std::int64_t entity_id, Lane lane) {
  return std::string(queue_prefix) + std::to_string(entity_id) + '/' + std::string(name(lane));
}

std::optional<QueueOfMessages> parse_queue_name(std::string_view text) {
  if (!text.starts_with(queue_prefix)) return std::nullopt;
  text.remove_prefix(queue_prefix.size());
  const auto slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const auto id = read_number(text.substr(0, slash));
  const auto in = lane(text.substr(slash + 1));
  if (!id || !in) return std::nullopt;
  return QueueOfMessages{*id, *in};
}

std::string task_id(const MessageKey& key) {
  std::string id(task_prefix);
  id += std::to_string(key.entity_id);
  id += '-';
  id += name(key.lane);
  id += '-';
  id += std::to_string(key.sequence_number);
  return id;
}

std::optional<MessageKey> parse_task_id(std::string_view id) {
  if (!id.starts_with(task_prefix)) return std::nullopt;
  id.remove_prefix(task_prefix.size());
  const auto first = id.find('-'), last = id.rfind('-');
  if (first == id.npos || first == last) return std::nullopt;
  const auto entity = read_number(id.substr(0, first));
  const auto in = lane(id.substr(first + 1, last - first - 1));
  const auto sequence = read_number(id.substr(last + 1));
  if (!entity || !in || !sequence) return std::nullopt;
  return MessageKey{*entity, *in, *sequence};
}

}  // namespace baton::message
