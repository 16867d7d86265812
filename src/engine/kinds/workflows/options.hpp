// What workflows are set to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/workflow/machine/machine.hpp"

namespace baton::engine {

struct WorkflowsOptions {
  workflow::Policy policy;               // its short_lease is the engine's
  int chunks_max = 4;                    // steps of large fan-outs in one batch: others are to get their turn
  std::size_t expansions_max = 64;       // sources of fan-outs that are kept between their chunks
  std::size_t hot_bytes_max = 64 << 20;  // of jobs that are kept in memory between batches
  std::size_t events_max = 50'000;       // of one batch, about; a commit can number a million
  // What the expressions of one batch may cost, about 20 to 50 ns a step; one of them may exceed it. What a
  // tenant may spend in every batch before others go first.
  std::int64_t steps_max = 500'000, steps_share = 50'000;
  // Why what waits in a queue of that tenant cannot be published through the external broker, for people who ask; none: nothing is. Called by the engine.
  std::function<std::optional<std::string>(const workflow::Tenant& tenant, const std::string& queue)> trouble_of_queue;
};

}  // namespace baton::engine
