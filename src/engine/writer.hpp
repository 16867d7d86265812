// The single writer: takes a batch of commands and due timers, loads what they touch in bulk, lets the pure
// core decide each in order, commits everything in one transaction, and only then answers. Synchronous and
// without threads: the service gives it a thread, the simulator gives it virtual time.
//
// Invariants:
//  * every item is answered exactly once, and never before the commit that made the answer true;
//  * what is in memory (queues, waits, the next timer) is rebuilt from the store after any commit that did
//  not surely succeed;
//  * after Code::unknown nothing else happens until open() has told whether that commit is durable: if it is,
//  its answers are released,
//    if not, its items are decided again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/metrics.hpp"
#include "core/runbook/machine/machine.hpp"
#include "core/workflow/machine/machine.hpp"
#include "engine/definitions.hpp"
#include "engine/progressions.hpp"
#include "engine/queues.hpp"
#include "engine/workers.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/store.hpp"

namespace baton::engine {

struct Item {
  Command command;
  std::shared_ptr<Waiter> waiter;
};

struct WriterOptions {
  workflow::Policy policy;
  runbook::Policy runbooks;
  std::size_t timers_max = 1'000;     // due timers taken into one batch
  std::size_t handouts_max = 1'000;   // tasks handed out in one batch
  int chunks_max = 4;                 // steps of large fan-outs in one batch: others are to get their turn
  std::size_t queue_window = 10'000;  // of a queue's tasks that are known in memory
  std::size_t expansions_max = 64;    // sources of fan-outs that are kept between their chunks
  std::size_t events_max = 500'000;   // of one batch, which a commit can number
  int walks_max = 1;                  // chunks of members of runbooks in one batch
  std::size_t ids_block = 10'000;     // ids of steps that are reserved at a time
  std::function<void()> runbooks_changed;  // after the commit: a scheduler should look
  std::function<void(std::vector<DueCall>)> calls_scheduled;  // after the commit: they have a time now
  std::function<void(const std::string&)> unreadable;  // a row of runbooks that cannot be worked with, once for each
};

// What the writer counts; null pointers count nothing.
struct WriterMetrics {
  metrics::Counter* batches = nullptr;
  metrics::Counter* commands = nullptr;
  metrics::Counter* jobs_created = nullptr;
  metrics::Counter* jobs_ended = nullptr;
  metrics::Counter* handouts = nullptr;
  metrics::Counter* timers = nullptr;
  metrics::Counter* redecided = nullptr;
  metrics::Counter* postponed = nullptr;
  metrics::Counter* commit_failures = nullptr;
  metrics::Counter* steps_ended = nullptr;
  metrics::Counter* batches_ended = nullptr;
  metrics::Histogram* commit_seconds = nullptr;
};

class Writer {
 public:
  Writer(Store& store, const Clock& clock, WriterOptions options, WriterMetrics metrics = {});
  ~Writer();

  // Opens the store, also again after trouble; settles a commit of unknown outcome.
  [[nodiscard]] Result<> open();
  // True: the store failed, and open() comes before anything else.
  [[nodiscard]] bool away() const { return away_; }
  // What last went wrong with the store.
  [[nodiscard]] const Error& trouble() const { return trouble_; }
  // Set when another writer has taken over: this one must stop.
  [[nodiscard]] const std::optional<Error>& fatal() const { return fatal_; }

  // One batch. Must not be called while away().
  void run(std::vector<Item> items);
  // When run() has something to do even without items.
  [[nodiscard]] std::optional<Time> next_wake() const;

  // Commands of the writer itself wait for the next run().
  [[nodiscard]] bool has_own_items() const { return !own_items_.empty() && !retry_at_; }
  // Refuses everybody who is held by a commit of unknown outcome.
  void abandon_held();
  // While away: answers polls and waits whose time is up.
  void expire_while_away();
  // Answers everybody who waits: polls with nothing, waits for a job with what the job is now.
  void finish();

 private:
  class Batch;
  struct Wait {  // somebody waits for the end of a job
    workflow::Tenant tenant;
    workflow::JobId job_id;
    std::shared_ptr<Waiter> waiter;
    bool created = false;
    Time until{};
  };
  struct Held {  // a batch whose commit has an unknown outcome
    std::unique_ptr<Batch> batch;
    std::int64_t commit_number = 0;
  };

  [[nodiscard]] Result<> prepare(std::unique_ptr<Batch>& batch);
  void commit(std::unique_ptr<Batch> batch);
  void attempt(std::unique_ptr<Batch> batch);
  void failed(Batch& batch, const Error& error);
  void divide(Batch& batch, Code why);
  void give_back(const PollReply& reply);
  void add_wait(Wait wait);
  void remove_wait(std::uint64_t id);
  void polls_time_out(Time now);
  // After a batch fired timers: when the next one is due (none: the store is asked).
  void timers_were_taken(std::optional<Time> more_at);
  void look_at_all_queues();
  [[nodiscard]] Result<> take_back_builtin();
  [[nodiscard]] Result<> adopt_phases();
  [[nodiscard]] Result<> reserve(const std::map<runbook::Table, std::size_t>& wanted);
  [[nodiscard]] std::shared_ptr<const runbook::Definition> runbook_definition(const runbook::Runbook& row);
  void tell_unreadable(runbook::Ref ref, const std::string& why);
  void count(std::size_t commands, std::size_t jobs_ended, std::size_t timers);
  void count_handouts(std::size_t n);

  Store& store_;
  const Clock& clock_;
  WriterOptions options_;
  WriterMetrics metrics_;

  std::int64_t last_commit_ = 0;
  bool away_ = true;
  bool opened_before_ = false;
  std::optional<Error> fatal_;
  Error trouble_;
  std::unique_ptr<Held> held_;

  Definitions definitions_;
  Queues queues_;
  Workers workers_;
  Progressions progressions_;
  runbook::IdPool ids_;
  struct KnownRunbook {
    std::size_t text_hash = 0;
    std::shared_ptr<const runbook::Definition> definition;  // null: it cannot be read
  };
  std::map<std::int64_t, KnownRunbook> runbook_definitions_;  // by id; a cache
  std::set<runbook::Ref> told_unreadable_;
  std::vector<Item> own_items_;     // the writer's own commands, for the next batch
  std::set<QueueKey> hungry_;       // queues to look at in the next batch, whatever it brings
  std::optional<Time> next_timer_;  // may be early, never late
  Duration pause_{};                // after a failure
  std::optional<Time> look_again_at_;  // for jobs that could not be given: somebody may repair their rows
  Duration lost_to_others_{};       // all the time that commits took which collided with other programs
  std::optional<Time> retry_at_;    // after a failure: not before this time without a command
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Wait> waits_;
  std::unordered_map<workflow::JobId, std::vector<std::uint64_t>> waits_by_job_;
  struct Deadline {
    Time at;
    std::uint64_t id = 0;
    std::optional<QueueKey> poll;  // none: a wait
    friend bool operator<(const Deadline& a, const Deadline& b) {
      return std::tie(a.at, a.id) < std::tie(b.at, b.id);
    }
  };
  std::set<Deadline> deadlines_;
};

}  // namespace baton::engine
