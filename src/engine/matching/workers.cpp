#include "engine/matching/workers.hpp"

#include <algorithm>

namespace baton::engine {

using namespace std::chrono_literals;

namespace {

std::int64_t minute_of(Time now) { return to_millis(now) / 60'000; }

// Makes room for many at once, so that names that come only once do not cost a search each.
template <class Map, class Age>
void forget_oldest(Map& map, Age&& age) {
  std::vector<Time> ages;
  for (const auto& [key, value] : map) ages.push_back(age(value));
  const auto tenth = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 10);
  std::ranges::nth_element(ages, tenth);
  const Time limit = *tenth;
  std::erase_if(map, [&](const auto& entry) { return age(entry.second) <= limit; });
}

}  // namespace

Workers::Worker* Workers::seen(const Tenant& tenant, const std::string& worker, Time now) {
  if (worker.empty() || tenant.empty()) return nullptr;  // nameless, or the server's own
  auto it = workers_.find({tenant, worker});
  if (it == workers_.end()) {
    if (workers_.size() >= workers_max) forget_oldest(workers_, [](const Worker& w) { return w.last_seen; });
    it = workers_.try_emplace({tenant, worker}).first;
    it->second.first_seen = now;
  }
  it->second.last_seen = now;
  return &it->second;
}

void Workers::polled(const Poll& poll, Time now) {
  QueueKey queue{poll.tenant, poll.queue};
  if (last_polls_.size() >= workers_max && !last_polls_.contains(queue))
    forget_oldest(last_polls_, [](Time at) { return at; });
  last_polls_[std::move(queue)] = now;
  Worker* worker = seen(poll.tenant, poll.worker, now);
  if (worker && worker->queues.size() < queues_max) worker->queues.insert(poll.queue);
}

void Workers::beat(const Tenant& tenant, const std::string& name, const std::vector<std::string>& task_ids,
                   Time lease_until, Time now) {
  Worker* worker = seen(tenant, name, now);
  if (!worker) return;
  worker->running.clear();
  for (const std::string& task_id : task_ids)
    if (worker->running.size() < running_max) worker->running[task_id] = lease_until;
}

void Workers::took(const Tenant& tenant, const std::string& worker, const std::string& task_id,
                   Time lease_until) {
  const auto it = workers_.find({tenant, worker});
  if (it != workers_.end() && it->second.running.size() < running_max)
    it->second.running[task_id] = lease_until;
}

std::size_t Workers::running_count(const Worker& worker, Time now) {
  return static_cast<std::size_t>(
      std::ranges::count_if(worker.running, [&](const auto& task) { return task.second > now; }));
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
    if ((tenant && key.first != *tenant) || worker.last_seen < now - 1h) continue;
    WorkerInfo info{.tenant = key.first,
                    .worker = key.second,
                    .queues = {worker.queues.begin(), worker.queues.end()},
                    .first_seen_at = worker.first_seen,
                    .last_seen_at = worker.last_seen,
                    .running_count = running_count(worker, now),
                    .completed = worker.completed,
                    .failed = worker.failed};
    const auto minute = minute_of(now);
    if (worker.minute == minute) info.last_minute = std::max(worker.in_minute, worker.in_minute_before);
    if (worker.minute + 1 == minute) info.last_minute = worker.in_minute;
    for (const auto& [task, lease_until] : worker.running)
      if (lease_until > now && info.running.size() < 20) info.running.push_back(task);
    all.push_back(std::move(info));
  }
  return all;
}

delivery::QueueWorkers Workers::on_queue(const QueueKey& queue, Time now) const {
  delivery::QueueWorkers seen;
  if (const auto it = last_polls_.find(queue); it != last_polls_.end()) seen.last_poll = it->second;
  for (const auto& [key, worker] : workers_) {
    if (key.first != queue.tenant || !worker.queues.contains(queue.queue) || worker.last_seen < now - 1min)
      continue;
    ++seen.workers;
    seen.running += running_count(worker, now);
  }
  return seen;
}

}  // namespace baton::engine
