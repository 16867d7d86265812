// The jobs of one batch: loaded in bulk, in two rounds (the rows that messages name, then those that deciding
// about them is likely to touch), decided on, handed out and written. A job that turns out to need more is
// loaded whole, and the batch decided again.
//
//   load.cpp      what messages and timers will need
//   decide.cpp    commands and timers
//   tasks.cpp     what workers say and get
//   write.cpp     rows, effects, what is remembered
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "engine/kinds/workflows/workflows.hpp"

namespace baton::engine {

class WorkflowTransaction final : public Transaction {
 public:
  WorkflowTransaction(Workflows& kind, Turn turn) : kind_(kind), turn_(turn), rows_(kind.steps_max_) {}

  [[nodiscard]] Result<> load(std::span<const Item> items, std::span<const Timer> timers) override;
  void decide(std::size_t place, const Item& item) override;
  void fire(const Timer& timer) override;
  void timers_go_behind() override;
  // As many events as a commit should have, or as much input as should be read in one batch.
  [[nodiscard]] bool is_full() const override {
    return rows_.decided.events.size() > kind_.events_max_ || rows_.input_bytes > input_bytes_max;
  }

  [[nodiscard]] std::vector<Ready> take_ready() override;
  [[nodiscard]] Result<> load_tasks(std::span<const WaitingTask> tasks) override;
  [[nodiscard]] std::optional<Handout> hand_out(const WaitingTask& task, const Poll& poll) override;
  [[nodiscard]] Renewal renew(const TaskLease& lease, Duration lease_time, const std::optional<Tenant>& caller) override;
  void give_back(const TaskLease& lease, const std::string& reason) override;

  [[nodiscard]] bool is_incomplete() const override { return !rows_.missing.empty(); }
  [[nodiscard]] Result<> restart() override;
  [[nodiscard]] Result<> complete() override;
  void write(WriteSet& out, std::int64_t commit_number) override;
  void committed(const WriteSet& written) override;

 private:
  [[nodiscard]] Result<> load_all_tasks(std::span<const WaitingTask> tasks);
  struct JobAnswer {  // how the job is after the batch; when it has ended, if the caller waits for that
    std::shared_ptr<Waiter> waiter;
    workflow::JobId job_id;
    bool created = false;
    Time wait_until{};
  };
  struct Task {
    workflow::Run* run = nullptr;
    workflow::NodeRef ref;
    std::int32_t retry_count = 0;
  };
  using Messages = std::map<std::pair<const workflow::Run*, workflow::NodeRef>, std::int32_t>;

  // ---- load
  [[nodiscard]] Result<> load_named(std::span<const Item> items, std::span<const Timer> timers);
  [[nodiscard]] Result<> load_neighbours(std::span<const Item> items, std::span<const Timer> timers);
  [[nodiscard]] Result<> load_explained(std::span<const Item> items);
  [[nodiscard]] Result<> load_runs(LoadRequest request);
  void take_hot(const LoadRequest& request);
  [[nodiscard]] Result<> load_definitions(const std::vector<workflow::Job>& jobs);
  void want(LoadRequest& request, const Command& command);
  void want_task(LoadRequest& request, std::string_view task_id);
  static void want_node(LoadRequest& request, const workflow::JobId& job_id, const std::string& node_id);
  static void want_one(LoadRequest& request, const workflow::Run& run, workflow::NodeIndex node);
  static void want_all_nodes(LoadRequest& request, const workflow::Run& run);
  static void want_touched(LoadRequest& request, const workflow::Run& run, workflow::NodeIndex node);
  static void want_read(LoadRequest& request, const workflow::Run& run, workflow::NodeIndex node);
  void want_after_report(LoadRequest& request, const Task& task, const ReportResult& report,
                         const Messages& messages);
  void want_after_timer(LoadRequest& request, const Task& task);
  void want_items(LoadRequest& request, workflow::Run& run, workflow::NodeIndex fan_out,
                  workflow::NodeIndex walker, std::int32_t from) const;
  void choose_chunks(std::span<const Timer> timers);
  void find_least_debt(std::span<const Item> items, std::span<const Timer> timers);
  [[nodiscard]] static bool is_chunk(const workflow::Run& run, workflow::NodeRef ref);

  // ---- decide
  void decide(const Item& item);
  void decide(const SubmitJob& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const AwaitJob& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const ChangeJob& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const DecideApproval& command, const std::shared_ptr<Waiter>& waiter);
  void decide(const ReplayTask& command, const std::shared_ptr<Waiter>& waiter);
  [[nodiscard]] Reply decide(const ExplainJob& command);
  [[nodiscard]] Reply decide(const PublishWorkflow& command);
  [[nodiscard]] Reply decide(const ReportResult& command);
  [[nodiscard]] Reply decide(const TaskNote& command);
  [[nodiscard]] Reply decide(const SettleTask& command);
  // A message that needs rows which nobody foresaw is decided again, with all others, when its job has been
  // loaded whole; what else is said of that job in this batch would be decided on half-changed rows, and waits
  // for it.
  template <class Decide>
  void unless_missing(std::string_view job_id, Decide&& decide) {
    if (rows_.missing.empty() || !rows_.missing.contains({std::string(job_id)})) unless_missing(decide);
  }
  template <class Decide>
  void unless_missing(Decide&& decide) {
    try {
      decide();
    } catch (const workflow::NotLoaded& not_loaded) {
      rows_.missing.insert(not_loaded.job_id);
    }
  }
  // A tenant pays for what its messages and timers cost. In debt, it evaluates nothing while others with a smaller
  // one have something to do: what it would is put off.
  template <class Decide>
  void charged(const Tenant& tenant, Decide&& decide) {
    std::int64_t& left = rows_.decided.steps_left;
    const std::int64_t before = left;
    const std::int64_t allowed = has_to_wait(tenant) ? std::min<std::int64_t>(before, 0) : before;
    left = allowed;
    decide();
    const std::int64_t spent = allowed - left;
    left = before - spent;
    if (spent > 0) rows_.spent[tenant] += spent;
  }
  [[nodiscard]] bool has_to_wait(const Tenant& tenant) const {
    return kind_.shares_.debt(tenant) > rows_.least_debt;
  }
  [[nodiscard]] Tenant tenant_of(const Item& item);
  [[nodiscard]] Tenant tenant_of(const Timer& timer);
  void obey(const Timer& timer);
  [[nodiscard]] std::optional<Refused> create_job(const SubmitJob& command);
  [[nodiscard]] const KnownDefinition* definition(const WorkflowKey& key) const;
  [[nodiscard]] workflow::Run* run(std::string_view job_id);
  [[nodiscard]] workflow::Run* run(const workflow::JobId& job_id) { return run(std::string_view(job_id.value)); }
  [[nodiscard]] workflow::Run* at_hand(std::string_view job_id);  // also one that is still among the hot runs
  [[nodiscard]] workflow::Run* run_of(const Tenant& tenant, const workflow::JobId& job_id,
                                      const std::shared_ptr<Waiter>& waiter);
  [[nodiscard]] std::optional<Task> task(std::string_view task_id, const std::optional<Tenant>& tenant);
  [[nodiscard]] std::optional<Task> task(const Timer& timer);  // the node; none: its row is not there
  void answer(const std::shared_ptr<Waiter>& waiter, Reply reply);
  void answer_job(const std::shared_ptr<Waiter>& waiter, const workflow::Job& job, bool created, Time wait_until);

  [[nodiscard]] bool is_awaited(const workflow::JobId& job_id) const {
    return turn_.matching.has_waits() && turn_.matching.is_awaited(subject_of(job_id));
  }

  // ---- write
  void write_answers();
  void take_back(const std::vector<workflow::Job>& rows);
  void take_back(const std::vector<workflow::NodeState>& rows);

  // What one round of deciding works on; a restart begins with nothing of it.
  struct Rows {
    explicit Rows(std::int64_t steps) { decided.steps_left = steps; }
    std::unordered_map<workflow::JobId, workflow::Run, IdHash, IdEqual> runs;
    std::unordered_map<std::string, workflow::TaskResult> stored_results;
    std::map<std::pair<Tenant, std::string>, workflow::IdempotencyKey> keys;
    std::map<WorkflowKey, KnownDefinition> published;
    std::set<workflow::JobId> missing;
    std::set<Timer> chunks;       // the steps of large fan-outs that have their turn
    std::vector<Timer> timers;    // that were fired
    std::int64_t least_debt = 0;  // of those who have something to do
    std::size_t input_bytes = 0;  // of jobs that were submitted
    std::map<Tenant, std::int64_t> spent;  // steps
    std::vector<Timer> timers_stray;
    std::vector<JobAnswer> answers;
    workflow::Decided decided;
    std::vector<workflow::IdempotencyKey> keys_new;
    std::vector<workflow::Workflow> workflows_new;
    std::vector<workflow::JobTag> tags_new;
  };

  static constexpr std::size_t input_bytes_max = 8 << 20;

  Workflows& kind_;
  const Turn turn_;
  std::set<workflow::JobId> whole_;  // learnt: jobs to be loaded with all their nodes and documents
  Rows rows_;
};

}  // namespace baton::engine
