// Who has to do with runbooks: workers of the pools, the built-in scheduler as the engine sees it, another
// program that plans in its place, and people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/simulation/runbook_definitions.hpp"
#include "tests/simulation/runbook_side.hpp"

namespace baton::simulation {

// Polls one pool for ever. Days go by, so it waits for hours.
class PoolWorker {
 public:
  PoolWorker(RunbookSide& side, int number, std::string queue, bool modern)
      : side_(side), name_("hand-" + std::to_string(number)), queue_(std::move(queue)), modern_(modern) {}
  void start() { poll(); }

 private:
  void poll();
  [[nodiscard]] bool settle(const Handout& job);
  void work_on(const Handout& job);
  [[nodiscard]] ReportResult outcome_of(const Handout& job);
  void report(const ReportResult& result);
  void beat();
  void die();

  RunbookSide& side_;
  const std::string name_;
  const std::string queue_;
  const bool modern_;  // heartbeats and echoes leases
  std::uint64_t life_ = 0;
  std::uint64_t polls_ = 0;
  std::map<std::string, std::string> running_;  // job id → lease
  bool beating_ = false;
};

// What the built-in scheduler asks of the engine about one runbook: publishes it, makes its batches, and has
// members join and leave.
class Planner {
 public:
  Planner(RunbookSide& side, const RunbookTexts& texts) : side_(side), texts_(texts) {}
  void start();

 private:
  void publish();
  void new_batch();
  void import(std::int64_t batch_id, int members);
  void members_change(std::int64_t batch_id);
  [[nodiscard]] std::string next_key() { return "m" + std::to_string(next_member_++); }

  RunbookSide& side_;
  const RunbookTexts& texts_;
  std::size_t published_ = 0;
  int next_member_ = 0;
};

// Another scheduler: it writes the tables itself and says so in messages.
class Outsider {
 public:
  Outsider(RunbookSide& side, const RunbookTexts& texts) : side_(side), texts_(texts) {}
  void start();
  // Changes a row that the engine may just have loaded. True: it did.
  bool meddle();
  // Brings what it says of rows that the engine is about to write up to date. No status changes, so nothing collides.
  void refresh(const runbook::Writes& writes);

 private:
  struct Plan {
    std::int64_t runbook_id = 0;
    std::string name;
    std::int32_t version = 0;
  };
  [[nodiscard]] std::int64_t new_id(runbook::Table table);
  void publish();
  void new_batch();
  void new_member(std::int64_t batch_id);
  void new_phases(const runbook::Batch& batch);
  void new_inits(const runbook::Batch& batch);
  bool new_steps(const runbook::PhaseExecution& phase);
  bool leave_out(runbook::StepExecution& row);
  void tick();
  void begin_phase(const runbook::PhaseExecution& phase);
  void member_leaves(std::int64_t member_id);
  void ask_again();
  void tell(std::int64_t batch_id, decltype(runbook::SchedulerMessage::what) what);
  [[nodiscard]] const runbook::Batch* open_batch();
  [[nodiscard]] bool is_own(std::int64_t batch_id);

  RunbookSide& side_;
  const RunbookTexts& texts_;
  Plan plan_;
  std::set<std::int64_t> announced_;  // phases
  std::size_t published_ = 0;
  int next_member_ = 0;
  int refreshes_ = 0;
};

// Pauses, resumes, cancels, retries, skips: whatever comes to mind.
class Person {
 public:
  explicit Person(RunbookSide& side) : side_(side) {}
  void start();

 private:
  void meddle();
  void steer(const runbook::Batch& batch);
  void answer();
  void touch_step();

  RunbookSide& side_;
};

}  // namespace baton::simulation
