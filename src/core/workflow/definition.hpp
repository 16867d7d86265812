// A workflow: a graph of nodes, published in versions that never change. Immutable once parsed, shared by all
// its jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/ids.hpp"
#include "base/json.hpp"

namespace baton::workflow {

using NodeIndex = std::uint32_t;

enum class NodeType { start, end, task };
enum class Backoff { fixed, exponential };
enum class OnFailure { fail_fast, finish_running };
enum class Join { all_of, any_of };
enum class InputType { any, string, integer, number, boolean, array, object };

struct RetryPolicy {
  std::int32_t attempts_max = 1;  // the first one included
  Backoff backoff = Backoff::exponential;
  Duration initial_delay = std::chrono::seconds{5};
  Duration delay_max = std::chrono::seconds{300};
  // The wait before attempt `attempt` (1 is the first retry).
  [[nodiscard]] Duration delay_before(std::int32_t attempt) const;
};

struct Node {
  std::string id;
  NodeType type = NodeType::task;
  std::string handler;
  std::string queue;    // empty: the definition names none
  OptionalJson params;  // none: the job's input
  std::chrono::seconds timeout{300};
  RetryPolicy retry;
  std::vector<NodeIndex> next;    // outgoing edges, without duplicates
  std::int32_t dependencies = 0;  // incoming edges
  Join join = Join::all_of;
};

struct Input {
  std::string name;
  InputType type = InputType::any;
  bool required = false;
  OptionalJson default_value;
};

struct Definition {
  std::string workflow_id;
  std::int32_t version = 0;  // 0: the document names none, publishing gives the next one
  std::string description;
  OnFailure on_failure = OnFailure::fail_fast;
  std::vector<Input> inputs;  // none declared: any object is accepted
  std::vector<Node> nodes;    // in the order of the document
  NodeIndex start = 0;
  std::vector<NodeIndex> by_id;  // the nodes sorted by id; parse() fills it, find() can do without

  [[nodiscard]] std::optional<NodeIndex> find(std::string_view node_id) const;
};

struct Parsed {
  std::shared_ptr<const Definition> definition;  // null when there is any error
  std::vector<Diagnostic> diagnostics;           // errors and warnings, by position
};

// publish: every rule. stored: a text that an earlier version has accepted; rules that forbid what it could
// do without are only warnings.
enum class Strictness { publish, stored };

// Reads a definition and checks it whole: all errors at once. Pure.
[[nodiscard]] Parsed parse(std::string_view yaml, Strictness strictness = Strictness::publish);

}  // namespace baton::workflow
