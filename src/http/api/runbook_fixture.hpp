// For tests: rows of runbooks, and an engine to which everything about them is fine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ports/commands.hpp"
#include "ports/data_source.hpp"
#include "ports/reads.hpp"

namespace baton::http {

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

inline runbook::Runbook runbook_row(const std::string& name, std::int32_t version, std::int64_t id = 3) {
  runbook::Runbook row;
  row.id = id;
  row.name = name;
  row.version = version;
  return row;
}

// What an engine that agrees answers to a command about runbooks.
struct RunbookAgrees {
  std::shared_ptr<int> retries = std::make_shared<int>(0);  // of all members: there are more twice

  Reply operator()(const PublishRunbook& c) const {
    if (c.definition->name == "busy" && !c.open_batches) return Refused{Refusal::open_batches, "batch 42 has begun", {}};
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
    return MembersReply{c.member_ids.empty() ? std::vector<std::int64_t>{1} : c.member_ids, {}, false};
  }
  Reply operator()(const RetryMembers& c) const {
    if (!c.member_ids.empty() || !c.member_keys.empty()) return MembersReply{c.member_ids, {}, false};
    return MembersReply{{11, 12}, {{"rolling_back", "its rollback still runs", 1, {"eve"}}}, (*retries)++ < 2};
  }
  Reply operator()(const ChangeBatch& c) const {
    if (c.batch_id == 404) return Refused{Refusal::batch_not_found, "no batch 404", {}};
    if (c.phase == "done") return Refused{Refusal::not_possible, "phase 'done' is completed", {}};
    return BatchReply{batch_row(c.batch_id), true, c.phase};
  }
  Reply operator()(const AnswerHold& c) const {
    if (c.answer == "maybe") return Refused{Refusal::invalid_input, "hold 1 may be answered by: go, skip, cancel", {}};
    if (c.by == "late") return Refused{Refusal::already_decided, "hold 1 was decided before, by ann", {}};
    runbook::Hold hold;
    hold.id = c.hold_id;
    hold.kind = runbook::HoldKind::gate;
    hold.batch_id = c.batch_id;
    hold.answer = c.answer;
    hold.decided_by = c.by;
    hold.reason = c.reason;
    return HoldReply{hold, true};
  }
  // Nobody is on the queue "lonely", and never was.
  Reply operator()(const LookAtQueues& c) const {
    QueuesReply reply;
    for (const std::string& queue : c.queues)
      reply.queues.push_back({.queue = queue, .polled = queue != "lonely", .workers = 0, .last_poll = {}});
    return reply;
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
