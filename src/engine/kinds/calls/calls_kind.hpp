// Service calls as a kind of the engine.
#pragma once

#include <map>

#include "engine/kind.hpp"
#include "engine/kinds/calls/options.hpp"

namespace baton::engine {

class CallsKind final : public Kind {
 public:
  explicit CallsKind(const CallsOptions& options) : scheduled_(options.scheduled) {}

  [[nodiscard]] bool owns(Subject::Type type) const override { return type == Subject::Type::call; }
  [[nodiscard]] std::unique_ptr<Transaction> begin(Turn turn) override;
  void tell(const WriteSet& writes, Changes& out) const override;
  void perform(std::any what) override;
  void forget() override { under_way_.clear(); }

  // Calls that are being made, as their streams have them: their ends come soon, and need not load them.
  [[nodiscard]] const call::Call* under_way(const call::CallKey& key) const;
  void remember(const call::Writes& written);

 private:
  const std::function<void(std::vector<DueCall>)> scheduled_;
  std::map<call::CallKey, call::Call> under_way_;
};

}  // namespace baton::engine
