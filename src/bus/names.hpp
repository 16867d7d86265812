// Topics with what they are to baton. A name is the same in any case.
#pragma once

#include <string>

namespace baton::bus {

struct Names {
  std::string events_topic = "orchestrator-events";  // what schedulers say
  std::string jobs_topic = "worker-jobs";            // a subscription worker-{id} is the pool {id}
  std::string results_topic = "worker-results";      // what workers answer
};

}  // namespace baton::bus
