// For tests: the rows of runbooks in memory, and an engine to which everything about them is fine.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ports/commands.hpp"
#include "ports/data_source.hpp"
#include "ports/reads.hpp"
#include "tests/support/without_calls.hpp"

namespace baton::http {

struct RunbookRows {
  std::vector<runbook::Runbook> runbooks;
  std::vector<BatchSummary> batches;
  std::vector<runbook::PhaseExecution> phases;
  std::vector<runbook::Count> counts;
  std::vector<runbook::Member> members;
  std::vector<ExecutionView> executions;
  std::vector<runbook::BatchEvent> batch_events;
  std::vector<workflow::LogLine> logs;
};

// Service calls are tested on a real store.
class RunbookMemoryReads : public support::WithoutCalls<Reads> {
 public:
  RunbookMemoryReads(RunbookRows& rows, std::mutex& mutex) : runbook_rows_(rows), mutex_(mutex) {}

  Result<std::vector<runbook::Runbook>> runbooks(const std::string& after, std::size_t limit) override {
    return pick(runbook_rows_.runbooks, limit, [&](const auto& row) { return row.name > after; });
  }
  Result<std::optional<runbook::Runbook>> runbook(const std::string& name, std::int32_t version) override {
    return first(runbook_rows_.runbooks, [&](const auto& row) {
      return row.name == name && (version == 0 ? row.is_active : row.version == version);
    });
  }
  Result<std::vector<runbook::Runbook>> versions(const std::string& name) override {
    return pick(runbook_rows_.runbooks, no_limit, [&](const auto& row) { return row.name == name; });
  }
  Result<std::vector<runbook::Runbook>> active_runbooks() override { return runbook_rows_.runbooks; }

  Result<std::vector<BatchSummary>> batches(const BatchFilter& filter, std::int64_t before,
                                            std::size_t limit) override {
    return pick(
        runbook_rows_.batches, limit,
        [&](const auto& row) {
          return (before == 0 || row.batch.id < before) &&
                 (!filter.status || row.batch.status == *filter.status) &&
                 (!filter.runbook_name || row.runbook_name == *filter.runbook_name);
        },
        true);
  }
  Result<std::optional<BatchSummary>> batch(std::int64_t id) override {
    return first(runbook_rows_.batches, [&](const auto& row) { return row.batch.id == id; });
  }
  Result<std::vector<runbook::PhaseExecution>> phases(std::int64_t batch_id) override {
    return pick(runbook_rows_.phases, no_limit, [&](const auto& row) { return row.batch_id == batch_id; });
  }
  Result<std::optional<runbook::PhaseExecution>> phase(std::int64_t id) override {
    return first(runbook_rows_.phases, [&](const auto& row) { return row.id == id; });
  }
  Result<std::vector<runbook::Count>> counts(std::int64_t batch_id) override {
    return pick(runbook_rows_.counts, no_limit, [&](const auto& row) { return row.batch_id == batch_id; });
  }
  Result<std::vector<ExecutionView>> inits(std::int64_t batch_id) override {
    return views(runbook::Kind::init, no_limit, [&](const auto& row) { return row.batch_id == batch_id; });
  }
  Result<std::vector<runbook::BatchEvent>> batch_events(std::int64_t batch_id, std::int64_t after,
                                                        std::size_t limit) override {
    return pick(runbook_rows_.batch_events, limit,
                [&](const auto& row) { return row.batch_id == batch_id && row.event_id > after; });
  }
  Result<std::vector<runbook::Member>> members(std::int64_t batch_id,
                                               std::optional<runbook::MemberStatus> status,
                                               std::int64_t after, std::size_t limit) override {
    return pick(runbook_rows_.members, limit, [&](const auto& row) {
      return row.batch_id == batch_id && row.id > after && (!status || row.status == *status);
    });
  }
  Result<std::optional<runbook::Member>> member(std::int64_t id) override {
    return first(runbook_rows_.members, [&](const auto& row) { return row.id == id; });
  }
  Result<std::optional<runbook::Member>> member_by_key(std::int64_t batch_id,
                                                       const std::string& key) override {
    return first(runbook_rows_.members,
                 [&](const auto& row) { return row.batch_id == batch_id && row.member_key == key; });
  }
  Result<std::vector<MatrixCell>> cells(const std::vector<std::int64_t>& member_ids) override {
    TRY_ASSIGN(const auto steps, views(runbook::Kind::step, no_limit, [&](const auto& row) {
                 return std::ranges::find(member_ids, row.batch_member_id.value_or(0)) != member_ids.end();
               }));
    std::vector<MatrixCell> cells;
    for (const auto& step : steps)
      cells.push_back({.batch_member_id = *step.batch_member_id,
                       .phase_execution_id = *step.phase_execution_id,
                       .step_id = step.ref.id,
                       .step_index = step.execution.step_index,
                       .step_name = step.execution.step_name,
                       .status = step.execution.status,
                       .retry_count = step.execution.retry_count,
                       .poll_count = step.execution.poll_count,
                       .is_catch_up = step.is_catch_up});
    return cells;
  }
  Result<std::vector<ExecutionView>> steps_of_member(std::int64_t member_id) override {
    return views(runbook::Kind::step, no_limit,
                 [&](const auto& row) { return row.batch_member_id == member_id; });
  }
  Result<std::vector<Failure>> failures(std::int64_t phase_execution_id, const FailedBefore& before,
                                        std::size_t limit) override {
    return failed(runbook::Kind::step, before, limit,
                  [&](const auto& row) { return row.phase_execution_id == phase_execution_id; });
  }
  Result<std::vector<Failure>> cleanup_failures(std::int64_t batch_id, const FailedBefore& before,
                                                std::size_t limit) override {
    return failed(runbook::Kind::cleanup, before, limit,
                  [&](const auto& row) { return row.batch_id == batch_id; });
  }
  Result<std::vector<ExecutionView>> dead_jobs(const DeadJobCursor& after, std::size_t limit) override {
    auto found = pick(runbook_rows_.executions, no_limit, [&](const ExecutionView& row) {
      return row.execution.dead_at && std::pair(*row.execution.dead_at, row.ref) > std::pair(after.at, after.ref);
    });
    std::ranges::sort(found, {}, [](const auto& row) { return std::pair(row.execution.dead_at, row.ref); });
    if (found.size() > limit) found.resize(limit);
    return found;
  }
  Result<std::vector<ExecutionView>> steps_of_phase(std::int64_t phase_execution_id, std::int64_t after,
                                                    std::size_t limit) override {
    return views(runbook::Kind::step, limit, [&](const auto& row) {
      return row.phase_execution_id == phase_execution_id && row.ref.id > after;
    });
  }
  Result<std::optional<ExecutionView>> execution(runbook::Ref ref) override {
    return first(runbook_rows_.executions, [&](const auto& row) { return row.ref == ref; });
  }
  Result<std::vector<ExecutionView>> cleanups(std::int64_t batch_id, std::int64_t after,
                                              std::size_t limit) override {
    return views(runbook::Kind::cleanup, limit,
                 [&](const auto& row) { return row.batch_id == batch_id && row.ref.id > after; });
  }
  Result<std::vector<ExecutionView>> open_cleanups(std::int64_t batch_id, std::size_t limit) override {
    return views(runbook::Kind::cleanup, limit, [&](const auto& row) {
      return row.batch_id == batch_id && !is_terminal(row.execution.status);
    });
  }
  Result<std::vector<ExecutionView>> cleanups_of_member(std::int64_t member_id,
                                                        const std::vector<std::int64_t>& step_ids) override {
    return views(runbook::Kind::cleanup, no_limit, [&](const auto& row) {
      if (row.cleanup_kind == runbook::CleanupKind::removal) return row.batch_member_id == member_id;
      return std::ranges::find(step_ids, row.caused_by_step_id.value_or(0)) != step_ids.end();
    });
  }
  Result<std::vector<workflow::LogLine>> logs(const workflow::JobId& id, const std::string& node_id,
                                              std::int64_t after, std::size_t limit) override {
    return pick(runbook_rows_.logs, limit, [&](const auto& line) {
      return line.job_id == id && line.node_id == node_id && line.log_id > after;
    });
  }
  Result<std::vector<runbook::KnownMember>> known_members(const std::string&, std::int64_t,
                                                          std::size_t) override {
    return std::vector<runbook::KnownMember>{};
  }
  Result<std::vector<runbook::ApprovedRemovals>> approved_removals(const std::string&) override {
    return std::vector<runbook::ApprovedRemovals>{};
  }
  Result<std::vector<BatchSummary>> importing() override { return std::vector<BatchSummary>{}; }

 private:
  static constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

  template <class T, class Fits>
  std::vector<T> pick(const std::vector<T>& rows, std::size_t limit, Fits fits, bool newest_first = false) {
    const std::lock_guard lock(mutex_);
    std::vector<T> picked;
    for (const auto& row : rows)
      if (fits(row)) picked.push_back(row);
    if (newest_first) std::ranges::reverse(picked);
    if (picked.size() > limit) picked.resize(limit);
    return picked;
  }
  template <class T, class Fits>
  std::optional<T> first(const std::vector<T>& rows, Fits fits) {
    auto picked = pick(rows, 1, fits);
    if (picked.empty()) return std::nullopt;
    return std::move(picked.front());
  }
  template <class Fits>
  Result<std::vector<ExecutionView>> views(runbook::Kind kind, std::size_t limit, Fits fits) {
    return pick(runbook_rows_.executions, limit,
                [&](const auto& row) { return row.ref.kind == kind && fits(row); });
  }

  template <class Fits>
  Result<std::vector<Failure>> failed(runbook::Kind kind, const FailedBefore& before, std::size_t limit,
                                      Fits fits) {
    const auto key = [](const ExecutionView& row) {
      return std::pair(row.execution.completed_at.value_or(Time{}), row.ref.id);
    };
    TRY_ASSIGN(auto rows, views(kind, no_limit, [&](const auto& row) {
                 return fits(row) && is_failure(row.execution.status) && key(row) < std::pair(before.at, before.id);
               }));
    std::ranges::sort(rows, std::greater{}, key);
    if (rows.size() > limit) rows.resize(limit);
    std::vector<Failure> failures;
    for (auto& row : rows) failures.push_back({std::move(row), "somebody", "a phase"});
    return failures;
  }

  RunbookRows& runbook_rows_;
  std::mutex& mutex_;
};

// Says what the test says.
struct ScriptedSources final : DataSources {
  Result<SourceTable> table = SourceTable{};
  Result<SourceTable> fetch(const runbook::DataSource&) override { return table; }
};

inline runbook::Batch batch_row(std::int64_t id) {
  runbook::Batch batch;
  batch.id = id;
  batch.runbook_id = 3;
  batch.status = runbook::BatchStatus::active;
  return batch;
}

inline runbook::Runbook runbook_row(const std::string& name, std::int32_t version) {
  runbook::Runbook row;
  row.id = 3;
  row.name = name;
  row.version = version;
  return row;
}

// What an engine that agrees answers to a command about runbooks.
struct RunbookAgrees {
  std::shared_ptr<int> retries = std::make_shared<int>(0);  // of all members: there are more twice

  Reply operator()(const PublishRunbook& c) const {
    return RunbookReply{runbook_row(c.definition->name, 1), c.overdue_behavior == "rerun"};
  }
  Reply operator()(const ChangeRunbook& c) const {
    return RunbookReply{runbook_row(c.name, c.version), true};
  }
  Reply operator()(const OpenBatch& c) const {
    if (c.runbook_name == "gone") return Refused{Refusal::runbook_not_found, "no runbook 'gone'", {}};
    auto batch = batch_row(7);
    batch.importing = true;
    return BatchReply{batch, true, ""};
  }
  Reply operator()(const AddMembers& c) const {
    MembersReply reply;
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      if (c.members[i].member_key == "broken") return Refused{Refusal::store_full, "no room", {}};
      reply.member_ids.push_back(static_cast<std::int64_t>(i) + 1);
    }
    return reply;
  }
  Reply operator()(const StartBatch& c) const { return BatchReply{batch_row(c.batch_id), true, ""}; }
  Reply operator()(const RemoveMembers& c) const {
    return MembersReply{c.member_ids.empty() ? std::vector<std::int64_t>{1} : c.member_ids, 0, false};
  }
  Reply operator()(const RetryMembers& c) const {
    if (!c.member_ids.empty() || !c.member_keys.empty()) return MembersReply{c.member_ids, 0, false};
    return MembersReply{{11, 12}, 1, (*retries)++ < 2};
  }
  Reply operator()(const ChangeBatch& c) const {
    if (c.batch_id == 404) return Refused{Refusal::batch_not_found, "no batch 404", {}};
    if (c.phase == "done") return Refused{Refusal::not_possible, "phase 'done' is completed", {}};
    return BatchReply{batch_row(c.batch_id), true, c.phase};
  }
  Reply operator()(const ChangeStep& c) const {
    if (c.ref.id == 404) return Refused{Refusal::step_not_found, "no step 404", {}};
    return StepReply{c.ref, runbook::StepStatus::pending};
  }
  Reply operator()(const RunbookEvent& c) const {
    if (c.message.batch_id == 404) return Refused{Refusal::batch_not_found, "no batch 404", {}};
    return EventReply{c.message.batch_id == 42, c.message.batch_id == 42 ? "" : "it is over"};
  }
  template <class Other>
  Reply operator()(const Other&) const {
    return Refused{Refusal::invalid_input, "no handler sends this", {}};
  }
};

}  // namespace baton::http
