// A kind of work, as the writer sees it: all of them have the same verbs.
// kinds/kinds.cpp lists them; the writer and its batch know no other word of any of them.
//
// Owned by the writer's thread.
#pragma once

#include <any>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/effects.hpp"
#include "engine/matching/matching.hpp"
#include "ports/store.hpp"

namespace baton::engine {

// How far a timer is moved that cannot be obeyed.
constexpr Duration put_off_for = std::chrono::minutes{10};

// Work that waits for a worker from now on.
struct Ready {
  QueueKey queue;
  WaitingTask task;
};

struct Renewal {
  std::optional<Tenant> tenant;  // of the task, if it is known
  bool renewed = false;          // false: it is not this worker's any more
};

// How long whoever polls has a task before it must renew its lease.
[[nodiscard]] inline delivery::LeaseTime lease_time(const Poll& poll, const delivery::Policy& policy) {
  if (!poll.heartbeats) return std::nullopt;
  return poll.lease_time.value_or(policy.short_lease);
}

// Without a registry nothing is counted.
[[nodiscard]] inline metrics::Counter* counter_in(metrics::Registry* registry, std::string name, std::string help) {
  return registry ? &registry->counter(std::move(name), std::move(help)) : nullptr;
}

inline void count(Effects& effects, metrics::Counter* counter, std::size_t n) {
  if (counter && n > 0) effects.emplace_back(Count{counter, n});
}

// What a transaction has at hand.
struct Turn {
  Store& store;
  const Matching& matching;
  Time now{};
  Time as_of{};  // timers are decided as of then: messages that came later are not decided yet
  Effects& effects;
};

// A kind's part in one batch. Rows are loaded, decided on and written; when something turns out to be missing,
// restart() begins anew, with what was learnt.
class Transaction {
 public:
  virtual ~Transaction() = default;

  // Reads in bulk what deciding these is likely to touch. They are those of the whole batch: each kind takes
  // what is its own.
  [[nodiscard]] virtual Result<> load(std::span<const Item> items, std::span<const Timer> timers) = 0;

  // One command of this kind; `place` is its index in the batch. The answer is an effect.
  virtual void decide(std::size_t place, const Item& item) = 0;
  // A timer whose time has come. One that could not be obeyed was put off without its row, which still has its
  // first time then.
  virtual void fire(const Timer&) {}
  // More timers are due than a batch takes. Those that are due still, because others had their turn, go behind
  // the rest, of whatever kind, so that they do not keep it from being seen.
  virtual void timers_go_behind() {}
  // The commit cannot take more; what is left of the batch waits for the next one.
  [[nodiscard]] virtual bool is_full() const { return false; }

  // Work that this batch made ready for workers; then, of what waits, what a worker gets. None: it waits no
  // longer.
  [[nodiscard]] virtual std::vector<Ready> take_ready() { return {}; }
  [[nodiscard]] virtual Result<> load_tasks(std::span<const WaitingTask>) { return {}; }
  [[nodiscard]] virtual std::optional<Handout> hand_out(const WaitingTask&, const Poll&) { return {}; }
  [[nodiscard]] virtual Renewal renew(const TaskLease&, Duration /*lease_time*/, const std::optional<Tenant>& /*caller*/) { return {}; }
  virtual void give_back(const TaskLease&, const std::string& /*reason*/) {}

  // A decision needed what nobody foresaw: nothing of this round may be kept.
  [[nodiscard]] virtual bool is_incomplete() const { return false; }
  [[nodiscard]] virtual Result<> restart() = 0;

  // Everything is decided: what answers need is loaded, then rows and effects are given away, each once.
  [[nodiscard]] virtual Result<> complete() { return {}; }
  virtual void write(WriteSet& out, std::int64_t commit_number) = 0;
  // The commit is durable, or goes on beside what is decided next: what the kind remembers follows. If it fails after all,
  // the kind is told to forget.
  virtual void committed(const WriteSet& /*written*/) {}
};

class Kind {
 public:
  virtual ~Kind() = default;

  // Commands about these are of this kind, and work of theirs that waits for workers; and timers, if it has any. Other
  // programs may write the table of timers.
  [[nodiscard]] virtual bool owns(Subject::Type type) const = 0;
  [[nodiscard]] virtual bool owns_timer(const Timer&) const { return false; }

  [[nodiscard]] virtual std::unique_ptr<Transaction> begin(Turn turn) = 0;
  // What the feed is told of a commit: what of this kind changed, with its status where that is written, and the queues
  // whose tasks did.
  virtual void tell(const WriteSet& writes, Changes& out) const = 0;
  // An effect of this kind (OfKind), after its commit.
  virtual void perform(std::any /*what*/) {}

  // The writer looks at what has come in.
  virtual void turn_begins() {}
  // The store was opened, also again. The lease is that of workers that heartbeat.
  virtual void opened(Time /*now*/, Duration /*short_lease*/) {}
  // What must be done once, when the server starts: commands for one turn, then those for the next, until there are
  // none. Each is about one row, so that a row that cannot be had keeps no other from its turn. The effects are performed
  // before the commands. `given_back`: tasks whose return could not be stored; the writer returns them later.
  [[nodiscard]] virtual Result<std::vector<Command>> at_start(Store&, std::span<const TaskLease> /*given_back*/, Effects&) {
    return std::vector<Command>{};
  }
  // A commit did not surely succeed: what is remembered may not be true.
  virtual void forget() {}
};

using Kinds = std::vector<std::unique_ptr<Kind>>;

// Event ids grow with the commits, so that they order a timeline without a counter in its row.
[[nodiscard]] constexpr std::int64_t first_event_id(std::int64_t commit_number) { return commit_number << 20; }

}  // namespace baton::engine
