#include "engine/kinds/workflows/definitions.hpp"

namespace baton::engine {

const KnownDefinition* Definitions::find(const WorkflowKey& key) const {
  const auto it = known_.find(key);
  return it == known_.end() ? nullptr : &it->second;
}

bool Definitions::add(const workflow::Workflow& row, bool latest) {
  WorkflowKey key{row.tenant, row.workflow_id, row.version};
  const KnownDefinition* known = find(key);
  KnownDefinition entry;
  if (known) {
    entry = *known;
  } else {
    const auto parsed = workflow::parse(row.definition, workflow::Strictness::stored);
    if (!parsed.definition) return false;
    auto definition = std::make_shared<workflow::Definition>(*parsed.definition);
    definition->version = row.version;
    entry = {std::move(definition), row.definition};
    known_[key] = entry;
  }
  if (latest) {
    key.version = 0;
    known_[key] = std::move(entry);
  }
  return true;
}

void Definitions::trim() {
  if (known_.size() >= known_max) known_.clear();
}

}  // namespace baton::engine
