// One batch on its way through the writer: load, decide, hand out, commit, release. Lives for one
// transaction; holds everything that must not be seen by anybody before the commit.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "engine/calls.hpp"
#include "engine/writer.hpp"

namespace baton::engine {

// What turned out while a batch was decided, and holds when it is decided again.
struct Lessons {
  std::set<workflow::JobId> whole;  // jobs to be loaded with all their nodes and documents
  runbook::Needs needs;             // rows of runbooks that nobody foresaw
  std::map<std::size_t, std::string> unreadable;  // items that cannot be decided, and why
  std::set<runbook::Timer> unreadable_timers;
  std::set<runbook::Ref> unreadable_jobs;  // that wait for a worker
  bool data_written = false;  // what sources said is in its tables
  int tries = 0;              // commits that collided with other programs
  Duration put_off{std::chrono::minutes{10}};  // how far a timer is moved that cannot be obeyed
};

class Writer::Batch {
 public:
  // due: those whose time has come. one, put_off: this one alone, obeyed or moved to a later time. All but due
  // are parts of a batch that was divided, and hand out nothing: a task that cannot be handed out would spoil
  // each of them.
  enum class Timers { due, none, one, put_off };

  using Timer = std::variant<workflow::Timer, runbook::Timer>;

  Batch(Writer& writer, Time now, std::vector<Item> items, Timers timers = Timers::due,
        std::optional<Timer> only = {}, Lessons lessons = {});
  // The same messages once more.
  [[nodiscard]] std::unique_ptr<Batch> again();
  // Another program has changed a row meanwhile, or holds it: whether it is worth trying all of it again. One
  // that holds a row would make everybody wait once more.
  [[nodiscard]] bool may_try_again() {
    return ++lessons_.tries <= tries_max && writer_.clock_.now() - now_ < tries_time;
  }

  [[nodiscard]] Result<> prepare();  // loads and decides; nothing is written yet
  // After prepare(): more has to be loaded, and a new batch decided with it.
  [[nodiscard]] bool needs_more() const { return !missing_.empty() || runbooks_missing_; }
  // Of which tables more ids are needed, and how many of them were not enough.
  [[nodiscard]] std::map<runbook::Table, std::size_t> ids_wanted() const;
  // There is more than one message in it, or one beside what was handed out, or a timer that can be put off.
  [[nodiscard]] bool can_be_divided() const {
    const std::size_t timers = timers_.size() + runbook_timers_.size();
    return items_.size() + timers > 1 || (!items_.empty() && handouts_ > 0) || (timers > 0 && which_timers_ != Timers::put_off);
  }
  // It holds a timer and nothing else, not even what is handed out.
  [[nodiscard]] bool is_one_timer() const { return which_timers_ == Timers::one; }
  [[nodiscard]] std::vector<Timer> take_timers();
  [[nodiscard]] WriteSet writes(std::int64_t commit_number);
  void release();  // after the commit: memory follows, everybody is answered
  void refuse(Refusal refusal, const std::string& message);
  [[nodiscard]] std::vector<Item> take_items() { return std::exchange(items_, {}); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

 private:
  struct Answer {  // what to say after the commit
    std::shared_ptr<Waiter> waiter;
    std::optional<Reply> reply;  // none: how the job is then
    workflow::JobId job_id;
    bool created = false;
    Time wait_until{};  // later than now: only once the job has ended
    workflow::Tenant tenant;
  };
  struct Service {  // what one queue's polls get
    QueueKey key;
    std::set<WaitingTask> fresh;  // dispatched in this batch and not handed out by it
    std::vector<std::pair<std::uint64_t, PollReply>> served;
  };
  struct Task {
    workflow::Run* run = nullptr;
    workflow::NodeRef ref;
    std::int32_t retry_count = 0;
  };
  using Messages = std::map<std::pair<const workflow::Run*, workflow::NodeRef>, std::int32_t>;

  // load
  [[nodiscard]] Result<> take_due();
  [[nodiscard]] Result<> load_named();
  [[nodiscard]] Result<> load_neighbours();
  [[nodiscard]] Result<> load_runs(LoadRequest request);
  [[nodiscard]] Result<> load_definitions(const std::vector<workflow::Job>& jobs);
  [[nodiscard]] Result<> load_documents();
  void want(LoadRequest& request, const Command& command) const;
  void want_task(LoadRequest& request, const std::string& task_id) const;
  void want_node(LoadRequest& request, const workflow::JobId& job_id, const std::string& node_id) const;
  void want_all_nodes(LoadRequest& request, const workflow::Run& run) const;
  void want_touched(LoadRequest& request, const workflow::Run& run, workflow::NodeIndex node) const;
  void want_after_report(LoadRequest& request, const Task& task, const ReportResult& report,
                         const Messages& messages);
  void want_after_timer(LoadRequest& request, const Task& task);
  void want_items(LoadRequest& request, workflow::Run& run, workflow::NodeIndex fan_out,
                  workflow::NodeIndex walker, std::int32_t from) const;
  [[nodiscard]] static bool is_chunk(const workflow::Run& run, workflow::NodeRef ref);
  void choose_chunks();
  [[nodiscard]] Result<> load_explained();

  // decide
  [[nodiscard]] Reply decide(const PublishWorkflow& command);
  [[nodiscard]] Reply decide(const ReportResult& command);
  [[nodiscard]] Reply decide(const Heartbeat& command);
  [[nodiscard]] Reply decide(const ReturnTasks& command);
  void decide(const SubmitJob& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const AwaitJob& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const ChangeJob& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const DecideApproval& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const ReplayTask& command, const std::shared_ptr<Waiter>& waiter);
  [[nodiscard]] Reply decide(const ExplainJob& command);
  [[nodiscard]] Reply decide(const ListWorkers& command);
  [[nodiscard]] Reply decide(const TaskNote& command);
  void decide_heartbeats();
  void decide_timers();
  void decide_timer(const workflow::Timer& timer);
  void decide_item(const Item& item);
  template <class Decide>
  void unless_missing(const workflow::JobId* job_id, Decide&& decide);
  void decide_items();
  [[nodiscard]] std::optional<Refused> create_job(const SubmitJob& command);
  [[nodiscard]] const KnownDefinition* definition(const WorkflowKey& key) const;
  [[nodiscard]] workflow::Run* run(const workflow::JobId& job_id);
  [[nodiscard]] workflow::Run* run_of(const workflow::Tenant& tenant, const workflow::JobId& job_id,
                                      const std::shared_ptr<Waiter>& waiter);
  [[nodiscard]] std::optional<Task> task(const std::string& task_id,
                                         const std::optional<workflow::Tenant>& tenant);
  void answer(const std::shared_ptr<Waiter>& waiter, Reply reply);
  void answer_job(const std::shared_ptr<Waiter>& waiter, const workflow::Job& job, bool created,
                  Time wait_until);

  // hand out
  [[nodiscard]] Result<> hand_out();
  [[nodiscard]] Result<> serve(Service& service);
  [[nodiscard]] Result<> load_tasks(const std::vector<WaitingTask>& tasks);
  [[nodiscard]] Result<std::vector<WaitingTask>> candidates(Service& service, std::size_t limit,
                                                            bool& refilled);
  [[nodiscard]] std::optional<Handout> give(const NodeKey& key, const Poll& poll);

  // runbooks (batch_runbooks.cpp, batch_runbook_commands.cpp)
  [[nodiscard]] Result<> load_runbooks();
  [[nodiscard]] Result<bool> load_needs(runbook::Needs needs);
  template <class Foresee>
  [[nodiscard]] Result<> load_rounds(Foresee&& foresee);
  [[nodiscard]] Result<> write_data();
  void foresee_item(const Command& command, runbook::Needs& needs);
  void choose_walks();
  void decide_runbook_timers();
  template <class Decide>
  [[nodiscard]] bool with_ledger(Decide&& decide, std::string& unreadable);
  template <class Decide>
  [[nodiscard]] Reply runbook_reply(Decide&& decide);
  [[nodiscard]] runbook::Context context();
  [[nodiscard]] std::optional<Refused> replaced(std::int64_t of_runbook);
  [[nodiscard]] Reply decide_runbook_result(const ReportResult& command);
  [[nodiscard]] bool renew_job(const TaskLease& lease);
  void give_back_job(const TaskLease& lease);
  [[nodiscard]] Reply decide_job_note(const TaskNote& command);
  [[nodiscard]] Reply decide(const PublishRunbook& command);
  [[nodiscard]] Reply decide(const ChangeRunbook& command);
  [[nodiscard]] Reply decide(const NoteSync& command);
  [[nodiscard]] Reply decide(const OpenBatch& command);
  [[nodiscard]] Reply decide(const AddMembers& command);
  [[nodiscard]] Reply decide(const StartBatch& command);
  [[nodiscard]] Reply decide(const RefreshMembers& command);
  [[nodiscard]] Reply decide(const RemoveMembers& command);
  [[nodiscard]] Reply decide(const SyncData& command);
  [[nodiscard]] Reply decide(const RetryMembers& command);
  [[nodiscard]] Reply decide(const ChangeBatch& command);
  [[nodiscard]] Reply decide(const ChangeStep& command);
  [[nodiscard]] Reply decide(const RunbookEvent& command);
  [[nodiscard]] Reply decide(const AdoptPhases& command);
  [[nodiscard]] Result<> load_jobs(const std::vector<WaitingTask>& tasks);
  [[nodiscard]] std::optional<Handout> give_job(runbook::Ref ref, const Poll& poll);
  void write_runbooks(runbook::Writes& out, std::int64_t commit_number);

  // service calls
  [[nodiscard]] Result<> load_calls();
  [[nodiscard]] Reply decide(const SubmitCalls& command) { return calls_.decide(command); }
  [[nodiscard]] Reply decide(const RepeatCall& command) { return calls_.decide(command); }
  [[nodiscard]] Reply decide(const ChangeCall& command) { return calls_.decide(command); }
  [[nodiscard]] Reply decide(const StartCalls& command) { return calls_.decide(command); }
  [[nodiscard]] Reply decide(const EndCalls& command) { return calls_.decide(command); }

  // release
  void release_workers();
  void release_answers();
  void release_polls();
  void release_waits();
  [[nodiscard]] JobReply job_reply(const workflow::JobId& job_id, bool created) const;

  Writer& writer_;
  const Time now_;
  std::vector<Item> items_;
  static constexpr int tries_max = 3;
  static constexpr Duration tries_time{1'500};
  Lessons lessons_;
  const Timers which_timers_;
  const std::optional<Timer> only_timer_;
  std::set<workflow::JobId> missing_;
  std::vector<workflow::Timer> timers_;
  bool more_timers_ = false;
  bool timers_taken_ = false;

  std::map<workflow::JobId, workflow::Run> runs_;
  std::unordered_map<std::string, workflow::TaskResult> stored_results_;
  std::map<std::pair<workflow::Tenant, std::string>, workflow::IdempotencyKey> keys_;
  std::map<WorkflowKey, KnownDefinition> published_;  // in this batch

  runbook::Ledger ledger_;
  runbook::Journal runbook_journal_;
  std::vector<runbook::Timer> runbook_timers_;
  std::set<runbook::Timer> put_off_;
  std::set<runbook::Timer> walks_;  // the chunks of walks that have their turn
  bool runbooks_missing_ = false;
  bool runbooks_changed_ = false;  // a scheduler should look
  std::set<runbook::Table> ids_wanted_;
  std::size_t item_index_ = 0;  // of the item that is being decided
  std::vector<workflow::LogLine> job_logs_;

  Calls calls_;

  workflow::Journal journal_;
  std::vector<workflow::IdempotencyKey> keys_new_;
  std::vector<workflow::Workflow> workflows_new_;
  std::vector<workflow::JobTag> tags_new_;
  std::vector<ReportResult> reported_;  // accepted, for the list of workers; without documents
  std::set<workflow::Timer> chunks_;    // the steps of large fan-outs that have their turn
  std::vector<workflow::Timer> timers_stray_;
  std::vector<Answer> answers_;
  std::vector<std::uint64_t> waits_over_;
  std::vector<Service> services_;
  std::set<QueueKey> still_hungry_;
  std::size_t handouts_ = 0;
  std::size_t handout_bytes_ = 0;
  // Rows of ended and waited-for jobs, kept for answers when the rest has moved into the write set.
  std::unordered_map<workflow::JobId, workflow::Job> jobs_after_;
  std::optional<Time> earliest_timer_;
};

}  // namespace baton::engine
