// Runbooks as a kind of the engine: batches, their members, phases, steps and jobs. What may happen to them is
// decided in core/runbook; here it is loaded, handed over and written. Runbooks belong to the tenant "default".
#pragma once

#include <map>

#include "engine/kind.hpp"
#include "engine/kinds/runbooks/options.hpp"

namespace baton::engine {

// Runbooks were published or changed, or removals approved: a scheduler should look.
struct RunbooksChanged {};

[[nodiscard]] Warn cannot_go_on(runbook::Ref ref, const std::string& why);

class Runbooks final : public Kind {
 public:
  Runbooks(const RunbooksOptions& options, metrics::Registry* metrics);

  [[nodiscard]] bool owns(Subject::Type type) const override;
  [[nodiscard]] bool owns_timer(const Timer& timer) const override {
    return owns(timer.subject.type) && timer.what.empty() && subject_of(ref_of(timer.subject)) == timer.subject;
  }
  [[nodiscard]] std::unique_ptr<Transaction> begin(Turn turn) override;
  void tell(const WriteSet& writes, Changes& out) const override;
  void perform(std::any) override {  // RunbooksChanged: there is no other
    if (changed_) changed_();
  }
  void opened(Time now, Duration short_lease) override {
    policy_.opened_at = now;
    policy_.short_lease = short_lease;
  }
  // A scheduler of ours fires the phases that another has planned; jobs of another orchestrator are taken over.
  [[nodiscard]] Result<std::vector<Command>> at_start(Store& store, std::span<const TaskLease> given_back,
                                                      Effects& effects) override;

 private:
  friend class RunbookTransaction;

  [[nodiscard]] std::shared_ptr<const runbook::Definition> definition(const runbook::Runbook& row);
  // Ids are reserved in blocks; those that are not used when the server ends are gaps.
  [[nodiscard]] Result<> reserve_ids(Store& store, runbook::Table table, std::size_t at_least);

  struct KnownDefinition {
    std::size_t text_hash = 0;
    std::shared_ptr<const runbook::Definition> definition;  // null: it cannot be read
  };

  runbook::Policy policy_;  // chunk_members is what a chunk is given now, up to chunk_members_max_
  const std::int32_t chunk_members_max_;
  const std::size_t walks_max_;
  const std::size_t ids_block_;
  const bool adopt_jobs_;
  const std::function<void()> changed_;
  metrics::Counter* const steps_ended_;
  metrics::Counter* const batches_ended_;
  runbook::IdPool ids_;
  std::map<runbook::Table, std::size_t> ids_reserved_;  // since the start
  std::map<std::int64_t, KnownDefinition> definitions_;  // by id of the runbook; a cache
  std::vector<std::int64_t> adopted_;  // at start, by the commands before
  runbook::Ref last_adopted_;          // of the jobs
};

}  // namespace baton::engine
