// The tables of runbooks in memory; see memory_store.hpp. There are no indexes to keep, so a simulated
// scheduler may write the rows beside the store, as other programs do.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ports/store.hpp"

namespace baton::support {

struct MemoryRunbooks {
  using CountKey = std::tuple<std::int64_t, std::int64_t, std::string, std::int32_t, std::string>;
  struct StoredData {
    runbook::DataRow row;  // every value is text or null
    Time first_seen_at{}, last_seen_at{};
    bool is_current = true;
  };

  std::map<std::int64_t, runbook::Runbook> runbooks;
  std::map<std::int64_t, runbook::Batch> batches;
  std::map<std::int64_t, runbook::Member> members;
  std::map<std::int64_t, runbook::PhaseExecution> phases;
  std::map<std::int64_t, runbook::StepExecution> steps;
  std::map<std::int64_t, runbook::InitExecution> inits;
  std::map<std::int64_t, runbook::CleanupExecution> cleanups;
  std::map<CountKey, runbook::Count> counts;
  std::set<runbook::Timer> timers;
  std::map<std::pair<std::int64_t, std::int64_t>, runbook::BatchEvent> events;
  std::map<std::string, std::map<std::string, StoredData>> data;  // by table, then member_key
  std::array<std::int64_t, 7> last_ids{};                         // that were given out, by Table

  [[nodiscard]] runbook::Loaded load(const std::vector<runbook::Need>& needs) const;
  [[nodiscard]] std::vector<std::int64_t> reserve_ids(runbook::Table table, std::size_t count);
  void write_data(const runbook::DataRows& rows);
  [[nodiscard]] std::vector<std::int64_t> phases_without_timer(std::size_t limit) const;
  [[nodiscard]] std::vector<runbook::Ref> jobs_without_timer(runbook::Ref after, std::size_t limit) const;
  // In the order of WaitingTask.
  [[nodiscard]] std::vector<WaitingTask> waiting(const std::string& queue) const;
  [[nodiscard]] Result<> check(const runbook::Writes& writes) const;
  void apply(const runbook::Writes& writes);  // that were checked
};

}  // namespace baton::support
