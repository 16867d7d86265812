#include "tests/simulation/planted_store.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace baton::simulation {
namespace {

void forget_timer(WriteSet& writes, const Subject& subject, const std::string& what) {
  std::erase_if(writes.timers_new,
                [&](const Timer& timer) { return timer.subject == subject && timer.what == what; });
}

void plant(WriteSet& writes, workflow::NodeState& node) {
  if (MUTANT(dead_not_listed)) node.dead_at.reset();
  if (MUTANT(forget_checkpoint)) node.checkpoint.reset();
  if (MUTANT(forget_lease_timer) && node.lease_until) {
    forget_timer(writes, subject_of(node.job_id), node.node_id);
    node.timer_due.reset();
  }
}

void plant(WriteSet& writes, runbook::Execution& row, runbook::RowType type) {
  if (MUTANT(poll_never_times_out)) row.poll_timeout_sec.reset();
  if (MUTANT(runbook_dead_not_listed)) row.dead_at.reset();
  if (MUTANT(runbook_lease_timer_forgotten) && row.job_state == runbook::JobState::leased) {
    forget_timer(writes, subject_of(runbook::Ref{type, row.id}), "");
    row.timer_due.reset();
  }
}

void plant_in_workflows(WriteSet& writes) {
  for (auto* nodes : {&writes.nodes_new, &writes.nodes_changed})
    for (auto& node : *nodes) plant(writes, node);
  if (!MUTANT(lease_not_persisted)) return;
  const auto is_leased = [](const workflow::NodeState& node) { return node.lease_until.has_value(); };
  for (const auto& node : writes.nodes_changed)
    if (is_leased(node)) forget_timer(writes, subject_of(node.job_id), node.node_id);
  std::erase_if(writes.nodes_changed, is_leased);
}

void plant_in_runbooks(WriteSet& writes) {
  runbook::Writes& rows = writes.runbooks;
  const auto each_job = [&](auto& created, auto& changed, runbook::RowType type) {
    for (auto& row : created) plant(writes, row, type);
    for (auto& change : changed) plant(writes, change.row, type);
  };
  each_job(rows.steps_new, rows.steps_changed, runbook::RowType::step);
  each_job(rows.inits_new, rows.inits_changed, runbook::RowType::init);
  each_job(rows.cleanups_new, rows.cleanups_changed, runbook::RowType::cleanup);
  for (auto& count : rows.counts)
    if (MUTANT(runbook_counts_drift) && count.status == name(runbook::StepStatus::polling)) count.n = 0;
  for (auto& [before, row] : rows.runbooks_changed)
    if (MUTANT(overdue_not_noted)) row.ignore_overdue_applied = false;
  for (auto& [before, row] : rows.batches_changed)
    if (MUTANT(transition_keeps_end) && !row.completed_at) row.completed_at = before.completed_at;
}

void plant_in_messages(WriteSet& writes) {
  for (auto& row : writes.messages.counters_changed)
    if (MUTANT(bus_counters_drift)) row.dead = 0;
}

// What is published keeps its time, but nobody looks at it.
void plant_in_kept(WriteSet& writes) {
  if (!MUTANT(kept_task_without_timer)) return;
  for (auto& node : writes.nodes_changed)
    if (node.lease_until && node.started_at && *node.lease_until > *node.started_at + Duration{60'000}) {
      forget_timer(writes, subject_of(node.job_id), node.node_id);
      node.timer_due.reset();
    }
}

}  // namespace

Result<> PlantedStore::commit(const WriteSet& writes, std::int64_t number) {
  if (!ANY_MUTANT) return inner().commit(writes, number);
  WriteSet planted = writes;
  plant_in_workflows(planted);
  plant_in_runbooks(planted);
  plant_in_messages(planted);
  plant_in_kept(planted);
  return inner().commit(planted, number);
}

void PlantedStore::begin_commit(WriteSet writes, std::int64_t number) {
  plant_in_workflows(writes);
  plant_in_messages(writes);
  plant_in_kept(writes);
  inner().begin_commit(std::move(writes), number);
}

}  // namespace baton::simulation
