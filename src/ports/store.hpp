// Durable state, as the writer sees it. Owned by the writer thread; nothing here is thread-safe.
//
// The contract (tests/contract/store runs it on every adapter):
//  * commit applies a whole write set or nothing, and answers only after it is durable;
//  * a writer has one partition, which has its own term and its own commit numbers. The rest is not divided by
//  partition yet: rows do not name one, and timers_due, next_timer, waiting, running_builtin,
//  phases_without_timer and left_by_others answer for the whole store. So one partition runs today;
//  * each commit carries the next commit number and checks the writer's term in the same transaction: a
//  writer whose term was taken by
//    another gets Code::fenced and has changed nothing;
//  * Code::unknown means that the connection broke inside the commit. The writer reopens, and open() tells it
//  the last commit number
//    that is durable: equal to the one it tried, the commit happened, else it did not;
//  * Code::unavailable, Code::busy, Code::full: nothing was changed. After Code::busy the store goes on without being opened
//    again;
//  * loads see exactly what the commits before them wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/call/rows.hpp"
#include "core/message/rows.hpp"
#include "core/runbook/machine/store_needs.hpp"
#include "core/workflow/machine/rows.hpp"
#include "ports/subject.hpp"

namespace baton {

struct WriterState {
  std::int64_t term = 0;         // of this writer, larger than any before it
  std::int64_t last_commit = 0;  // the last commit number that is durable
  std::int64_t followed = 0;     // the commit whose state the tables show
};

struct NodeKey {
  workflow::JobId job_id;
  std::int32_t item_index = workflow::no_item;
  std::string node_id;
  friend auto operator<=>(const NodeKey&, const NodeKey&) = default;
};
[[nodiscard]] inline NodeKey key_of(const workflow::NodeState& node) {
  return {node.job_id, node.item_index, node.node_id};
}

// Work that waits in a queue, and what it is: something of a type, in the words of the kind that owns the type. The
// order is that in which it is handed out. Within a kind it must be the order of the database: a queue is read from
// its front, some at a time.
struct WaitingTask {
  std::int32_t rank = 0;  // minus the priority
  Time dispatched_at{};
  Subject::Type type = Subject::Type::none;
  std::string id;
  std::int64_t number = 0;
  std::string part;
  friend auto operator<=>(const WaitingTask&, const WaitingTask&) = default;
};
// A DISPATCHED node: the id of its job, the index of its item, the node.
[[nodiscard]] WaitingTask waiting_task(NodeKey key, std::int32_t priority, Time dispatched_at);
[[nodiscard]] NodeKey node_of(const WaitingTask& task);
// A queued job of a runbook: the number of its step, init step or cleanup.
[[nodiscard]] WaitingTask waiting_task(runbook::Ref job, Time queued_at);
[[nodiscard]] runbook::Ref ref_of(const WaitingTask& task);  // RowType::none: it is not of a runbook
// A message: the id of its entity, its lane, its number. The order of a queue is that of the numbers.
[[nodiscard]] WaitingTask waiting_task(const message::MessageKey& key);
[[nodiscard]] message::MessageKey message_of(const WaitingTask& task);

struct WorkflowKey {
  workflow::Tenant tenant;
  std::string workflow_id;
  std::int32_t version = 0;  // 0: the latest
  friend auto operator<=>(const WorkflowKey&, const WorkflowKey&) = default;
};

struct QueueKey {
  workflow::Tenant tenant;
  std::string queue;
  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

// Something must be looked at again at its time. `what` says which part of the subject, in the words of its kind:
// of a job, the node. Each is there once: one that is set again changes nothing.
struct Timer {
  Time due{};
  Subject subject;
  std::string what;
  friend auto operator<=>(const Timer&, const Timer&) = default;
};

// What a batch needs to see. Keys that do not exist are absent from the answer; duplicates are allowed.
struct LoadRequest {
  std::vector<workflow::JobId> jobs;        // without their documents, which may be large
  std::vector<workflow::JobId> jobs_whole;  // with them
  std::vector<NodeKey> nodes;
  std::vector<std::string> task_results;  // by task id
  std::vector<WorkflowKey> workflows;
  std::vector<workflow::IdempotencyKey>
      idempotency_keys;  // by (tenant, idempotency_key); the rest is ignored
};

struct Loaded {
  std::vector<workflow::Job> jobs;
  std::vector<workflow::NodeState> nodes;
  std::vector<workflow::TaskResult> task_results;
  std::vector<workflow::Workflow> workflows;
  std::vector<workflow::IdempotencyKey> idempotency_keys;
};

// Everything that one batch changes, each row once. An update names its row by key and writes all of its changeable
// columns; of a row of runbooks it expects the status that was loaded, and writes what was changed since
// (runbook::Update).
struct WriteSet {
  std::vector<workflow::Job> jobs_new;
  std::vector<workflow::Job> jobs_changed;
  std::vector<workflow::NodeState> nodes_new;
  std::vector<workflow::NodeState> nodes_changed;
  std::vector<workflow::TaskResult> task_results_new;
  std::vector<workflow::Event> events_new;
  std::vector<Timer> timers_new;
  std::vector<Timer> timers_gone;  // before the new ones; those that are not there are not missed
  std::vector<workflow::JobTag> tags_new;
  std::vector<workflow::LogLine> logs_new;
  std::vector<workflow::Workflow> workflows_new;
  std::vector<workflow::IdempotencyKey> idempotency_keys_new;
  runbook::Writes runbooks;
  call::Writes calls;
  message::Writes messages;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t rows() const;  // without those of runbooks
  // All of it may be kept in a journal: it has no rows that others write too.
  [[nodiscard]] bool is_journaled() const { return runbooks.empty(); }
  [[nodiscard]] std::optional<Time> earliest_timer() const;  // of the new ones
};

// What the tables do not show yet.
struct Behind {
  std::int64_t commits = 0;
  std::size_t rows = 0, bytes = 0;  // of all those commits
  bool is_following = false;        // begin_following() is under way
};

class Store {
 public:
  virtual ~Store() = default;

  // (Re)connects, migrates the schema, takes the term of the partition, the same in each call. Every call takes
  // a new term, so a former writer is fenced. While another writer of the partition is alive it is refused with
  // Code::conflict; one that has been open before and finds that another writer came in between gets
  // Code::fenced.
  [[nodiscard]] virtual Result<WriterState> open(Partition partition) = 0;

  [[nodiscard]] virtual Result<Loaded> load(const LoadRequest& request) = 0;

  [[nodiscard]] virtual Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) = 0;

  [[nodiscard]] virtual Result<call::Loaded> load(const call::LoadRequest& request) = 0;

  [[nodiscard]] virtual Result<message::Loaded> load(const message::LoadRequest& request) = 0;

  // Ids that nobody else will be given, growing; those that are not used are gaps. Durable before it answers.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table,
                                                                      std::size_t count) = 0;

  // A transaction of its own: what a source said is read by people and by other programs, not by decisions.
  [[nodiscard]] virtual Result<> write_data(const runbook::DataRows& rows) = 0;

  // Pending phases that have a time to be due and that no timer waits for, as other schedulers write them: at
  // most `limit` ids, by id.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) = 0;

  // What other orchestrators leave under way: steps and init steps that are dispatched or polling, that wait in no
  // queue and that no timer waits for, and dispatched phases whose members we have not been through. At most `limit`,
  // by type (step, init, phase) and id, after the given one. Looks through the tables.
  [[nodiscard]] virtual Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) = 0;

  // What waits in a queue, in the order of WaitingTask; messages, if the name is that of a queue of theirs: those that have not
  // expired by now, and perhaps some that have. Jobs of runbooks are in the queues of the tenant "default".
  [[nodiscard]] virtual Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit, Time now) = 0;

  // RUNNING nodes of the built-in queue (those without a tenant): their worker lives and dies with the
  // server.
  [[nodiscard]] virtual Result<std::vector<NodeKey>> running_builtin(std::size_t limit) = 0;

  // Timers due at or before `until`, earliest first.
  [[nodiscard]] virtual Result<std::vector<Timer>> timers_due(Time until, std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<Time>> next_timer() = 0;

  // commit_number is that of the commit before plus one.
  [[nodiscard]] virtual Result<> commit(const WriteSet& writes, std::int64_t commit_number) = 0;

  // The same beside what else the writer does, where the store can do it with these rows: begin_commit() returns at
  // once, end_commit() waits for the end and answers. One at a time. Calls that its rows may matter to wait for its end,
  // and fail if it failed, until end_commit() was asked; behind() answers as of its beginning.
  [[nodiscard]] virtual bool may_commit_beside(const WriteSet&) const { return false; }
  virtual void begin_commit(WriteSet, std::int64_t /*commit_number*/) { ENSURE(false); }
  [[nodiscard]] virtual bool is_committing() const { return false; }  // begun, and not at its end
  [[nodiscard]] virtual Result<> end_commit() { return fail(Code::invalid, "no commit was begun"); }

  // Tables that people and other programs read may be behind the commits. follow() brings them to the state after
  // the last one. Code::busy: they cannot at the moment, because another program holds a row, say; Code::unavailable: the
  // store is away; Code::corrupt: rows do not fit. The store is as it was. Any other call may have to follow first, and answers the same then.
  [[nodiscard]] virtual Behind behind() const { return {}; }
  [[nodiscard]] virtual Result<> follow() { return {}; }
  // The same beside what else the writer does: begin_following() returns at once, unless it is under way already. When
  // it has come to its end, end_following() answers how far the tables are, once, also if another call has waited for that.
  virtual void begin_following() {}
  [[nodiscard]] virtual std::optional<Result<std::int64_t>> end_following() { return std::nullopt; }
  // Returns when none is under way, or after that time.
  virtual void wait_for_following(Duration at_most) { (void)at_most; }

  // The writer stops in order: the tables show everything, and that is durable, so that the database needs nothing of what
  // the store keeps beside it. Nothing but open() may be asked after that. A store that goes without it was stopped by force.
  [[nodiscard]] virtual Result<> close() { return {}; }

  // Called, by any thread, when a commit or a following that went on beside the writer has come to its end.
  virtual void on_ended(std::function<void()> tell) { (void)tell; }
  // Called, by any thread, when the tables show this commit because a following has succeeded.
  virtual void on_followed(std::function<void(std::int64_t)> tell) { (void)tell; }
};

}  // namespace baton
