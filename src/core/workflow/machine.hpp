// How a job moves. Every function here is pure: it takes the part of a job that a message touches, the
// message and the time, and leaves behind changed rows and a journal of what goes with them. The engine loads
// before and commits after.
//
//   job    PENDING ──first dispatch──▶ RUNNING ──┬─ an END completed, nothing active ─▶ COMPLETED
//                                                ├─ a node finally failed ───────────▶ FAILED
//                                                └─ cancel ──────────────────────────▶ CANCELLED
//   node   PENDING ─deps met─▶ READY ─▶ DISPATCHED ─handed out─▶ RUNNING ─result─▶ COMPLETED | FAILED
//                                ▲          ▲                      │ │
//                                │          └────── lease ran out ─┘ │        any of them, when the job ends
//                                before: CANCELLED └─ failed or timed out, retry left ─┘
//
// Invariants, checked by the simulator after every commit:
//  * job.nodes_active is the number of its nodes READY, DISPATCHED or RUNNING; nodes_failed the number
//  FAILED;
//  * a node's waiting_for is the number of its incoming edges that have not fired (zero once it is READY);
//  * a RUNNING node has a lease and one timer, not later than the lease; a READY one that waits for its retry
//  has one timer;
//    no other node has any;
//  * terminal rows never change again; a terminal job has no active node.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/workflow/definition.hpp"
#include "core/workflow/rows.hpp"

namespace baton::workflow {

inline constexpr std::string_view default_queue = "functionapp-tasks";
inline constexpr std::string_view builtin_queue = "builtin";

struct Policy {
  bool builtin = true;  // tasks that name no queue and a built-in handler go to the built-in queue
  Duration short_lease = std::chrono::seconds{30};
  std::int32_t deliveries_max = 10;
  // When the server came (back). Whoever was working then gets one short lease's time to report before he is
  // given up.
  Time opened_at{};
};

[[nodiscard]] bool is_builtin(std::string_view handler);

// A loaded node and how it differs from what is stored.
struct Slot {
  NodeState state;
  std::optional<Time> stored_timer;
  bool is_new = false;
  bool changed = false;
};

// The part of a job that a batch looks at.
struct Run {
  std::shared_ptr<const Definition> definition;
  Job job;
  std::int32_t stored_active = 0, stored_failed = 0;
  bool is_new = false;
  bool changed = false;
  std::vector<std::optional<Slot>> nodes;  // by NodeIndex; none: not loaded
  std::vector<TaskResult> results;         // accepted in this batch

  Run(std::shared_ptr<const Definition> d, Job j);
  void add(NodeState stored);  // a loaded row; a second time changes nothing
  [[nodiscard]] bool has(NodeIndex i) const { return nodes[i].has_value(); }
  [[nodiscard]] Slot& at(NodeIndex i);
  [[nodiscard]] bool row_changed() const;
};

struct Dispatched {
  Tenant tenant;  // empty for the built-in queue, which serves all
  std::string queue;
  JobId job_id;
  std::string node_id;
};

// What goes with the changed rows of a batch. Event ids are given at commit.
struct Journal {
  std::vector<Event> events;
  std::vector<Dispatched> dispatched;
  std::vector<JobId> ended;
};

struct NewJob {
  JobId job_id;
  Tenant tenant;
  std::int32_t version = 0;
  Json input_data;
  std::optional<std::string> traceparent;
};
[[nodiscard]] Run create(const NewJob& job, std::shared_ptr<const Definition> definition,
                         const Policy& policy, Time now, Journal& journal);

// ---- a task and its worker ----

[[nodiscard]] std::string task_id(const JobId& job_id, std::string_view node_id, std::int32_t retry_count);

struct TaskName {
  JobId job_id;
  std::string node_id;
  std::int32_t retry_count = 0;
};
// The parts of a task id; none when it is not one of ours. Job ids are UUIDs, so the parts are found by
// length.
[[nodiscard]] std::optional<TaskName> parse_task_id(std::string_view text);

// Names one handing-out of one attempt: a worker that was given up holds an older one.
[[nodiscard]] std::string lease_token(const NodeState& node);
[[nodiscard]] std::optional<Json> task_params(const Run& run, NodeIndex node);

// A DISPATCHED node goes to a worker. False: it waits no longer (a result or a cancel came first).
[[nodiscard]] bool hand_out(Run& run, NodeIndex node, const std::string& worker, bool heartbeats,
                            const Policy& policy, Time now, Journal& journal);

struct Report {
  std::int32_t retry_count = 0;
  bool completed = false;
  OptionalJson output;
  std::optional<std::string> error, lease, worker;
  std::optional<std::int64_t> execution_duration_ms;
};
enum class Verdict { accepted, duplicate, stale };
// `earlier` is the stored result of the same attempt, if there is one; needed only when
// result_may_be_repeated().
[[nodiscard]] bool result_may_be_repeated(const NodeState& node, std::int32_t retry_count);
[[nodiscard]] Verdict report(Run& run, NodeIndex node, const Report& report, const TaskResult* earlier,
                             const Policy& policy, Time now, Journal& journal);

// Renews a lease. False: the task is not this worker's any more.
[[nodiscard]] bool renew(Run& run, NodeIndex node, std::string_view lease, const Policy& policy, Time now);
// The lease's worker is known to be gone. By itself this never makes a task a dead one, though it counts as a
// delivery. False: it is not his any more.
[[nodiscard]] bool give_back(Run& run, NodeIndex node, std::string_view lease, std::string_view reason,
                             const Policy& policy, Time now, Journal& journal);

// The node's timer is due: a retry's time has come, a lease or an attempt's time has run out.
void timer_fired(Run& run, NodeIndex node, const Policy& policy, Time now, Journal& journal);

// False: the job has ended before.
[[nodiscard]] bool cancel(Run& run, std::string_view reason, Time now, Journal& journal);

// Whether a message about the node may make it FAILED for good, which touches all nodes of the job: what is
// left is cancelled. `completed` and `retry_count` are what a report says; none and 0 for a timer.
[[nodiscard]] bool may_fail_node(const Run& run, NodeIndex node, std::optional<bool> completed,
                                 std::int32_t retry_count, const Policy& policy);

}  // namespace baton::workflow
