#include "engine/kinds/calls/calls_kind.hpp"

#include "base/mutant.hpp"
#include "engine/kinds/calls/calls.hpp"

namespace baton::engine {
namespace {

template <class Command>
concept about_calls = requires(const Command& command, call::LoadRequest& needs) { Calls::want(command, needs); };

class CallTransaction final : public Transaction {
 public:
  explicit CallTransaction(Turn turn) : turn_(turn) { calls_.emplace(turn.now); }

  Result<> load(std::span<const Item> items, std::span<const Timer>) override {
    call::LoadRequest needs;
    for (const Item& item : items)
      std::visit(overloaded{
                     [&](const about_calls auto& command) { Calls::want(command, needs); },
                     [](const auto&) {},
                 },
                 item.command);
    if (needs.calls.empty() && needs.streams.empty()) return {};
    TRY_ASSIGN(auto loaded, turn_.store.load(needs));
    calls_->add(std::move(loaded));
    const auto more = calls_->named_by_keys();
    if (more.calls.empty()) return {};
    TRY_ASSIGN(auto named, turn_.store.load(more));
    calls_->add(std::move(named));
    return {};
  }

  void decide(std::size_t, const Item& item) override {
    Reply reply = std::visit(overloaded{
                                 [&](const about_calls auto& command) -> Reply { return calls_->decide(command); },
                                 [](const auto&) -> Reply {
                                   ENSURE(false);  // another kind's
                                   return {};
                                 },
                             },
                             item.command);
    if (MUTANT(reply_before_commit)) return item.waiter->deliver(std::move(reply));
    turn_.effects.emplace_back(Answer{item.waiter, std::move(reply)});
  }

  // When a call is due is known to whoever makes the calls; there are no timers for it.
  void fire(const Timer&) override { ENSURE(false); }
  void put_off(const Timer&, Time) override { ENSURE(false); }

  Result<> restart() override {
    calls_.emplace(turn_.now);
    return {};
  }

  void write(WriteSet& out, std::int64_t) override {
    out.calls = calls_->take_writes();
    if (auto calls = calls_->take_scheduled(); !calls.empty())
      turn_.effects.emplace_back(CallsScheduled{std::move(calls)});
  }

 private:
  const Turn turn_;
  std::optional<Calls> calls_;
};

}  // namespace

std::unique_ptr<Transaction> CallsKind::begin(Turn turn) {
  return std::make_unique<CallTransaction>(turn);
}

}  // namespace baton::engine
