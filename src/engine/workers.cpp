#include "engine/workers.hpp"

#include <algorithm>

namespace baton::engine {

using namespace std::chrono_literals;
using workflow::Tenant;

namespace {

std::int64_t minute_of(Time now) { return to_millis(now) / 60'000; }

}  // namespace

Workers::Worker* Workers::seen(const Tenant& tenant, const std::string& worker, Time now) {
  if (worker.empty() || tenant.empty()) return nullptr;  // nameless, or the server's own
  const auto [it, is_new] = workers_.try_emplace({tenant, worker});
  if (is_new) it->second.first_seen = now;
  it->second.last_seen = now;
  if (is_new && workers_.size() > workers_max) {
    const auto oldest =
        std::ranges::min_element(workers_, {}, [](const auto& entry) { return entry.second.last_seen; });
    workers_.erase(oldest);
  }
  return &it->second;
}

void Workers::polled(const Poll& poll, Time now) {
  last_polls_[{poll.tenant, poll.queue}] = now;
  if (last_polls_.size() > workers_max) last_polls_.erase(last_polls_.begin());
  if (Worker* worker = seen(poll.tenant, poll.worker, now)) worker->queues.insert(poll.queue);
}

void Workers::beat(const Tenant& tenant, const Heartbeat& heartbeat, Time now) {
  Worker* worker = seen(tenant, heartbeat.worker, now);
  if (!worker) return;
  worker->running.clear();
  for (const TaskLease& task : heartbeat.tasks)
    if (worker->running.size() < running_max) worker->running.insert(task.task_id);
}

void Workers::took(const Tenant& tenant, const std::string& worker, const std::string& task_id) {
  const auto it = workers_.find({tenant, worker});
  if (it != workers_.end() && it->second.running.size() < running_max) it->second.running.insert(task_id);
}

void Workers::reported(const Tenant& tenant, const std::string& name, const std::string& task_id,
                       bool completed, Time now) {
  Worker* worker = seen(tenant, name, now);
  if (!worker) return;
  worker->running.erase(task_id);
  ++(completed ? worker->completed : worker->failed);
  if (const auto minute = minute_of(now); minute != worker->minute) {
    worker->in_minute_before = minute == worker->minute + 1 ? worker->in_minute : 0;
    worker->in_minute = 0;
    worker->minute = minute;
  }
  ++worker->in_minute;
}

std::vector<WorkerInfo> Workers::list(const std::optional<Tenant>& tenant, Time now) const {
  std::vector<WorkerInfo> all;
  for (const auto& [key, worker] : workers_) {
    if (tenant && key.first != *tenant) continue;
    WorkerInfo info{.tenant = key.first,
                    .worker = key.second,
                    .queues = {worker.queues.begin(), worker.queues.end()},
                    .first_seen_at = worker.first_seen,
                    .last_seen_at = worker.last_seen,
                    .running_count = worker.running.size(),
                    .completed = worker.completed,
                    .failed = worker.failed};
    const auto minute = minute_of(now);
    if (worker.minute == minute) info.last_minute = std::max(worker.in_minute, worker.in_minute_before);
    if (worker.minute + 1 == minute) info.last_minute = worker.in_minute;
    for (const auto& task : worker.running)
      if (info.running.size() < 20) info.running.push_back(task);
    all.push_back(std::move(info));
  }
  return all;
}

Workers::QueueReport Workers::on_queue(const QueueKey& queue, Time now) const {
  QueueReport report;
  if (const auto it = last_polls_.find(queue); it != last_polls_.end()) report.last_poll = it->second;
  for (const auto& [key, worker] : workers_) {
    if (key.first != queue.tenant || !worker.queues.contains(queue.queue) || worker.last_seen < now - 1min)
      continue;
    ++report.workers;
    report.running += worker.running.size();
  }
  return report;
}

}  // namespace baton::engine
