#include "http/json/pool_counts.hpp"

namespace baton::http {
namespace {

constexpr std::size_t counted_max = 10'000;

}  // namespace

Task<Result<>> count_pools(Context& context, std::vector<EntityInfo>& entities) {
  std::vector<std::string> pools;
  for (const EntityInfo& each : entities)
    if (each.pool) pools.push_back(*each.pool);
  if (pools.empty()) co_return Result<>{};
  auto question = [tenant = context.request.tenant, pools](Reads& reads) { return reads.queue_counts(tenant, pools, counted_max); };
  const auto counts = co_await context.read(std::move(question));
  if (!counts) co_return std::unexpected(counts.error());
  for (EntityInfo& each : entities) {
    const auto found = each.pool ? counts->find(*each.pool) : counts->end();
    if (found == counts->end()) continue;
    each.counters.active = found->second.waiting;
    each.counters.dead = found->second.dead;
    each.counts_are_at_least = found->second.is_at_least;
  }
  co_return Result<>{};
}

}  // namespace baton::http
