// The tables of runbooks in memory, with the indexes of the databases (migrations.cpp). Other programs may
// write the rows of a database; here they do it through the tables too (insert, change), which keep the
// indexes.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ports/store.hpp"
#include "store/memory/indexed_table.hpp"

namespace baton::store::memory {

using CountKey = std::tuple<std::int64_t, std::int64_t, std::string, std::int32_t, std::string>;

template <>
struct PrimaryKey<runbook::Count> {
  static CountKey of(const runbook::Count& row) {
    return {row.batch_id, row.phase_execution_id, row.lane, row.step_index, row.status};
  }
};
template <>
struct PrimaryKey<runbook::BatchEvent> {
  static std::pair<std::int64_t, std::int64_t> of(const runbook::BatchEvent& row) {
    return {row.batch_id, row.event_id};
  }
};

struct RunbooksByName {
  static auto key(const runbook::Runbook& row) { return std::tie(row.name, row.version, row.id); }
};
struct RunbooksActive {
  static bool has(const runbook::Runbook& row) { return row.is_active; }
  static auto key(const runbook::Runbook& row) { return std::tie(row.name, row.version, row.id); }
};
struct RunbooksByTable {
  static auto key(const runbook::Runbook& row) { return std::tie(row.data_table_name, row.id); }
};

struct BatchesByTime {
  static bool has(const runbook::Batch& row) { return row.batch_start_time.has_value(); }
  static auto key(const runbook::Batch& row) {
    return std::tie(row.runbook_id, *row.batch_start_time, row.id);
  }
};
struct BatchesByRunbook {
  static auto key(const runbook::Batch& row) { return std::tie(row.runbook_id, row.status, row.id); }
};
struct BatchesByStatus {
  static auto key(const runbook::Batch& row) { return std::tie(row.status, row.id); }
};
struct BatchesImporting {
  static bool has(const runbook::Batch& row) { return row.importing; }
  static auto key(const runbook::Batch& row) { return std::tie(row.id); }
};
struct BatchesApproved {
  static bool has(const runbook::Batch& row) { return row.removals_approved.has_value(); }
  static auto key(const runbook::Batch& row) { return std::tie(row.runbook_id, row.id); }
};

struct MembersByBatch {
  static auto key(const runbook::Member& row) { return std::tie(row.batch_id, row.id); }
};
struct MembersByKey {
  static auto key(const runbook::Member& row) { return std::tie(row.batch_id, row.member_key, row.id); }
};
struct MembersHeld {
  static bool has(const runbook::Member& row) { return row.hold_id.has_value(); }
  static auto key(const runbook::Member& row) { return std::tie(*row.hold_id, row.id); }
};
struct MembersLeft {
  static bool has(const runbook::Member& row) { return row.status != runbook::MemberStatus::active; }
  static auto key(const runbook::Member& row) { return std::tie(row.batch_id, row.status, row.id); }
};

struct PhasesByBatch {
  static auto key(const runbook::PhaseExecution& row) { return std::tie(row.batch_id, row.id); }
};
struct PhasesUntimed {
  static bool has(const runbook::PhaseExecution& row) {
    return row.status == runbook::PhaseStatus::pending && !row.timer_due && row.due_at &&
           row.waits_for == runbook::PhaseWait::none;
  }
  static auto key(const runbook::PhaseExecution& row) { return std::tie(row.id); }
};

// Jobs of one of the three tables in their queues. One that another program queued may lack the time.
template <class Row>
struct JobsWaiting {
  static bool has(const Row& row) { return row.job_state == runbook::JobState::queued; }
  static auto key(const Row& row) {
    return std::tuple<const std::string&, Time, std::int64_t>{row.worker_id, row.queued_at.value_or(Time{}),
                                                              row.id};
  }
};

// Those given up after too many deliveries.
template <class Row>
struct JobsDead {
  static bool has(const Row& row) { return row.dead_at.has_value(); }
  static auto key(const Row& row) { return std::tie(*row.dead_at, row.id); }
};

struct StepsByPhase {
  static auto key(const runbook::StepExecution& row) {
    return std::tie(row.phase_execution_id, row.batch_member_id, row.step_index, row.id);
  }
};
struct StepsFailed {
  static bool has(const runbook::StepExecution& row) { return is_failure(row.status); }
  static auto key(const runbook::StepExecution& row) {
    return std::tuple{row.phase_execution_id, row.completed_at.value_or(Time{}), row.id};
  }
};
// Those that wait for a limit or a window, in the order in which they go on: who has come furthest first.
struct StepsLimited {
  static bool has(const runbook::StepExecution& row) { return row.job_state == runbook::JobState::limited; }
  static auto key(const runbook::StepExecution& row) {
    return std::tuple{row.phase_execution_id, -row.step_index, row.id};
  }
};
struct StepsParked {
  static bool has(const runbook::StepExecution& row) { return row.job_state == runbook::JobState::parked; }
  static auto key(const runbook::StepExecution& row) { return std::tie(row.phase_execution_id, row.id); }
};

struct InitsByBatch {
  static auto key(const runbook::InitExecution& row) {
    return std::tie(row.batch_id, row.runbook_version, row.step_index, row.id);
  }
};

struct CleanupsByBatch {
  static auto key(const runbook::CleanupExecution& row) { return std::tie(row.batch_id, row.id); }
};
struct CleanupsOpen {
  static bool has(const runbook::CleanupExecution& row) { return !is_terminal(row.status); }
  static auto key(const runbook::CleanupExecution& row) { return std::tie(row.batch_id, row.id); }
};
struct CleanupsFailed {
  static bool has(const runbook::CleanupExecution& row) {
    return row.status == runbook::StepStatus::failed || row.status == runbook::StepStatus::poll_timeout;
  }
  static auto key(const runbook::CleanupExecution& row) {
    return std::tuple{row.batch_id, row.completed_at.value_or(Time{}), row.id};
  }
};
struct CleanupsOfStep {
  static bool has(const runbook::CleanupExecution& row) { return row.caused_by_step_id.has_value(); }
  static auto key(const runbook::CleanupExecution& row) { return std::tie(*row.caused_by_step_id, row.id); }
};
struct CleanupsOfInit {
  static bool has(const runbook::CleanupExecution& row) { return row.caused_by_init_id.has_value(); }
  static auto key(const runbook::CleanupExecution& row) { return std::tie(*row.caused_by_init_id, row.id); }
};
struct HoldsByBatch {
  static auto key(const runbook::Hold& row) { return std::tie(row.batch_id, row.id); }
};
struct HoldsOpen {
  static bool has(const runbook::Hold& row) { return row.status == runbook::HoldStatus::open; }
  static auto key(const runbook::Hold& row) { return std::tie(row.id); }
};
struct RemovalsOfMember {
  static bool has(const runbook::CleanupExecution& row) {
    return row.kind == runbook::CleanupKind::removal && row.batch_member_id;
  }
  static auto key(const runbook::CleanupExecution& row) { return std::tie(*row.batch_member_id, row.id); }
};

// What a data source said of the members.
struct DataTable {
  struct Row {
    std::map<std::string, std::optional<std::string>> cells;  // by column; one that is missing is null
    std::optional<Time> batch_time;
    Time first_seen_at{}, last_seen_at{};
    bool is_current = true;
  };
  std::vector<std::string> columns;
  std::map<std::string, Row> rows;  // by member_key
};

struct RunbookTables {
  IndexedTable<runbook::Runbook, RunbooksByName, RunbooksActive, RunbooksByTable> runbooks;
  IndexedTable<runbook::Batch, BatchesByTime, BatchesByRunbook, BatchesByStatus, BatchesImporting,
               BatchesApproved>
      batches;
  IndexedTable<runbook::Member, MembersByBatch, MembersByKey, MembersHeld, MembersLeft> members;
  IndexedTable<runbook::PhaseExecution, PhasesByBatch, PhasesUntimed> phases;
  IndexedTable<runbook::StepExecution, StepsByPhase, StepsFailed, StepsParked,
               StepsLimited, JobsWaiting<runbook::StepExecution>, JobsDead<runbook::StepExecution>>
      steps;
  IndexedTable<runbook::InitExecution, InitsByBatch, JobsWaiting<runbook::InitExecution>,
               JobsDead<runbook::InitExecution>>
      inits;
  IndexedTable<runbook::CleanupExecution, CleanupsByBatch, CleanupsOpen, CleanupsFailed, CleanupsOfStep,
               CleanupsOfInit, RemovalsOfMember, JobsWaiting<runbook::CleanupExecution>,
               JobsDead<runbook::CleanupExecution>>
      cleanups;
  IndexedTable<runbook::Hold, HoldsByBatch, HoldsOpen> holds;
  IndexedTable<runbook::Count> counts;
  IndexedTable<runbook::BatchEvent> events;
  std::map<std::string, DataTable> data;   // by name
  std::array<std::int64_t, 8> last_ids{};  // that were given out, by runbook::Table

  [[nodiscard]] runbook::Loaded load(const std::vector<runbook::Need>& needs) const;
  [[nodiscard]] std::vector<std::int64_t> reserve_ids(runbook::Table table, std::size_t count);
  [[nodiscard]] Result<> write_data(const runbook::DataRows& rows);
  // At most so many of each table; in the order of WaitingTask.
  [[nodiscard]] std::vector<WaitingTask> waiting(const std::string& queue, std::size_t limit) const;

  [[nodiscard]] std::vector<runbook::Ref> left_by_others(runbook::Ref after, std::size_t limit) const;

  // nullptr: there is none. version 0: the active one, else the newest.
  [[nodiscard]] const runbook::Runbook* version_of(const std::string& name, std::int32_t version) const;
  [[nodiscard]] const runbook::Runbook* newest_of(const std::string& name) const;
  // By phase and step; none of a member that does not exist.
  [[nodiscard]] std::vector<const runbook::StepExecution*> steps_of_member(std::int64_t member_id) const;
};

}  // namespace baton::store::memory
