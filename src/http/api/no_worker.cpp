#include "http/api/no_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "http/json/problem.hpp"

namespace baton::http {

namespace {

constexpr std::chrono::minutes patience{1};

std::optional<NoWorker> judge(const QueueLook& look, QueueBacklog backlog, Time server_since, Time now) {
  const Time quiet_since = look.last_poll.value_or(server_since);
  if (look.polled || look.workers > 0 || now - quiet_since < patience) return std::nullopt;
  Time since = backlog.since.value_or(quiet_since);
  if (look.last_poll) since = std::max(since, quiet_since);
  return NoWorker{std::move(backlog), since, look.last_poll};
}

}  // namespace

std::string describe(const NoWorker& queue) {
  const std::int64_t n = queue.backlog.waiting;
  const std::string waits = fmt::format("{}{} {}", n, n >= backlog_max ? " or more" : "", n == 1 ? "job waits" : "jobs wait");
  if (!queue.last_poll)
    return fmt::format("no worker has asked for work on queue '{}' since the server came up: {} there, since {}",
                       queue.backlog.queue, waits, to_iso(queue.since));
  return fmt::format("no worker is on queue '{}', since {}: {} there", queue.backlog.queue, to_iso(queue.since), waits);
}

void append_no_worker(std::string& out, const NoWorker& queue) {
  append_object(out, "queue", queue.backlog.queue, "since", queue.since, "waiting", queue.backlog.waiting, "last_poll",
                queue.last_poll, "message", describe(queue));
}

Task<std::expected<std::vector<NoWorker>, Refused>> find_no_workers(Context& context, workflow::Tenant tenant,
                                                                    std::vector<QueueBacklog> backlogs) {
  std::vector<NoWorker> found;
  if (backlogs.empty()) co_return found;
  LookAtQueues question{.tenant = std::move(tenant)};
  for (const QueueBacklog& backlog : backlogs) question.queues.push_back(backlog.queue);
  auto reply = co_await tell<QueuesReply>(context, std::move(question));
  if (!reply) co_return std::unexpected(std::move(reply.error()));
  const Time now = context.services.clock.now();
  for (std::size_t i = 0; i < std::min(backlogs.size(), reply->queues.size()); ++i)
    if (auto queue = judge(reply->queues[i], std::move(backlogs[i]), reply->since, now))
      found.push_back(*std::move(queue));
  co_return found;
}

Task<std::expected<std::vector<NoWorker>, Response>> no_workers_of_batch(Context& context, std::int64_t batch_id) {
  auto look = [](Reads& reads) { return reads.job_backlogs(); };
  auto all = co_await context.read(std::move(look));
  if (!all) co_return std::unexpected(problem(all.error()));
  workflow::Tenant tenant{"default"};
  auto found = co_await find_no_workers(context, std::move(tenant), *std::move(all));
  if (!found) co_return std::unexpected(problem(found.error()));
  if (found->empty()) co_return std::vector<NoWorker>{};
  auto query = [batch_id, queues = *found](Reads& reads) -> Result<std::vector<NoWorker>> {
    std::vector<NoWorker> of_batch;
    for (NoWorker queue : queues) {
      TRY_ASSIGN(queue.backlog, reads.backlog_of_batch(batch_id, queue.backlog.queue));
      if (queue.backlog.waiting > 0) of_batch.push_back(std::move(queue));
    }
    return of_batch;
  };
  auto of_batch = co_await context.read(std::move(query));
  if (!of_batch) co_return std::unexpected(problem(of_batch.error()));
  co_return *std::move(of_batch);
}

}  // namespace baton::http
