// Durable state of runbooks, as the writer sees it; see store.hpp. Other programs write these tables too, so
// nothing is kept between transactions, and an update says in which status it expects its row: if another has
// changed it meanwhile, the commit answers Code::conflict, nothing is written, and the batch is decided
// again.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/runbook/machine/needs.hpp"
#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

// The tables whose rows have ids, which are reserved before the rows are written.
enum class Table {
  runbooks,
  batches,
  batch_members,
  phase_executions,
  step_executions,
  init_executions,
  cleanup_executions,
  holds
};

// Where a step belongs: told with it, so that all that its decision needs can be asked for at once.
struct StepPlace {
  std::int64_t step_id = 0, batch_id = 0, runbook_id = 0;
};

// No row twice. Executions come without result_json. A row that cannot be read, because another program wrote
// what we do not know, is there with what could be read of it, and named.
struct Loaded {
  struct FoundData {
    std::string table, member_key;
    Json data;  // the columns of the query, without the system columns
  };
  std::vector<Runbook> runbooks;
  std::vector<Batch> batches;
  std::vector<Member> members;
  std::vector<PhaseExecution> phases;
  std::vector<StepExecution> steps;
  std::vector<StepPlace> places;
  std::vector<InitExecution> inits;
  std::vector<CleanupExecution> cleanups;
  std::vector<Hold> holds;
  std::vector<Count> counts;
  std::vector<FoundData> data_rows;
  std::set<std::pair<Table, std::int64_t>> unreadable;
};

// An update: the row as it was loaded, and as it shall be. It writes the columns in which the two differ and
// no others, because another program may have written those meanwhile; it expects the status that was loaded.
// A row in which nothing differs is not touched. result_json is not loaded, so none leaves it as it is.
template <class Row>
struct Update {
  Row before;
  Row row;
};

// Each row once.
struct Writes {
  std::vector<Runbook> runbooks_new;
  std::vector<Update<Runbook>> runbooks_changed;
  std::vector<Batch> batches_new;
  std::vector<Update<Batch>> batches_changed;
  std::vector<Member> members_new;
  std::vector<Update<Member>> members_changed;
  std::vector<PhaseExecution> phases_new;
  std::vector<Update<PhaseExecution>> phases_changed;
  std::vector<StepExecution> steps_new;
  std::vector<Update<StepExecution>> steps_changed;
  std::vector<InitExecution> inits_new;
  std::vector<Update<InitExecution>> inits_changed;
  std::vector<CleanupExecution> cleanups_new;
  std::vector<Update<CleanupExecution>> cleanups_changed;
  std::vector<Hold> holds_new;
  std::vector<Update<Hold>> holds_changed;
  std::vector<Count> counts;  // inserted or replaced
  std::vector<BatchEvent> events_new;
  [[nodiscard]] bool empty() const;
};

struct TimerWrites {
  std::vector<RowTimer> timers_new, timers_gone;
};

// What the data source said, for the table of that name, which is made, and given the columns that it lacks.
struct DataRows {
  std::string table;
  std::vector<std::string> columns;  // of the query
  std::vector<DataRow> rows;         // inserted or replaced, current again, seen now
  Time seen_at{};
  bool finish = false;  // those last seen before seen_at are not current any more
};

}  // namespace baton::runbook
