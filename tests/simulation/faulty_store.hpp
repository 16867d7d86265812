// The store under the journal of the engine. It fails, loses the answer, has rows that others hold, is taken over by
// another writer, and dies before or after a commit; the loads of the world see each commit. What the journal holds
// back until the tables follow is passed on to World::tables_. World::database_ has every commit at once, with the
// tables that others write, and each following must bring the tables to what it says.
#pragma once

#include "store/journal/log_cut.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/forwarding_store.hpp"

namespace baton::simulation {

class World::FaultyStore final : public support::ForwardingStore<store::Tables> {
 public:
  explicit FaultyStore(World& world);

  Result<WriterState> open(Partition partition) override;
  Result<Loaded> load(const LoadRequest& request) override;
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override;
  Result<call::Loaded> load(const call::LoadRequest& request) override;
  Result<message::Loaded> load(const message::LoadRequest& request) override;
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override;
  Result<> write_data(const runbook::DataRows& rows) override { return store_.write_data(rows); }
  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override {
    return store_.phases_without_timer(limit);
  }
  Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) override {
    return store_.left_by_others(after, limit);
  }
  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit, Time now) override;
  Result<> commit(const WriteSet& writes, std::int64_t number) override;
  Result<> append(const store::JournalRow& row, const WriteSet& writes) override;
  Result<std::vector<store::JournalRow>> journal() override { return inner().journal(); }
  // It takes a moment, in which others are served.
  void begin(const store::Following& following) override;
  void wait() override;
  std::optional<Result<>> end() override;
  void begin_work(Work work) override;
  bool is_working() const override { return work_ != nullptr; }
  Result<> end_work() override;
  void on_ended(std::function<void()> on_end) override { on_end_ = std::move(on_end); }

 private:
  using Act = std::function<Result<>()>;
  // `act` is a commit, with what it writes, or the tables that follow.
  Result<> attempt(const WriteSet* writes, const Act& act);
  Result<> with_faults(const WriteSet* writes, const Act& act);
  // Loads fail now and then.
  [[nodiscard]] Result<> reach();
  // After any failure the engine may pause.
  template <class T>
  Result<T> noted(Result<T> answer) {
    if (!answer) world_.store_failed_at_ = world_.clock_.time;
    return answer;
  }
  // Another program may keep a row of the tables for longer than the engine has patience.
  [[nodiscard]] bool is_row_held();
  // Some jobs bring what this store does not take, as long as the storm lasts; the others must not suffer.
  [[nodiscard]] bool refuses(const WriteSet& writes) const;
  Result<> commit_all(const WriteSet& writes, std::int64_t number);
  void tables_take(const Result<>& done);
  void followed(const store::Following& following);
  void do_work();
  // What the engine hears of, now and not when it happens beside what else it does.
  Result<> told(Result<> outcome);

  World& world_;
  const std::uint64_t generation_;  // of the engine that it belongs to
  store::MemoryStore store_;
  store::LogCut log_cut_;
  Time synced_at_{};  // the tables
  std::optional<store::Following> following_;  // under way
  Time began_{};
  std::optional<Result<>> ended_;
  Work work_;  // under way
  std::optional<Result<>> work_ended_;
  bool is_beside_ = false;      // what is done now was begun before
  bool told_replaced_ = false;  // by another writer: from then on it writes nothing
  std::function<void()> on_end_;
};

}  // namespace baton::simulation
