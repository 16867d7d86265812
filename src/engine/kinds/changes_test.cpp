// What the feed is told of a commit.
#include <gtest/gtest.h>

#include "engine/kinds/kinds.hpp"

namespace baton::engine {
namespace {

std::vector<std::string> told(const WriteSet& writes) {
  Changes changes;
  for (const auto& kind : make_kinds()) kind->tell(writes, changes);
  Changes::Reader reader(changes);
  std::vector<std::string> lines;
  for (Change change; reader.next(change);) {
    std::string line(name(change.subject));
    for (const std::string_view part :
         {change.tenant, change.id, change.what, change.node, change.status, change.workflow_id})
      if (!part.empty()) line.append(" ").append(part);
    if (change.version) line += " v" + std::to_string(change.version);
    if (change.runbook_id) line += " r" + std::to_string(change.runbook_id);
    lines.push_back(std::move(line));
  }
  return lines;
}
using Lines = std::vector<std::string>;

TEST(ChangesOf, EventsOfAJobCarryItsStatusWhereItsRowIsWritten) {
  WriteSet writes;
  writes.jobs_changed.push_back({.job_id = {"b"},
                                 .tenant = {"t"},
                                 .workflow_id = "w",
                                 .workflow_version = 2,
                                 .status = workflow::JobStatus::completed});
  writes.events_new = {
      {.job_id = {"a"}, .event_type = workflow::EventType::node_started, .node_id = "n", .tenant = {"t"}},
      {.job_id = {"b"}, .event_type = workflow::EventType::node_completed, .node_id = "n", .tenant = {"t"}},
      {.job_id = {"b"}, .event_type = workflow::EventType::job_completed, .tenant = {"t"}},
      {.job_id = {"c"}, .event_type = workflow::EventType::node_ready, .node_id = "n", .tenant = {"u"}}};
  EXPECT_EQ(told(writes),
            (Lines{"job t a node_started n", "job t b node_completed n COMPLETED w v2",
                   "job t b job_completed COMPLETED w v2", "job u c node_ready n"}));
}

TEST(ChangesOf, AJobWithoutAnEventIsToldAllTheSame) {
  WriteSet writes;
  writes.jobs_changed.push_back({.job_id = {"b"}, .tenant = {"t"}, .workflow_id = "w", .workflow_version = 1});
  EXPECT_EQ(told(writes), Lines{"job t b changed PENDING w v1"});
}

TEST(ChangesOf, BatchesAreToldByTheirRowTheirEventsAndOnceForTheirCounters) {
  WriteSet writes;
  writes.runbooks.batches_new.push_back({.id = 7, .runbook_id = 3});
  writes.runbooks.batches_changed.push_back(
      {{}, {.id = 8, .runbook_id = 4, .status = runbook::BatchStatus::completed}});
  writes.runbooks.events_new.push_back({.batch_id = 8, .event_type = "batch_completed"});
  for (const int batch : {8, 8, 9}) writes.runbooks.counts.push_back({.batch_id = batch});
  EXPECT_EQ(told(writes), (Lines{"batch default 7 created detected r3", "batch default 8 changed completed r4",
                                 "batch default 8 batch_completed", "batch default 8 progress",
                                 "batch default 9 progress"}));
}

TEST(ChangesOf, ACallHasItsStatusWithItsLastEvent) {
  WriteSet writes;
  writes.calls.calls_new.push_back({.tenant_id = {"t"}, .service_call_id = {"c"}, .version = 2});
  writes.calls.events_new = {
      {.tenant_id = {"t"}, .service_call_id = {"c"}, .version = 1, .event_type = call::EventType::submitted},
      {.tenant_id = {"t"}, .service_call_id = {"c"}, .version = 2, .event_type = call::EventType::scheduled}};
  EXPECT_EQ(told(writes), (Lines{"call t c ServiceCallSubmitted v1", "call t c ServiceCallScheduled Scheduled v2"}));
}

// A lease that is renewed, a line of log and a note of progress are written, and nothing of the queue has changed.
TEST(ChangesOf, AQueueIsToldWhenATaskIsHandedOutAndNotWhileItIsWorkedOn) {
  WriteSet writes;
  writes.nodes_changed.push_back(
      {.job_id = {"j"}, .node_id = "n", .status = workflow::NodeStatus::running, .task_id = "n", .tenant = {"t"}, .queue = "q"});
  runbook::StepExecution step;
  step.worker_id = "movers", step.job_id = "step-1", step.job_state = runbook::JobState::leased, step.delivery_count = 1;
  runbook::StepExecution renewed = step;
  renewed.lease_until = from_millis(5);
  writes.runbooks.steps_changed = {{step, renewed}};
  writes.events_new = {
      {.job_id = {"j"}, .event_type = workflow::EventType::checkpoint, .node_id = "n", .tenant = {"t"}}};
  EXPECT_EQ(told(writes), Lines{"job t j checkpoint n"});
  writes.events_new = {
      {.job_id = {"i"}, .event_type = workflow::EventType::node_started, .node_id = "n", .tenant = {"t"}},
      {.job_id = {"j"}, .event_type = workflow::EventType::node_started, .node_id = "n", .tenant = {"t"}}};
  writes.runbooks.steps_changed.front().before.delivery_count = 0;
  EXPECT_EQ(told(writes), (Lines{"job t i node_started n", "job t j node_started n", "queue t q changed",
                                 "queue default movers changed"}));
}

TEST(ChangesOf, QueuesRunbooksAndWorkflowsAreToldOnce) {
  WriteSet writes;
  for (const std::string node : {"n1", "n2"})
    writes.nodes_changed.push_back({.job_id = {"j"}, .node_id = node, .task_id = node, .tenant = {"t"}, .queue = "q"});
  writes.nodes_changed.push_back({.job_id = {"j"}, .node_id = "b", .task_id = "b", .queue = "builtin"});
  runbook::StepExecution step;
  step.worker_id = "movers", step.job_id = "step-1";
  writes.runbooks.steps_changed = {{{}, step}, {{}, step}};
  writes.runbooks.runbooks_new.push_back({.id = 5, .name = "move", .version = 2});
  writes.workflows_new.push_back({.tenant = {"t"}, .workflow_id = "w", .version = 3});
  EXPECT_EQ(told(writes), (Lines{"queue t q changed", "workflow t w published v3",
                                 "runbook default move published v2 r5", "queue default movers changed"}));
}

}  // namespace
}  // namespace baton::engine
