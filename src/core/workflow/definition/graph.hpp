// From the names in `next`, `branches` and `depends_on` to the edges of a definition, and what must hold of
// the whole graph: one start, an end, every path from the start to an end, no way back, and every expression
// looks only at what is there by then. Private to the parser.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "core/workflow/definition/definition.hpp"

namespace baton::workflow {

struct Reference {
  std::string_view name;
  Position at;
};

// An expression of a node, and where it stands.
struct Place {
  yaml::Written written;
  expression::References references;
  bool sees_item = false;  // it is evaluated for each item of a fan-out
  std::string what;        // "'params' of node 'a'"
};

// What the document says of a node's place in the graph.
struct Sketch {
  Position at;                   // of the node's name
  std::optional<NodeType> type;  // none: missing or unknown, and reported
  bool unsupported = false;      // of a type that this version lacks
  bool edges_known = true;       // false: `next` or `depends_on` could not be read, and that is reported
  std::vector<Reference> next;
  std::vector<std::vector<Reference>> branches;  // beside the node's
  std::vector<Reference> depends_on;
  std::vector<Place> places;
};

// Fills `next`, `incoming`, `start`, `by_id` and all that follows from them of a definition whose nodes have
// been read; sketches[i]
// is of nodes[i], and `nodes_at` is where a node that is missing is missed. Every step is linear in the
// edges, none recursive.
void connect(Definition& definition, const std::vector<Sketch>& sketches, Position nodes_at,
             Diagnostics& diagnostics);

}  // namespace baton::workflow
