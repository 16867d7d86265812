// Handing out, within a batch: work that waits meets polls that wait, in the transaction that made it ready
// where both are there already. What is given is an effect; the windows over the queues lose what was taken
// from them at once, because a commit that fails forgets them.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "engine/kind.hpp"

namespace baton::engine {

// Loads tasks, in bulk, and gives one of them to the worker behind a poll.
struct TaskSource {
  virtual ~TaskSource() = default;
  [[nodiscard]] virtual Result<> load_tasks(std::span<const WaitingTask> tasks) = 0;
  [[nodiscard]] virtual std::optional<Handout> hand_out(const WaitingTask& task, const Poll& poll) = 0;
};

class Handouts {
 public:
  Handouts(Matching& matching, Store& store, TaskSource& source, std::size_t handouts_max, Time now)
      : matching_(matching), store_(store), source_(source), handouts_max_(handouts_max), now_(now) {}

  // Serves all queues that have new work or unserved polls, in turn: what a batch may hand out is not always used
  // up by the same ones.
  [[nodiscard]] Result<> run(std::vector<Ready> ready);
  [[nodiscard]] std::size_t count() const { return count_; }
  // The store says that something waits in a queue, and nothing of it can be given: asking again at once would not help.
  [[nodiscard]] bool has_stalled() const { return has_stalled_; }
  void take_effects(Effects& out);

 private:
  struct Served {  // what one queue's polls get
    QueueKey key;
    std::set<WaitingTask> fresh;  // made ready in this batch and not handed out by it
    std::vector<ServePoll> polls;
  };
  struct Polls;

  [[nodiscard]] bool has_room() const;
  [[nodiscard]] Result<> serve(Served& served);
  [[nodiscard]] Result<std::vector<WaitingTask>> candidates(Served& served, std::size_t limit, bool& refilled);

  Matching& matching_;
  Store& store_;
  TaskSource& source_;
  const std::size_t handouts_max_;
  const Time now_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  bool has_stalled_ = false;
  std::vector<Served> served_;
  std::set<QueueKey> match_again_;
  std::optional<QueueKey> served_last_;
};

}  // namespace baton::engine
