// For tests: a writer without a thread, on a store with rows that another program holds or that cannot be read. A test
// moves the clock and gives the writer its turns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"
#include "tests/support/kept_reply.hpp"
#include "tests/support/one_task.hpp"

namespace baton::engine::writer_test {

using namespace std::chrono_literals;
using support::KeptReply;
using support::ManualClock;
using support::one_task_yaml;

inline workflow::JobId job_id(int n) {
  return {uuid7(from_millis(1'800'000'000'000), 1, static_cast<std::uint64_t>(n))};
}

// Commits that touch some jobs wait for a lock, in vain, and collide.
class HeldStore final : public store::MemoryStore {
 public:
  HeldStore(store::MemoryDatabase& database, ManualClock& clock) : MemoryStore(database), clock_(clock) {}
  Result<> commit(const WriteSet& writes, std::int64_t number) override {
    ++commits;
    if (std::exchange(is_answer_lost, false)) {
      TRY(MemoryStore::commit(writes, number));
      return fail(Code::unknown, "the connection broke inside the commit");
    }
    if (is_full) return fail(Code::full, "the disk is full");
    const auto is_held = [&](const auto& row) { return held.contains(row.job_id); };
    if (std::ranges::none_of(writes.jobs_new, is_held) && std::ranges::none_of(writes.nodes_changed, is_held))
      return MemoryStore::commit(writes, number);
    clock_.time += lock_time;
    ++collisions;
    return fail(Code::conflict, "PostgreSQL: canceling statement due to lock timeout");
  }
  using MemoryStore::load;
  Result<Loaded> load(const LoadRequest& request) override {
    ++job_loads;
    if (!std::ranges::none_of(request.jobs, [&](const auto& id) { return unreadable.contains(id); }))
      return fail(Code::invalid, "table dag_jobs holds a row that this version cannot read");
    return MemoryStore::load(request);
  }
  Result<> write_data(const runbook::DataRows& rows) override {
    if (!is_data_held) return MemoryStore::write_data(rows);
    clock_.time += lock_time;
    return fail(Code::conflict, "PostgreSQL: canceling statement due to lock timeout");
  }
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override {
    ++loads;
    auto loaded = MemoryStore::load(needs);
    if (loaded && is_unreadable)
      for (const auto& step : loaded->steps) loaded->unreadable.insert({runbook::Table::step_executions, step.id});
    return loaded;
  }
  std::set<workflow::JobId> held;
  std::set<workflow::JobId> unreadable;
  bool is_answer_lost = false;  // of the next commit, which happens
  bool is_full = false;         // no commit has room
  bool is_unreadable = false;   // every step of a runbook
  bool is_data_held = false;    // the tables of what data sources said
  int loads = 0;                // of runbooks
  int job_loads = 0;            // of workflows
  Duration lock_time{2'000};
  int collisions = 0;
  int commits = 0;  // that were tried

 private:
  ManualClock& clock_;
};

class WriterTest : public testing::Test {
 protected:
  explicit WriterTest(const KindsOptions& kinds = {})
      : writer_(store_, clock_, make_kinds(kinds), heard(), {.redecided = &redecided_}) {}
  void SetUp() override {
    ASSERT_TRUE(writer_.open());
    run({PublishWorkflow{{"default"}, workflow::parse(one_task_yaml).definition, std::string(one_task_yaml)}});
  }

  std::vector<std::shared_ptr<KeptReply>> run(std::vector<Command> commands) {
    std::vector<Item> items;
    std::vector<std::shared_ptr<KeptReply>> answers;
    for (Command& command : commands) {
      answers.push_back(std::make_shared<KeptReply>());
      items.push_back({std::move(command), answers.back()});
    }
    writer_.run(std::move(items));
    return answers;
  }
  static SubmitJob job(int n) {
    return {.job_id = job_id(n), .tenant = {"default"}, .workflow_id = "w", .input_data = {"{}"}};
  }
  Poll poll() const {
    return {.tenant = {"default"}, .queue = "q", .worker = "w", .wait_until = clock_.time + 1h};
  }

  WriterOptions heard() {
    WriterOptions options;
    options.unreadable = [this](const std::string& what) { told_.push_back(what); };
    return options;
  }

  ManualClock clock_;
  std::vector<std::string> told_;  // of rows that cannot be worked with
  store::MemoryDatabase database_;
  HeldStore store_{database_, clock_};
  metrics::Counter redecided_;
  Writer writer_;
};

}  // namespace baton::engine::writer_test
