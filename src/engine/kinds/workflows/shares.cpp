#include "engine/kinds/workflows/shares.hpp"

#include <iterator>

namespace baton::engine {

void Shares::next_turn() {
  for (const auto& [tenant, steps] : spent_) debts_[tenant] += steps;
  spent_.clear();
  for (auto debt = debts_.begin(); debt != debts_.end();)
    debt = (debt->second -= share_) > 0 ? std::next(debt) : debts_.erase(debt);
}

void Shares::charge(const workflow::Tenant& tenant, std::int64_t steps) {
  if (steps > 0) spent_[tenant] += steps;
}

std::int64_t Shares::debt(const workflow::Tenant& tenant) const {
  const auto debt = debts_.find(tenant);
  return debt == debts_.end() ? 0 : debt->second;
}

}  // namespace baton::engine
