#include "engine/matching/queues.hpp"

#include <iterator>

namespace baton::engine {

bool Queue::precedes_rest(const WaitingTask& task) const {
  return complete || (!ready.empty() && task < *ready.rbegin());
}

void Queue::append(WaitingTask task) {
  if (!precedes_rest(task)) return;
  ready.insert(std::move(task));
  if (ready.size() <= window) return;
  ready.erase(std::prev(ready.end()));
  complete = false;
}

Queue& Queues::add_poll(const QueueKey& key, WaitingPoll poll) {
  Queue& queue = queues_.try_emplace(key, window_).first->second;
  const std::uint64_t id = poll.id;
  queue.polls.emplace(id, std::move(poll));
  return queue;
}

std::optional<WaitingPoll> Queues::remove_poll(const QueueKey& key, std::uint64_t id) {
  Queue* queue = find(key);
  const auto node = queue ? queue->polls.extract(id) : decltype(Queue::polls)::node_type{};
  if (!node) return std::nullopt;
  return std::move(node.mapped());
}

Queue* Queues::find(const QueueKey& key) {
  const auto it = queues_.find(key);
  return it == queues_.end() ? nullptr : &it->second;
}

void Queues::forget_ready() {
  for (auto& [key, queue] : queues_) {
    queue.ready.clear();
    queue.complete = false;
  }
}

void Queues::drop_if_idle(const QueueKey& key) {
  // A few idle queues are kept so that their next poll need not ask the store.
  constexpr std::size_t idle_max = 1'000;
  if (queues_.size() <= idle_max) return;
  const auto it = queues_.find(key);
  if (it != queues_.end() && it->second.polls.empty()) queues_.erase(it);
}

std::vector<QueueKey> Queues::keys() const {
  std::vector<QueueKey> keys;
  for (const auto& [key, queue] : queues_) keys.push_back(key);
  return keys;
}

}  // namespace baton::engine
