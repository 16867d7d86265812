// Handing out: work that waits meets workers who wait, in the same transaction that dispatched it where both
// are there already.
#include "base/mutant.hpp"
#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

Result<> Writer::Batch::hand_out() {
  std::map<QueueKey, std::vector<NodeKey>> fresh;
  for (Dispatched& d : journal_.dispatched) {
    QueueKey key{d.tenant, d.queue};
    if (writer_.queues_.find(key)) fresh[std::move(key)].push_back({d.job_id, d.node_id});
  }
  for (const QueueKey& key : writer_.hungry_) fresh[key];
  for (auto& [key, nodes] : fresh) {
    services_.push_back({.key = key, .fresh = std::move(nodes), .served = {}});
    TRY(serve(services_.back()));
  }
  return {};
}

// The next of a queue, oldest first: what is known to wait, then what the store has beyond that, then what
// this batch dispatched.
Result<std::vector<NodeKey>> Writer::Batch::candidates(Service& service, std::size_t limit, bool& refilled) {
  Queue& queue = *writer_.queues_.find(service.key);
  std::vector<NodeKey> next;
  if (queue.ready.empty() && !queue.complete && !refilled) {
    refilled = true;
    TRY_ASSIGN(std::vector<NodeKey> stored, writer_.store_.waiting(service.key, Queue::window));
    if (MUTANT(lose_queue_on_restart)) stored.clear();
    queue.complete = stored.size() < Queue::window;
    queue.ready.assign(std::make_move_iterator(stored.begin()), std::make_move_iterator(stored.end()));
  }
  while (next.size() < limit && !queue.ready.empty()) {
    next.push_back(std::move(queue.ready.front()));
    queue.ready.pop_front();
  }
  if (queue.ready.empty() && queue.complete) {
    const std::size_t take = std::min(limit - next.size(), service.fresh.size());
    next.insert(next.end(), service.fresh.begin(), service.fresh.begin() + static_cast<std::ptrdiff_t>(take));
    service.fresh.erase(service.fresh.begin(), service.fresh.begin() + static_cast<std::ptrdiff_t>(take));
  }
  return next;
}

Result<> Writer::Batch::serve(Service& service) {
  Queue* queue = writer_.queues_.find(service.key);
  if (!queue) return {};
  auto poll = queue->polls.begin();
  bool refilled = false;
  PollReply reply;
  const auto next_poll = [&] {
    service.served.emplace_back(poll->id, std::exchange(reply, {}));
    ++poll;
  };
  while (poll != queue->polls.end()) {
    if (reply.jobs.empty() && poll->waiter->gone()) {
      next_poll();
      continue;
    }
    const std::size_t room = writer_.options_.handouts_max - handouts_;
    if (room == 0) break;
    TRY_ASSIGN(const std::vector<NodeKey> keys,
               candidates(service, std::min(room, poll->poll.max - reply.jobs.size()), refilled));
    if (keys.empty()) break;
    LoadRequest request;
    for (const NodeKey& key : keys) {
      const Run* known = run(key.job_id);
      const auto node = known ? known->definition->find(key.node_id) : std::nullopt;
      if (known && node && known->has(*node)) continue;
      request.jobs.push_back(key.job_id);
      request.nodes.push_back(key);
    }
    TRY(load_runs(std::move(request)));
    for (const NodeKey& key : keys)
      if (auto handout = give(key, poll->poll)) reply.jobs.push_back(*std::move(handout));
    handouts_ += keys.size();
    if (reply.jobs.size() == poll->poll.max) next_poll();
  }
  const bool served_some = !reply.jobs.empty();
  if (served_some) next_poll();
  // Somebody still waits, and something may still wait too: the next batch goes on.
  if (poll != queue->polls.end() &&
      (!queue->ready.empty() || !queue->complete || handouts_ >= writer_.options_.handouts_max))
    still_hungry_.insert(service.key);
  return {};
}

std::optional<Handout> Writer::Batch::give(const NodeKey& key, const Poll& poll) {
  Run* found = run(key.job_id);
  if (!found) return std::nullopt;
  const auto node = found->definition->find(key.node_id);
  if (!node || !found->has(*node)) return std::nullopt;
  if (!workflow::hand_out(*found, *node, poll.worker, poll.heartbeats, writer_.options_.policy, now_,
                          journal_))
    return std::nullopt;
  const NodeState& state = found->at(*node).state;
  const Node& definition = found->definition->nodes[*node];
  return Handout{.task_id = *state.task_id,
                 .job_id = state.job_id,
                 .node_id = state.node_id,
                 .handler = definition.handler,
                 .params = *task_params(*found, *node),
                 .queue = *state.queue,
                 .timeout = definition.timeout,
                 .retry_count = state.retry_count,
                 .delivery_count = state.delivery_count,
                 .lease = lease_token(state),
                 .lease_until = *state.lease_until,
                 .traceparent = found->job.traceparent};
}

}  // namespace baton::engine
