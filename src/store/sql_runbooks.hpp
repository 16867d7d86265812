// What the writer loads and writes of runbooks, as calls for a connection of either dialect.
#pragma once

#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "ports/store.hpp"
#include "store/connection.hpp"

namespace baton::store {

struct RunbookStatements;

// The statements behind the needs and writes of core/runbook/store_needs.hpp.
class SqlRunbooks {
 public:
  explicit SqlRunbooks(Dialect dialect);
  ~SqlRunbooks();

  // Appends the calls that write `writes`, which must outlive their run.
  void add_writes(std::vector<Call>& calls, const runbook::Writes& writes);

  // Appends the calls that find queued jobs of a queue; the tasks come in no order.
  void add_waiting(std::vector<Call>& calls, const std::string& queue, std::size_t limit,
                   std::vector<WaitingTask>& out) const;

  [[nodiscard]] const Statement& phases_without_timer() const;
  [[nodiscard]] const Statement& jobs_without_timer(runbook::Kind kind) const;
  [[nodiscard]] const Statement& reserve_ids(runbook::Table table) const;
  // SQLite only: makes sure that there is a sequence, so that reserve_ids finds its row.
  [[nodiscard]] const Statement& begin_sequence(runbook::Table table) const;

  [[nodiscard]] const RunbookStatements& statements() const { return *sql_; }

 private:
  std::unique_ptr<RunbookStatements> sql_;
};

// One load of needs: the calls that answer them, all but data_row, and what they found, no row twice. Lists
// keep the order of their need; rows that were asked for by their id come behind them.
class RunbookLoad {
 public:
  RunbookLoad(const SqlRunbooks& runbooks, const std::vector<runbook::Need>& needs);

  void add_calls(std::vector<Call>& calls);
  // After the run.
  [[nodiscard]] runbook::Loaded finish();

 private:
  using Needs = std::vector<const runbook::Need*>;  // of one kind, each once
  using Fill = void (*)(const runbook::Need&, std::span<Value>);
  template <class Row>
  struct Found {
    std::vector<Row> rows;
    std::unordered_set<std::int64_t> ids;
    std::vector<std::int64_t> unreadable;
  };

  template <class Row>
  void add(std::vector<Call>& calls, const Needs& needs, const Statement& statement, Fill fill,
           Found<Row>& found);
  void add_list(std::vector<Call>& calls, runbook::Need::What what, const Needs& needs);
  void add_by_id(std::vector<Call>& calls, runbook::Need::What what, const Needs& needs);
  void add_counts(std::vector<Call>& calls, const Needs& needs);
  void add_batches_of_time(std::vector<Call>& calls, const Needs& needs);

  const RunbookStatements& sql_;
  std::map<runbook::Need::What, Needs> needs_;
  Needs versions_;  // runbook_named with a version; those without are in needs_
  Found<runbook::Runbook> runbooks_;
  Found<runbook::Batch> batches_;
  Found<runbook::Member> members_;
  Found<runbook::PhaseExecution> phases_;
  Found<runbook::StepExecution> steps_;
  Found<runbook::InitExecution> inits_;
  Found<runbook::CleanupExecution> cleanups_;
  std::vector<runbook::Count> counts_;
  std::map<std::pair<std::string, Time>, runbook::Batch> newest_;  // by runbook name and T; id 0: none yet
};

// The FROM and WHERE that give the steps of members as t, with their phase as p; the parameter is the id of a
// member. They are found through the phases of his batch.
[[nodiscard]] std::string from_steps_of_members(Dialect dialect);

// The statements of needs and queues, for a test that asks the database for their plans.
[[nodiscard]] std::vector<Statement> runbook_need_statements(Dialect dialect);

}  // namespace baton::store
