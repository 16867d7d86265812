// A row of one of the three tables of jobs as the API shows it.
#pragma once

#include <utility>

#include "ports/runbook_reads.hpp"

namespace baton::store {

// Steps know of which batch and version they are through their phase.
inline ExecutionView view_of(runbook::StepExecution row, std::int64_t batch_id, std::int32_t version) {
  ExecutionView step;
  step.ref = {runbook::RowType::step, row.id};
  step.batch_id = batch_id;
  step.phase_execution_id = row.phase_execution_id;
  step.batch_member_id = row.batch_member_id;
  step.runbook_version = version;
  step.is_catch_up = row.is_catch_up;
  step.execution = std::move(row);
  return step;
}

inline ExecutionView view_of(runbook::InitExecution row) {
  ExecutionView init;
  init.ref = {runbook::RowType::init, row.id};
  init.batch_id = row.batch_id;
  init.runbook_version = row.runbook_version;
  init.execution = std::move(row);
  return init;
}

inline ExecutionView view_of(runbook::CleanupExecution row) {
  ExecutionView cleanup;
  cleanup.ref = {runbook::RowType::cleanup, row.id};
  cleanup.batch_id = row.batch_id;
  cleanup.phase_execution_id = row.phase_execution_id;
  cleanup.batch_member_id = row.batch_member_id;
  cleanup.runbook_version = row.runbook_version;
  cleanup.cleanup_kind = row.kind;
  cleanup.caused_by_step_id = row.caused_by_step_id;
  cleanup.caused_by_init_id = row.caused_by_init_id;
  cleanup.sequence = std::move(row.sequence);
  cleanup.execution = std::move(row);
  return cleanup;
}

}  // namespace baton::store
