#include "engine/kinds/kinds.hpp"

#include "engine/kinds/calls/calls_kind.hpp"
#include "engine/kinds/messages/messages_kind.hpp"
#include "engine/kinds/runbooks/runbooks.hpp"
#include "engine/kinds/workflows/workflows.hpp"

namespace baton::engine {

Kinds make_kinds(const KindsOptions& options, metrics::Registry* metrics) {
  Kinds kinds;
  kinds.push_back(std::make_unique<Workflows>(options.workflows, metrics));
  kinds.push_back(std::make_unique<Runbooks>(options.runbooks, metrics));
  kinds.push_back(std::make_unique<CallsKind>(options.calls));
  kinds.push_back(std::make_unique<MessagesKind>(options.messages, metrics));
  return kinds;
}

}  // namespace baton::engine
