// What the commands of a batch will need, and how many of them have their turn: core knows it of what each of them names.
#include <algorithm>
#include <utility>

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
  void operator()(const AnswerHold& c) const {
    batch(c.batch_id);
    runbook::foresee_hold(c.hold_id, ledger_, needs_);
  }
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
  void operator()(const SettleTask& c) const { runbook::foresee_job(c.task_id, ledger_, needs_); }
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

std::size_t members_named(const Command& command) {
  using runbook::MemberAdded, runbook::MemberRemoved;
  return std::visit(overloaded{
                        [](const AddMembers& c) { return c.members.size(); },
                        [](const RefreshMembers& c) { return c.members.size(); },
                        [](const RemoveMembers& c) { return c.member_ids.size() + c.member_keys.size(); },
                        [](const RetryMembers& c) {
                          const std::size_t named = c.member_ids.size() + c.member_keys.size();
                          return named > 0 ? named : std::size_t{runbook::retried_at_once};
                        },
                        [](const RunbookEvent& c) {
                          const auto& what = c.message.what;
                          const bool is_of_member =
                              std::holds_alternative<MemberAdded>(what) || std::holds_alternative<MemberRemoved>(what);
                          return std::size_t{is_of_member};
                        },
                        [](const auto&) { return std::size_t{0}; },
                    },
                    command);
}

}  // namespace

// A command of a thousand members needs all their rows, and a batch may have hundreds of such commands. Those that name
// more together than may be loaded at once wait for the next batch, with all that comes after them; the first has its turn
// whatever it names. Answers the place of the first that waits.
std::size_t RunbookTransaction::admit(std::span<const Item> items) {
  std::size_t members = 0;
  bool is_first = true;
  for (std::size_t place = 0; place < items.size(); ++place) {
    const std::size_t named = members_named(items[place].command);
    members += named;
    if (named > 0 && !std::exchange(is_first, false) && members > kind_.policy_.members_named) {
      round_->commands_max = count_own(items.first(place));
      return place;
    }
  }
  return items.size();
}

// Those that come to decide().
std::size_t RunbookTransaction::count_own(std::span<const Item> items) const {
  return static_cast<std::size_t>(std::ranges::count_if(items, [&](const Item& item) {
    return kind_.owns(subject_type(item.command)) && !std::holds_alternative<ReturnTasks>(item.command);
  }));
}

void RunbookTransaction::foresee(const Command& command, Needs& needs) {
  std::visit(CommandNeeds(round_->ledger, needs), command);
}

}  // namespace baton::engine
