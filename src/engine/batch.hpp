// One transaction on its way: commands and due timers are loaded for, decided, and turned into rows and
// effects. Everything that must not be seen by anybody before the commit is in here. Knows kinds, and no word
// of any of them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/kind.hpp"
#include "engine/matching/handouts.hpp"
#include "engine/turn_times.hpp"

namespace baton::engine {

// Which timers a batch takes. due: those whose time has come. these, put_off: those that are named, obeyed or moved
// to a later time. All but `due` are parts of a batch that was divided, and hand out nothing: a task that cannot
// be handed out would spoil each of them.
struct TimerChoice {
  enum class Which { due, these, put_off };
  Which which = Which::due;
  std::vector<Timer> named;
  Duration later = put_off_for;  // how far they are put off
};

struct BatchLimits {
  std::size_t timers_max = 1'000;
  std::size_t handouts_max = 1'000;
  Duration short_lease{};
};

// What all batches of a writer work on.
struct BatchServices {
  Store& store;
  const Kinds& kinds;
  Matching& matching;
  BatchLimits limits;
  metrics::Counter* redecided = nullptr;
  Time as_of{};  // of the timers of this turn
  TurnTimes times{};
};

class Batch final : public TaskSource {
 public:
  // `until`: timers that are due then are taken.
  Batch(BatchServices& services, Time now, std::optional<Time> until, std::vector<Item> items, TimerChoice timers = {});
  ~Batch() override;

  // Loads and decides, again until nothing is missing. Nothing is written yet.
  [[nodiscard]] Result<> decide();
  // What the commit is to write.
  [[nodiscard]] WriteSet& write(std::int64_t commit_number);
  void committed();  // before the write set is given away
  // Another program has changed a row meanwhile, or holds it: everything is loaded and decided once more. False:
  // it was tried often enough, or for too long; one that holds a row would make everybody wait once more.
  [[nodiscard]] Result<bool> again(Time now);

  // There is more than one message in it, or one beside tasks that were to be handed out, or a timer that can be put off.
  [[nodiscard]] bool can_be_divided() const;
  // It holds a timer and nothing else, not even what is handed out.
  [[nodiscard]] bool is_one_timer() const {
    return timers_wanted_.which == TimerChoice::Which::these && items_.empty() && timers_.size() == 1;
  }
  [[nodiscard]] bool is_part() const { return timers_wanted_.which != TimerChoice::Which::due; }
  [[nodiscard]] bool is_put_off() const { return timers_wanted_.which == TimerChoice::Which::put_off; }

  [[nodiscard]] std::vector<Item> take_items() { return std::exchange(items_, {}); }
  // Commands that this batch had no room for.
  [[nodiscard]] std::vector<Item> take_deferred() { return std::exchange(deferred_, {}); }
  [[nodiscard]] std::vector<Timer> take_timers() { return std::exchange(timers_, {}); }
  [[nodiscard]] const TimerChoice& timers_wanted() const { return timers_wanted_; }
  void add_effect(Effect effect) { effects_.push_back(std::move(effect)); }
  [[nodiscard]] Effects take_effects() { return std::exchange(effects_, {}); }
  [[nodiscard]] const Effects& effects() const { return effects_; }

  [[nodiscard]] std::size_t items_count() const { return items_.size(); }
  [[nodiscard]] std::size_t timers_count() const { return timers_.size(); }
  [[nodiscard]] std::size_t handouts_count() const { return handouts_count_; }
  // Timers were taken; `more`: as many as a batch takes, so that others may be due.
  [[nodiscard]] bool took_timers() const { return took_timers_; }
  [[nodiscard]] bool more_timers() const { return more_timers_; }
  [[nodiscard]] const std::optional<Time>& earliest_timer() const { return earliest_timer_; }

 private:
  [[nodiscard]] Result<> take_due();
  void leave_out_unknown();
  [[nodiscard]] Result<> decide_once();
  void decide_heartbeats();
  void decide_timers();
  void decide_items();
  void decide_item(std::size_t place);
  void renew_leases(const Heartbeat& heartbeat, const std::shared_ptr<Waiter>& waiter);
  void give_back(const ReturnTasks& back);
  void answer(const std::shared_ptr<Waiter>& waiter, Reply reply);
  [[nodiscard]] Result<> hand_out();
  [[nodiscard]] Result<> load_tasks(std::span<const WaitingTask> tasks) override;
  [[nodiscard]] std::optional<Handout> hand_out(const WaitingTask& task, const Poll& poll) override;

  // The part of the kind that this belongs to; null: it belongs to none.
  template <class Is>
  [[nodiscard]] Transaction* part_where(Is&& is) const;
  [[nodiscard]] Transaction* part_of(Subject::Type type) const;
  [[nodiscard]] Transaction* part_of(const Timer& timer) const;
  [[nodiscard]] bool is_incomplete() const;
  [[nodiscard]] bool is_full() const;

  BatchServices& services_;
  const Time now_;
  const std::optional<Time> until_;
  const TimerChoice timers_wanted_;
  std::vector<Item> items_;
  std::vector<Item> deferred_;
  std::vector<Timer> timers_;
  std::vector<Timer> timers_unknown_;  // no kind owns them
  Effects effects_;
  WriteSet writes_;
  std::vector<std::unique_ptr<Transaction>> parts_;  // by kind
  std::unique_ptr<Handouts> handouts_;
  std::size_t handouts_count_ = 0;
  std::size_t tasks_tried_ = 0;  // to hand out; one that has ended instead is written too
  bool took_timers_ = false;
  bool more_timers_ = false;
  int tries_ = 0;
  std::optional<Time> earliest_timer_;
};

}  // namespace baton::engine
