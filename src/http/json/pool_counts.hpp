// How many jobs wait in pools and how many are dead letters there, for whoever looks at their subscriptions. They are no messages: the engine's counters
// say nothing of them, and the store counts them, as far as that is cheap.
#pragma once

#include <vector>

#include "http/wire/context.hpp"

namespace baton::http {

// Puts the counts of those that are pools in place of the engine's.
Task<Result<>> count_pools(Context& context, std::vector<EntityInfo>& entities);

}  // namespace baton::http
