// Reads one node of a definition, whatever its type. Private to the parser.
#pragma once

#include "base/diagnostics.hpp"
#include "base/yaml.hpp"
#include "core/workflow/definition/definition.hpp"
#include "core/workflow/definition/graph.hpp"

namespace baton::workflow {

// Fills all of `node` but what follows from the graph as a whole, and says in `sketch` what that needs.
void read_node(const yaml::Entry& entry, Node& node, Sketch& sketch, Diagnostics& diagnostics);

}  // namespace baton::workflow
