#include "engine/matching/matching.hpp"

#include <algorithm>

namespace baton::engine {

void Matching::add_poll(Poll poll, std::shared_ptr<Waiter> waiter, Time now) {
  QueueKey key{poll.tenant, poll.queue};
  const std::uint64_t id = next_id_++;
  deadlines_.insert({poll.wait_until, id, key});
  if (poll.is_listed) workers_.polled(poll, now);
  queues_.add_poll(key, {id, std::move(poll), std::move(waiter)});
  to_match_.insert(std::move(key));
}

void Matching::expect(Effects& effects) {
  for (Effect& effect : effects)
    std::visit(overloaded{
                   [&](ServePoll& e) { expect(e); },
                   [&](Await& e) { expect(e); },
                   [&](Enqueue& e) { enqueue(e); },
                   [&](MatchAgain& e) { expect(e); },
                   [](auto&) {},
               },
               effect);
}

void Matching::withdraw(Effects& effects) {
  for (Effect& effect : effects) {
    if (auto* serving = std::get_if<ServePoll>(&effect); serving && serving->served) {
      WaitingPoll poll = *std::exchange(serving->served, std::nullopt);
      deadlines_.insert({poll.poll.wait_until, poll.id, serving->queue});
      queues_.add_poll(serving->queue, std::move(poll));
    } else if (auto* wait = std::get_if<Await>(&effect); wait && wait->expected != 0) {
      *wait = take_wait(wait->expected);
    } else if (auto* again = std::get_if<MatchAgain>(&effect); again && again->served_last) {
      std::swap(*again->served_last, served_last_);
    }
  }
}

void Matching::expect(ServePoll& serving) {
  serving.served = queues_.remove_poll(serving.queue, serving.poll);
  if (serving.served) deadlines_.erase({serving.served->poll.wait_until, serving.poll, std::nullopt});
}

// The effect keeps which queue it was before, for withdraw().
void Matching::expect(MatchAgain& again) {
  to_match_ = std::move(again.queues);
  if (again.served_last) std::swap(*again.served_last, served_last_);
}

PollReply Matching::answer_poll(ServePoll serving) {
  if (serving.served) {
    const Poll& poll = serving.served->poll;
    for (const Handout& task : serving.reply.jobs)
      if (poll.is_listed) workers_.took(poll.tenant, poll.worker, task.task_id, task.lease_until);
    serving.served->waiter->deliver(std::exchange(serving.reply, {}));
  }
  queues_.drop_if_idle(serving.queue);
  return std::move(serving.reply);
}

void Matching::enqueue(Enqueue& work) {
  Queue* queue = queues_.find(work.queue);
  while (queue && !work.tasks.empty()) queue->append(std::move(work.tasks.extract(work.tasks.begin()).value()));
}

void Matching::forget_waiting() {
  queues_.forget_ready();
  match_all();
}

void Matching::match_all() {
  for (QueueKey& key : queues_.keys()) to_match_.insert(std::move(key));
}

std::vector<WorkerInfo> Matching::list_workers(const std::optional<Tenant>& tenant, Time now) const {
  std::vector<WorkerInfo> all = workers_.list(tenant, now);
  std::set<std::pair<Tenant, std::string>> polling;
  queues_.each_poll([&](const QueueKey& key, const WaitingPoll& poll) {
    polling.emplace(key.tenant, poll.poll.worker);
  });
  for (WorkerInfo& worker : all) worker.polling = polling.contains({worker.tenant, worker.worker});
  return all;
}

QueuesReply Matching::look_at(const LookAtQueues& look, Time now) const {
  QueuesReply reply{.since = since_};
  for (const std::string& queue : look.queues) {
    const QueueKey key{look.tenant, queue};
    const auto seen = workers_.on_queue(key, now);
    reply.queues.push_back(
        {.queue = queue, .polled = is_polled(key), .workers = seen.workers, .last_poll = seen.last_poll});
  }
  return reply;
}

void Matching::expect(Await& wait) {
  const std::uint64_t id = next_id_++;
  by_subject_[wait.subject].push_back(id);
  const Time until = wait.until;
  waits_.emplace(id, std::move(wait));
  wait.until = until;
  wait.expected = id;
}

void Matching::begin_wait(const Await& wait) {
  if (waits_.contains(wait.expected)) deadlines_.insert({wait.until, wait.expected, std::nullopt});
}

Await Matching::take_wait(std::uint64_t id) {
  const auto it = waits_.find(id);
  ENSURE(it != waits_.end());
  Await wait = std::move(it->second);
  waits_.erase(it);
  deadlines_.erase({wait.until, id, std::nullopt});
  const auto others = by_subject_.find(wait.subject);
  std::erase(others->second, id);
  if (others->second.empty()) by_subject_.erase(others);
  return wait;
}

void Matching::tell_end(const Ended& end) {
  const auto found = by_subject_.find(end.subject);
  if (found == by_subject_.end()) return;
  const std::vector<std::uint64_t> ids = found->second;
  for (const std::uint64_t id : ids) {
    const Await wait = take_wait(id);
    Reply reply = end.reply;
    // They all hear the same, but for who made it.
    std::visit(
        [&wait](auto& said) {
          if constexpr (requires { said.created; }) said.created = wait.created;
        },
        reply);
    wait.waiter->deliver(std::move(reply));
  }
}

std::vector<Item> Matching::take_overdue_waits(Time now) {
  std::vector<Item> questions;
  for (auto it = deadlines_.begin(); it != deadlines_.end() && it->at <= now;) {
    const Deadline& deadline = *it++;
    if (deadline.poll) continue;
    Await wait = take_wait(deadline.id);
    questions.push_back({std::move(wait.question), std::move(wait.waiter)});
  }
  return questions;
}

std::vector<Item> Matching::take_all_waits() { return take_overdue_waits(Time::max()); }

void Matching::time_out_polls(Time now) {
  for (auto it = deadlines_.begin(); it != deadlines_.end() && it->at <= now;) {
    if (!it->poll) {
      ++it;
      continue;
    }
    if (const auto poll = queues_.remove_poll(*it->poll, it->id)) poll->waiter->deliver(PollReply{});
    queues_.drop_if_idle(*it->poll);
    it = deadlines_.erase(it);
  }
}

void Matching::end_all_polls() { time_out_polls(Time::max()); }

std::optional<Time> Matching::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->at;
}

}  // namespace baton::engine
