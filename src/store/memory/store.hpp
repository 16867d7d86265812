// A Store in memory, under the same contract as those on databases; what was committed lives as long as the
// database (database.hpp). For commands that keep nothing (`baton run`), for tests and for the simulator.
#pragma once

#include "store/journal/tables.hpp"
#include "store/memory/database.hpp"

namespace baton::store {

class MemoryStore : public Tables {
 public:
  explicit MemoryStore(MemoryDatabase& database);  // which must outlive the store
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  Result<WriterState> open(Partition partition) override;
  Result<Loaded> load(const LoadRequest& request) override;
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override;
  Result<call::Loaded> load(const call::LoadRequest& request) override;
  Result<message::Loaded> load(const message::LoadRequest& request) override;
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override;
  Result<> write_data(const runbook::DataRows& rows) override;
  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override;
  Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) override;
  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit, Time now) override;
  Result<std::vector<NodeKey>> running_builtin(std::size_t limit) override;
  Result<std::vector<Timer>> timers_due(Time until, std::size_t limit) override;
  Result<std::optional<Time>> next_timer() override;
  Result<> commit(const WriteSet& writes, std::int64_t commit_number) override;
  Result<> append(const JournalRow& row, const WriteSet& beside) override;
  Result<std::vector<JournalRow>> journal() override;
  void begin(const Following& following) override;  // and ends at once
  std::optional<Result<>> end() override { return std::exchange(ended_, std::nullopt); }
  void wait() override {}
  void begin_work(Work work) override {  // and ends at once
    work_ended_ = work();
    if (on_end_) on_end_();
  }
  bool is_working() const override { return false; }
  Result<> end_work() override { return std::exchange(work_ended_, std::nullopt).value(); }
  void on_ended(std::function<void()> tell) override { on_end_ = std::move(tell); }
  void on_followed(std::function<void(std::int64_t)> tell) override { on_followed_ = std::move(tell); }

 private:
  [[nodiscard]] Result<> check_term();

  MemoryDatabase& database_;
  const int name_;
  memory::Database::WriterRow* row_ = nullptr;  // of its partition
  std::int64_t term_ = 0;
  bool open_ = false;
  std::optional<Result<>> ended_, work_ended_;
  std::function<void()> on_end_;
  std::function<void(std::int64_t)> on_followed_;
};

}  // namespace baton::store
