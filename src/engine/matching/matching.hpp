// Where work that waits meets workers that wait, and where callers wait for something to end. Belongs to the
// node, in memory only: what waits for a worker is rows of the store, a poll or a wait is somebody's open
// connection.
//
// Owned by the engine's thread.
#pragma once

#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/effects.hpp"
#include "engine/matching/queues.hpp"
#include "engine/matching/workers.hpp"

namespace baton::engine {

class Matching {
 public:
  explicit Matching(std::size_t queue_window, Time since = {}) : since_(since), queues_(queue_window) {}

  // ---- workers ----
  void add_poll(Poll poll, std::shared_ptr<Waiter> waiter, Time now);
  // Answers a poll that was expected to be served. What it was given comes back when it was not there any more: its time
  // ran out while the outcome of a commit was unknown.
  [[nodiscard]] PollReply answer_poll(ServePoll serving);
  // What is known to wait may not be true any more: the store is asked again.
  void forget_waiting();
  [[nodiscard]] const std::set<QueueKey>& to_match() const { return to_match_; }
  void match_all();
  [[nodiscard]] bool is_polled(const QueueKey& key) const { return queues_.is_polled(key); }
  // The queue that used up what one batch may hand out: the next batch begins behind it.
  [[nodiscard]] const QueueKey& served_last() const { return served_last_; }
  [[nodiscard]] Queues& queues() { return queues_; }
  [[nodiscard]] Workers& workers() { return workers_; }
  [[nodiscard]] const Workers& workers() const { return workers_; }
  [[nodiscard]] std::vector<WorkerInfo> list_workers(const std::optional<Tenant>& tenant, Time now) const;
  [[nodiscard]] QueuesReply look_at(const LookAtQueues& look, Time now) const;

  // ---- commits ----
  // The next batch is decided on what this commit brings, although it is not durable yet: its polls are served, its work
  // waits, its waits are there. Nobody is told.
  void expect(Effects& effects);
  // It did not happen. What is known to wait must be forgotten as well.
  void withdraw(Effects& effects);

  // ---- waits ----
  // A wait that was expected begins.
  void begin_wait(const Await& wait);
  [[nodiscard]] bool has_waits() const { return !waits_.empty(); }
  [[nodiscard]] bool is_awaited(const Subject& subject) const { return by_subject_.contains(subject); }
  void tell_end(const Ended& end);
  // The questions of those whose time is up, and of all of them.
  [[nodiscard]] std::vector<Item> take_overdue_waits(Time now);
  [[nodiscard]] std::vector<Item> take_all_waits();

  // ---- time ----
  void time_out_polls(Time now);
  void end_all_polls();
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  struct Deadline {
    Time at;
    std::uint64_t id = 0;
    std::optional<QueueKey> poll;  // none: a wait
    friend bool operator<(const Deadline& a, const Deadline& b) {
      return std::tie(a.at, a.id) < std::tie(b.at, b.id);
    }
  };
  [[nodiscard]] Await take_wait(std::uint64_t id);
  void expect(ServePoll& serving);
  void expect(Await& wait);
  void expect(MatchAgain& again);
  void enqueue(Enqueue& work);

  const Time since_;  // nobody has asked for work before
  Queues queues_;
  Workers workers_;
  std::set<QueueKey> to_match_;  // in the next batch, whatever it brings
  QueueKey served_last_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Await> waits_;
  std::unordered_map<Subject, std::vector<std::uint64_t>, HashSubject> by_subject_;
  std::set<Deadline> deadlines_;
};

}  // namespace baton::engine
