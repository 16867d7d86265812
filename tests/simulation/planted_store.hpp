// The bugs of base/mutant.hpp that are seen in what is stored and nowhere else: core decides well, and the write set
// is changed on its way to the store. So core need not know of them.
#pragma once

#include "ports/store.hpp"

namespace baton::simulation {

class PlantedStore final : public Store {
 public:
  explicit PlantedStore(Store& store) : store_(store) {}

  Result<> commit(const WriteSet& writes, std::int64_t number) override;

  Result<WriterState> open(Partition partition) override { return store_.open(partition); }
  Result<Loaded> load(const LoadRequest& request) override { return store_.load(request); }
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override { return store_.load(needs); }
  Result<call::Loaded> load(const call::LoadRequest& request) override { return store_.load(request); }
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override {
    return store_.reserve_ids(table, count);
  }
  Result<> write_data(const runbook::DataRows& rows) override { return store_.write_data(rows); }
  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override {
    return store_.phases_without_timer(limit);
  }
  Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) override {
    return store_.left_by_others(after, limit);
  }
  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit) override {
    return store_.waiting(queue, limit);
  }
  Result<std::vector<NodeKey>> running_builtin(std::size_t limit) override { return store_.running_builtin(limit); }
  Result<std::vector<Timer>> timers_due(Time until, std::size_t limit) override {
    return store_.timers_due(until, limit);
  }
  Result<std::optional<Time>> next_timer() override { return store_.next_timer(); }
  Behind behind() const override { return store_.behind(); }
  Result<> follow() override { return store_.follow(); }
  void begin_following() override { store_.begin_following(); }
  std::optional<Result<std::int64_t>> end_following() override { return store_.end_following(); }
  void on_following_ended(std::function<void()> on_end) override { store_.on_following_ended(std::move(on_end)); }

 private:
  Store& store_;
};

}  // namespace baton::simulation
