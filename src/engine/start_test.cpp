// What the writer does once, when it starts, among rows that another program holds or that cannot be read.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"

namespace baton::engine {
namespace {

using namespace std::chrono_literals;
using support::ManualClock;
using Ids = std::vector<std::int64_t>;

// Another program holds steps, phases and jobs, some rows of workflows cannot be read.
class TroubledStore final : public store::MemoryStore {
 public:
  TroubledStore(store::MemoryDatabase& database, ManualClock& clock) : MemoryStore(database), clock_(clock) {}
  Result<> commit(const WriteSet& writes, std::int64_t number) override {
    const auto is_held = [](const std::set<std::int64_t>& held) {
      return [&held](const auto& change) { return held.contains(change.row.id); };
    };
    if (std::ranges::none_of(writes.runbooks.steps_changed, is_held(held_steps)) &&
        std::ranges::none_of(writes.runbooks.phases_changed, is_held(held_phases)) &&
        std::ranges::none_of(writes.nodes_changed, [&](const auto& node) { return held_jobs.contains(node.job_id); }))
      return MemoryStore::commit(writes, number);
    clock_.time += 2s;
    return fail(Code::conflict, "PostgreSQL: canceling statement due to lock timeout");
  }
  using MemoryStore::load;
  Result<Loaded> load(const LoadRequest& request) override {
    const auto is_bad = [](const std::set<workflow::JobId>& bad) {
      return [&bad](const NodeKey& key) { return bad.contains(key.job_id); };
    };
    if (std::ranges::any_of(request.nodes, is_bad(unreadable_nodes)) ||
        std::ranges::any_of(request.jobs, [&](const auto& id) { return unreadable_jobs.contains(id); }))
      return fail(Code::invalid, "a row that this version cannot read");
    return MemoryStore::load(request);
  }
  std::set<std::int64_t> held_steps, held_phases;
  std::set<workflow::JobId> held_jobs, unreadable_jobs, unreadable_nodes;

 private:
  ManualClock& clock_;
};

constexpr std::string_view book = R"(
name: move
data_source: {type: csv, connection: WAVES, primary_key: Upn, batch_time: immediate}
phases:
  - {name: go, offset: T-0, steps: [{name: make, worker_id: q, function: New-User}]}
)";

constexpr std::string_view builtin_yaml = R"(
workflow_id: w
nodes:
  start: {type: start, next: a}
  a: {type: task, handler: echo, next: end}
  end: {type: end}
)";

class StartTest : public testing::Test {
 protected:
  void start() {
    WriterOptions options;
    options.unreadable = [this](const std::string& what) { told_.push_back(what); };
    kinds_.runbooks.adopt_jobs = true;
    writer_ = std::make_unique<Writer>(store_, clock_, make_kinds(kinds_), options);
    ASSERT_TRUE(writer_->open());
  }
  void batch_of_another() {
    auto& db = database_.runbooks;
    db.runbooks.insert({.id = 1, .name = "move", .version = 1, .yaml_content = std::string(book), .data_table_name = ""});
    db.batches.insert({.id = 1, .runbook_id = 1, .batch_start_time = clock_.time, .status = runbook::BatchStatus::active});
  }
  // In a phase that it has begun, each given to one of its workers.
  void steps_of_another(std::int64_t count) {
    batch_of_another();
    auto& db = database_.runbooks;
    db.phases.insert({.id = 1,
                      .batch_id = 1,
                      .phase_name = "go",
                      .runbook_version = 1,
                      .status = runbook::PhaseStatus::dispatched,
                      .dispatched_at = clock_.time,
                      .walk_after = 1});
    for (std::int64_t id = 1; id <= count; ++id) {
      db.members.insert({.id = id, .batch_id = 1, .member_key = "m" + std::to_string(id)});
      runbook::StepExecution step;
      step.id = step.batch_member_id = id;
      step.phase_execution_id = 1;
      step.step_name = "make";
      step.worker_id = "q";
      step.status = runbook::StepStatus::dispatched;
      step.dispatched_at = clock_.time;
      db.steps.insert(step);
    }
  }
  [[nodiscard]] Ids taken_over() const {
    Ids ids;
    for (const auto& [id, step] : database_.runbooks.steps)
      if (step.timer_due) ids.push_back(id);
    return ids;
  }

  ManualClock clock_;
  store::MemoryDatabase database_;
  TroubledStore store_{database_, clock_};
  std::vector<std::string> told_;
  KindsOptions kinds_;
  std::unique_ptr<Writer> writer_;
};

TEST_F(StartTest, AStepThatAnotherProgramHoldsKeepsNoOtherFromBeingTakenOver) {
  steps_of_another(6);
  store_.held_steps = {3};
  start();
  EXPECT_EQ(taken_over(), (Ids{1, 2, 4, 5, 6}));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(told_.front().starts_with("step 3 was passed over at start: ")) << told_.front();
}

TEST_F(StartTest, SoManyHeldStepsThatPatienceEndsKeepNoOtherFromBeingTakenOver) {
  steps_of_another(9);
  store_.held_steps = {1, 2, 3, 4, 5};
  start();
  EXPECT_EQ(taken_over(), (Ids{6, 7, 8, 9}));
  EXPECT_EQ(told_.size(), 5u);
}

TEST_F(StartTest, StepsOfManyPagesAreTakenOver) {
  steps_of_another(1'201);
  store_.held_steps = {7};
  start();
  EXPECT_EQ(taken_over().size(), 1'200u);
}

// Somebody who is served first would find them not taken over.
TEST_F(StartTest, WhatAFullBatchPutsOffIsDoneBeforeAnybodyIsServed) {
  steps_of_another(6);
  store_.held_steps = {3};
  kinds_.runbooks.policy.batch_rows = 0;  // a batch is full after its first command
  start();
  EXPECT_EQ(taken_over(), (Ids{1, 2, 4, 5, 6}));
  EXPECT_FALSE(writer_->has_own_items());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(told_.front().starts_with("step 3 was passed over at start: ")) << told_.front();
}

TEST_F(StartTest, APhaseThatAnotherProgramHoldsKeepsNoOtherFromItsTimer) {
  batch_of_another();
  for (std::int64_t id = 1; id <= 4; ++id)
    database_.runbooks.phases.insert(
        {.id = id, .batch_id = 1, .phase_name = "go", .due_at = clock_.time + 1h, .runbook_version = 1});
  store_.held_phases = {2};
  start();
  for (const auto& [id, phase] : database_.runbooks.phases)
    EXPECT_EQ(phase.timer_due.has_value(), id != 2) << "phase " << id;
}

// Tasks of the built-in worker, which is gone when the server starts.
class BuiltinStartTest : public StartTest {
 protected:
  static workflow::JobId job_id(int n) {
    return {uuid7(from_millis(1'800'000'000'000), 1, static_cast<std::uint64_t>(n))};
  }
  void given_running(int jobs) {
    Writer earlier(store_, clock_, make_kinds());
    ASSERT_TRUE(earlier.open());
    const auto run = [&](Command command) {
      std::vector<Item> items;
      items.push_back({std::move(command), std::make_shared<Nobody>()});
      earlier.run(std::move(items));
    };
    run(PublishWorkflow{{"default"}, workflow::parse(builtin_yaml).definition, std::string(builtin_yaml)});
    for (int n = 1; n <= jobs; ++n)
      run(SubmitJob{.job_id = job_id(n), .tenant = {"default"}, .workflow_id = "w", .input_data = {"{}"}});
    run(Poll{.tenant = {}, .queue = "builtin", .worker = "builtin", .max = 100, .heartbeats = true, .wait_until = clock_.time});
    ASSERT_EQ(running().size(), static_cast<std::size_t>(jobs));
  }
  std::vector<workflow::JobId> running() {
    std::vector<workflow::JobId> ids;
    for (const auto& [key, node] : database_.nodes)
      if (node.status == workflow::NodeStatus::running) ids.push_back(node.job_id);
    return ids;
  }
};

TEST_F(BuiltinStartTest, AJobThatCannotBeReadKeepsNoOtherTaskFromBeingTakenBack) {
  given_running(4);
  store_.unreadable_jobs = {job_id(2)};
  start();
  EXPECT_EQ(running(), std::vector{job_id(2)});
  ASSERT_FALSE(told_.empty());
  EXPECT_NE(told_.front().find(job_id(2).value), std::string::npos) << told_.front();
}

TEST_F(BuiltinStartTest, ATaskWhoseRowAnotherProgramHoldsIsTakenBackLaterAndNobodyIsTold) {
  given_running(4);
  store_.held_jobs = {job_id(2)};
  start();
  EXPECT_EQ(running(), std::vector{job_id(2)});
  EXPECT_TRUE(told_.empty()) << told_.front();
  store_.held_jobs.clear();
  clock_.time += 3s;
  writer_->run({});
  EXPECT_TRUE(running().empty());
}

TEST_F(BuiltinStartTest, ATaskThatCannotBeReadKeepsNoOtherFromBeingTakenBack) {
  given_running(4);
  store_.unreadable_nodes = {job_id(2)};
  start();
  EXPECT_EQ(running(), std::vector{job_id(2)});
  ASSERT_FALSE(told_.empty());
  EXPECT_NE(told_.front().find(job_id(2).value), std::string::npos) << told_.front();
}

}  // namespace
}  // namespace baton::engine
