#include <array>

#include "ports/commands.hpp"
#include "ports/reads.hpp"
#include "ports/store.hpp"

namespace baton {
namespace {

constexpr std::array<std::string_view, 4> roles = {"admin", "operator", "viewer", "worker"};
static_assert(roles.size() == static_cast<std::size_t>(Role::worker) + 1);

constexpr std::array<std::string_view, 33> refusals = {"workflow_not_found",
                                                       "job_not_found",
                                                       "task_not_found",
                                                       "invalid_input",
                                                       "idempotency_key_reused",
                                                       "version_exists",
                                                       "stale_result",
                                                       "job_ended",
                                                       "node_not_found",
                                                       "job_not_failed",
                                                       "not_waiting",
                                                       "not_dead",
                                                       "runbook_not_found",
                                                       "batch_not_found",
                                                       "phase_not_found",
                                                       "member_not_found",
                                                       "step_not_found",
                                                       "call_not_found",
                                                       "entity_not_found",
                                                       "entity_exists",
                                                       "message_not_found",
                                                       "lock_lost",
                                                       "quota_exceeded",
                                                       "row_unreadable",
                                                       "not_possible",
                                                       "runbook_replaced",
                                                       "open_batches",
                                                       "hold_not_found",
                                                       "already_decided",
                                                       "overloaded",
                                                       "stopping",
                                                       "store_unavailable",
                                                       "store_full"};
static_assert(refusals.size() == static_cast<std::size_t>(Refusal::store_full) + 1);

}  // namespace

std::string_view name(Refusal refusal) { return refusals[static_cast<std::size_t>(refusal)]; }

std::string_view name(Role role) { return roles[static_cast<std::size_t>(role)]; }

std::optional<Role> role(std::string_view name) {
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

WaitingTask waiting_task(NodeKey key, std::int32_t priority, Time dispatched_at) {
  return {.rank = -priority,
          .dispatched_at = dispatched_at,
          .type = Subject::Type::job,
          .id = std::move(key.job_id.value),
          .number = key.item_index,
          .part = std::move(key.node_id)};
}

NodeKey node_of(const WaitingTask& task) {
  return {{task.id}, static_cast<std::int32_t>(task.number), task.part};
}

WaitingTask waiting_task(runbook::Ref job, Time queued_at) {
  return {.dispatched_at = queued_at, .type = subject_type(job.type), .number = job.id};
}

WaitingTask waiting_task(const message::MessageKey& key) {
  return {.type = Subject::Type::message, .id = std::to_string(key.entity_id), .number = key.sequence_number, .part = std::string(message::name(key.lane))};
}

message::MessageKey message_of(const WaitingTask& task) {
  return {std::stoll(task.id), message::lane(task.part).value_or(message::Lane::active), task.number};
}

runbook::Ref ref_of(const WaitingTask& task) { return {row_type(task.type), task.number}; }

bool WriteSet::empty() const {
  return jobs_new.empty() && jobs_changed.empty() && nodes_new.empty() && nodes_changed.empty() &&
         task_results_new.empty() && events_new.empty() && timers_new.empty() && timers_gone.empty() &&
         workflows_new.empty() && idempotency_keys_new.empty() && tags_new.empty() && logs_new.empty() &&
         runbooks.empty() && calls.empty() && messages.empty();
}

std::size_t WriteSet::rows() const {
  const auto count = [](const auto&... lists) { return (lists.size() + ...); };
  return count(jobs_new, jobs_changed, nodes_new, nodes_changed, task_results_new, events_new, timers_new, timers_gone,
               workflows_new, idempotency_keys_new, tags_new, logs_new, calls.calls_new, calls.calls_changed,
               calls.calls_rebuilt, calls.events_new, calls.requests_new, calls.tags_new, calls.keys_new) +
         messages.rows();
}

std::optional<Time> WriteSet::earliest_timer() const {
  std::optional<Time> earliest;
  for (const Timer& timer : timers_new) earliest = earliest ? std::min(*earliest, timer.due) : timer.due;
  return earliest;
}

bool runbook::Writes::empty() const {
  return runbooks_new.empty() && runbooks_changed.empty() && batches_new.empty() && batches_changed.empty() &&
         members_new.empty() && members_changed.empty() && phases_new.empty() && phases_changed.empty() &&
         steps_new.empty() && steps_changed.empty() && inits_new.empty() && inits_changed.empty() &&
         cleanups_new.empty() && cleanups_changed.empty() && holds_new.empty() && holds_changed.empty() &&
         counts.empty() && events_new.empty();
}

}  // namespace baton
