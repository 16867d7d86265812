#include "engine/matching/handouts.hpp"

#include <algorithm>

#include "base/mutant.hpp"

namespace baton::engine {

namespace {
// Params may be large: a reply and a batch are bounded by what they carry too.
constexpr std::size_t reply_bytes_max = std::size_t{8} << 20;
constexpr std::size_t batch_bytes_max = std::size_t{64} << 20;
// Tasks that are loaded before it is looked how much they carry: few at first, more while that is little.
constexpr std::size_t portion_min = 16, portion_max = 500, portion_bytes = std::size_t{1} << 20;

std::size_t bytes_of(const Handout& handout) {
  return handout.params.text.size() + (handout.checkpoint ? handout.checkpoint->text.size() : 0) +
         (handout.message ? handout.message->content.size() + handout.message->annotations.size() : 0);
}
}  // namespace

Result<> Handouts::run(std::vector<Ready> ready) {
  std::map<QueueKey, std::set<WaitingTask>> fresh;
  for (Ready& work : ready) {
    if (MUTANT(queue_of_all_tenants))
      for (const QueueKey& key : matching_.queues().keys())
        if (key.queue == work.queue.queue) work.queue = key;
    if (matching_.queues().find(work.queue)) fresh[std::move(work.queue)].insert(std::move(work.task));
  }
  for (const QueueKey& key : matching_.to_match()) fresh[key];
  auto at = fresh.upper_bound(matching_.served_last());
  for (std::size_t n = 0; n < fresh.size(); ++n, ++at) {
    if (at == fresh.end()) at = fresh.begin();
    served_.push_back({.key = at->first, .fresh = std::move(at->second), .polls = {}});
    const bool had_room = has_room();
    TRY(serve(served_.back()));
    if (had_room && !has_room()) served_last_ = at->first;
  }
  return {};
}

bool Handouts::has_room() const { return count_ < handouts_max_ && bytes_ < batch_bytes_max; }

// The next of a queue, in its order: of what is known to wait, what the store has beyond that, and what this
// batch made ready.
Result<std::vector<WaitingTask>> Handouts::candidates(Served& served, std::size_t limit, bool& refilled) {
  Queue& queue = *matching_.queues().find(served.key);
  if (queue.ready.empty() && !queue.complete && !refilled) {
    refilled = true;
    TRY_ASSIGN(std::vector<WaitingTask> stored, store_.waiting(served.key, queue.window, now_));
    if (MUTANT(lose_queue_on_restart)) stored.clear();
    queue.complete = stored.size() < queue.window;
    queue.ready.insert(std::make_move_iterator(stored.begin()), std::make_move_iterator(stored.end()));
  }
  std::vector<WaitingTask> next;
  const auto take = [&](std::set<WaitingTask>& from) {
    next.push_back(std::move(from.extract(from.begin()).value()));
  };
  while (next.size() < limit) {
    const bool fresh_first = !served.fresh.empty() && queue.precedes_rest(*served.fresh.begin()) &&
                             (queue.ready.empty() || *served.fresh.begin() < *queue.ready.begin());
    if (fresh_first)
      take(served.fresh);
    else if (!queue.ready.empty())
      take(queue.ready);
    else
      break;
  }
  return next;
}

// The polls of one queue, first come, first served, each filled up before the next one.
struct Handouts::Polls {
  Served& served;
  std::vector<const WaitingPoll*> polls;
  std::size_t wanted = 0;  // by those that are left
  std::size_t next = 0;
  PollReply reply;
  std::size_t reply_bytes = 0;

  Polls(Served& s, const Queue& queue, std::size_t handouts_max) : served(s) {
    for (const auto& [id, poll] : queue.polls) {
      if (poll.waiter->gone()) {
        served.polls.push_back({served.key, id, {}});
      } else if (wanted < handouts_max) {
        polls.push_back(&poll);
        wanted += poll.poll.max;
      }
    }
  }
  [[nodiscard]] bool is_over() const { return next == polls.size(); }
  [[nodiscard]] const Poll& poll() const { return polls[next]->poll; }
  void add(Handout handout) {
    --wanted;
    reply_bytes += bytes_of(handout);
    reply.jobs.push_back(std::move(handout));
    if (reply.jobs.size() == poll().max || reply_bytes > reply_bytes_max) close();
  }
  void close() {
    served.polls.push_back({served.key, polls[next]->id, std::exchange(reply, {})});
    reply_bytes = 0;
    ++next;
  }
};

Result<> Handouts::serve(Served& served) {
  Queue* queue = matching_.queues().find(served.key);
  if (!queue) return {};
  Polls polls(served, *queue, handouts_max_);
  bool refilled = false;
  std::size_t portion = portion_min;
  std::size_t looks_left = 2 * handouts_max_;  // what is found to wait no longer costs a look too
  const std::size_t looks = looks_left, count_before = count_;
  while (!polls.is_over() && has_room() && looks_left > 0) {
    TRY_ASSIGN(std::vector<WaitingTask> tasks,
               candidates(served, std::min({handouts_max_ - count_, polls.wanted, portion}), refilled));
    if (tasks.empty()) break;
    looks_left -= std::min(looks_left, tasks.size());
    const std::size_t bytes_before = bytes_;
    TRY(source_.load_tasks(tasks));
    std::size_t dealt = 0;
    for (; dealt < tasks.size() && !polls.is_over() && bytes_ < batch_bytes_max; ++dealt) {
      auto handout = source_.hand_out(tasks[dealt], polls.poll());
      if (!handout) continue;
      ++count_;
      bytes_ += bytes_of(*handout);
      polls.add(*std::move(handout));
    }
    portion = bytes_ - bytes_before < portion_bytes ? std::min(4 * portion, portion_max) : portion_min;
    // What nobody had room for waits on, in its place.
    for (; dealt < tasks.size(); ++dealt) queue->ready.insert(std::move(tasks[dealt]));
  }
  if (!polls.reply.jobs.empty()) polls.close();
  // Somebody still waits, and something may still wait too: the next batch goes on.
  if (polls.is_over() || (queue->ready.empty() && queue->complete && served.fresh.empty())) return {};
  if (refilled && looks_left < looks && count_ == count_before)
    has_stalled_ = true;
  else
    match_again_.insert(served.key);
  return {};
}

void Handouts::take_effects(Effects& out) {
  out.emplace_back(MatchAgain{std::move(match_again_), std::move(served_last_)});
  for (Served& served : served_) {
    if (!served.fresh.empty()) out.emplace_back(Enqueue{served.key, std::move(served.fresh)});
    for (ServePoll& serving : served.polls) out.emplace_back(std::move(serving));
  }
  served_.clear();
}

}  // namespace baton::engine
