// The part of a job that a batch looks at: loaded rows, how they differ from what is stored, and what goes
// with the changes. Owned by one batch of the writer.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/workflow/definition/definition.hpp"
#include "core/workflow/machine/rows.hpp"

namespace baton::workflow {

// Thrown when a decision needs a row that nobody foresaw. Nothing of the decision may be kept: the job is
// loaded whole, with its documents, and the batch is decided again.
struct NotLoaded {
  JobId job_id;
};

// A loaded node and how it differs from what is stored.
struct Slot {
  NodeState state;
  std::optional<Time> stored_timer;
  bool is_new = false;
  bool changed = false;
};

// The rows of children that were loaded for a walk over them.
struct ItemRange {
  std::int32_t from = 0, until = 0;
};

// What a fan_in has read so far. Kept in memory between its chunks; lost, it begins again.
struct Gathering {
  std::int32_t next = 0;  // the next item
  std::string text;       // the elements of the result, with commas between them
  std::int64_t sum = 0;
  double real_sum = 0;
  bool whole_numbers = true;
  std::int32_t failed = 0;
};

class Values;  // parsed documents, see scope.hpp

// What the expansion of a fan-out works from: found once, kept in memory between its chunks.
struct Expansion {
  std::shared_ptr<const boost::json::value> items;  // an array
  std::shared_ptr<Values> values;                   // what the expressions of its params look at
};

struct Run {
  std::shared_ptr<const Definition> definition;
  Job job;
  std::int32_t stored_active = 0, stored_failed = 0;
  bool is_new = false;
  bool changed = false;
  std::vector<std::optional<Slot>> nodes;      // by NodeIndex; none: not loaded
  std::map<NodeRef, Slot> items;               // the children that are loaded
  std::vector<TaskResult> results;             // accepted in this batch
  std::vector<LogLine> logs;                   // log_id is given at commit
  std::map<NodeIndex, ItemRange> item_ranges;  // by the node that walks
  std::map<NodeIndex, Expansion> expansions;
  std::map<NodeIndex, Gathering> gatherings;
  std::shared_ptr<Values> values;

  Run(std::shared_ptr<const Definition> d, Job j);
  void add(NodeState stored);  // a loaded row; a second time changes nothing
  void add_documents(Job whole);
  [[nodiscard]] bool has(NodeRef ref) const;
  [[nodiscard]] Slot& at(NodeRef ref);  // throws NotLoaded
  [[nodiscard]] Slot& at(NodeIndex node) { return at(NodeRef{node}); }
  [[nodiscard]] const Node& node(NodeRef ref) const { return definition->nodes[ref.node]; }
  [[nodiscard]] bool has_input() const { return !job.input_data.text.empty(); }
  [[nodiscard]] const Json& input() const;  // throws NotLoaded
  [[nodiscard]] bool row_changed() const;
  // Everything that was decided is durable: the rows are what is stored, and what went with them is done. Children
  // that have ended, rows that were loaded for a walk and most of the children that wait for a worker are let go.
  void stored();
  [[nodiscard]] std::size_t bytes() const;  // about what it takes in memory
};

struct Dispatched {
  Tenant tenant;  // empty for the built-in queue, which serves all
  std::string queue;
  std::int32_t priority = 0;
  Time dispatched_at{};
  JobId job_id;
  std::int32_t item_index = no_item;
  std::string node_id;
};

// What goes with the changed rows of a batch. Event ids are given at commit.
struct Decided {
  std::vector<Event> events;
  std::vector<Dispatched> dispatched;
  std::vector<JobId> ended;
  // What the decisions of this batch may still do; the rest goes on in the next one. Each may fall below zero by
  // what one node or one child takes, because something must always go on.
  std::int32_t children_left = 4'000;        // that fan-outs add
  std::int64_t params_bytes_left = 8 << 20;  // that are evaluated
  std::int64_t steps_left = 500'000;         // of expressions, about 20 to 50 ns each

  void spend(std::size_t steps) { steps_left -= static_cast<std::int64_t>(steps); }
  [[nodiscard]] bool may_evaluate() const { return steps_left > 0 && params_bytes_left > 0; }
};

}  // namespace baton::workflow
