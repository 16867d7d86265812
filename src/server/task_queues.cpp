#include "server/task_queues.hpp"

#include <algorithm>
#include <optional>

#include "core/workflow/definition/definition.hpp"

namespace baton {
namespace {

constexpr std::size_t page = 100;
constexpr std::int32_t versions_max = 50;  // that are looked at of one workflow, the latest first

using Names = TaskQueues::Names;

// Most definitions have none of the names in their text, and need not be parsed.
void find_in(const std::string& definition, const Names& names, Names& found) {
  const auto is_new = [&](const std::string& name) { return !found.contains(name) && definition.contains(name); };
  if (std::ranges::none_of(names, is_new)) return;
  const auto parsed = workflow::parse(definition, workflow::Strictness::stored);
  if (!parsed.definition) return;
  for (const workflow::Node& node : parsed.definition->nodes)
    if (names.contains(node.queue)) found.insert(node.queue);
}

Result<> find_in(Reads& reads, const Tenant& tenant, const WorkflowSummary& summary, const Names& names, Names& found) {
  for (std::int32_t version = summary.version; version > std::max(summary.version - versions_max, 0); --version) {
    TRY_ASSIGN(const auto workflow, reads.workflow(tenant, summary.workflow_id, version));
    if (workflow) find_in(workflow->definition, names, found);
    if (found.size() == names.size()) break;
  }
  return {};
}

}  // namespace

Result<Names> task_queues_among(Reads& reads, const Tenant& tenant, const Names& names) {
  Names found;
  if (const std::string usual(workflow::default_queue); names.contains(usual)) found.insert(usual);
  std::string after;
  while (found.size() < names.size()) {
    TRY_ASSIGN(const auto summaries, reads.workflows(tenant, after, page));
    for (const WorkflowSummary& summary : summaries) {
      TRY(find_in(reads, tenant, summary, names, found));
      if (found.size() == names.size()) break;
    }
    if (summaries.size() < page) break;
    after = summaries.back().workflow_id;
  }
  return found;
}

// A clock that was set back makes no answer last.
bool TaskQueues::is_fresh(const Answer& answer) const {
  const Time now = clock_.now();
  return now >= answer.at && now - answer.at < remembered;
}

void TaskQueues::ask(const Tenant& tenant, const std::string& queue, Found found) {
  std::optional<bool> known;
  {
    const std::lock_guard lock(mutex_);
    OfTenant& of = tenants_[tenant];
    const auto answer = of.known.find(queue);
    if (answer != of.known.end() && is_fresh(answer->second)) known = answer->second.is_queue;
    else of.waiting[queue].push_back(std::move(found));
  }
  if (known) return found(*known);
  look(tenant);
}

// Outside of the mutex, because it may be answered at once.
void TaskQueues::look(const Tenant& tenant) {
  Names names;
  {
    const std::lock_guard lock(mutex_);
    OfTenant& of = tenants_[tenant];
    if (of.is_looking || of.waiting.empty()) return;
    of.is_looking = true;
    for (const auto& [name, waiting] : of.waiting) names.insert(name);
  }
  look_(tenant, names, [this, tenant, names](const Result<Names>& found) { looked(tenant, names, found); });
}

void TaskQueues::looked(const Tenant& tenant, const Names& names, const Result<Names>& found) {
  std::map<std::string, std::vector<Found>> answered;
  {
    const std::lock_guard lock(mutex_);
    OfTenant& of = tenants_[tenant];
    of.is_looking = false;
    std::erase_if(of.known, [&](const auto& each) { return !is_fresh(each.second); });
    for (const std::string& name : names) {
      if (found) of.known[name] = {found->contains(name), clock_.now()};
      answered.insert(of.waiting.extract(name));
    }
  }
  for (const auto& [name, waiting] : answered)
    for (const Found& each : waiting) found ? each(found->contains(name)) : each(std::unexpected(found.error()));
  look(tenant);
}

}  // namespace baton
