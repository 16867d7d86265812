// Queues in which work waits and on which nobody works.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/json/answer.hpp"
#include "ports/reads.hpp"

namespace baton::http {

struct NoWorker {
  QueueBacklog backlog;
  Time since{};                   // nobody has asked since then, or nothing has waited before
  std::optional<Time> last_poll;  // none: not since the server came up
};

// "nobody works on queue 'x' since …: 28 jobs wait"
[[nodiscard]] std::string describe(const NoWorker& queue);
void append_no_worker(std::string& out, const NoWorker& queue);

// Of these queues those on which nobody has worked for a minute. After a start all have a minute to come back.
Task<std::expected<std::vector<NoWorker>, Refused>> find_no_workers(Context& context, workflow::Tenant tenant,
                                                                    std::vector<QueueBacklog> backlogs);
// The same of the queues of runbooks in which jobs of this batch wait; the backlog is that of the batch.
Task<std::expected<std::vector<NoWorker>, Response>> no_workers_of_batch(Context& context, std::int64_t batch_id);

}  // namespace baton::http
