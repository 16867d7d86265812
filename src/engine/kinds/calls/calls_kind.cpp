#include "engine/kinds/calls/calls_kind.hpp"

#include <algorithm>

#include "base/mutant.hpp"
#include "engine/kinds/calls/calls.hpp"

namespace baton::engine {
namespace {

template <class Command>
concept about_calls = requires(const Command& command, call::LoadRequest& needs) { Calls::want(command, needs); };

// A repeat names a call and writes its whole request once more, of a mebibyte perhaps: so many have their turn in one
// batch. Whatever else commands bring is bounded by what they carry, or by the places for calls.
constexpr std::size_t repeats_max = 64;

// They have a time now: whoever makes them should know.
struct CallsScheduled {
  std::vector<DueCall> calls;
};

class CallTransaction final : public Transaction {
 public:
  CallTransaction(CallsKind& kind, Turn turn) : kind_(kind), turn_(turn) { calls_.emplace(turn.now); }

  Result<> load(std::span<const Item> items, std::span<const Timer>) override {
    call::LoadRequest needs;
    std::size_t repeats = 0;
    for (const Item& item : items) {
      if (std::holds_alternative<RepeatCall>(item.command) && ++repeats > repeats_max) continue;  // is_full() comes before it
      std::visit(overloaded{
                     [&](const about_calls auto& command) { Calls::want(command, needs); },
                     [](const auto&) {},
                 },
                 item.command);
    }
    if (needs.streams.empty()) take_under_way(needs);  // who asks for a stream is told whether there is a row
    if (needs.calls.empty() && needs.streams.empty() && needs.requests.empty()) return {};
    TRY_ASSIGN(auto loaded, turn_.store.load(needs));
    calls_->add(std::move(loaded));
    const auto more = calls_->named_by_keys();
    if (more.calls.empty()) return {};
    TRY_ASSIGN(auto named, turn_.store.load(more));
    calls_->add(std::move(named));
    return {};
  }

  [[nodiscard]] bool is_full() const override { return repeats_ >= repeats_max; }

  void decide(std::size_t, const Item& item) override {
    if (std::holds_alternative<RepeatCall>(item.command)) ++repeats_;
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

  Result<> restart() override {
    calls_.emplace(turn_.now);
    repeats_ = 0;
    return {};
  }

  void committed(const WriteSet& written) override { kind_.remember(written.calls); }

  void write(WriteSet& out, std::int64_t commit_number) override {
    out.calls = calls_->take_writes();
    auto calls = calls_->take_scheduled();
    for (DueCall& call : calls) call.commit_number = commit_number;
    if (!calls.empty()) turn_.effects.emplace_back(OfKind{&kind_, CallsScheduled{std::move(calls)}});
  }

 private:
  void take_under_way(call::LoadRequest& needs) {
    call::Loaded known;
    std::erase_if(needs.calls, [&](const call::CallKey& key) {
      const call::Call* call = kind_.under_way(key);
      if (call) known.calls.push_back(*call);
      return call != nullptr;
    });
    calls_->add(std::move(known));
  }

  CallsKind& kind_;
  const Turn turn_;
  std::optional<Calls> calls_;
  std::size_t repeats_ = 0;  // decided
};

}  // namespace

std::unique_ptr<Transaction> CallsKind::begin(Turn turn) {
  return std::make_unique<CallTransaction>(*this, turn);
}

const call::Call* CallsKind::under_way(const call::CallKey& key) const {
  const auto found = under_way_.find(key);
  return found == under_way_.end() ? nullptr : &found->second;
}

void CallsKind::remember(const call::Writes& written) {
  constexpr std::size_t calls_max = 4'096;  // more are not made at once
  for (const auto* calls : {&written.calls_new, &written.calls_changed, &written.calls_rebuilt})
    for (const call::Call& call : *calls) {
      under_way_.erase(call.key());
      if (call.status == call::Status::running && under_way_.size() < calls_max) under_way_.emplace(call.key(), call);
    }
}

void CallsKind::perform(std::any what) {
  if (scheduled_) scheduled_(std::any_cast<CallsScheduled>(std::move(what)).calls);
}

// The last event of a call led to the status that its row has now.
void CallsKind::tell(const WriteSet& all, Changes& out) const {
  const call::Writes& writes = all.calls;
  std::vector<const call::Call*> rows;
  for (const auto* calls : {&writes.calls_new, &writes.calls_changed, &writes.calls_rebuilt})
    for (const call::Call& call : *calls) rows.push_back(&call);
  const auto key_of = [](const call::Call* call) {
    return std::pair<std::string_view, std::string_view>(call->service_call_id.value, call->tenant_id.value);
  };
  std::ranges::sort(rows, {}, key_of);
  for (const call::EventRow& event : writes.events_new) {
    if (MUTANT(feed_skips_calls) && event.event_type == call::EventType::started) continue;
    Change change{.subject = Subject::Type::call,
                  .tenant = event.tenant_id.value,
                  .id = event.service_call_id.value,
                  .what = name(event.event_type),
                  .version = event.version};
    const std::pair key(change.id, change.tenant);
    const auto row = std::ranges::lower_bound(rows, key, {}, key_of);
    if (row != rows.end() && key_of(*row) == key && (*row)->version == event.version)
      change.status = name((*row)->status);
    out.add(change);
  }
}

}  // namespace baton::engine
