// Topics with what they are to baton, and its own subscriptions of them. A name is the same in any case.
#pragma once

#include <string>

namespace baton::bus {

struct Names {
  std::string events_topic = "orchestrator-events";  // what schedulers say
  std::string jobs_topic = "worker-jobs";            // a subscription with the rule WorkerId = '{id}' is the pool {id}
  std::string results_topic = "worker-results";      // what workers answer
  std::string events_subscription = "orchestrator";
  std::string results_subscription = "orchestrator";
};

}  // namespace baton::bus
