#include "tests/simulation/feed_watch.hpp"

#include <algorithm>

#include "tests/simulation/world.hpp"

namespace baton::simulation {
namespace {

std::string subject(Subject::Type type, const std::string& id) { return std::string(name(type)) + " " + id; }

const std::string tenant_of_runbooks = "default";  // their rows know none

bool is_of_runbooks(Subject::Type type) { return type == Subject::Type::batch || type == Subject::Type::runbook; }

void expect(bool truth, const std::string& what, std::int64_t number) {
  if (!truth) throw Violation{what + " (commit " + std::to_string(number) + ")"};
}

}  // namespace

FeedWatch::FeedWatch() {
  subscription_ = feed_.subscribe([this] { durable_when_told_.push_back(last_durable_); });
}

// Queues and definitions go by name, so two tenants may have one of the same name.
std::set<FeedWatch::Owned> FeedWatch::owned_rows(const WriteSet& writes) {
  using Type = Subject::Type;
  std::set<Owned> owned;
  const auto own = [&](Type type, const std::string& id, const std::string& tenant) {
    owned.emplace(subject(type, id), tenant);
  };
  for (const auto* rows : {&writes.jobs_new, &writes.jobs_changed})
    for (const auto& row : *rows) own(Type::job, row.job_id.value, row.tenant.value);
  for (const auto& row : writes.events_new) own(Type::job, row.job_id.value, row.tenant.value);
  for (const auto* rows : {&writes.nodes_new, &writes.nodes_changed})
    for (const auto& row : *rows)
      if (row.queue) own(Type::queue, *row.queue, row.tenant.value);
  for (const auto& row : writes.workflows_new) own(Type::workflow, row.workflow_id, row.tenant.value);
  for (const auto& row : writes.calls.events_new) own(Type::call, row.service_call_id.value, row.tenant_id.value);
  const auto own_pools = [&](const auto& added, const auto& updated) {
    for (const auto& row : added) own(Type::queue, row.worker_id, tenant_of_runbooks);
    for (const auto& update : updated) own(Type::queue, update.row.worker_id, tenant_of_runbooks);
  };
  own_pools(writes.runbooks.steps_new, writes.runbooks.steps_changed);
  own_pools(writes.runbooks.inits_new, writes.runbooks.inits_changed);
  own_pools(writes.runbooks.cleanups_new, writes.runbooks.cleanups_changed);
  return owned;
}

void FeedWatch::durable(const WriteSet& writes, std::int64_t number) {
  Commit commit;
  const auto wrote = [&](Subject::Type type, const std::string& id, std::string_view status) {
    commit.subjects.insert(subject(type, id));
    commit.statuses[subject(type, id)] = status;
  };
  for (const auto* rows : {&writes.jobs_new, &writes.jobs_changed})
    for (const auto& row : *rows) wrote(Subject::Type::job, row.job_id.value, name(row.status));
  for (const auto& row : writes.runbooks.batches_new) wrote(Subject::Type::batch, std::to_string(row.id), name(row.status));
  for (const auto& [before, row] : writes.runbooks.batches_changed)
    wrote(Subject::Type::batch, std::to_string(row.id), name(row.status));
  // A row that was lost and is written anew changes nothing, unless there is an event too.
  for (const auto* rows : {&writes.calls.calls_new, &writes.calls.calls_changed, &writes.calls.calls_rebuilt})
    for (const auto& row : *rows)
      if (std::ranges::find(writes.calls.events_new, row.service_call_id, &call::EventRow::service_call_id) !=
          writes.calls.events_new.end())
        wrote(Subject::Type::call, row.service_call_id.value, name(row.status));
  for (const auto& row : writes.events_new) commit.subjects.insert(subject(Subject::Type::job, row.job_id.value));
  for (const auto& row : writes.runbooks.events_new)
    commit.subjects.insert(subject(Subject::Type::batch, std::to_string(row.batch_id)));
  for (const auto& row : writes.runbooks.counts)
    commit.subjects.insert(subject(Subject::Type::batch, std::to_string(row.batch_id)));
  for (const auto& row : writes.calls.events_new)
    commit.subjects.insert(subject(Subject::Type::call, row.service_call_id.value));
  commit.events = writes.events_new.size() + writes.calls.events_new.size();
  last_durable_ = number;
  owned_[number] = owned_rows(writes);
  if (!commit.subjects.empty()) untold_[number] = std::move(commit);
}

FeedWatch::Commit FeedWatch::read(const CommitRecord& record) const {
  Commit told;
  const auto owned = owned_.find(record.number);
  Changes::Reader reader(record.changes);
  for (Change change; reader.next(change);) {
    const std::string about = subject(change.subject, std::string(change.id));
    const bool is_owned = owned != owned_.end() && owned->second.contains({about, std::string(change.tenant)});
    expect(is_of_runbooks(change.subject) ? change.tenant == tenant_of_runbooks : is_owned,
           "the feed names the tenant of what changed", record.number);
    const bool has_rows = change.subject == Subject::Type::job || change.subject == Subject::Type::batch || change.subject == Subject::Type::call;
    if (!has_rows) continue;
    told.subjects.insert(about);
    if (!change.status.empty()) told.statuses[about] = change.status;
    if (change.subject == Subject::Type::job && change.what != "changed") ++told.events;
    if (change.subject == Subject::Type::call) ++told.events;
  }
  return told;
}

void FeedWatch::check(const CommitRecord& record, std::int64_t durable_then) {
  expect(record.number > last_told_, "the feed tells commits in order, each once", record.number);
  expect(record.number <= durable_then, "the feed tells nothing that is not durable", record.number);
  last_told_ = record.number;
  const Commit told = read(record);
  if (told.subjects.empty()) return;  // queues and definitions alone
  const auto wrote = untold_.find(record.number);
  expect(wrote != untold_.end(), "the feed tells commits that happened", record.number);
  expect(told.subjects == wrote->second.subjects, "the feed names what a commit changed", record.number);
  expect(told.statuses == wrote->second.statuses, "the feed tells the statuses that were written", record.number);
  expect(told.events == wrote->second.events, "the feed tells each event of a job and of a call", record.number);
  untold_.erase(wrote);
}

void FeedWatch::check() {
  const auto records = feed_.after(last_told_);
  expect(records && records->size() == durable_when_told_.size(), "the feed keeps what is new", last_told_);
  for (std::size_t i = 0; i < records->size(); ++i) check(*(*records)[i], durable_when_told_[i]);
  durable_when_told_.clear();
  owned_.clear();
  if (!untold_.empty()) expect(false, "each commit that changed something is told", untold_.begin()->first);
}

}  // namespace baton::simulation
