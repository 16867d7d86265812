// A Store in memory, for the simulator: the same contract as the real ones, deterministic, with faults on
// demand. What is durable is a value of its own: a crash is dropping the store, a restart is making a new one
// on the same database.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ports/store.hpp"
#include "tests/support/memory_runbooks.hpp"

namespace baton::support {

// May be read freely, for invariants; may be copied, for "what if". Only MemoryStore writes it, but for the
// rows of runbooks, which others write too.
struct MemoryDatabase {
  using WorkflowId = std::tuple<workflow::Tenant, std::string, std::int32_t>;
  using WaitingKey = std::pair<QueueKey, WaitingTask>;

  std::map<workflow::JobId, workflow::Job> jobs;
  std::map<NodeKey, workflow::NodeState> nodes;
  std::map<std::string, workflow::TaskResult> task_results;
  std::map<std::pair<workflow::JobId, std::int64_t>, workflow::Event> events;
  std::set<workflow::Timer> timers;
  std::map<WorkflowId, workflow::Workflow> workflows;
  std::map<std::pair<workflow::Tenant, std::string>, workflow::IdempotencyKey> idempotency_keys;
  std::set<std::tuple<workflow::Tenant, std::string, workflow::JobId>> tags;
  std::map<std::tuple<workflow::JobId, std::string, std::int64_t>, workflow::LogLine> logs;
  std::set<WaitingKey> waiting;  // an index over the DISPATCHED nodes
  MemoryRunbooks runbooks;
  std::map<call::CallKey, call::Call> calls;
  std::map<std::pair<call::CallKey, std::int64_t>, call::EventRow> call_events;
  std::map<call::CallKey, call::Request> call_requests;
  std::map<std::pair<Tenant, std::string>, call::IdempotencyKey> call_keys;
  [[nodiscard]] std::vector<call::EventRow> stream(const call::CallKey& key) const;
  std::int64_t term = 0;
  int owner = 0;   // the store that took the term
  int stores = 0;  // that there ever were
  std::int64_t last_commit = 0;
};

enum class CommitFault {
  none,
  fail_before,      // Code::unavailable, nothing happened
  unknown_applied,  // Code::unknown, and it happened
  unknown_lost,     // Code::unknown, and it did not
};

class MemoryStore : public Store {
 public:
  // `fault` is asked once per commit; the database must outlive the store.
  explicit MemoryStore(MemoryDatabase& database, std::function<CommitFault()> fault = {});

  Result<WriterState> open() override;
  Result<Loaded> load(const LoadRequest& request) override;
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override;
  Result<call::Loaded> load(const call::LoadRequest& request) override;
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override;
  Result<> write_data(const runbook::DataRows& rows) override;
  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override;
  Result<std::vector<runbook::Ref>> jobs_without_timer(runbook::Ref after, std::size_t limit) override;
  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit) override;
  Result<std::vector<NodeKey>> running_builtin(std::size_t limit) override;
  Result<std::vector<workflow::Timer>> timers_due(Time until, std::size_t limit) override;
  Result<std::vector<runbook::Timer>> runbook_timers_due(Time until, std::size_t limit) override;
  Result<std::optional<Time>> next_timer() override;
  Result<> commit(const WriteSet& writes, std::int64_t commit_number) override;

  [[nodiscard]] const MemoryDatabase& database() const { return database_; }

 private:
  [[nodiscard]] Result<> check(const WriteSet& writes) const;
  void apply(const WriteSet& writes, std::int64_t commit_number);

  MemoryDatabase& database_;
  std::function<CommitFault()> fault_;
  const int owner_;
  std::int64_t term_ = 0;
  bool open_ = false;
};

}  // namespace baton::support
