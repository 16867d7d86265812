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
constexpr std::size_t portion = 500;  // tasks that are loaded before it is looked how much they carry
}  // namespace

Result<> Writer::Batch::hand_out() {
  std::map<QueueKey, std::set<WaitingTask>> fresh;
  for (Dispatched& d : journal_.dispatched) {
    QueueKey key{d.tenant, d.queue};
    if (writer_.queues_.find(key))
      fresh[std::move(key)].insert(
          {MUTANT(priority_ignored) ? 0 : -d.priority, d.dispatched_at, {d.job_id, d.item_index, d.node_id}});
  }
  for (runbook::Queued& q : runbook_journal_.queued) {
    QueueKey key{Tenant{"default"}, std::move(q.queue)};
    if (writer_.queues_.find(key)) fresh[std::move(key)].insert({0, q.queued_at, {}, q.ref});
  }
  for (const QueueKey& key : writer_.hungry_) fresh[key];
  for (auto& [key, tasks] : fresh) {
    services_.push_back({.key = key, .fresh = std::move(tasks), .served = {}});
    TRY(serve(services_.back()));
  }
  return {};
}

// The next of a queue, in its order: of what is known to wait, what the store has beyond that, and what this
// batch dispatched.
Result<std::vector<WaitingTask>> Writer::Batch::candidates(Service& service, std::size_t limit,
                                                           bool& refilled) {
  Queue& queue = *writer_.queues_.find(service.key);
  if (queue.ready.empty() && !queue.complete && !refilled) {
    refilled = true;
    TRY_ASSIGN(std::vector<WaitingTask> stored, writer_.store_.waiting(service.key, queue.window));
    if (MUTANT(lose_queue_on_restart)) stored.clear();
    queue.complete = stored.size() < queue.window;
    queue.ready.insert(std::make_move_iterator(stored.begin()), std::make_move_iterator(stored.end()));
  }
  std::vector<WaitingTask> next;
  const auto take = [&](std::set<WaitingTask>& from) {
    next.push_back(std::move(from.extract(from.begin()).value()));
  };
  while (next.size() < limit) {
    const bool fresh_first = !service.fresh.empty() && queue.precedes_rest(*service.fresh.begin()) &&
                             (queue.ready.empty() || *service.fresh.begin() < *queue.ready.begin());
    if (fresh_first)
      take(service.fresh);
    else if (!queue.ready.empty())
      take(queue.ready);
    else
      break;
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
  // What is found to wait no longer costs a look too.
  std::size_t looks_left = 2 * writer_.options_.handouts_max;
  while (poll != polls.end() && handouts_ < writer_.options_.handouts_max &&
         handout_bytes_ < batch_bytes_max && looks_left > 0) {
    TRY_ASSIGN(std::vector<WaitingTask> tasks,
               candidates(service, std::min({writer_.options_.handouts_max - handouts_, wanted, portion}),
                          refilled));
    if (tasks.empty()) break;
    looks_left -= std::min(looks_left, tasks.size());
    TRY(load_tasks(tasks));
    std::size_t dealt = 0;
    for (; dealt < tasks.size() && poll != polls.end() && handout_bytes_ < batch_bytes_max; ++dealt) {
      auto handout = tasks[dealt].runbook_job.kind == runbook::Kind::none
                         ? give(tasks[dealt].key, (*poll)->poll)
                         : give_job(tasks[dealt].runbook_job, (*poll)->poll);
      if (!handout) continue;
      ++handouts_;
      --wanted;
      const std::size_t bytes =
          handout->params.text.size() + (handout->checkpoint ? handout->checkpoint->text.size() : 0);
      reply_bytes += bytes;
      handout_bytes_ += bytes;
      reply.jobs.push_back(*std::move(handout));
      if (reply.jobs.size() == (*poll)->poll.max || reply_bytes > reply_bytes_max) next_poll();
    }
    // What nobody had room for waits on, in its place.
    for (; dealt < tasks.size(); ++dealt) queue->ready.insert(std::move(tasks[dealt]));
  }
  if (!reply.jobs.empty()) next_poll();
  // Somebody still waits, and something may still wait too: the next batch goes on.
  if (poll != polls.end() && (!queue->ready.empty() || !queue->complete || !service.fresh.empty()))
    still_hungry_.insert(service.key);
  return {};
}

// A job that dispatched its task in this batch is here already; the others are loaded with what they hand
// out.
Result<> Writer::Batch::load_tasks(const std::vector<WaitingTask>& tasks) {
  TRY(load_jobs(tasks));
  LoadRequest request;
  for (const WaitingTask& task : tasks) {
    if (task.runbook_job.kind != runbook::Kind::none) continue;
    request.jobs.push_back(task.key.job_id);
    request.nodes.push_back(task.key);
    if (task.key.item_index != no_item)
      request.nodes.push_back(
          {task.key.job_id, no_item, std::string(parse_item_name(task.key.node_id)->fan_out)});
  }
  TRY(load_runs(std::move(request)));
  LoadRequest documents;
  for (const WaitingTask& task : tasks) {
    const Run* found = run(task.key.job_id);
    const auto ref = found ? found->definition->locate(task.key.node_id) : std::nullopt;
    if (ref && params_need_input(*found, *ref)) documents.jobs_whole.push_back(task.key.job_id);
  }
  return load_runs(std::move(documents));
}

std::optional<Handout> Writer::Batch::give(const NodeKey& key, const Poll& poll) {
  Run* found = run(key.job_id);
  if (!found) return std::nullopt;
  const auto ref = found->definition->locate(key.node_id);
  if (!ref || !found->has(*ref)) return std::nullopt;
  if (!workflow::hand_out(*found, *ref, poll.worker, poll.heartbeats, writer_.options_.policy, now_,
                          journal_))
    return std::nullopt;
  const NodeState& state = found->at(*ref).state;
  const Node& definition = found->node(*ref);
  return Handout{.task_id = *state.task_id,
                 .job_id = state.job_id,
                 .node_id = state.node_id,
                 .handler = definition.handler,
                 .params = task_params(*found, *ref),
                 .queue = *state.queue,
                 .timeout = definition.timeout,
                 .retry_count = state.retry_count,
                 .delivery_count = state.delivery_count,
                 .lease = lease_token(state),
                 .lease_until = *state.lease_until,
                 .traceparent = found->job.traceparent,
                 .checkpoint = state.checkpoint};
}

}  // namespace baton::engine
