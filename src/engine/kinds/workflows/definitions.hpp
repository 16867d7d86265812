// Parsed definitions by version. A published version never changes and only the writer publishes, so what is
// here is true. Bounded: when full it starts anew.
#pragma once

#include <map>
#include <memory>

#include "core/workflow/definition/definition.hpp"
#include "ports/store.hpp"

namespace baton::engine {

struct KnownDefinition {
  std::shared_ptr<const workflow::Definition> definition;
  std::string text;
};

class Definitions {
 public:
  // version 0: the latest that is known
  [[nodiscard]] const KnownDefinition* find(const WorkflowKey& key) const;
  // Parses a stored row; `latest` when the store was asked for the latest. False: this version of the program
  // cannot read it.
  [[nodiscard]] bool add(const workflow::Workflow& row, bool latest);
  // Between batches: makes room.
  void trim();
  void clear() { known_.clear(); }

 private:
  static constexpr std::size_t known_max = 2'000;
  std::map<WorkflowKey, KnownDefinition> known_;
};

}  // namespace baton::engine
