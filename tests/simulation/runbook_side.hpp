// The runbooks of a simulated world: who plans batches, who works on them, who meddles, and who watches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/runbook_watch.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

class RunbookSide {
 public:
  explicit RunbookSide(World& world);
  ~RunbookSide();

  void start();
  void tidy_up();  // when the faults are over: whatever waits for a person gets one
  [[nodiscard]] bool at_rest() const;
  void check_all() { watch_.check_all(); }
  [[nodiscard]] engine::WriterOptions options() const;

  // what the world sees
  void before_commit(const WriteSet& writes);
  void committed(const WriteSet& writes) { watch_.committed(writes.runbooks); }
  // Another program has changed a row after it was loaded: the commit may collide.
  [[nodiscard]] bool collision_expected() const { return meddled_; }
  void check_touched() { watch_.check_touched(); }
  RunbookWatch& watch() { return watch_; }

  // what actors use
  [[nodiscard]] Random& random() { return world_.random_; }
  [[nodiscard]] Time now() const { return world_.clock_.time; }
  [[nodiscard]] bool calm() const { return world_.calm_; }
  [[nodiscard]] const Faults& faults() const { return world_.faults_; }
  [[nodiscard]] support::MemoryRunbooks& rows() { return world_.database_.runbooks; }
  void at(Duration after, std::function<void()> what) { world_.at(after, std::move(what)); }
  void send(Command command, std::function<void(Reply)> on_reply = [](const Reply&) {}) {
    world_.send(std::move(command), std::move(on_reply));
  }
  // Repeated until it is answered by somebody who could decide it.
  void send_surely(const Command& command, const std::function<void(Reply)>& on_reply);
  [[nodiscard]] bool scheduler() const { return scheduler_; }
  [[nodiscard]] Duration within(Duration low, Duration high) {
    return Duration{random().between(low.count(), high.count())};
  }
  [[nodiscard]] runbook::DataRow member_data(const std::string& key);
  [[nodiscard]] std::shared_ptr<const runbook::Definition> parsed(std::string_view text);
  // A batch that has not ended, if there is one.
  [[nodiscard]] const runbook::Batch* any_batch(bool ended = false);

 private:
  World& world_;
  const bool scheduler_;  // false: another program plans
  const std::int32_t chunk_members_;
  RunbookWatch watch_;
  bool meddled_ = false;
  std::vector<std::unique_ptr<class PoolWorker>> workers_;
  std::vector<std::unique_ptr<class Planner>> planners_;
  std::unique_ptr<class Outsider> outsider_;
  std::unique_ptr<class Person> person_;
  std::map<std::string_view, std::shared_ptr<const runbook::Definition>> parsed_;
};

}  // namespace baton::simulation
