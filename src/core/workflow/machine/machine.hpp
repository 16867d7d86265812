// How a job moves. Every function here is pure: it takes the part of a job that a message touches, the
// message and the time, and leaves behind changed rows and what goes with them. The engine loads
// before and commits after. A row that nobody foresaw is asked for by throwing NotLoaded (run.hpp).
//
//   job    PENDING ──first dispatch──▶ RUNNING ──┬─ an END completed, nothing active ─▶ COMPLETED
//                                      ▲         ├─ a node finally failed ───────────▶ FAILED
//                                      │         └─ cancel ──────────────────────────▶ CANCELLED
//                                      └─ retried by hand ── FAILED
//   node   PENDING ─deps met─▶ READY ─▶ DISPATCHED ─handed out─▶ RUNNING ─result─▶ COMPLETED | FAILED
//             │                  ▲          ▲                      │ │
//             │                  │          └────── lease ran out ─┘ │        any of them, when the job ends
//             │                  └─ failed or timed out, retry left ─┘        before: CANCELLED
//             └─ no incoming edge fired ─▶ SKIPPED
//
// An edge fires when the node before it completes, and dies when that node is skipped or, being a
// conditional, takes another branch. A node whose edges are all fired or dead runs if any of them fired.
//
// A fan_out is RUNNING while it has children. Those are rows of their own, created in chunks, and their job
// is counted in the fan_out's row, so that one of them ending costs the same whether there are ten or a
// million. What has to visit all of them (pause, cancel, retry, fan_in) walks over them in chunks too, each a
// timer that is due at once, so that others get their turn. A wait is READY with a timer; an approval is
// DISPATCHED in a queue that no worker can poll. While a job is paused its results are taken and its time
// runs, but nothing of it is dispatched: what would be stays READY without a timer.
//
// Invariants, checked by the simulator after every commit:
//  * job.nodes_active is the number of its nodes READY, DISPATCHED or RUNNING, children not counted;
//    nodes_failed the number of those FAILED that the workflow does not go on without;
//  * a node's waiting_for is the number of its incoming edges that are neither fired nor dead (zero once it
//  is
//    READY);
//  * a fan_out's items_created, items_done and items_failed are the numbers of its children, of those
//  COMPLETED
//    or FAILED, of those FAILED;
//  * a RUNNING task has a lease and one timer, not later than the lease;
//  * terminal rows never change again, unless the job is retried by hand; a terminal job has no active node,
//    and its children are on their way to be CANCELLED.
#pragma once

#include "core/delivery/delivery.hpp"
#include "core/workflow/machine/run.hpp"

namespace baton::workflow {

struct Policy : delivery::Policy {
  bool builtin = true;  // tasks that name no queue and a built-in handler go to the built-in queue
  std::int32_t items_chunk = 1'000;         // children created or visited in one step
  std::int32_t items_max = 1'000'000;       // of one fan-out
  std::size_t item_params_max = 256 << 10;  // bytes: a thousand of them are visited in one step
  std::size_t gathered_max = 64 << 20;      // bytes that a fan_in may collect
  std::map<std::string, std::string> environment;  // what expressions may see as env.*
};

[[nodiscard]] bool is_builtin(std::string_view handler);

struct NewJob {
  JobId job_id;
  Tenant tenant;
  std::int32_t version = 0;
  Json input_data;
  std::optional<std::string> traceparent;
  std::int32_t priority = 0;
  std::optional<std::string> tags;
  std::optional<Time> due_at;
  std::optional<std::string> rerun_of;
};
[[nodiscard]] Run create(const NewJob& job, std::shared_ptr<const Definition> definition,
                         const Policy& policy, Time now, Decided& decided);

// ---- a task and its worker ----

[[nodiscard]] std::string task_id(const JobId& job_id, std::string_view node_id, std::int32_t retry_count);

struct TaskName {
  std::string_view job_id, node_id;
  std::int32_t retry_count = 0;
};
// The parts of a task id, in its text; none when it is not one of ours. Job ids are UUIDs, so the parts are found by
// length.
[[nodiscard]] std::optional<TaskName> parse_task_id(std::string_view text);
// Who reports a result may name its job and its node once more; empty: it does not. When they are others than those of
// the task id, nobody knows which is meant.
[[nodiscard]] bool agrees(const TaskName& task, std::string_view job_id, std::string_view node_id);

// Names one handing-out of one attempt: a worker that was given up holds an older one.
[[nodiscard]] std::string lease_token(const NodeState& node);
// What the worker gets. Throws NotLoaded when it is the job's input and that is not at hand.
[[nodiscard]] const Json& task_params(const Run& run, NodeRef ref);
[[nodiscard]] bool params_need_input(const Run& run, NodeRef ref);

// A DISPATCHED node goes to a worker. False: it waits no longer (a result, a cancel or a pause came first).
[[nodiscard]] bool hand_out(Run& run, NodeRef ref, const std::string& worker, delivery::LeaseTime lease_time,
                            const Policy& policy, Time now, Decided& decided);

struct TaskReport {
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
[[nodiscard]] Verdict report(Run& run, NodeRef ref, const TaskReport& report, const TaskResult* earlier,
                             const Policy& policy, Time now, Decided& decided);

// One delivery of one attempt.
struct AttemptLease {
  std::int32_t retry_count = 0;
  std::optional<std::string> lease;
};

// Renews a lease; one that lasts until the deadline stays as it is. False: the task is not this worker's any more.
[[nodiscard]] bool renew(Run& run, NodeRef ref, std::string_view lease, delivery::LeaseTime lease_time, Time now);
// The lease's worker has the task in hand, and its time alone ends it. True also if it has ended by then: the result may be
// faster than the word that it is being worked at. False: another worker has it, or is to get it.
[[nodiscard]] bool keep(Run& run, NodeRef ref, const AttemptLease& attempt, Time now);
// The lease's worker does not want it: another one gets it, unless it was delivered too often. False: it is not that worker's.
[[nodiscard]] bool abandon(Run& run, NodeRef ref, std::string_view lease, std::string_view reason, const Policy& policy,
                           Time now, Decided& decided);
// Nobody is to get it any more: it is a dead letter, for this reason. False: it is not that worker's.
[[nodiscard]] bool give_up(Run& run, NodeRef ref, std::string_view lease, std::string_view reason, const Policy& policy,
                           Time now, Decided& decided);
// The lease's worker is known to be gone. By itself this never makes a task a dead one, though it counts as a
// delivery. False: it is not that worker's any more.
[[nodiscard]] bool give_back(Run& run, NodeRef ref, std::string_view lease, std::string_view reason,
                             const Policy& policy, Time now, Decided& decided);

// What a worker says of a task while it runs it. All answer false when the task is not its any more: of
// another attempt, under another lease, or ended.
[[nodiscard]] bool progress(Run& run, NodeRef ref, const AttemptLease& attempt, Json progress);
[[nodiscard]] bool checkpoint(Run& run, NodeRef ref, const AttemptLease& attempt, Json data,
                              const Policy& policy, Time now, Decided& decided);
struct LogVerdict {
  bool accepted = false;
  std::size_t stored = 0;  // fewer than were sent: the log of this attempt is full
};
[[nodiscard]] LogVerdict log(Run& run, NodeRef ref, const AttemptLease& attempt,
                             std::vector<delivery::LogText> lines, const Policy& policy);

// The node's timer is due: a retry's time has come, a wait is over, a lease, an approval's or an attempt's
// time has run out, or the next chunk of a fan-out is to be done.
void timer_fired(Run& run, NodeRef ref, const Policy& policy, Time now, Decided& decided);

// ---- what people do ----

// All answer false when the job's or the node's state does not allow it.
[[nodiscard]] bool cancel(Run& run, std::string_view by, std::string_view reason, const Policy& policy,
                          Time now, Decided& decided);
[[nodiscard]] bool pause(Run& run, std::string_view by, std::string_view reason, const Policy& policy,
                         Time now, Decided& decided);
[[nodiscard]] bool resume(Run& run, std::string_view by, std::string_view reason, const Policy& policy,
                          Time now, Decided& decided);
// A FAILED job goes on from the nodes that failed, with attempts of their own; what has completed stays.
[[nodiscard]] bool retry(Run& run, std::string_view by, std::string_view reason, const Policy& policy,
                         Time now, Decided& decided);
// The same decision was made before: whoever did not hear the answer asks again.
[[nodiscard]] bool was_decided(Run& run, NodeIndex node, bool approved);
[[nodiscard]] bool decide_approval(Run& run, NodeIndex node, bool approved, const std::string& by,
                                   const std::string& comment, const Policy& policy, Time now,
                                   Decided& decided);

// ---- hints for loading ----

// Whether a message about the node may make it FAILED for good, which touches all nodes of the job: what is
// left is cancelled. `completed` and `retry_count` are what a report says; none and 0 for a timer.
[[nodiscard]] bool may_fail_node(const Run& run, NodeRef ref, std::optional<bool> completed,
                                 std::int32_t retry_count, const Policy& policy);

}  // namespace baton::workflow
