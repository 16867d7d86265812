// Workflows as a kind of the engine: jobs, their nodes and tasks. What may happen to them is decided in
// core/workflow; here it is loaded, handed over and written.
#pragma once

#include "engine/kind.hpp"
#include "engine/kinds/workflows/definitions.hpp"
#include "engine/kinds/workflows/hot_runs.hpp"
#include "engine/kinds/workflows/options.hpp"
#include "engine/kinds/workflows/progressions.hpp"
#include "engine/kinds/workflows/shares.hpp"

namespace baton::engine {

[[nodiscard]] Warn cannot_go_on(const workflow::JobId& job, const std::string& why);

class Workflows final : public Kind {
 public:
  Workflows(const WorkflowsOptions& options, metrics::Registry* metrics);

  [[nodiscard]] bool owns(Subject::Type type) const override {
    return type == Subject::Type::job || type == Subject::Type::workflow;
  }
  [[nodiscard]] bool owns_timer(const Timer& timer) const override {
    return timer.subject.type == Subject::Type::job;
  }
  [[nodiscard]] std::unique_ptr<Transaction> begin(Turn turn) override;
  void tell(const WriteSet& writes, Changes& out) const override;
  void turn_begins() override;
  void opened(Time now, Duration short_lease) override;
  // Takes back what the built-in worker of an earlier process was running.
  [[nodiscard]] Result<std::vector<Command>> at_start(Store& store, std::span<const TaskLease> given_back,
                                                      Effects& effects) override;
  void forget() override {
    progressions_.forget();
    hot_runs_.forget();
  }

 private:
  friend class WorkflowTransaction;

  workflow::Policy policy_;
  const int chunks_max_;
  const std::size_t events_max_;
  const std::int64_t steps_max_;
  const decltype(WorkflowsOptions::trouble_of_queue) trouble_of_queue_;
  metrics::Counter* const jobs_created_;
  metrics::Counter* const jobs_ended_;
  Definitions definitions_;
  Progressions progressions_;
  HotRuns hot_runs_;
  Shares shares_;
  std::vector<NodeKey> taken_back_;  // at start, by the commands before
};

}  // namespace baton::engine
