// What the writer loads and writes of runbooks, as queries for a connection of either dialect.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_set>
#include <variant>
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

  // Appends the queries that write `writes`, which must outlive their run.
  void add_writes(std::vector<Query>& queries, const runbook::Writes& writes);

  // Appends the queries that find queued jobs of a queue; the tasks come in no order.
  void add_waiting(std::vector<Query>& queries, const std::string& queue, std::size_t limit,
                   std::vector<WaitingTask>& out) const;

  [[nodiscard]] const Statement& phases_without_timer() const;
  [[nodiscard]] const Statement& left_by_others(runbook::RowType type) const;
  [[nodiscard]] const Statement& reserve_ids(runbook::Table table) const;
  // SQLite only: makes sure that there is a sequence, so that reserve_ids finds its row.
  [[nodiscard]] const Statement& begin_sequence(runbook::Table table) const;

  [[nodiscard]] const RunbookStatements& statements() const { return *sql_; }

 private:
  std::unique_ptr<RunbookStatements> sql_;
};

// One load of needs: the queries that answer them, all but data rows, and what they found, no row twice. Lists
// keep the order of their need; rows that were asked for by their id come behind them.
class RunbookLoad {
 public:
  RunbookLoad(const SqlRunbooks& runbooks, const std::vector<runbook::Need>& needs);

  void add_queries(std::vector<Query>& queries);
  // After the run.
  [[nodiscard]] runbook::Loaded finish();

 private:
  template <class Need>
  using Asked = std::vector<const Need*>;  // each once
  template <class Need>
  struct AskedOfEach;
  template <class... Need>
  struct AskedOfEach<std::variant<Need...>> {
    using type = std::tuple<Asked<Need>...>;
  };
  template <class Row>
  struct Found {
    std::vector<Row> rows;
    std::unordered_set<std::int64_t> ids;
    std::vector<std::int64_t> unreadable;
  };

  template <class Need, class Row>
  void add(std::vector<Query>& queries, const Asked<Need>& asked, const Statement& statement, Found<Row>& found);
  template <class Need, class Row>
  void add(std::vector<Query>& queries, const Statement& statement, Found<Row>& found) {
    add(queries, std::get<Asked<Need>>(asked_), statement, found);
  }
  void add_steps(std::vector<Query>& queries);
  void add_counts(std::vector<Query>& queries);
  void add_batches_of_time(std::vector<Query>& queries);

  const RunbookStatements& sql_;
  AskedOfEach<runbook::Need>::type asked_;
  Asked<runbook::need::RunbookNamed> versions_;  // those that name one
  Found<runbook::Runbook> runbooks_;
  Found<runbook::Batch> batches_;
  Found<runbook::Member> members_;
  Found<runbook::PhaseExecution> phases_;
  Found<runbook::StepExecution> steps_;
  std::vector<runbook::StepPlace> places_;
  Found<runbook::InitExecution> inits_;
  Found<runbook::CleanupExecution> cleanups_;
  Found<runbook::Hold> holds_;
  std::vector<runbook::Count> counts_;
  std::map<std::pair<std::string, Time>, runbook::Batch> newest_;  // by runbook name and T; id 0: none yet
};

// The FROM and WHERE that give the steps of members as t, with their phase as p; the parameter is the id of a
// member. They are found through the phases of its batch.
[[nodiscard]] std::string from_steps_of_members(Dialect dialect);

// The statements of needs and queues, for a test that asks the database for their plans.
[[nodiscard]] std::vector<Statement> runbook_need_statements(Dialect dialect);

}  // namespace baton::store
