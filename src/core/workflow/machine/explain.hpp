// "Why is it not running?": one answer for a job and for each node of it that waits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/delivery/delivery.hpp"
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

using LookAtQueue = std::function<delivery::QueueWorkers(const Tenant& tenant, const std::string& queue)>;

// The job's nodes are loaded, and of large fan-outs some children.
[[nodiscard]] Explanation explain(Run& run, const LookAtQueue& look_at_queue, Time now);

}  // namespace baton::workflow
