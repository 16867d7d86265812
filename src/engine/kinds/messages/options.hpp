// What is there from the start.
#pragma once

#include <string>

namespace baton::engine {

// The topics that baton itself sends to and receives from; every tenant has them.
struct MessagesOptions {
  std::string events_topic = "orchestrator-events";
  std::string jobs_topic = "worker-jobs";
  std::string results_topic = "worker-results";
  std::string events_subscription = "orchestrator";
  std::string results_subscription = "orchestrator";
  std::size_t entities_max = 10'000;  // of a tenant
};

}  // namespace baton::engine
