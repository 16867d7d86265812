// Who waits for work and what work waits, by queue. The truth about waiting work is rows of the store; this is
// a window over their index, filled on demand, for queues that somebody polls. Owned by the writer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ports/commands.hpp"
#include "ports/store.hpp"

namespace baton::engine {

struct WaitingPoll {
  std::uint64_t id = 0;
  Poll poll;
  std::shared_ptr<Waiter> waiter;
};

struct Queue {
  explicit Queue(std::size_t w) : window(w) {}

  const std::size_t window;                    // how many are known at most
  // The first of those that wait. While a batch is handing out, its own may be among them: if it is not committed, all
  // are forgotten.
  std::set<WaitingTask> ready;
  bool complete = false;                       // ready holds all that the store has
  std::map<std::uint64_t, WaitingPoll> polls;  // by id, which grows: first come, first served

  // Newly dispatched work, after its commit. Beyond the window it stays in the store until there is room.
  void append(WaitingTask task);
  // Whether a task comes before all that the store may have beyond the window.
  [[nodiscard]] bool precedes_rest(const WaitingTask& task) const;
};

class Queues {
 public:
  explicit Queues(std::size_t window) : window_(window) {}
  // Creates the queue when this is its first poll.
  Queue& add_poll(const QueueKey& key, WaitingPoll poll);
  // A poll whose time is up, or none if it has been served.
  [[nodiscard]] std::optional<WaitingPoll> remove_poll(const QueueKey& key, std::uint64_t id);
  [[nodiscard]] Queue* find(const QueueKey& key);
  [[nodiscard]] bool is_polled(const QueueKey& key) const {
    const auto found = queues_.find(key);
    return found != queues_.end() && !found->second.polls.empty();
  }
  // Drops what is known about waiting work: the store is asked again. For when a commit failed.
  void forget_ready();
  // Forgets a queue that nobody polls, when there are many: the store knows what waits in it.
  void drop_if_idle(const QueueKey& key);
  [[nodiscard]] std::vector<QueueKey> keys() const;
  template <class Visit>
  void each_poll(Visit&& visit) const {
    for (const auto& [key, queue] : queues_)
      for (const auto& [id, poll] : queue.polls) visit(key, poll);
  }

 private:
  const std::size_t window_;
  std::map<QueueKey, Queue> queues_;
};

}  // namespace baton::engine
