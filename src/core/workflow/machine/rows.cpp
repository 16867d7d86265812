#include "core/workflow/machine/rows.hpp"

#include <array>

namespace baton::workflow {
namespace {

// In the order of the enumerators, so that an enumerator is an index.
constexpr std::array<std::string_view, 5> job_statuses = {"PENDING", "RUNNING", "COMPLETED", "FAILED",
                                                          "CANCELLED"};
constexpr std::array<std::string_view, 8> node_statuses = {"PENDING",   "READY",  "DISPATCHED", "RUNNING",
                                                           "COMPLETED", "FAILED", "SKIPPED",    "CANCELLED"};
constexpr std::array<std::string_view, 19> event_types = {
    "job_created",        "job_started",    "job_completed", "job_failed", "job_cancelled",
    "job_paused",         "job_resumed",    "job_retried",   "node_ready", "node_dispatched",
    "node_started",       "node_completed", "node_failed",   "node_retry", "node_timeout",
    "node_lease_expired", "node_cancelled", "node_skipped",  "checkpoint"};

static_assert(job_statuses.size() == static_cast<std::size_t>(JobStatus::cancelled) + 1);
static_assert(node_statuses.size() == static_cast<std::size_t>(NodeStatus::cancelled) + 1);
static_assert(event_types.size() == static_cast<std::size_t>(EventType::checkpoint) + 1);

template <class Enum, std::size_t size>
std::optional<Enum> find(const std::array<std::string_view, size>& words, std::string_view word) {
  for (std::size_t i = 0; i < size; ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(JobStatus status) { return job_statuses[static_cast<std::size_t>(status)]; }
std::string_view name(NodeStatus status) { return node_statuses[static_cast<std::size_t>(status)]; }
std::string_view name(EventType type) { return event_types[static_cast<std::size_t>(type)]; }

std::optional<JobStatus> job_status(std::string_view name) { return find<JobStatus>(job_statuses, name); }
std::optional<NodeStatus> node_status(std::string_view name) { return find<NodeStatus>(node_statuses, name); }
std::optional<EventType> event_type(std::string_view name) { return find<EventType>(event_types, name); }

}  // namespace baton::workflow
