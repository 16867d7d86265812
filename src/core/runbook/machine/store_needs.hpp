// Durable state of runbooks, as the writer sees it; see store.hpp. Other programs write these tables too, so
// nothing is kept between transactions, and an update says in which status it expects its row: if another has
// changed it meanwhile, the commit answers Code::conflict, nothing is written, and the batch is decided again.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

// What a decision needs to see. Asked for by name, answered in bulk. Rows that do not exist are absent.
struct Need {
  enum class What {
    runbook,           // id
    runbook_named,     // text: name; n: version, 0: the active one, else the newest
    latest_version,    // text: name; the row of the newest version
    runbooks_of_table, // text: data_table_name
    batch,             // id
    batch_of_time,     // text: runbook name; other: T in Unix milliseconds; the newest open batch of it
    open_batches,      // text: runbook name; other: after this id; n: at most. Batches that have not ended
    phase,             // id
    phases_of,         // id: batch; all of them
    init,              // id
    inits_of,          // id: batch; all of them
    member,            // id
    members_of,        // id: batch; other: after this id; n: at most; by id, any status
    failed_members_of, // the same, those that have failed
    members_named,     // id: batch; text: member_key; by id
    step,              // id
    steps_of,          // id: member; other: phase; by step_index
    steps_ahead,       // the same, those that have not succeeded
    steps_of_member,   // id: member; all of them
    parked_steps,      // id: batch; n: at most; steps whose job_state is parked, by phase and id
    cleanup,           // id
    cleanups_of_step,  // id: the step that failed
    cleanups_of_init,  // id: the init step that failed
    removals_of,       // id: member
    open_cleanups_of,  // id: batch; those pending, dispatched or polling
    counts_of,         // id: batch; other: phase, 0 for what is counted for the batch as a whole
    data_row,          // text: table name; key: member_key; the current row
  };
  What what{};
  std::int64_t id = 0;
  std::int64_t other = 0;
  std::int32_t n = 0;
  std::string text;
  std::string key;
  friend auto operator<=>(const Need&, const Need&) = default;
};

struct HashNeed {
  std::size_t operator()(const Need& need) const noexcept {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    std::uint64_t hash = static_cast<std::uint64_t>(need.what);
    for (const std::int64_t part : {need.id, need.other, std::int64_t{need.n}})
      hash = (hash ^ static_cast<std::uint64_t>(part)) * odd;
    for (const std::string* part : {&need.text, &need.key})
      if (!part->empty()) hash = (hash ^ std::hash<std::string>{}(*part)) * odd;
    return static_cast<std::size_t>(hash ^ (hash >> 29));
  }
};

// The tables whose rows have ids, which are reserved before the rows are written.
enum class Table { runbooks, batches, batch_members, phase_executions, step_executions, init_executions,
                   cleanup_executions };

// No row twice. Executions come without result_json. A row that cannot be read, because another program wrote what
// we do not know, is there with what could be read of it, and named.
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
  std::vector<InitExecution> inits;
  std::vector<CleanupExecution> cleanups;
  std::vector<Count> counts;
  std::vector<FoundData> data_rows;
  std::set<std::pair<Table, std::int64_t>> unreadable;
};

// An update: the row as it was loaded, and as it shall be. It writes the columns in which the two differ and no
// others, because another program may have written those meanwhile; it expects the status that was loaded. A
// row in which nothing differs is not touched. result_json is not loaded, so none leaves it as it is.
template <class Row>
struct Changed {
  Row before;
  Row row;
};

// Each row once.
struct Writes {
  std::vector<Runbook> runbooks_new;
  std::vector<Changed<Runbook>> runbooks_changed;
  std::vector<Batch> batches_new;
  std::vector<Changed<Batch>> batches_changed;
  std::vector<Member> members_new;
  std::vector<Changed<Member>> members_changed;
  std::vector<PhaseExecution> phases_new;
  std::vector<Changed<PhaseExecution>> phases_changed;
  std::vector<StepExecution> steps_new;
  std::vector<Changed<StepExecution>> steps_changed;
  std::vector<InitExecution> inits_new;
  std::vector<Changed<InitExecution>> inits_changed;
  std::vector<CleanupExecution> cleanups_new;
  std::vector<Changed<CleanupExecution>> cleanups_changed;
  std::vector<Count> counts;  // inserted or replaced
  std::vector<BatchEvent> events_new;
  [[nodiscard]] bool empty() const;
};

struct TimerWrites {
  std::vector<Timer> timers_new, timers_gone;
};

// What the data source said, for the table of that name, which is made, and given the columns that it lacks.
struct DataRows {
  std::string table;
  std::vector<std::string> columns;  // of the query
  std::vector<DataRow> rows;         // inserted or replaced, current again, seen now
  Time seen_at{};
  bool finish = false;               // those last seen before seen_at are not current any more
};

}  // namespace baton::runbook
