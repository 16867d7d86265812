// Queues, topics and subscriptions of the bus, and their messages, as a kind of the engine.
#pragma once

#include "engine/kind.hpp"
#include "engine/kinds/messages/gauges.hpp"
#include "engine/kinds/messages/options.hpp"
#include "engine/kinds/messages/state.hpp"

namespace baton::engine {

class MessagesKind final : public Kind {
 public:
  MessagesKind(MessagesOptions options, metrics::Registry* metrics);

  [[nodiscard]] bool owns(Subject::Type type) const override { return type == Subject::Type::entity || type == Subject::Type::message; }
  [[nodiscard]] bool owns_timer(const Timer& timer) const override { return timer.subject.type == Subject::Type::entity; }
  [[nodiscard]] std::unique_ptr<Transaction> begin(Turn turn) override;
  void tell(const WriteSet& writes, Changes& out) const override;
  void opened(Time now, Duration short_lease) override { opened_at_ = now, grace_ = short_lease; }
  void forget() override { state_.forget(); }

  [[nodiscard]] const MessagesOptions& options() const { return options_; }
  [[nodiscard]] BusState& state() { return state_; }
  // Receivers that could not reach the server while it was away are not taken for gone before.
  [[nodiscard]] Time opened_at() const { return opened_at_; }
  [[nodiscard]] Duration grace() const { return grace_; }

  struct Counts {
    metrics::Counter *sent = nullptr, *duplicates = nullptr, *handed_out = nullptr, *completed = nullptr, *redelivered = nullptr,
                     *dead_lettered = nullptr, *expired = nullptr;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] EntityGauges& gauges() { return gauges_; }

 private:
  const MessagesOptions options_;
  BusState state_;
  Time opened_at_{};
  Duration grace_{};
  Counts counts_;
  EntityGauges gauges_;
};

}  // namespace baton::engine
