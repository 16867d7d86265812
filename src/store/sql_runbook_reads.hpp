// The part of the Reads port that is about runbooks. Every list is a range of an index in its order, so a
// page costs what it shows.
#pragma once

#include "ports/reads.hpp"
#include "store/reader.hpp"

namespace baton::store {

struct RunbookReadStatements;

class SqlRunbookReads : public Reads {
 public:
  SqlRunbookReads(Dialect dialect, Connect connect);
  ~SqlRunbookReads() override;

  Result<std::vector<runbook::Runbook>> runbooks(const std::string& after, std::size_t limit) override;
  Result<std::optional<runbook::Runbook>> runbook(const std::string& name, std::int32_t version) override;
  Result<std::vector<runbook::Runbook>> versions(const std::string& name) override;
  Result<std::vector<runbook::Runbook>> active_runbooks() override;

  Result<std::vector<BatchSummary>> batches(const BatchFilter& filter, std::int64_t before,
                                            std::size_t limit) override;
  Result<std::optional<BatchSummary>> batch(std::int64_t id) override;
  Result<std::vector<runbook::PhaseExecution>> phases(std::int64_t batch_id) override;
  Result<std::optional<runbook::PhaseExecution>> phase(std::int64_t id) override;
  Result<std::vector<runbook::Count>> counts(std::int64_t batch_id) override;
  Result<std::vector<ExecutionView>> inits(std::int64_t batch_id) override;
  Result<std::vector<runbook::BatchEvent>> batch_events(std::int64_t batch_id, std::int64_t after,
                                                        std::size_t limit) override;

  Result<std::vector<runbook::Member>> members(std::int64_t batch_id,
                                               std::optional<runbook::MemberStatus> status,
                                               std::int64_t after, std::size_t limit) override;
  Result<std::optional<runbook::Member>> member(std::int64_t id) override;
  Result<std::optional<runbook::Member>> member_by_key(std::int64_t batch_id,
                                                       const std::string& key) override;
  Result<std::vector<MatrixCell>> cells(const std::vector<std::int64_t>& member_ids) override;
  Result<std::vector<ExecutionView>> steps_of_member(std::int64_t member_id) override;
  Result<std::vector<Failure>> failures(std::int64_t phase_execution_id, const FailedBefore& before,
                                        std::size_t limit) override;
  Result<std::vector<Failure>> cleanup_failures(std::int64_t batch_id, const FailedBefore& before,
                                                std::size_t limit) override;
  Result<std::vector<ExecutionView>> dead_jobs(const DeadJobCursor& after, std::size_t limit) override;
  Result<std::vector<ExecutionView>> steps_of_phase(std::int64_t phase_execution_id, std::int64_t after,
                                                    std::size_t limit) override;
  Result<std::optional<ExecutionView>> execution(runbook::Ref ref) override;
  Result<std::vector<ExecutionView>> cleanups(std::int64_t batch_id, std::int64_t after,
                                              std::size_t limit) override;
  Result<std::vector<ExecutionView>> open_cleanups(std::int64_t batch_id, std::size_t limit) override;
  Result<std::vector<ExecutionView>> cleanups_of_member(std::int64_t member_id,
                                                        const std::vector<std::int64_t>& step_ids) override;

  Result<std::vector<runbook::KnownMember>> known_members(const std::string& runbook_name, std::int64_t after,
                                                          std::size_t limit) override;
  Result<std::vector<runbook::ApprovedRemovals>> approved_removals(const std::string& runbook_name) override;
  Result<std::vector<std::int64_t>> moved_phases(std::int64_t after, std::size_t limit) override;
  Result<std::vector<runbook::Hold>> open_holds(std::int64_t after, std::size_t limit) override;
  Result<std::vector<runbook::Hold>> holds(std::int64_t batch_id) override;
  Result<std::optional<runbook::Hold>> hold(std::int64_t id) override;
  Result<std::vector<QueueBacklog>> job_backlogs() override;
  Result<QueueBacklog> backlog_of_batch(std::int64_t batch_id, const std::string& queue) override;
  Result<std::vector<Retrying>> retrying(std::int64_t batch_id) override;
  Result<std::vector<BatchSummary>> importing() override;

 protected:
  Reader reader_;

 private:
  Result<std::vector<BatchSummary>> batches_of(const std::string& name,
                                               std::optional<runbook::BatchStatus> status,
                                               std::int64_t before, std::size_t limit);
  std::unique_ptr<const RunbookReadStatements> sql_;
};

// The statements of the lists, for a test that asks the database for their plans.
[[nodiscard]] std::vector<Statement> runbook_list_statements(Dialect dialect);

}  // namespace baton::store
