#include "engine/feed.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/mutant.hpp"

namespace baton::engine {
namespace {

constexpr std::string_view runbooks_tenant = "default";  // the tables of runbooks know no tenants
constexpr std::string_view changed = "changed";          // more is not known of it than that

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
        .subject = Subject::Type::job, .tenant = rows[i]->tenant.value, .id = rows[i]->job_id.value, .what = changed};
    fill(change, *rows[i]);
    out.add(change);
  }
}

// A batch whose members or steps got on has changed counters; each of them would be too much to tell.
void add_batches(Changes& out, const runbook::Writes& writes) {
  if (MUTANT(feed_skips_batches)) return;
  const auto add = [&out](std::int64_t id, std::string_view what, const runbook::Batch* row = nullptr) {
    const std::string text = std::to_string(id);
    Change change{.subject = Subject::Type::batch, .tenant = runbooks_tenant, .id = text, .what = what};
    if (row) change.status = name(row->status), change.runbook_id = row->runbook_id;
    out.add(change);
  };
  for (const runbook::Batch& batch : writes.batches_new) add(batch.id, "created", &batch);
  for (const auto& update : writes.batches_changed) add(update.row.id, changed, &update.row);
  for (const runbook::BatchEvent& event : writes.events_new) add(event.batch_id, event.event_type);
  std::int64_t last = 0;
  for (const runbook::Count& count : writes.counts)
    if (std::exchange(last, count.batch_id) != count.batch_id) add(count.batch_id, "progress");
}

void add_runbooks(Changes& out, const runbook::Writes& writes) {
  const auto add = [&out](const runbook::Runbook& row, std::string_view what) {
    out.add({.subject = Subject::Type::runbook,
             .tenant = runbooks_tenant,
             .id = row.name,
             .what = what,
             .version = row.version,
             .runbook_id = row.id});
  };
  for (const runbook::Runbook& row : writes.runbooks_new) add(row, "published");
  for (const auto& update : writes.runbooks_changed) add(update.row, changed);
}

// The last event of a call led to the status that its row has now.
void add_calls(Changes& out, const call::Writes& writes) {
  std::vector<const call::Call*> rows;
  for (const auto* calls : {&writes.calls_new, &writes.calls_changed, &writes.calls_rebuilt})
    for (const call::Call& call : *calls) rows.push_back(&call);
  const auto key_of = [](const call::Call* call) {
    return std::pair<std::string_view, std::string_view>(call->service_call_id.value, call->tenant_id.value);
  };
  std::ranges::sort(rows, {}, key_of);
  for (const call::EventRow& event : writes.events_new) {
    if (MUTANT(feed_skips_calls) && event.event_type == call::EventType::started) continue;
    Change change{.subject = Subject::Type::call,
                  .tenant = event.tenant_id.value,
                  .id = event.service_call_id.value,
                  .what = name(event.event_type),
                  .version = event.version};
    const std::pair key(change.id, change.tenant);
    const auto row = std::ranges::lower_bound(rows, key, {}, key_of);
    if (row != rows.end() && key_of(*row) == key && (*row)->version == event.version)
      change.status = name((*row)->status);
    out.add(change);
  }
}

void add_queues(Changes& out, const WriteSet& writes) {
  using Key = std::pair<std::string_view, std::string_view>;  // tenant, queue
  std::set<Key> queues;
  Key last;
  const auto note = [&](Key key) {
    if (key == last || key.first.empty() || key.second.empty()) return;
    last = key;
    queues.insert(key);
  };
  for (const auto* nodes : {&writes.nodes_new, &writes.nodes_changed})
    for (const workflow::NodeState& node : *nodes)
      if (node.queue && node.task_id) note({node.tenant.value, *node.queue});
  const auto note_jobs = [&](const auto& added, const auto& updated) {
    const auto note_job = [&](const runbook::Execution& row) {
      if (row.job_id) note({runbooks_tenant, row.worker_id});
    };
    for (const auto& row : added) note_job(row);
    for (const auto& update : updated) note_job(update.row);
  };
  const runbook::Writes& books = writes.runbooks;
  note_jobs(books.steps_new, books.steps_changed);
  note_jobs(books.inits_new, books.inits_changed);
  note_jobs(books.cleanups_new, books.cleanups_changed);
  for (const auto& [tenant, queue] : queues)
    out.add({.subject = Subject::Type::queue, .tenant = tenant, .id = queue, .what = changed});
}

}  // namespace

Changes changes_of(const WriteSet& writes) {
  Changes out;
  add_jobs(out, writes);
  add_batches(out, writes.runbooks);
  add_runbooks(out, writes.runbooks);
  add_calls(out, writes.calls);
  add_queues(out, writes);
  for (const workflow::Workflow& row : writes.workflows_new)
    out.add({.subject = Subject::Type::workflow,
             .tenant = row.tenant.value,
             .id = row.workflow_id,
             .what = "published",
             .version = row.version});
  return out;
}

}  // namespace baton::engine
