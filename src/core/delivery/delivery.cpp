#include "core/delivery/delivery.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace baton::delivery {

Time lease_end(Time now, Time deadline, LeaseTime time) {
  return time ? std::min(now + *time, deadline) : deadline;
}

Time timer_after_renewal(const std::optional<Time>& timer, Time lease_until) {
  return timer ? std::min(*timer, lease_until) : lease_until;
}

Expiry expiry(const Lease& lease, const Policy& policy, Time now) {
  if (lease.until > now && !MUTANT(lease_cut_short)) return StillHeld{lease.until};
  const Time patience = policy.opened_at + policy.short_lease;
  if (lease.begun < policy.opened_at && now < patience) return StillHeld{patience};
  if (now >= lease.deadline) return TimedOut{};
  if (lease.deliveries < policy.deliveries_max) return Redeliver{};
  return GivenUp{};
}

Duration RetryDelay::before(std::int32_t attempt) const {
  if (!doubles) return first;
  Duration delay = std::min(first, most);
  if (delay <= Duration::zero()) return Duration::zero();  // doubling would never reach the cap
  for (std::int32_t i = 1; i < attempt && delay < most; ++i)
    delay = delay > most / 2 ? most : delay * 2;  // compared by halves, so that nothing overflows
  return delay;
}

namespace {
std::int32_t bytes_of(const LogText& line) {
  constexpr std::size_t overhead = 32, most = std::size_t{1} << 30;
  return static_cast<std::int32_t>(std::min(line.text.size() + overhead, most));
}
}  // namespace

std::size_t take_log(std::int32_t& bytes, std::span<const LogText> lines, const Policy& policy) {
  std::size_t taken = 0;
  for (; taken < lines.size(); ++taken) {
    const std::int32_t more = bytes_of(lines[taken]);
    if (bytes > policy.log_bytes_max - more) break;
    bytes += more;
  }
  return taken;
}

}  // namespace baton::delivery
