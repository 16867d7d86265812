// Reads of a database in memory, under the same contract as those of the others. Any number of them beside
// the writer, each used by one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ports/reads.hpp"
#include "store/memory/database.hpp"

namespace baton::store {

class MemoryReads : public Reads {
 public:
  // The database must outlive its readers.
  explicit MemoryReads(const memory::Database& database) : database_(database) {}

  // workflow_reads.cpp
  Result<std::optional<workflow::Job>> job(const Tenant&, const workflow::JobId&) override;
  Result<bool> has_job(const Tenant&, const workflow::JobId&) override;
  Result<std::vector<workflow::NodeState>> nodes(const workflow::JobId&, std::size_t limit) override;
  Result<std::vector<workflow::NodeState>> items(const workflow::JobId&, const std::string& fan_out,
                                                 std::int32_t after, std::size_t limit) override;
  Result<std::optional<workflow::NodeState>> node(const workflow::JobId&,
                                                  const std::string& node_id) override;
  Result<std::vector<workflow::LogLine>> logs(const workflow::JobId&, const std::string& node_id,
                                              std::int64_t after, std::size_t limit) override;
  Result<std::vector<workflow::NodeState>> dead_letters(const Tenant&, const std::optional<NodeCursor>& after,
                                                        std::size_t limit) override;
  Result<std::vector<workflow::NodeState>> approvals(const Tenant&, std::size_t limit) override;
  Result<std::vector<QueueBacklog>> task_backlogs(const Tenant&) override;
  Result<std::map<std::string, QueueCounts>> queue_counts(const Tenant&, const std::vector<std::string>& queues, std::size_t limit) override;
  Result<JobPage> jobs(const JobFilter&, const std::optional<workflow::JobId>& before,
                       std::size_t limit) override;
  Result<std::vector<workflow::Event>> timeline(const workflow::JobId&, std::int64_t after,
                                                std::size_t limit) override;
  Result<std::vector<WorkflowSummary>> workflows(const Tenant&, const std::string& after,
                                                 std::size_t limit) override;
  Result<std::optional<workflow::Workflow>> workflow(const Tenant&, const std::string& workflow_id,
                                                     std::int32_t version) override;
  Result<std::optional<Token>> token_by_hash(const std::string& token_hash) override;
  Result<std::optional<Token>> token_by_id(const std::string& token_id) override;
  Result<std::vector<Token>> tokens() override;

  // runbook_reads.cpp
  Result<std::vector<runbook::Runbook>> runbooks(const std::string& after, std::size_t limit) override;
  Result<std::optional<runbook::Runbook>> runbook(const std::string& name, std::int32_t version) override;
  Result<std::vector<runbook::Runbook>> versions(const std::string& name) override;
  Result<std::vector<runbook::Runbook>> active_runbooks() override;
  Result<std::vector<BatchSummary>> batches(const BatchFilter&, std::int64_t before,
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

  // call_reads.cpp
  Result<std::optional<call::Call>> service_call(const call::CallKey& key) override;
  Result<std::vector<call::EventRow>> call_events(const call::CallKey& key) override;
  Result<std::vector<call::Call>> calls(const CallFilter&, const std::optional<call::Due>& last,
                                        std::size_t limit) override;
  Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill& wanted) override;
  Result<std::vector<std::pair<call::Destination, Time>>> destinations_due(Time after, Time until) override;
  Result<std::vector<call::CallKey>> running_calls(const call::CallKey& after, std::size_t limit) override;
  Result<std::optional<call::Request>> call_request(const call::CallKey& key) override;
  Result<Streams> streams_without_row(const call::EventKey& after, std::size_t events) override;
  Result<std::optional<call::Call>> call_row(const call::CallKey& key) override;
  Result<std::vector<call::CallKey>> call_keys(const call::CallKey& after, std::size_t limit) override;
  Result<bool> has_tag(const call::CallKey& key, const std::string& tag) override;
  Result<std::int64_t> count_stray_rows() override;

 private:
  [[nodiscard]] auto lock() const { return std::shared_lock(database_.mutex); }
  [[nodiscard]] std::map<std::string, QueueBacklog> backlogs(std::optional<std::int64_t> batch_id) const;
  BatchSummary summary_of(const runbook::Batch& batch) const;
  [[nodiscard]] ExecutionView step_view(const runbook::StepExecution& step) const;
  [[nodiscard]] Failure failure_of(ExecutionView view) const;
  [[nodiscard]] std::vector<BatchSummary> batches_of(const std::string& runbook_name,
                                                     std::optional<runbook::BatchStatus> status,
                                                     std::int64_t before, std::size_t limit) const;

  const memory::Database& database_;
};

class MemoryTokenAdmin final : public TokenAdmin {
 public:
  explicit MemoryTokenAdmin(memory::Database& database) : database_(database) {}
  Result<> add(const Token& token) override;
  Result<bool> revoke(const std::string& token_id, Time now) override;

 private:
  memory::Database& database_;
};

}  // namespace baton::store
