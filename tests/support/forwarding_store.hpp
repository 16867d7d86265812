// For tests: a store that passes every call on to another one, which it owns. A test store derives from it and
// overrides what it changes. `Port` is Store, or an interface derived from it: what that adds is not passed on.
#pragma once

#include <functional>
#include <memory>

#include "ports/store.hpp"

namespace baton::support {

template <class Port = Store>
class ForwardingStore : public Port {
 public:
  explicit ForwardingStore(std::unique_ptr<Port> inner) : inner_(std::move(inner)) {}

  Result<WriterState> open(Partition partition) override { return inner_->open(partition); }
  Result<Loaded> load(const LoadRequest& request) override { return inner_->load(request); }
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override {
    return inner_->load(needs);
  }
  Result<call::Loaded> load(const call::LoadRequest& request) override { return inner_->load(request); }
  Result<message::Loaded> load(const message::LoadRequest& request) override { return inner_->load(request); }
  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override {
    return inner_->reserve_ids(table, count);
  }
  Result<> write_data(const runbook::DataRows& rows) override { return inner_->write_data(rows); }
  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override {
    return inner_->phases_without_timer(limit);
  }
  Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) override {
    return inner_->left_by_others(after, limit);
  }
  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit, Time now) override {
    return inner_->waiting(queue, limit, now);
  }
  Result<std::vector<NodeKey>> running_builtin(std::size_t limit) override {
    return inner_->running_builtin(limit);
  }
  Result<std::vector<Timer>> timers_due(Time until, std::size_t limit) override {
    return inner_->timers_due(until, limit);
  }
  Result<std::optional<Time>> next_timer() override { return inner_->next_timer(); }
  Result<> commit(const WriteSet& writes, std::int64_t number) override {
    return inner_->commit(writes, number);
  }
  bool may_commit_beside(const WriteSet& writes) const override { return inner_->may_commit_beside(writes); }
  void begin_commit(WriteSet writes, std::int64_t number) override { inner_->begin_commit(std::move(writes), number); }
  bool is_committing() const override { return inner_->is_committing(); }
  Result<> end_commit() override { return inner_->end_commit(); }
  Behind behind() const override { return inner_->behind(); }
  Result<> follow() override { return inner_->follow(); }
  void begin_following() override { inner_->begin_following(); }
  std::optional<Result<std::int64_t>> end_following() override { return inner_->end_following(); }
  void wait_for_following(Duration at_most) override { inner_->wait_for_following(at_most); }
  Result<> close() override { return inner_->close(); }
  void on_ended(std::function<void()> on_end) override {
    inner_->on_ended(std::move(on_end));
  }
  void on_followed(std::function<void(std::int64_t)> tell) override { inner_->on_followed(std::move(tell)); }

 protected:
  [[nodiscard]] Port& inner() { return *inner_; }

 private:
  const std::unique_ptr<Port> inner_;
};

}  // namespace baton::support
