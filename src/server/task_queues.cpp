#include "server/task_queues.hpp"

#include <algorithm>

#include "core/workflow/definition/definition.hpp"

namespace baton {
namespace {

constexpr std::size_t page = 100;
constexpr std::int32_t versions_max = 50;  // that are looked at of one workflow, the latest first

bool names_queue(const std::string& definition, const std::string& queue) {
  if (definition.find(queue) == definition.npos) return false;
  const auto parsed = workflow::parse(definition, workflow::Strictness::stored);
  return parsed.definition && std::ranges::any_of(parsed.definition->nodes, [&](const workflow::Node& node) { return node.queue == queue; });
}

Result<bool> names_queue(Reads& reads, const Tenant& tenant, const WorkflowSummary& summary, const std::string& queue) {
  for (std::int32_t version = summary.version; version > std::max(summary.version - versions_max, 0); --version) {
    TRY_ASSIGN(const auto workflow, reads.workflow(tenant, summary.workflow_id, version));
    if (workflow && names_queue(workflow->definition, queue)) return true;
  }
  return false;
}

}  // namespace

Result<bool> has_task_queue(Reads& reads, const Tenant& tenant, const std::string& queue) {
  if (queue == workflow::default_queue) return true;
  std::string after;
  for (;;) {
    TRY_ASSIGN(const auto summaries, reads.workflows(tenant, after, page));
    for (const WorkflowSummary& summary : summaries) {
      TRY_ASSIGN(const bool is_named, names_queue(reads, tenant, summary, queue));
      if (is_named) return true;
    }
    if (summaries.size() < page) return false;
    after = summaries.back().workflow_id;
  }
}

}  // namespace baton
