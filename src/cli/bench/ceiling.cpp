#include "cli/bench/ceiling.hpp"

#include <algorithm>
#include <random>

#include "base/ids.hpp"
#include "cli/bench/wire.hpp"
#include "core/workflow/machine/machine.hpp"
#include "ports/store.hpp"
#include "server/partition.hpp"
#include "server/system_clock.hpp"
#include "store/open.hpp"

namespace baton::cli::bench {
namespace {

using namespace workflow;

constexpr int events_per_commit_bits = 20;

// What the engine's batch makes of its runs. The runs are then as if loaded again.
void add_rows(WriteSet& out, Run& run) {
  for (auto& slot : run.nodes) {
    if (slot->state.timer_due != slot->stored_timer) {
      if (slot->stored_timer)
        out.timers_gone.push_back({*slot->stored_timer, subject_of(run.job.job_id), slot->state.node_id});
      if (slot->state.timer_due)
        out.timers_new.push_back({*slot->state.timer_due, subject_of(run.job.job_id), slot->state.node_id});
    }
    if (slot->is_new)
      out.nodes_new.push_back(slot->state);
    else if (slot->changed)
      out.nodes_changed.push_back(slot->state);
    slot->is_new = slot->changed = false;
    slot->stored_timer = slot->state.timer_due;
  }
  std::ranges::move(run.results, std::back_inserter(out.task_results_new));
  run.results.clear();
  if (run.is_new)
    out.jobs_new.push_back(run.job);
  else if (run.row_changed())
    out.jobs_changed.push_back(run.job);
  run.is_new = run.changed = false;
}

class Writer {
 public:
  Writer(std::unique_ptr<Store> store, std::shared_ptr<const Definition> definition)
      : store_(std::move(store)), definition_(std::move(definition)) {}

  Result<> open() {
    TRY_ASSIGN(const WriterState state, store_->open(server::only_partition));
    commit_ = state.last_commit;
    return {};
  }

  Result<> write(std::size_t batch) {
    std::vector<Run> runs;
    Decided decided;
    const Time now = clock_.now();
    std::vector<JobId> ids(batch);
    for (JobId& id : ids) id.value = uuid7(now, random_(), random_());
    std::ranges::sort(ids);
    for (const JobId& id : ids)
      runs.push_back(create({id, Tenant{"default"}, 1, Json{R"({"message":"hello"})"}, {}}, definition_,
                            policy_, now, decided));
    // Each round is one transaction: results, and what follows from them handed out at once.
    while (true) {
      for (Run& run : runs) hand_out_all(run, decided);
      TRY(commit(runs, decided));
      decided = {};
      if (is_terminal(runs.front().job.status)) return {};
      for (Run& run : runs) report_all(run, decided);
    }
  }

  [[nodiscard]] Steady::duration spent() const { return spent_; }

 private:
  void hand_out_all(Run& run, Decided& decided) {
    for (NodeIndex i = 0; i < run.nodes.size(); ++i)
      if (run.at(i).state.status == NodeStatus::dispatched)
        ENSURE(hand_out(run, NodeRef{i}, "bench", std::nullopt, policy_, clock_.now(), decided));
  }

  void report_all(Run& run, Decided& decided) {
    for (NodeIndex i = 0; i < run.nodes.size(); ++i) {
      if (run.at(i).state.status != NodeStatus::running) continue;
      const TaskReport said{.completed = true,
                        .output = Json{R"({"message":"hello"})"},
                        .lease = lease_token(run.at(i).state),
                        .worker = "bench"};
      ENSURE(report(run, NodeRef{i}, said, nullptr, policy_, clock_.now(), decided) == Verdict::accepted);
    }
  }

  Result<> commit(std::vector<Run>& runs, Decided& decided) {
    WriteSet writes;
    for (Run& run : runs) add_rows(writes, run);
    writes.events_new = std::move(decided.events);
    std::int64_t event_id = ++commit_ << events_per_commit_bits;
    for (Event& event : writes.events_new) event.event_id = event_id++;
    std::ranges::stable_sort(writes.events_new, {}, &Event::job_id);
    const auto began = Steady::now();
    TRY(store_->commit(writes, commit_));
    constexpr std::size_t follow_rows = 10'000;  // as the engine does it
    if (store_->behind().rows >= follow_rows) TRY(store_->follow());
    spent_ += Steady::now() - began;
    return {};
  }

  std::unique_ptr<Store> store_;
  std::shared_ptr<const Definition> definition_;
  const Policy policy_;
  const server::SystemClock clock_;
  std::mt19937_64 random_{std::random_device{}()};
  std::int64_t commit_ = 0;
  Steady::duration spent_{};
};

}  // namespace

Result<Ceiling> measure_ceiling(const std::string& store_url, const std::string& definition,
                                std::size_t batch, std::chrono::milliseconds duration) {
  TRY_ASSIGN(auto store, store::make_store(store_url));
  Writer writer(std::move(store), parse(definition).definition);
  TRY(writer.open());
  Ceiling ceiling{.batch = std::max<std::size_t>(batch, 1)};
  while (writer.spent() < duration) {
    if (was_interrupted()) return fail(Code::unavailable, "interrupted");
    TRY(writer.write(ceiling.batch));
    ceiling.jobs += ceiling.batch;
  }
  ceiling.rate = static_cast<double>(ceiling.jobs) / std::chrono::duration<double>(writer.spent()).count();
  return ceiling;
}

}  // namespace baton::cli::bench
