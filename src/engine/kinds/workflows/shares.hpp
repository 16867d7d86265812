// What each tenant has cost. A batch has a budget of steps (core/workflow/machine/run.hpp); whoever spent more
// than a share of it is in debt, and evaluates nothing while others have something to do. Debts shrink with every
// turn, so that nobody waits for ever. Of the engine's thread.
#pragma once

#include <cstdint>
#include <map>

#include "core/workflow/machine/rows.hpp"

namespace baton::engine {

class Shares {
 public:
  explicit Shares(std::int64_t share) : share_(share) {}

  void next_turn();
  // Is a debt from the next turn on.
  void charge(const workflow::Tenant& tenant, std::int64_t steps);
  [[nodiscard]] std::int64_t debt(const workflow::Tenant& tenant) const;
  [[nodiscard]] bool has_debts() const { return !debts_.empty(); }

 private:
  const std::int64_t share_;                        // of the steps of a batch
  std::map<workflow::Tenant, std::int64_t> spent_;  // in this turn
  std::map<workflow::Tenant, std::int64_t> debts_;  // of turns before, all above zero
};

}  // namespace baton::engine
