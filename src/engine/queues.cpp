#include "engine/queues.hpp"

#include <algorithm>

namespace baton::engine {

void Queue::append(NodeKey key) {
  if (!complete) return;
  if (ready.size() >= window)
    complete = false;
  else
    ready.push_back(std::move(key));
}

Queue& Queues::add_poll(const QueueKey& key, WaitingPoll poll) {
  Queue& queue = queues_[key];
  queue.polls.push_back(std::move(poll));
  return queue;
}

std::optional<WaitingPoll> Queues::remove_poll(const QueueKey& key, std::uint64_t id) {
  Queue* queue = find(key);
  if (!queue) return std::nullopt;
  const auto it = std::ranges::find(queue->polls, id, &WaitingPoll::id);
  if (it == queue->polls.end()) return std::nullopt;
  WaitingPoll poll = std::move(*it);
  queue->polls.erase(it);
  return poll;
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

std::vector<WaitingPoll> Queues::take_all_polls() {
  std::vector<WaitingPoll> all;
  for (auto& [key, queue] : queues_) {
    std::ranges::move(queue.polls, std::back_inserter(all));
    queue.polls.clear();
  }
  return all;
}

std::vector<QueueKey> Queues::keys() const {
  std::vector<QueueKey> keys;
  for (const auto& [key, queue] : queues_) keys.push_back(key);
  return keys;
}

}  // namespace baton::engine
