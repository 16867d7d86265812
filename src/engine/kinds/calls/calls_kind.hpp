// Service calls as a kind of the engine.
#pragma once

#include "engine/kind.hpp"

namespace baton::engine {

class CallsKind final : public Kind {
 public:
  [[nodiscard]] bool owns(Subject::Type type) const override { return type == Subject::Type::call; }
  [[nodiscard]] std::unique_ptr<Transaction> begin(Turn turn) override;
  void tell(const WriteSet& writes, Changes& out) const override;
};

}  // namespace baton::engine
