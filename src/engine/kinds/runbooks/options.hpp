// What runbooks are set to, and who is told of them.
#pragma once

#include <cstddef>
#include <functional>

#include "core/runbook/machine/machine.hpp"

namespace baton::engine {

struct RunbooksOptions {
  runbook::Policy policy;          // its short_lease is the engine's
  std::size_t walks_max = 1;       // chunks of members in one batch
  std::size_t ids_block = 10'000;  // most ids of one table that are reserved at a time, unless more are needed
  bool adopt_jobs = false;         // at start: take over what another orchestrator has given out
  // After the commit, on the engine's thread: runbooks were published or changed, or removals approved, and a
  // scheduler should look.
  std::function<void()> changed;
};

}  // namespace baton::engine
