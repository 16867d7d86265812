// Rows of runbooks with every column filled.
#pragma once

#include "tests/contract/store/fixture.hpp"

namespace baton::contract {

runbook::Runbook runbook_row(std::int64_t id, const std::string& name = "waves", std::int32_t version = 1);
runbook::Batch batch_row(std::int64_t id, std::int64_t runbook_id = 1);
runbook::Member member_row(std::int64_t id, std::int64_t batch_id = 1);
runbook::PhaseExecution phase_row(std::int64_t id, std::int64_t batch_id = 1);
runbook::StepExecution step_row(std::int64_t id, std::int64_t phase = 1, std::int64_t member = 1,
                                std::int32_t index = 0);
runbook::InitExecution init_row(std::int64_t id, std::int64_t batch_id = 1);
runbook::CleanupExecution cleanup_row(std::int64_t id, std::int64_t batch_id = 1);
runbook::Hold hold_row(std::int64_t id, std::int64_t batch_id = 1);
runbook::BatchEvent batch_event_row(std::int64_t batch_id, std::int64_t event_id);

// An update of a row that was loaded as `before`.
template <class Row, class F>
runbook::Update<Row> changed(const Row& before, F&& change) {
  runbook::Update<Row> changed{before, before};
  change(changed.row);
  return changed;
}

// The ids of rows, in their order.
template <class Row>
std::vector<std::int64_t> ids(const std::vector<Row>& rows) {
  std::vector<std::int64_t> list;
  for (const Row& row : rows) list.push_back(row.id);
  return list;
}
using Ids = std::vector<std::int64_t>;

}  // namespace baton::contract
