#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <ranges>

#include "core/workflow/definition/definition.hpp"
#include "store/memory/reads.hpp"

namespace baton::store {
namespace {

using namespace workflow;
using memory::at_most;

constexpr std::array statuses = {JobStatus::pending, JobStatus::running, JobStatus::completed,
                                 JobStatus::failed, JobStatus::cancelled};

template <class Row>
std::optional<Row> copy_of(const Row* row) {
  return row == nullptr ? std::nullopt : std::optional<Row>(*row);
}

template <class Row>
std::vector<Row> copies_of(auto&& rows) {
  std::vector<Row> out;
  for (const Row* row : rows) out.push_back(*row);
  return out;
}

Job without_documents(Job job) {
  job.input_data = {};
  job.result_data.reset();
  return job;
}

}  // namespace

const Workflow* memory::WorkflowTables::latest_workflow(const Tenant& tenant,
                                                        const std::string& workflow_id) const {
  const auto behind =
      workflows.upper_bound({tenant, workflow_id, std::numeric_limits<std::int32_t>::max()});
  if (behind == workflows.begin()) return nullptr;
  const Workflow& last = std::prev(behind)->second;
  return last.tenant == tenant && last.workflow_id == workflow_id ? &last : nullptr;
}

Result<std::optional<Job>> MemoryReads::job(const Tenant& tenant, const JobId& id) {
  const auto reading = lock();
  const Job* found = database_.jobs.get(id);
  return copy_of(found != nullptr && found->tenant == tenant ? found : nullptr);
}

Result<bool> MemoryReads::has_job(const Tenant& tenant, const JobId& id) {
  const auto reading = lock();
  const Job* found = database_.jobs.get(id);
  return found != nullptr && found->tenant == tenant;
}

Result<std::vector<NodeState>> MemoryReads::nodes(const JobId& id, std::size_t limit) {
  const auto reading = lock();
  std::vector<NodeState> found;
  for (auto at = database_.nodes.lower_bound({id, no_item, ""}); at != database_.nodes.end(); ++at) {
    if (at->first.job_id != id || at->first.item_index != no_item || found.size() >= limit) break;
    found.push_back(at->second);
  }
  return found;
}

// A fan-out's children have no gaps, so a page is a range of the key.
Result<std::vector<NodeState>> MemoryReads::items(const JobId& id, const std::string& fan_out,
                                                  std::int32_t after, std::size_t limit) {
  const auto reading = lock();
  std::vector<NodeState> found;
  for (std::int32_t item = std::max(after, no_item) + 1; found.size() < limit; ++item) {
    const NodeState* child = database_.nodes.get({id, item, item_name(fan_out, item)});
    if (child == nullptr) break;
    found.push_back(*child);
  }
  return found;
}

Result<std::optional<NodeState>> MemoryReads::node(const JobId& id, const std::string& node_id) {
  const auto reading = lock();
  const NodeState* found = database_.nodes.get({id, no_item, node_id});
  const auto child = parse_item_name(node_id);
  if (found == nullptr && child) found = database_.nodes.get({id, child->item, node_id});
  return copy_of(found);
}

Result<std::vector<LogLine>> MemoryReads::logs(const JobId& id, const std::string& node_id,
                                               std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  std::vector<LogLine> found;
  for (auto at = database_.logs.upper_bound({id, node_id, after}); at != database_.logs.end(); ++at) {
    if (at->second.job_id != id || at->second.node_id != node_id || found.size() >= limit) break;
    found.push_back(at->second);
  }
  return found;
}

Result<std::vector<NodeState>> MemoryReads::dead_letters(const Tenant& tenant,
                                                         const std::optional<NodeCursor>& after,
                                                         std::size_t limit) {
  const auto reading = lock();
  const NodeCursor from = after.value_or(NodeCursor{.item_index = no_item});
  return copies_of<NodeState>(database_.nodes.after<memory::NodesDead>(
                                  std::tie(tenant), from.at, from.job_id, from.item_index, from.node_id) |
                              at_most(limit));
}

Result<std::map<std::string, QueueCounts>> MemoryReads::queue_counts(const Tenant& tenant, const std::vector<std::string>& queues, std::size_t limit) {
  const auto reading = lock();
  std::map<std::string, QueueCounts> counts;
  for (const std::string& queue : queues) {
    QueueCounts& of = counts[queue];
    const auto add = [&](auto&& rows) {
      const auto n = static_cast<std::size_t>(std::ranges::distance(rows | at_most(limit)));
      of.waiting += static_cast<std::int64_t>(n);
      of.is_at_least |= n == limit;
    };
    add(database_.nodes.with<memory::NodesWaiting>(tenant, queue));
    if (tenant.value != "default") continue;
    add(database_.runbooks.steps.with<memory::JobsWaiting<runbook::StepExecution>>(queue));
    add(database_.runbooks.inits.with<memory::JobsWaiting<runbook::InitExecution>>(queue));
    add(database_.runbooks.cleanups.with<memory::JobsWaiting<runbook::CleanupExecution>>(queue));
  }
  const auto add_dead = [&](auto&& rows, auto&& queue_of) {
    std::size_t n = 0;
    for (const auto* row : rows | at_most(limit)) {
      ++n;
      if (const auto found = counts.find(queue_of(*row)); found != counts.end()) ++found->second.dead;
    }
    if (n == limit)
      for (auto& [queue, of] : counts) of.is_at_least = true;
  };
  add_dead(database_.nodes.after<memory::NodesDead>(std::tie(tenant), Time::min(), JobId{}, no_item, std::string{}),
           [](const NodeState& node) { return node.queue.value_or(""); });
  if (tenant.value != "default") return counts;
  const auto pool_of = [](const runbook::Execution& row) { return row.worker_id; };
  add_dead(database_.runbooks.steps.after<memory::JobsDead<runbook::StepExecution>>(std::tuple<>{}, Time::min(), std::int64_t{0}), pool_of);
  add_dead(database_.runbooks.inits.after<memory::JobsDead<runbook::InitExecution>>(std::tuple<>{}, Time::min(), std::int64_t{0}), pool_of);
  add_dead(database_.runbooks.cleanups.after<memory::JobsDead<runbook::CleanupExecution>>(std::tuple<>{}, Time::min(), std::int64_t{0}), pool_of);
  return counts;
}

Result<std::vector<NodeState>> MemoryReads::approvals(const Tenant& tenant, std::size_t limit) {
  const auto reading = lock();
  // A task of a queue that an earlier version did not forbid has an id.
  const auto waits_for_a_person = [](const NodeState* node) { return !node->task_id; };
  return copies_of<NodeState>(
      database_.nodes.with<memory::NodesWaiting>(tenant, std::string(approval_queue)) |
      std::views::filter(waits_for_a_person) | at_most(limit));
}

Result<std::vector<QueueBacklog>> MemoryReads::task_backlogs(const Tenant& tenant) {
  const auto reading = lock();
  std::vector<QueueBacklog> found;
  for (const NodeState* node : database_.nodes.with<memory::NodesWaiting>(tenant)) {
    if (*node->queue == approval_queue) continue;
    if (found.empty() || found.back().queue != *node->queue) found.push_back({.queue = *node->queue});
    QueueBacklog& backlog = found.back();
    backlog.waiting = std::min(backlog.waiting + 1, backlog_max);
    backlog.since = std::min(backlog.since.value_or(*node->dispatched_at), *node->dispatched_at);
  }
  return found;
}

// Each status is a range of its own in the order of the page; the page is their merge.
Result<JobPage> MemoryReads::jobs(const JobFilter& filter, const std::optional<JobId>& before,
                                  std::size_t limit) {
  const auto reading = lock();
  const auto fits = [&](const Job* job) {
    return (!filter.created_from || job->created_at >= *filter.created_from) &&
           (!filter.created_until || job->created_at < *filter.created_until) &&
           (!filter.tag || database_.tags.contains({filter.tenant, *filter.tag, job->job_id}));
  };
  std::vector<const Job*> found;
  const auto add = [&](auto range) {
    std::ranges::copy(range | std::views::reverse | std::views::filter(fits) | at_most(limit + 1),
                      std::back_inserter(found));
  };
  const JobId below = before.value_or(JobId{"\xff"});  // behind all ids
  for (const JobStatus status : statuses) {
    if (filter.status && status != *filter.status) continue;
    if (filter.workflow_id)
      add(database_.jobs.before<memory::JobsByWorkflow>(std::tie(filter.tenant, *filter.workflow_id, status),
                                                        below));
    else
      add(database_.jobs.before<memory::JobsByStatus>(std::tie(filter.tenant, status), below));
  }
  std::ranges::sort(found, std::greater{}, &Job::job_id);
  JobPage page;
  for (const Job* job : found | at_most(limit)) page.jobs.push_back(without_documents(*job));
  if (found.size() > limit && limit > 0) page.next_before = page.jobs.back().job_id;
  return page;
}

Result<std::vector<Event>> MemoryReads::timeline(const JobId& id, std::int64_t after, std::size_t limit) {
  const auto reading = lock();
  std::vector<Event> found;
  for (auto at = database_.events.upper_bound({id, after}); at != database_.events.end(); ++at) {
    if (at->second.job_id != id || found.size() >= limit) break;
    found.push_back(at->second);
  }
  return found;
}

Result<std::vector<WorkflowSummary>> MemoryReads::workflows(const Tenant& tenant, const std::string& after,
                                                            std::size_t limit) {
  const auto reading = lock();
  constexpr auto last_version = std::numeric_limits<std::int32_t>::max();
  std::vector<WorkflowSummary> found;
  auto at = database_.workflows.upper_bound({tenant, after, last_version});
  while (at != database_.workflows.end() && at->second.tenant == tenant && found.size() < limit) {
    const auto next = database_.workflows.upper_bound({tenant, at->second.workflow_id, last_version});
    const Workflow& latest = std::prev(next)->second;
    found.push_back({latest.workflow_id, latest.version, latest.published_at});
    at = next;
  }
  return found;
}

Result<std::optional<Workflow>> MemoryReads::workflow(const Tenant& tenant, const std::string& workflow_id,
                                                      std::int32_t version) {
  const auto reading = lock();
  return copy_of(version == 0 ? database_.latest_workflow(tenant, workflow_id)
                              : database_.workflows.get({tenant, workflow_id, version}));
}

Result<std::optional<Token>> MemoryReads::token_by_hash(const std::string& token_hash) {
  const auto reading = lock();
  const auto found = database_.tokens.with<memory::TokensByHash>(token_hash);
  return copy_of(found.empty() ? nullptr : found.front());
}

Result<std::optional<Token>> MemoryReads::token_by_id(const std::string& token_id) {
  const auto reading = lock();
  return copy_of(database_.tokens.get(token_id));
}

Result<std::vector<Token>> MemoryReads::tokens() {
  const auto reading = lock();
  std::vector<Token> found;
  for (const auto& [id, token] : database_.tokens) found.push_back(token);
  std::ranges::sort(found, {}, [](const Token& token) { return std::tie(token.created_at, token.token_id); });
  return found;
}

Result<> MemoryTokenAdmin::add(const Token& token) {
  const std::unique_lock writing(database_.mutex);
  if (database_.tokens.contains(token.token_id) ||
      !database_.tokens.with<memory::TokensByHash>(token.token_hash).empty())
    return fail(Code::conflict, "this token exists already");
  database_.tokens.insert(token);
  return {};
}

Result<bool> MemoryTokenAdmin::revoke(const std::string& token_id, Time now) {
  const std::unique_lock writing(database_.mutex);
  const Token* found = database_.tokens.get(token_id);
  if (found == nullptr || found->revoked_at) return false;
  database_.tokens.change(token_id, [&](Token& token) { token.revoked_at = now; });
  return true;
}

}  // namespace baton::store
