// Service calls as a kind of the engine.
#pragma once

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

 private:
  const std::function<void(std::vector<DueCall>)> scheduled_;
};

}  // namespace baton::engine
