// What the feed is told of workflows.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutant.hpp"
#include "engine/kinds/changed_queues.hpp"
#include "engine/kinds/workflows/workflows.hpp"

namespace baton::engine {
namespace {

// Each event of a job; one whose row changed without an event is told as well, so that no status is missed.
void add_jobs(Changes& out, const WriteSet& writes) {
  std::vector<const workflow::Job*> rows;
  rows.reserve(writes.jobs_new.size() + writes.jobs_changed.size());
  for (const auto* jobs : {&writes.jobs_new, &writes.jobs_changed})
    for (const workflow::Job& job : *jobs) rows.push_back(&job);
  const auto id_of = [](const workflow::Job* job) -> const workflow::JobId& { return job->job_id; };
  std::ranges::sort(rows, {}, id_of);
  const auto fill = [](Change& change, const workflow::Job& job) {
    const bool is_old = MUTANT(feed_tells_old_status) && is_terminal(job.status);
    change.status = name(is_old ? workflow::JobStatus::running : job.status);
    change.workflow_id = job.workflow_id;
    change.version = job.workflow_version;
  };
  std::vector<bool> told(rows.size());
  const workflow::JobId* last = nullptr;
  auto row = rows.end();
  for (const workflow::Event& event : writes.events_new) {
    if (!last || *last != event.job_id) {
      last = &event.job_id;
      row = std::ranges::lower_bound(rows, event.job_id, {}, id_of);
      if (row != rows.end() && (*row)->job_id != event.job_id) row = rows.end();
    }
    Change change{.subject = Subject::Type::job,
                  .tenant = event.tenant.value,
                  .id = event.job_id.value,
                  .what = name(event.event_type)};
    if (event.node_id) change.node = *event.node_id;
    if (row != rows.end()) {
      fill(change, **row);
      told[static_cast<std::size_t>(row - rows.begin())] = true;
    }
    out.add(change);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (told[i]) continue;
    Change change{
        .subject = Subject::Type::job, .tenant = rows[i]->tenant.value, .id = rows[i]->job_id.value, .what = "changed"};
    fill(change, *rows[i]);
    out.add(change);
  }
}

// A task that runs is written also when its lease is renewed or its worker says something of it. What is handed out has
// an event.
void add_queues(Changes& out, const WriteSet& writes) {
  std::set<std::pair<std::string_view, std::string_view>> handed_out;
  for (const workflow::Event& event : writes.events_new)
    if (event.event_type == workflow::EventType::node_started && event.node_id)
      handed_out.emplace(event.job_id.value, *event.node_id);
  ChangedQueues queues;
  for (const auto* nodes : {&writes.nodes_new, &writes.nodes_changed})
    for (const workflow::NodeState& node : *nodes) {
      if (!node.queue || !node.task_id) continue;
      const bool is_worked_on = node.status == workflow::NodeStatus::running;
      if (!is_worked_on || handed_out.contains({node.job_id.value, node.node_id}))
        queues.note(node.tenant.value, *node.queue);
    }
  queues.tell(out);
}

}  // namespace

void Workflows::tell(const WriteSet& writes, Changes& out) const {
  add_jobs(out, writes);
  add_queues(out, writes);
  for (const workflow::Workflow& row : writes.workflows_new)
    out.add({.subject = Subject::Type::workflow,
             .tenant = row.tenant.value,
             .id = row.workflow_id,
             .what = "published",
             .version = row.version});
}

}  // namespace baton::engine
