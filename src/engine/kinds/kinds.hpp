// The kinds of work that this engine knows: a new one is registered here, with what it is set to.
#pragma once

#include "engine/kind.hpp"
#include "engine/kinds/calls/options.hpp"
#include "engine/kinds/messages/options.hpp"
#include "engine/kinds/runbooks/options.hpp"
#include "engine/kinds/workflows/options.hpp"

namespace baton::engine {

struct KindsOptions {
  WorkflowsOptions workflows;
  RunbooksOptions runbooks;
  CallsOptions calls;
  MessagesOptions messages;
};

// Each registers what it counts; without a registry nothing is counted.
[[nodiscard]] Kinds make_kinds(const KindsOptions& options = {}, metrics::Registry* metrics = nullptr);

}  // namespace baton::engine
