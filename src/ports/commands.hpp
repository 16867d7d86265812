// What may be asked of the engine, and what it answers. Adapters build a command, hand it in with somebody to
// answer, and hear back after the commit that made it true. This is the only way in: nobody else writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/workflow/definition/definition.hpp"
#include "core/workflow/machine/explain.hpp"
#include "core/workflow/machine/machine.hpp"
#include "core/workflow/machine/rows.hpp"
#include "ports/bus_commands.hpp"
#include "ports/call_commands.hpp"
#include "ports/refusal.hpp"
#include "ports/runbook_commands.hpp"
#include "ports/subject.hpp"

namespace baton {

// ---- commands ----

struct SubmitJob {
  workflow::JobId job_id;  // made by the caller, so that a repeated command is the same job
  workflow::Tenant tenant;
  std::string workflow_id;
  std::int32_t version = 0;  // 0: the latest
  Json input_data;           // an object
  std::optional<std::string> idempotency_key;
  std::string request_hash;  // with a key: of what was asked for
  std::optional<std::string> traceparent;
  std::int32_t priority = 0;
  std::vector<std::string> tags;  // sorted, each once
  std::optional<Time> due_at;
  std::optional<Duration> delay;  // instead of due_at: from when the job is created
  std::optional<std::string> rerun_of;
  Time wait_until{};  // later than now: answer when the job has ended, or at this time with what it is then
};

// Answers at once when the job has ended, otherwise when it ends or at wait_until.
struct AwaitJob {
  workflow::Tenant tenant;
  workflow::JobId job_id;
  Time wait_until{};
  bool created = false;  // the caller made it: said again in the answer
};

// What a person does to a job. Doing it again changes nothing.
struct ChangeJob {
  enum class What { cancel, pause, resume, retry };
  workflow::Tenant tenant;
  workflow::JobId job_id;
  What what{};
  std::string by;
  std::string reason;
};

struct DecideApproval {
  workflow::Tenant tenant;
  workflow::JobId job_id;
  std::string node_id;
  bool approved = false;
  std::string by;
  std::string comment;
};

// A task that was given up is to be tried again: its job is retried.
struct ReplayTask {
  workflow::Tenant tenant;
  std::string task_id;
  std::string by;
};

// Why a job, and each node of it that waits, is not running.
struct ExplainJob {
  workflow::Tenant tenant;
  workflow::JobId job_id;
};

struct ListWorkers {
  std::optional<workflow::Tenant> tenant;  // none: all
};

// Whether anybody works on these queues.
struct LookAtQueues {
  workflow::Tenant tenant;
  std::vector<std::string> queues;
};  // → QueuesReply

struct PublishWorkflow {
  workflow::Tenant tenant;
  std::shared_ptr<const workflow::Definition> definition;
  std::string text;
};

// A worker asks for work. Answered as soon as there is any, or at wait_until with nothing.
struct Poll {
  workflow::Tenant tenant;  // empty, on the built-in queue only: every tenant's
  std::string queue;
  std::string worker;
  std::uint32_t max = 1;
  bool heartbeats = false;  // the worker promises to renew its leases: they are short
  std::optional<Duration> lease_time;  // of one that heartbeats; none: the server's
  Time wait_until{};
  bool is_listed = true;  // among the workers
};

// A worker's word on a task it was given. job_id and node_id may be empty: task_id names both.
struct ReportResult {
  std::optional<workflow::Tenant> tenant;  // none: a caller who may act for all of them
  std::string task_id;
  std::optional<runbook::Ref> correlated;  // of a runbook's job: the step that its correlationData names
  workflow::JobId job_id;
  std::string node_id;
  bool completed = false;
  OptionalJson output;
  std::optional<std::string> error;
  std::optional<std::string> lease;
  std::optional<std::string> worker;
  std::optional<std::int64_t> execution_duration_ms;
};

struct TaskLease {
  std::string task_id;
  std::string lease;
};

struct Heartbeat {
  std::optional<workflow::Tenant> tenant;
  std::string worker;
  std::vector<TaskLease> tasks;
  std::optional<Duration> lease_time;  // none: the server's
};

// What a worker says of a task while it runs it.
struct TaskProgress {
  Json progress;  // {"progress": 0 to 100, "message": …}
};
struct TaskCheckpoint {
  Json data;
};
struct TaskLog {
  std::vector<delivery::LogText> lines;
};
struct TaskNote {
  std::optional<workflow::Tenant> tenant;
  std::string task_id;
  std::optional<std::string> lease;
  std::variant<TaskProgress, TaskCheckpoint, TaskLog> note;
};

// What a worker that was given a task under a lock, as those of the bus are, says of it before its result, or instead of one.
struct SettleTask {
  enum class How {
    keep,     // it has it in hand: the lease lasts until the task's own time is over
    abandon,  // another worker is to get it; given up when it was delivered as often as is allowed
    give_up,  // nobody is to get it: a dead letter
  };
  std::optional<workflow::Tenant> tenant;
  std::string task_id;
  std::string lease;
  How how{};
  std::string reason;  // why it is abandoned or given up
};

// Gives tasks back unrun: the worker that asked for them was gone before it could be told.
struct ReturnTasks {
  std::vector<TaskLease> tasks;
  std::string reason = "the worker was gone before it was told";
};

using Command =
    std::variant<SubmitJob, AwaitJob, ChangeJob, DecideApproval, ReplayTask, ExplainJob, ListWorkers, LookAtQueues,
                 PublishWorkflow, Poll, ReportResult, Heartbeat, TaskNote, SettleTask, ReturnTasks, PublishRunbook,
                 ChangeRunbook, NoteSync, OpenBatch, AddMembers, StartBatch, RefreshMembers, RemoveMembers,
                 SyncData, RetryMembers, ChangeBatch, AnswerHold, ChangeStep, RunbookEvent, AdoptPhases, AdoptJobs, SubmitCalls, RepeatCall,
                 ChangeCall, StartCalls, EndCalls, RebuildCalls, SendMessages, SettleMessages, RenewLocks, PeekMessages, ReceiveDeferred,
                 CancelScheduled, ReplayDeadLetters, ChangeEntity, ChangeRule, FindEntity, ListEntities>;

// What a command is about. One about several things of its kind names the first: whoever distributes commands
// to partitions has divided them before.
[[nodiscard]] Subject subject_of(const Command& command);
// What it holds beyond a few names: the part of it that its sender chooses the size of.
[[nodiscard]] std::size_t size_of(const Command& command);
[[nodiscard]] Subject::Type subject_type(const Command& command);  // without looking for the id
// What a task is a part of. One that is nobody's is taken for one of a job, whose kind refuses it.
[[nodiscard]] Subject::Type type_of_task(std::string_view task_id);

// ---- replies ----

struct JobReply {
  workflow::Job job;
  bool created = false;  // false: an earlier submit with the same key made it
};

struct WorkflowReply {
  std::string workflow_id;
  std::int32_t version = 0;
  bool created = false;  // false: this very text was there already
};

// What a job of a runbook has beyond a task: the JSON of the contract is made of it.
struct RunbookJob {
  std::int64_t batch_id = 0;
  runbook::Ref ref;
  std::string runbook_name;
  std::int32_t runbook_version = 0;
};

struct Handout {
  std::string task_id;
  workflow::JobId job_id;
  std::string node_id;
  std::string handler;
  Json params;
  std::string queue;
  std::chrono::seconds timeout{};
  std::int32_t retry_count = 0;
  std::int32_t delivery_count = 0;
  std::string lease;
  Time lease_until{};
  std::optional<std::string> traceparent;
  OptionalJson checkpoint;  // the last one of an earlier attempt or delivery
  std::optional<RunbookJob> runbook;  // it is a step of a batch: job_id and node_id are empty
  std::shared_ptr<const message::Message> message;  // it is one of the bus, as it is handed out: the rest but for its lease is empty
};
struct PollReply {
  std::vector<Handout> jobs;
};

struct ResultReply {
  bool duplicate = false;
  std::string ignored;  // of a runbook's job: why the result changed nothing; empty: it was accepted
};

struct HeartbeatReply {
  Time lease_until{};
  std::vector<std::string>
      cancelled;  // task ids that the worker should stop: cancelled, or no longer its own
};

struct ReturnReply {};

struct SettleReply {};

struct NoteReply {
  std::size_t stored = 0;  // of a log: how many lines; fewer than were sent when it is full
};

using ExplainReply = workflow::Explanation;

struct WorkerInfo {
  workflow::Tenant tenant;
  std::string worker;
  std::vector<std::string> queues;
  Time first_seen_at{}, last_seen_at{};
  std::vector<std::string> running;  // task ids, the first of them
  std::size_t running_count = 0;
  std::uint64_t completed = 0, failed = 0;
  std::uint64_t last_minute = 0;  // results within it
  bool polling = false;           // waits for work at this moment
};
struct WorkersReply {
  std::vector<WorkerInfo> workers;
};

struct QueueLook {
  std::string queue;
  bool polled = false;        // somebody waits for work at this moment
  std::size_t workers = 0;    // seen on it within the last minute
  std::optional<Time> last_poll;
};
struct QueuesReply {
  Time since{};  // nothing is known of the time before: the server came up
  std::vector<QueueLook> queues;
};

using Reply = std::variant<JobReply, WorkflowReply, PollReply, ResultReply, HeartbeatReply, ReturnReply, SettleReply,
                           NoteReply, ExplainReply, WorkersReply, QueuesReply, RunbookReply, BatchReply, MembersReply,
                           StepReply, HoldReply, EventReply, CallsReply, StartedReply, SentReply, SettledReply, RenewedReply,
                           MessagesReply, ReplayedReply, EntitiesReply, Refused>;

// ---- the way in ----

// Who waits for an answer. deliver is called exactly once for every command that was handed in, on any
// thread, and must not block.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void deliver(Reply reply) = 0;
  // The waiter's client has gone: its poll is not worth a lease. May be called from any thread.
  [[nodiscard]] virtual bool gone() const { return false; }
};

// For commands whose answer nobody wants.
struct Nobody final : Waiter {
  void deliver(Reply) override {}
};

class Inbox {
 public:
  virtual ~Inbox() = default;
  // Thread-safe, never blocks. Answers Refusal::overloaded or stopping through the waiter when it cannot take
  // the command.
  virtual void submit(Command command, std::shared_ptr<Waiter> waiter) = 0;
};

}  // namespace baton
