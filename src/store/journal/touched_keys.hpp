// The keys of the rows that a commit writes, as hashes: whoever asks for one of them while the commit is under way waits for
// its end, and nobody else does. Two keys of one hash make somebody wait who need not.
//
// Making it costs little, because most commits are over before anybody asks; the first question sorts.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "ports/store.hpp"

namespace baton::store {

class TouchedKeys {
 public:
  explicit TouchedKeys(const WriteSet& writes) {
    for (const auto* rows : {&writes.jobs_new, &writes.jobs_changed})
      for (const workflow::Job& row : *rows) add(hash(row.job_id));
    for (const auto* rows : {&writes.nodes_new, &writes.nodes_changed})
      for (const workflow::NodeState& row : *rows) add(hash(row.job_id, row.item_index, row.node_id));
    for (const workflow::TaskResult& row : writes.task_results_new) add(hash(row.task_id));
    for (const workflow::IdempotencyKey& row : writes.idempotency_keys_new) add(hash(row.idempotency_key));
    for (const auto* rows : {&writes.calls.calls_new, &writes.calls.calls_changed})
      for (const call::Call& row : *rows) add(hash(row.service_call_id));
    for (const call::IdempotencyKey& row : writes.calls.keys_new) add(hash(row.idempotency_key));
    add(writes.messages);
  }

  [[nodiscard]] bool has_any_of(const LoadRequest& asked) {
    using std::ranges::any_of;
    const auto has_id = [this](const auto& id) { return has(hash(id)); };
    return any_of(asked.jobs, has_id) || any_of(asked.jobs_whole, has_id) || any_of(asked.task_results, has_id) ||
           any_of(asked.nodes, [this](const NodeKey& key) { return has(hash(key.job_id, key.item_index, key.node_id)); }) ||
           any_of(asked.idempotency_keys, [this](const auto& key) { return has(hash(key.idempotency_key)); });
  }
  [[nodiscard]] bool has_any_of(const call::LoadRequest& asked) {
    using std::ranges::any_of;
    const auto has_call = [this](const call::CallKey& key) { return has(hash(key.id)); };
    return any_of(asked.calls, has_call) || any_of(asked.streams, has_call) || any_of(asked.requests, has_call) ||
           any_of(asked.idempotency_keys, [this](const auto& key) { return has(hash(key.second)); });
  }
  [[nodiscard]] bool has_any_of(const message::LoadRequest& asked) {
    using std::ranges::any_of;
    const auto has_lane = [this](const auto& list) { return has(hash(list.entity_id, list.lane)); };
    return (asked.entities && has_entities_) || (asked.locked && has_messages_) ||
           any_of(asked.messages, [this](const message::MessageKey& key) { return has(hash(key)); }) ||
           any_of(asked.messages_light, [this](const message::MessageKey& key) { return has(hash(key)); }) ||
           any_of(asked.pages, has_lane) || any_of(asked.agendas, has_lane) ||
           any_of(asked.history, [this](const message::HistoryKey& key) { return has(hash(key.message_id)); }) ||
           any_of(asked.history_oldest, [this](const auto& oldest) { return has(hash_of_history(oldest.entity_id)); });
  }

 private:
  // Messages by key and by lane; of the history each entry, and that it is of an entity.
  void add(const message::Writes& writes) {
    hashes_.reserve(hashes_.size() + writes.messages_new.size() + writes.messages_changed.size() + writes.messages_gone.size());
    for (const auto* rows : {&writes.messages_new, &writes.messages_changed})
      for (const message::Message& row : *rows) add(row.key());
    for (const message::MessageKey& key : writes.messages_gone) add(key);
    const auto add_history = [this](const auto& row) {
      add(hash(row.message_id));
      add(hash_of_history(row.entity_id));
    };
    std::ranges::for_each(writes.history_new, add_history);
    std::ranges::for_each(writes.history_gone, add_history);
    has_messages_ = !writes.messages_new.empty() || !writes.messages_changed.empty() || !writes.messages_gone.empty();
    has_entities_ = !writes.entities_new.empty() || !writes.entities_changed.empty() || !writes.entities_gone.empty() ||
                    !writes.counters_new.empty() || !writes.counters_changed.empty();
  }
  void add(const message::MessageKey& key) {
    add(hash(key));
    const std::size_t lane = hash(key.entity_id, key.lane);
    if (std::exchange(last_lane_, lane) != lane) add(lane);  // neighbours are mostly of one
  }
  static std::size_t hash(std::int64_t entity_id, message::Lane lane) {
    return mixed(static_cast<std::size_t>(entity_id) * 8 + static_cast<std::size_t>(lane));
  }
  static std::size_t hash(const message::MessageKey& key) {
    return mixed(hash(key.entity_id, key.lane) + static_cast<std::size_t>(key.sequence_number));
  }
  static std::size_t hash_of_history(std::int64_t entity_id) { return mixed(static_cast<std::size_t>(entity_id) * 8 + 7); }
  static std::size_t mixed(std::size_t number) {  // numbers of neighbours are alike, and must not be those of other keys
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
    return number ^ (number >> 31);
  }

  // Ids of one moment begin alike.
  static std::size_t hash(std::string_view text) {
    constexpr std::size_t tail = 16;
    return std::hash<std::string_view>{}(text.substr(text.size() > tail ? text.size() - tail : 0));
  }
  template <class Tag>
  static std::size_t hash(const Id<Tag>& id) {
    return hash(std::string_view(id.value));
  }
  static std::size_t hash(const workflow::JobId& job_id, std::int32_t item_index, std::string_view node_id) {
    return (hash(job_id) * 31 + static_cast<std::size_t>(item_index)) * 31 + hash(node_id);
  }
  void add(std::size_t hash) { hashes_.push_back(hash); }
  [[nodiscard]] bool has(std::size_t hash) {
    if (!std::exchange(is_sorted_, true)) std::ranges::sort(hashes_);
    return std::ranges::binary_search(hashes_, hash);
  }

  std::vector<std::size_t> hashes_;
  std::size_t last_lane_ = 0;
  bool has_messages_ = false, has_entities_ = false;
  bool is_sorted_ = false;
};

}  // namespace baton::store
