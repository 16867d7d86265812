// The runbooks of a simulated world: who plans batches, who works on them, who meddles, and who watches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/runbook_watch.hpp"
#include "tests/simulation/workload.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

class RunbookSide final : public Workload {
 public:
  explicit RunbookSide(World& world);
  ~RunbookSide() override;

  void set_options(EngineOptions& options) override;
  [[nodiscard]] Duration storm_lasts() const override { return std::chrono::hours{40}; }
  [[nodiscard]] Duration calm_lasts() const override { return std::chrono::hours{240}; }
  void start() override;
  void tidy_up() override;
  [[nodiscard]] bool at_rest() const override;
  void arrived(const Command& command) override { watch_.arrived(command); }
  void answered(const Command& command, const Reply& reply) override { watch_.answered(command, reply); }
  void given_back(const TaskLease& task) override { watch_.given_back(task.task_id, task.lease); }
  void before_commit(const WriteSet& writes) override;
  [[nodiscard]] bool may_collide() const override { return meddled_; }
  void committed(const WriteSet& writes) override { watch_.committed(writes.runbooks); }
  void check_touched() override { watch_.check_touched(); }
  void check_all() override { watch_.check_all(); }

  RunbookWatch& watch() { return watch_; }

  // what actors use
  [[nodiscard]] Random& random() { return world_.random_; }
  [[nodiscard]] Time now() const { return world_.clock_.now(); }
  [[nodiscard]] bool calm() const { return world_.calm_; }
  [[nodiscard]] const Faults& faults() const { return world_.faults_; }
  [[nodiscard]] store::memory::RunbookTables& rows() { return world_.database_.runbooks; }
  void erase_timer(const Timer& timer) { world_.erase_timer(timer); }
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
  // As another scheduler does, beside the engine.
  void write_data(const std::string& table, const runbook::DataRow& row);
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
