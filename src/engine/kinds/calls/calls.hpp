// Service calls on their way through a batch: what the commands of a batch name is loaded once, decided on in
// order, and written as events with the fold of them beside.
#pragma once

#include <map>
#include <vector>

#include "ports/call_commands.hpp"

namespace baton::engine {

class Calls {
 public:
  explicit Calls(Time now) : now_(now) {}

  // What deciding this command needs to see.
  static void want(const SubmitCalls& command, call::LoadRequest& needs);
  static void want(const RepeatCall& command, call::LoadRequest& needs);
  static void want(const ChangeCall& command, call::LoadRequest& needs);
  static void want(const StartCalls& command, call::LoadRequest& needs);
  static void want(const EndCalls& command, call::LoadRequest& needs);
  static void want(const RebuildCalls& command, call::LoadRequest& needs);
  void add(call::Loaded loaded);
  // An idempotency key names a call that nobody has asked for yet.
  [[nodiscard]] call::LoadRequest named_by_keys() const;

  [[nodiscard]] CallsReply decide(const SubmitCalls& command);
  [[nodiscard]] CallsReply decide(const RepeatCall& command);
  [[nodiscard]] CallsReply decide(const ChangeCall& command);
  [[nodiscard]] StartedReply decide(const StartCalls& command);
  [[nodiscard]] CallsReply decide(const EndCalls& command);
  [[nodiscard]] CallsReply decide(const RebuildCalls& command);

  [[nodiscard]] call::Writes take_writes();
  // Those that were given a time in this batch, for whoever waits for it.
  [[nodiscard]] std::vector<DueCall> take_scheduled();

 private:
  struct Slot {
    call::Call call;
    bool is_new = false, changed = false;
    bool has_row = true;  // false: it was folded from its events, and its row is to be written whole
  };
  using Key = std::pair<Tenant, std::string>;

  Slot* find(const call::CallKey& key);
  void record(Slot& slot, const call::Event& event, const std::string& causation_id);
  void begin_at_once(Slot& slot, const NewCall& wanted);
  // The answer to one that was made before, or whose idempotency key stands for another; none: it is new, and its
  // key is taken.
  std::optional<std::expected<CallReply, Refused>> made_before(const NewCall& wanted);
  std::expected<CallReply, Refused> submit(const NewCall& wanted, std::optional<std::string> repeat_of);

  const Time now_;
  std::map<call::CallKey, Slot> calls_;
  std::map<call::CallKey, call::Request> requests_;
  std::map<Key, call::IdempotencyKey> keys_;
  call::Writes writes_;
  std::vector<DueCall> scheduled_;
};

}  // namespace baton::engine
