// What is promised about runbooks. Sees every commit (the rows before and after it), every command that
// arrives and every answer that leaves; throws Violation.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "store/memory/database.hpp"

namespace baton::simulation {

class RunbookWatch {
 public:
  // `scheduler`: phases and polls are fired by the engine itself.
  RunbookWatch(const store::MemoryDatabase& database, const Clock& clock, bool scheduler)
      : rows_(database.runbooks), timers_(database.timers), clock_(clock), scheduler_(scheduler) {}

  void arrived(const Command& command);
  void answered(const Command& command, const Reply& reply);
  void given_back(const std::string& job_id, const std::string& lease);
  // Another program has written rows of this batch: what it made of them is not ours to answer for.
  void interfered(std::int64_t batch_id) { interfered_.insert(batch_id); }
  // Another orchestrator has given this step out.
  void given_out_by_another(std::int64_t step_id) { given_out_by_another_.insert(step_id); }

  void before_commit(const runbook::Writes& writes);
  void committed(const runbook::Writes& writes);
  void check_touched();
  void check_all();  // everything has come to its end

 private:
  // All rows of a batch.
  struct Whole {
    const runbook::Batch* batch = nullptr;
    std::vector<const runbook::Member*> members;
    std::vector<const runbook::PhaseExecution*> phases;
    std::vector<const runbook::StepExecution*> steps;
    std::vector<const runbook::InitExecution*> inits;
    std::vector<const runbook::CleanupExecution*> cleanups;
    std::vector<const runbook::Hold*> holds;
  };
  template <class Row>
  using Rows = std::map<std::int64_t, Row>;

  // moves: a row before and after a commit (runbook_moves.cpp)
  void check_move(const runbook::Batch& from, const runbook::Batch& to) const;
  void check_version(const runbook::Batch& from, const runbook::Batch& to) const;
  void check_move(const runbook::PhaseExecution& from, const runbook::PhaseExecution& to) const;
  void check_move(const runbook::Member& from, const runbook::Member& to) const;
  void check_move(const runbook::Execution& from, const runbook::Execution& to, runbook::Ref ref,
                  const std::string& about);
  void check_lease(const runbook::Execution& from, const runbook::Execution& to, const std::string& about);
  void check_begin(const runbook::StepExecution& step) const;
  void check_begin(const runbook::PhaseExecution& phase) const;
  void check_move(const runbook::Hold& from, const runbook::Hold& to) const;
  [[nodiscard]] bool is_answered(runbook::HoldKind kind, std::int64_t phase_id) const;
  [[nodiscard]] bool is_met(const runbook::Requirement& required, const runbook::PhaseExecution& other) const;
  void check_failure(const runbook::Execution& from, const runbook::Execution& to, runbook::Ref ref,
                     const std::string& about) const;
  void check_phase_end(const runbook::PhaseExecution& phase) const;
  void check_batch_end(const runbook::Batch& batch) const;
  [[nodiscard]] bool is_late_removal(const runbook::CleanupExecution& cleanup, const runbook::Writes& writes) const;
  void check_kept(const runbook::Writes& writes) const;
  template <class Row>
  void check_params(const std::vector<runbook::Update<Row>>& changed, const Rows<Row>& before, runbook::RowType type) const;

  // rows after a commit (runbook_invariants.cpp)
  [[nodiscard]] Whole whole(std::int64_t batch_id) const;
  void check_batch(const Whole& batch) const;
  void check_counts(const Whole& batch) const;
  void check_job(const runbook::Execution& row, const Whole& batch, runbook::RowType type,
                 const std::string& about) const;
  void check_dead(const runbook::Execution& row, const runbook::Batch& batch, runbook::RowType type,
                  const std::string& about) const;
  void check_members(const Whole& batch) const;
  void check_order(const std::vector<const runbook::StepExecution*>& steps, const std::string& about) const;
  void check_phases(const Whole& batch) const;
  void check_waiting(const Whole& batch, const runbook::PhaseExecution& phase) const;
  void check_holds(const Whole& batch) const;
  void check_threshold(const Whole& batch) const;
  void check_lockstep(const Whole& batch, const runbook::PhaseExecution& phase) const;
  void check_cleanups(const Whole& batch) const;
  void check_timer(runbook::RowType type, std::int64_t id, std::optional<Time> due) const;
  void check_end(const Whole& batch) const;
  void check_removals(const Whole& batch) const;

  void on_handed_out(const Handout& job);
  void check_target(const runbook::StepExecution& step, const Json& params, const std::string& about) const;
  void expect(bool truth, const std::string& what, const std::string& about) const;

  [[nodiscard]] const runbook::Execution* find(runbook::Ref ref) const;
  [[nodiscard]] std::int64_t batch_of(runbook::Ref ref) const;
  // Those run in a batch that has ended, too: members may leave it.
  [[nodiscard]] bool is_removal(runbook::Ref ref) const {
    return ref.type == runbook::RowType::cleanup && rows_.cleanups.at(ref.id).kind == runbook::CleanupKind::removal;
  }
  [[nodiscard]] const runbook::Definition& definition(const runbook::Batch& batch, std::int32_t version) const;
  [[nodiscard]] const runbook::Step* step_of(runbook::Ref ref) const;
  // Where it stands among what its member has missed.
  [[nodiscard]] std::tuple<std::int32_t, std::int64_t, std::int32_t> place_of(const runbook::StepExecution& step) const {
    const runbook::PhaseExecution& phase = rows_.phases.at(step.phase_execution_id);
    return {-phase.offset_minutes, phase.id, step.step_index};
  }
  [[nodiscard]] std::string about(const runbook::Execution& row, runbook::RowType type) const;

  const store::memory::RunbookTables& rows_;
  const std::set<Timer>& timers_;
  const Clock& clock_;
  const bool scheduler_;

  std::set<std::int64_t> touched_;
  std::set<std::int64_t> overdue_applied_before_;  // versions whose ignore_overdue_applied was set
  std::set<std::int64_t> phases_new_;
  std::set<std::int64_t> late_removals_;  // cleanups that this commit began, for those who were told of when their batch had ended
  Rows<runbook::Batch> batches_before_;
  Rows<runbook::Member> members_before_;
  Rows<runbook::PhaseExecution> phases_before_;
  Rows<runbook::StepExecution> steps_before_;
  Rows<runbook::InitExecution> inits_before_;
  Rows<runbook::CleanupExecution> cleanups_before_;
  Rows<runbook::Hold> holds_before_;
  mutable std::map<std::int64_t, std::shared_ptr<const runbook::Definition>> definitions_;  // by runbook id

  std::set<std::int64_t> retried_;     // batches of which somebody asked to retry a part
  std::set<std::int64_t> handled_;     // … or to skip or cancel a step
  std::set<std::int64_t> advanced_;    // … or to begin a phase
  std::set<std::int64_t> interfered_;  // see interfered()
  std::set<std::int64_t> given_out_by_another_;
  std::set<std::pair<std::string, std::string>> handed_out_;
  std::map<std::pair<std::string, std::string>, Time> lease_promised_;
  std::map<std::string, int> accepted_;  // by job id
  std::set<std::int64_t> was_in_line_;   // phases that have waited for others
  std::map<std::int64_t, std::int32_t> told_removed_;  // members, with the version that was said; acknowledged
};

}  // namespace baton::simulation
