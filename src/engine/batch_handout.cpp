// Handing out: work that waits meets workers who wait, in the same transaction that dispatched it where both
// are there already.
#include "base/mutant.hpp"
#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

namespace {
// Params may be large: a reply and a batch are bounded by what they carry too.
constexpr std::size_t reply_bytes_max = std::size_t{8} << 20;
constexpr std::size_t batch_bytes_max = std::size_t{64} << 20;
}  // namespace

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
  std::size_t wanted = 0;
  std::vector<const WaitingPoll*> polls;
  for (const auto& [id, poll] : queue->polls) {
    if (poll.waiter->gone()) {
      service.served.emplace_back(id, PollReply{});
    } else if (wanted < writer_.options_.handouts_max) {
      polls.push_back(&poll);
      wanted += poll.poll.max;
    }
  }
  auto poll = polls.begin();
  bool refilled = false;
  PollReply reply;
  std::size_t reply_bytes = 0;
  const auto next_poll = [&] {
    service.served.emplace_back((*poll)->id, std::exchange(reply, {}));
    reply_bytes = 0;
    ++poll;
  };
  while (poll != polls.end() && handouts_ < writer_.options_.handouts_max &&
         handout_bytes_ < batch_bytes_max) {
    TRY_ASSIGN(std::vector<NodeKey> keys,
               candidates(service, std::min(writer_.options_.handouts_max - handouts_, wanted), refilled));
    if (keys.empty()) break;
    TRY(load_tasks(keys));
    std::size_t dealt = 0;
    for (; dealt < keys.size() && poll != polls.end() && handout_bytes_ < batch_bytes_max; ++dealt) {
      auto handout = give(keys[dealt], (*poll)->poll);
      if (!handout) continue;
      ++handouts_;
      --wanted;
      reply_bytes += handout->params.text.size();
      handout_bytes_ += handout->params.text.size();
      reply.jobs.push_back(*std::move(handout));
      if (reply.jobs.size() == (*poll)->poll.max || reply_bytes > reply_bytes_max) next_poll();
    }
    // What nobody had room for waits on, in its place.
    for (std::size_t i = keys.size(); i > dealt; --i) queue->ready.push_front(std::move(keys[i - 1]));
  }
  if (!reply.jobs.empty()) next_poll();
  // Somebody still waits, and something may still wait too: the next batch goes on.
  if (poll != polls.end() && (!queue->ready.empty() || !queue->complete || !service.fresh.empty()))
    still_hungry_.insert(service.key);
  return {};
}

Result<> Writer::Batch::load_tasks(const std::vector<NodeKey>& keys) {
  LoadRequest request;
  for (const NodeKey& key : keys) {
    const Run* known = run(key.job_id);
    const auto node = known ? known->definition->find(key.node_id) : std::nullopt;
    if (known && node && known->has(*node)) continue;
    request.jobs.push_back(key.job_id);
    request.nodes.push_back(key);
  }
  return load_runs(std::move(request));
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
