// The single writer of a partition: takes a batch of commands and due timers, loads what they touch in bulk,
// lets the pure core decide each in order, commits everything in one transaction, and only then performs what
// follows. Synchronous and without threads: the service gives it a thread, the simulator gives it virtual time.
//
// Invariants:
//  * every item is answered exactly once, and never before the commit that made the answer true;
//  * what is in memory (matching, the next timer, what kinds remember) is rebuilt from the store after any
//    commit that did not surely succeed;
//  * a commit may go on beside the decisions of the next batch, which builds on it: one is under way, one is decided
//    upon it. The second is neither stored nor answered before the first is durable, and counts for nothing if that
//    fails;
//  * after Code::unknown nothing else happens until open() has told whether that commit is durable: if it is,
//    its effects are performed, if not, its items are decided again.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/batch.hpp"
#include "engine/options.hpp"
#include "engine/table_follower.hpp"
#include "ports/clock.hpp"

namespace baton::engine {

class Writer {
 public:
  Writer(Store& store, const Clock& clock, Kinds kinds, WriterOptions options = {}, WriterMetrics metrics = {});
  ~Writer();

  // Opens the store, also again after trouble; settles a commit of unknown outcome.
  [[nodiscard]] Result<> open();
  // True: the store failed, and open() comes before anything else.
  [[nodiscard]] bool away() const { return away_; }
  // What last went wrong with the store.
  [[nodiscard]] const Error& trouble() const { return trouble_; }
  // Set when another writer has taken over, or what is stored does not fit together: this one must stop.
  [[nodiscard]] const std::optional<Error>& fatal() const { return fatal_; }

  // One turn. Must not be called while away().
  void run(std::vector<Item> items);
  // Where the time of the last run() went.
  [[nodiscard]] const TurnTimes& last_turn() const { return services_.times; }
  // When run() has something to do even without items.
  [[nodiscard]] std::optional<Time> next_wake() const;

  // How many commands the commit has that is under way; 0: there is none. Until its end, run() has something to do only
  // with more commands.
  [[nodiscard]] std::size_t commands_under_way() const {
    return under_way_ && store_.is_committing() ? under_way_->batch->items_count() : 0;
  }
  // The end of a commit, or of the tables' following, has something to do for run().
  [[nodiscard]] bool is_waiting_for_store() const {
    return under_way_ ? !store_.is_committing() : tables_.is_under_way();
  }
  // Commands of the writer itself, and those that a full batch put off, wait for the next run().
  [[nodiscard]] bool has_own_items() const { return !own_items_.empty() && !retry_at_; }
  [[nodiscard]] const std::vector<Item>& own_items() const { return own_items_; }
  // The tables are to follow at the time that next_wake() says, whatever the clock is set to meanwhile.
  [[nodiscard]] bool is_behind() const { return follow_at().has_value(); }
  // Refuses everybody who is held by a commit of unknown outcome.
  void abandon_held();
  // While away: answers polls and waits whose time is up.
  void expire_while_away();
  // Answers everybody who waits: polls with nothing, waits with how things are now. Tries once more to give back what
  // is to be given back.
  void finish();

 private:
  struct Held {  // of a commit with an unknown outcome
    std::int64_t commit_number = 0;
    Effects effects;
    std::vector<Item> items;
  };
  struct Commit {
    std::int64_t number = 0;
    Time at{};
    std::chrono::steady_clock::time_point began;
  };
  struct UnderWay {  // a commit that goes on beside the next decisions
    std::unique_ptr<Batch> batch;
    Effects effects;  // that matching expects
    Commit commit;
  };
  struct Work {  // to be done in this turn
    std::vector<Item> items;
    TimerChoice timers;
    std::unique_ptr<Batch> batch;  // of one that is tried again; then it holds the items
  };
  using Line = std::deque<Work>;

  // A batch that is decided, as far as it can be brought before the commit under way has ended.
  struct Prepared {
    WriteSet* writes = nullptr;  // the batch's
    std::int64_t number = 0;
    bool goes_beside = false;
  };

  void run_line(Line line, Duration patience = std::chrono::seconds{10});
  [[nodiscard]] Prepared prepare(Batch& batch);
  [[nodiscard]] Result<> commit(std::unique_ptr<Batch>& batch, const Prepared& prepared);
  void begin_commit(std::unique_ptr<Batch> batch, WriteSet& writes, Commit commit);
  [[nodiscard]] std::optional<Line> settle();
  void finish_commit();
  [[nodiscard]] Result<> ended(const Commit& commit, Result<> done);
  void release(Batch& batch);
  void set_timers(const Batch& batch);
  [[nodiscard]] Line not_stored(std::unique_ptr<Batch> batch, Effects effects, const Error& error, bool was_decided);
  void perform(Effects effects);
  void perform_durable() { perform(std::exchange(durable_, {})); }
  void warn(const Warn& warning);
  void warn_of(const Effects& effects);
  [[nodiscard]] Changes changes_of(const WriteSet& writes) const;
  void tell_feed(Changed changed);
  void hold(Batch& batch, Effects effects, const Error& error);
  [[nodiscard]] Line divide(Batch& batch, Code why);
  void refuse(Batch& batch, const Error& error, bool was_decided);
  void refuse(std::vector<Item> items, Refusal refusal, const std::string& message);
  void forget();
  void give_back(const PollReply& reply);
  [[nodiscard]] std::vector<Item> take_returns();
  void run_last(std::vector<Item> items);
  void timers_were_taken(bool more);
  [[nodiscard]] std::optional<Time> follow_at() const;
  void follow_when_due();
  void end_following();
  void tables_are_doubted();
  [[nodiscard]] Result<> start();
  [[nodiscard]] Result<> run_at_start(std::vector<Command> commands);
  void run_own_items();
  [[nodiscard]] std::vector<TaskLease> tasks_given_back() const;
  [[nodiscard]] std::unique_ptr<Batch> make_batch(Work work);
  void count(const Batch& batch, Effects& effects) const;

  Store& store_;
  const Clock& clock_;
  const WriterOptions options_;
  const WriterMetrics metrics_;
  const Kinds kinds_;
  Matching matching_;
  BatchServices services_;
  TableFollower tables_;

  std::int64_t last_commit_ = 0;
  bool away_ = true;
  bool opened_before_ = false;
  std::optional<Error> fatal_;
  Error trouble_;
  std::optional<Held> held_;
  std::optional<UnderWay> under_way_;
  Effects durable_;  // of a commit that has ended: performed when the next one is on its way, or is not to be

  std::set<Subject> warned_;           // of these; bounded
  std::vector<Item> own_items_;        // the writer's own commands, and those put off, for the next batch
  std::vector<Item> given_back_;       // tasks whose return was refused, for later
  std::optional<Time> give_back_at_;
  std::optional<Time> next_timer_;     // may be early, never late
  std::optional<Time> match_all_at_;   // for work that could not be given: somebody may repair its rows
  Duration pause_{};                   // after a failure
  std::optional<Time> retry_at_;       // after a failure: not before this time without a command
  Duration lost_to_others_{};          // all the time that went into what collided with other programs
};

}  // namespace baton::engine
