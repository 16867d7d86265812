// "Why is it not running?": one answer for a job and for each node of it that waits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/workflow/machine/run.hpp"

namespace baton::workflow {

// One node that waits, and what for.
struct WaitingNode {
  std::string node_id;
  NodeStatus status{};
  std::string_view reason;  // a word for programs: "no_worker"
  std::string message;      // for people
  std::optional<Time> since, until;
  std::optional<std::string> queue;
  std::vector<std::string> held_by;  // workers or nodes
};

struct Explanation {
  Job job;  // without documents
  std::string_view reason;
  std::string summary;
  std::vector<WaitingNode> waiting;
};

// Who works on a queue.
struct QueueReport {
  std::size_t workers = 0;  // seen on it within the last minute
  std::size_t running = 0;  // tasks that those are running
  std::optional<Time> last_poll;
};
using LookAtQueue = std::function<QueueReport(const Tenant& tenant, const std::string& queue)>;

// The job's nodes are loaded, and of large fan-outs some children.
[[nodiscard]] Explanation explain(Run& run, const LookAtQueue& look_at_queue, Time now);

}  // namespace baton::workflow
