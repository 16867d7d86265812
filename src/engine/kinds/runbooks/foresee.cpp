// What the commands of a batch will need: core knows it of what each of them names.
#include "engine/kinds/runbooks/transaction.hpp"

namespace baton::engine {
namespace {

using runbook::Needs;
using runbook::Ref;

class CommandNeeds {
 public:
  CommandNeeds(runbook::Ledger& ledger, Needs& needs) : ledger_(ledger), needs_(needs) {}

  // --- schedulers
  void operator()(const RunbookEvent& c) const { runbook::foresee(c.message, ledger_, needs_); }
  void operator()(const NoteSync& c) const { version(c.runbook_id); }
  void operator()(const SyncData& c) const { version(c.runbook_id); }
  void operator()(const AdoptPhases& c) const { runbook::foresee_phases(c.phase_ids, ledger_, needs_); }
  void operator()(const AdoptJobs& c) const {
    for (const Ref ref : c.jobs) row(ref);
  }

  // --- people, and schedulers in their name
  void operator()(const PublishRunbook& c) const { runbook::foresee_publish(c.definition->name, ledger_, needs_); }
  void operator()(const OpenBatch& c) const { version(c.of_runbook); }
  void operator()(const AddMembers& c) const {
    runbook::foresee_join(c.batch_id, c.members, ledger_, needs_);
    version(c.of_runbook);
  }
  void operator()(const StartBatch& c) const {
    batch(c.batch_id);
    version(c.of_runbook);
  }
  void operator()(const RefreshMembers& c) const {
    for (const auto& one : c.members) runbook::foresee_member(one.member_id, ledger_, needs_);
    version(c.of_runbook);
  }
  void operator()(const RemoveMembers& c) const {
    runbook::foresee_removal(c.batch_id, c.member_ids, ledger_, needs_);
    version(c.of_runbook);
  }
  void operator()(const RetryMembers& c) const { batch(c.batch_id); }
  void operator()(const ChangeBatch& c) const { batch(c.batch_id); }
  void operator()(const ChangeStep& c) const { row(c.ref); }
  void operator()(const ReplayTask& c) const { runbook::foresee_job(c.task_id, ledger_, needs_); }

  // --- workers
  void operator()(const ReportResult& c) const {
    if (c.correlated)
      row(*c.correlated);
    else
      runbook::foresee_job(c.task_id, ledger_, needs_);
  }
  void operator()(const TaskNote& c) const { runbook::foresee_handout(c.task_id, ledger_, needs_); }
  void operator()(const Heartbeat& c) const {
    for (const TaskLease& lease : c.tasks) runbook::foresee_handout(lease.task_id, ledger_, needs_);
  }
  void operator()(const ReturnTasks& c) const {
    for (const TaskLease& lease : c.tasks) runbook::foresee_job(lease.task_id, ledger_, needs_);
  }

  void operator()(const auto&) const {}  // another kind's, or one of which nothing is known before

 private:
  void row(Ref ref) const { runbook::foresee(ref, ledger_, needs_); }
  void batch(std::int64_t id) const { row({runbook::RowType::batch, id}); }
  void version(std::int64_t id) const { runbook::foresee_version(id, ledger_, needs_); }

  runbook::Ledger& ledger_;
  Needs& needs_;
};

}  // namespace

void RunbookTransaction::foresee(const Command& command, Needs& needs) {
  std::visit(CommandNeeds(round_->ledger, needs), command);
}

}  // namespace baton::engine
