// What the feed is told of runbooks.
#include <string>
#include <utility>

#include "base/mutant.hpp"
#include "engine/kinds/changed_queues.hpp"
#include "engine/kinds/runbooks/transaction.hpp"

namespace baton::engine {
namespace {

// A batch whose members or steps got on has changed counters; each of them would be too much to tell.
void add_batches(Changes& out, const runbook::Writes& writes) {
  if (MUTANT(feed_skips_batches)) return;
  const auto add = [&out](std::int64_t id, std::string_view what, const runbook::Batch* row = nullptr) {
    const std::string text = std::to_string(id);
    Change change{.subject = Subject::Type::batch, .tenant = tenant_of_runbooks.value, .id = text, .what = what};
    if (row) change.status = name(row->status), change.runbook_id = row->runbook_id;
    out.add(change);
  };
  for (const runbook::Batch& batch : writes.batches_new) add(batch.id, "created", &batch);
  for (const auto& update : writes.batches_changed) add(update.row.id, "changed", &update.row);
  for (const runbook::BatchEvent& event : writes.events_new) add(event.batch_id, event.event_type);
  std::int64_t last = 0;
  for (const runbook::Count& count : writes.counts)
    if (std::exchange(last, count.batch_id) != count.batch_id) add(count.batch_id, "progress");
}

void add_runbooks(Changes& out, const runbook::Writes& writes) {
  const auto add = [&out](const runbook::Runbook& row, std::string_view what) {
    out.add({.subject = Subject::Type::runbook,
             .tenant = tenant_of_runbooks.value,
             .id = row.name,
             .what = what,
             .version = row.version,
             .runbook_id = row.id});
  };
  for (const runbook::Runbook& row : writes.runbooks_new) add(row, "published");
  for (const auto& update : writes.runbooks_changed) add(update.row, "changed");
}

// Not so a job whose lease is renewed or whose worker says something.
bool is_moved(const runbook::Execution& before, const runbook::Execution& after) {
  return before.job_state != after.job_state || before.job_id != after.job_id || before.status != after.status ||
         before.delivery_count != after.delivery_count || before.worker_id != after.worker_id;
}

void add_queues(Changes& out, const runbook::Writes& writes) {
  ChangedQueues queues;
  const auto note_jobs = [&](const auto& added, const auto& updated) {
    const auto note_job = [&](const runbook::Execution& row) {
      if (row.job_id) queues.note(tenant_of_runbooks.value, row.worker_id);
    };
    for (const auto& row : added) note_job(row);
    for (const auto& update : updated)
      if (is_moved(update.before, update.row)) note_job(update.row);
  };
  note_jobs(writes.steps_new, writes.steps_changed);
  note_jobs(writes.inits_new, writes.inits_changed);
  note_jobs(writes.cleanups_new, writes.cleanups_changed);
  queues.tell(out);
}

}  // namespace

void Runbooks::tell(const WriteSet& writes, Changes& out) const {
  add_batches(out, writes.runbooks);
  add_runbooks(out, writes.runbooks);
  add_queues(out, writes.runbooks);
}

}  // namespace baton::engine
