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
#include <vector>

#include "base/diagnostic.hpp"
#include "base/ids.hpp"
#include "base/json.hpp"
#include "core/delivery/delivery.hpp"
#include "core/template/document.hpp"
#include "core/workflow/machine/rows.hpp"

namespace baton::workflow {

using NodeIndex = std::uint32_t;

inline constexpr std::string_view default_queue = "functionapp-tasks";
inline constexpr std::string_view builtin_queue = "builtin";
inline constexpr std::string_view approval_queue = "approval";  // where approvals wait for a person
inline constexpr std::string_view message_queues = "$bus/";     // how the queues of messages begin (core/message/rows.hpp)
// The server's own: no worker may poll it, and no definition names it.
[[nodiscard]] constexpr bool is_reserved_queue(std::string_view name) {
  return name == builtin_queue || name == approval_queue || name.starts_with(message_queues);
}

// A node of a definition, or one child of a fan-out.
struct NodeRef {
  NodeIndex node = 0;
  std::int32_t item = no_item;
  [[nodiscard]] bool is_item() const { return item != no_item; }
  friend auto operator<=>(const NodeRef&, const NodeRef&) = default;
};

enum class NodeType { start, end, task, conditional, fan_out, fan_in, wait, approval };
using delivery::Backoff;
enum class OnFailure { fail_fast, finish_running };  // of a workflow: what becomes of the other nodes
enum class Consequence { fail, go_on };              // of a node or an item that has failed
enum class Join { all_of, any_of };
enum class Aggregation { collect, concat, sum, first, last };
enum class InputType { any, string, integer, number, boolean, array, object };

[[nodiscard]] std::string_view name(NodeType type);

struct RetryPolicy {
  std::int32_t attempts_max = 1;  // the first one included
  Backoff backoff = Backoff::exponential;
  Duration initial_delay = std::chrono::seconds{5};
  Duration delay_max = std::chrono::seconds{300};
  // The wait before attempt `attempt` (1 is the first retry).
  [[nodiscard]] Duration delay_before(std::int32_t attempt) const;
};

// One way out of a conditional. The first whose condition holds is taken, else the default.
struct Branch {
  std::string name;
  std::optional<expression::Template> condition;  // none: only as the default
  bool is_default = false;
  std::vector<NodeIndex> next;
};

struct Node {
  std::string id;
  NodeType type = NodeType::task;
  std::vector<NodeIndex> next;      // outgoing edges, without duplicates; of a conditional: of all branches
  std::vector<NodeIndex> incoming;  // the nodes whose `next` has this one
  Join join = Join::all_of;
  Consequence on_failure = Consequence::fail;

  // task, and the task of each item of a fan_out
  std::string handler;
  std::string queue;                           // empty: the definition names none
  std::optional<expression::Document> params;  // none: the job's input
  std::chrono::seconds timeout{300};           // of an approval: zero waits for ever
  RetryPolicy retry;

  // conditional
  std::vector<Branch> branches;

  // fan_out
  std::optional<expression::Template> source;
  std::int32_t parallel_max = 0;  // 0: no limit
  Consequence on_item_failure = Consequence::fail;

  // fan_in
  Aggregation aggregation = Aggregation::collect;
  std::string field;  // of each item's output; empty: the output itself

  // wait: one of the two
  std::optional<expression::Template> duration, until;

  // approval
  std::optional<expression::Template> message;
  Consequence on_reject = Consequence::fail;
  bool approved_by_timeout = false;

  // What its own expressions look at.
  std::vector<NodeIndex> reads;
  bool reads_input = false;

  // What deciding about its completion is likely to touch, so that it can be loaded in one go. Only a hint:
  // what is missing is found missing and loaded then.
  std::vector<NodeIndex> touches;
  bool touches_input = false;
  bool may_end_job = false;
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
  // Also the children of fan-outs: `split_17` where `split` is one.
  [[nodiscard]] std::optional<NodeRef> locate(std::string_view node_id) const;
};

// The two parts of `split_17`, if it could be the name of a child.
struct ItemName {
  std::string_view fan_out;
  std::int32_t item = 0;
};
[[nodiscard]] std::optional<ItemName> parse_item_name(std::string_view node_id);
[[nodiscard]] std::string item_name(std::string_view fan_out, std::int32_t item);

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
