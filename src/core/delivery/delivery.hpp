// How work is given to workers, at least once: leases that run out, deliveries that are counted, retries that
// wait, logs that are bounded. One piece for tasks of workflows and for jobs of runbooks; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/time.hpp"

namespace baton::delivery {

struct Policy {
  Duration short_lease = std::chrono::seconds{30};  // of workers that promise to renew theirs
  std::int32_t deliveries_max = 10;                 // then the work is dead: given up, listed, replayed by hand
  std::int32_t log_bytes_max = 1 << 20;             // stored of one attempt
  // When the server came (back). Whoever was working then gets one short lease's time to report before it is
  // given up.
  Time opened_at{};
};

// ---- leases

// What one delivery has: when it began, how long the worker has it, and when its time is over whatever it renews.
struct Lease {
  Time begun{};
  Time until{};
  Time deadline{};
  std::int32_t deliveries = 1;  // this one included
};

// How long a worker has its work before it must renew the lease; none: it does not renew, and has it until the deadline.
using LeaseTime = std::optional<Duration>;
// Until when a lease lasts that is given or renewed now.
[[nodiscard]] Time lease_end(Time now, Time deadline, LeaseTime time);

// The timer of a renewed lease is moved only when it would be late; an early one finds the longer lease when it
// fires, and waits on.
[[nodiscard]] Time timer_after_renewal(const std::optional<Time>& timer, Time lease_until);

// What a lease's timer finds.
struct StillHeld {
  Time until{};  // look again then; the lease lasts so long
};
struct TimedOut {};    // its time is over: the attempt has failed
struct Redeliver {};   // the worker went silent: somebody else gets it
struct GivenUp {};     // so did all before it
using Expiry = std::variant<StillHeld, TimedOut, Redeliver, GivenUp>;
[[nodiscard]] Expiry expiry(const Lease& lease, const Policy& policy, Time now);

// ---- retries

enum class Backoff { fixed, exponential };

struct RetryDelay {
  Duration first{};
  bool doubles = false;
  Duration most{};  // of one that doubles
  // The wait before attempt `attempt`; 1 is the first retry.
  [[nodiscard]] Duration before(std::int32_t attempt) const;
};

// ---- logs

struct LogText {
  std::string stream;
  Time at{};
  std::string text;
};
// How many of the lines, from the first, there is still room for; `bytes` grows by them.
[[nodiscard]] std::size_t take_log(std::int32_t& bytes, std::span<const LogText> lines, const Policy& policy);

// ---- workers

// Who works on a queue.
struct QueueWorkers {
  std::size_t workers = 0;  // seen on it within the last minute
  std::size_t running = 0;  // tasks that those are running
  std::optional<Time> last_poll;
  // Why what waits there cannot be published through the external broker, in words; none: it can be, or is not published.
  std::optional<std::string> trouble;
};

}  // namespace baton::delivery
