// The runbooks of one batch (of messages): a ledger of rows, filled in bulk, round after round, with what messages
// and timers are likely to need. What nobody foresaw is asked for while deciding, and then all is decided again.
#pragma once

#include <limits>
#include <map>
#include <set>

#include "engine/kinds/runbooks/runbooks.hpp"

namespace baton::engine {

inline const Tenant tenant_of_runbooks{"default"};
// Whoever acts for all tenants names none.
[[nodiscard]] inline bool may_touch_jobs(const std::optional<Tenant>& caller) {
  return !caller || *caller == tenant_of_runbooks;
}

class RunbookTransaction final : public Transaction {
 public:
  RunbookTransaction(Runbooks& kind, Turn turn);

  [[nodiscard]] Result<> load(std::span<const Item> items, std::span<const Timer> timers) override;
  void decide(std::size_t place, const Item& item) override;
  void fire(const Timer& timer) override;
  void timers_go_behind() override;
  [[nodiscard]] bool is_full() const override;

  [[nodiscard]] std::vector<Ready> take_ready() override;
  [[nodiscard]] Result<> load_tasks(std::span<const WaitingTask> tasks) override;
  [[nodiscard]] std::optional<Handout> hand_out(const WaitingTask& task, const Poll& poll) override;
  [[nodiscard]] Renewal renew(const TaskLease& lease, Duration lease_time, const std::optional<Tenant>& caller) override;
  void give_back(const TaskLease& lease, const std::string& reason) override;

  [[nodiscard]] bool is_incomplete() const override { return round_->incomplete; }
  [[nodiscard]] Result<> restart() override;
  void write(WriteSet& out, std::int64_t commit_number) override;
  void committed(const WriteSet& written) override;

 private:
  // ---- load
  [[nodiscard]] Result<bool> load_needs(runbook::Needs needs);
  template <class Foresee>
  [[nodiscard]] Result<> load_rounds(Foresee&& foresee);
  [[nodiscard]] std::size_t admit(std::span<const Item> items);
  [[nodiscard]] std::size_t count_own(std::span<const Item> items) const;
  void foresee(const Command& command, runbook::Needs& needs);
  [[nodiscard]] Result<> reserve_for_members(std::span<const Item> items);
  void choose_walks();
  [[nodiscard]] Result<> write_data(std::span<const Item> items);

  // ---- decide
  // False: it could not be decided now; it will be, when the batch is decided again with what it needs.
  template <class Decide>
  [[nodiscard]] bool with_ledger(Decide&& decide, std::string& unreadable);
  template <class Decide>
  void with_job(const TaskLease& lease, Decide&& decide);
  [[nodiscard]] Reply reply_to(const Command& command);
  [[nodiscard]] Reply decide(const PublishRunbook& command);
  [[nodiscard]] Reply decide(const ChangeRunbook& command);
  [[nodiscard]] Reply decide(const NoteSync& command);
  [[nodiscard]] Reply decide(const OpenBatch& command);
  [[nodiscard]] Reply decide(const AddMembers& command);
  [[nodiscard]] Reply decide(const StartBatch& command);
  [[nodiscard]] Reply decide(const RefreshMembers& command);
  [[nodiscard]] Reply decide(const RemoveMembers& command);
  [[nodiscard]] Reply decide(const SyncData& command);
  [[nodiscard]] Reply decide(const RetryMembers& command);
  [[nodiscard]] Reply decide(const ChangeBatch& command);
  [[nodiscard]] Reply decide(const AnswerHold& command);
  [[nodiscard]] Reply decide(const ChangeStep& command);
  [[nodiscard]] Reply decide(const RunbookEvent& command);
  [[nodiscard]] Reply decide(const AdoptPhases& command);
  [[nodiscard]] Reply decide(const AdoptJobs& command);
  [[nodiscard]] Reply decide(const ReportResult& command);
  [[nodiscard]] Reply decide(const TaskNote& command);
  [[nodiscard]] Reply decide(const SettleTask& command);
  [[nodiscard]] Reply decide(const ReplayTask& command);
  [[nodiscard]] runbook::Context context() { return context(turn_.now); }
  [[nodiscard]] runbook::Context context(Time at) { return {round_->ledger, kind_.policy_, at, round_->decided}; }
  [[nodiscard]] std::optional<Refused> replaced(std::int64_t of_runbook);

  // What turned out while deciding, and holds when it is decided again.
  struct Learnt {
    runbook::Needs needs;                           // rows that nobody foresaw
    std::map<std::size_t, std::string> unreadable;  // commands, by place, that cannot be decided, and why
    std::set<runbook::RowTimer> unreadable_timers;
    std::set<runbook::Ref> unreadable_jobs;  // that wait for a worker, or that one has
    bool data_written = false;               // what sources said is in its tables
  };
  // One round of deciding; a restart begins with nothing of it.
  struct Round {
    explicit Round(Runbooks& kind);
    runbook::Ledger ledger;
    runbook::Decided decided;
    std::map<runbook::RowTimer, Time> put_off;
    std::set<runbook::RowTimer> walks;  // the chunks of walks that have their turn
    std::vector<runbook::RowTimer> timers;
    std::vector<workflow::LogLine> logs;
    std::set<runbook::Table> ids_wanted;
    std::size_t commands_max = std::numeric_limits<std::size_t>::max();  // that have their turn, if others wait
    std::size_t commands = 0;                                            // that are decided
    runbook::Spent before_commands;                                      // by timers
    bool incomplete = false;
  };

  Runbooks& kind_;
  const Turn turn_;
  Learnt learnt_;
  std::optional<Round> round_;
};

}  // namespace baton::engine
