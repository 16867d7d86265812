#include "worker/builtin.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "worker/handlers.hpp"

namespace baton::worker {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t heartbeat_chunk = 1'000;
constexpr milliseconds retry_after_max{5'000};

// Somebody who takes any answer and does nothing with it.
class Nobody final : public Waiter {
 public:
  void deliver(Reply) override {}
};

struct Sleeper {
  std::string task_id;
  std::string lease;
  ReportResult result;
};

// A result that the engine could not take yet.
struct Retry {
  ReportResult result;
  milliseconds delay;  // waited before this try
};

bool worth_retrying(Refusal refusal) {
  return refusal == Refusal::overloaded || refusal == Refusal::store_unavailable ||
         refusal == Refusal::store_full;
}

}  // namespace

struct Builtin::State : std::enable_shared_from_this<State> {
  State(Inbox& inbox_in, const Clock& clock_in, BuiltinOptions options_in)
      : inbox(inbox_in), clock(clock_in), options(std::move(options_in)) {}

  Inbox& inbox;
  const Clock& clock;
  const BuiltinOptions options;
  std::thread thread;

  // Shared with the engine's thread, which delivers here.
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::optional<Reply> polled;
  std::vector<std::pair<ReportResult, milliseconds>> refused;
  std::vector<std::string> cancelled;

  // Owned by the worker's thread.
  using Sleepers = std::multimap<Steady::time_point, Sleeper>;
  Sleepers sleepers;
  std::unordered_map<std::string, Sleepers::iterator> by_task;
  std::multimap<Steady::time_point, Retry> retries;
  bool poll_out = false;
  bool engine_stopping = false;
  Steady::time_point poll_from{};  // after a refusal: not before this
  milliseconds poll_delay{0};
  Steady::time_point heartbeat_due = Steady::time_point::max();

  class PollWaiter;
  class ResultWaiter;
  class HeartbeatWaiter;

  void run();
  void poll_if_idle(Steady::time_point now);
  void take_poll_reply(Reply reply);
  void accept(Handout task);
  void report(ReportResult result, milliseconds delay);
  void drop(const std::string& task_id);
  void wake_sleepers(Steady::time_point now);
  void send_retries(Steady::time_point now);
  void heartbeat(Steady::time_point now);
  [[nodiscard]] Steady::time_point next_wake() const;
  void give_back_all();
  void give_back(std::vector<TaskLease> tasks);
};

class Builtin::State::PollWaiter final : public Waiter {
 public:
  explicit PollWaiter(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void deliver(Reply reply) override {
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->stopping) {
        state_->polled = std::move(reply);
        state_->wake.notify_one();
        return;
      }
    }
    // Handed out while this worker was ending: nobody will run these.
    if (auto* handed = std::get_if<PollReply>(&reply)) {
      std::vector<TaskLease> tasks;
      for (Handout& task : handed->jobs) tasks.push_back({std::move(task.task_id), std::move(task.lease)});
      state_->give_back(std::move(tasks));
    }
  }

  [[nodiscard]] bool gone() const override {
    const std::lock_guard lock(state_->mutex);
    return state_->stopping;
  }

 private:
  std::shared_ptr<State> state_;
};

class Builtin::State::ResultWaiter final : public Waiter {
 public:
  ResultWaiter(std::shared_ptr<State> state, ReportResult result, milliseconds delay)
      : state_(std::move(state)), result_(std::move(result)), delay_(delay) {}

  void deliver(Reply reply) override {
    const auto* refusal = std::get_if<Refused>(&reply);
    if (refusal == nullptr || !worth_retrying(refusal->refusal)) return;
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) return;
    state_->refused.emplace_back(std::move(result_), delay_);
    state_->wake.notify_one();
  }

 private:
  std::shared_ptr<State> state_;
  ReportResult result_;
  milliseconds delay_;
};

class Builtin::State::HeartbeatWaiter final : public Waiter {
 public:
  explicit HeartbeatWaiter(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void deliver(Reply reply) override {
    auto* answer = std::get_if<HeartbeatReply>(&reply);
    if (answer == nullptr || answer->cancelled.empty()) return;
    const std::lock_guard lock(state_->mutex);
    std::ranges::move(answer->cancelled, std::back_inserter(state_->cancelled));
    state_->wake.notify_one();
  }

 private:
  std::shared_ptr<State> state_;
};

void Builtin::State::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    auto reply = std::exchange(polled, std::nullopt);
    auto again = std::exchange(refused, {});
    auto gone = std::exchange(cancelled, {});
    lock.unlock();

    const auto now = Steady::now();
    for (const std::string& task_id : gone) drop(task_id);
    for (auto& [result, delay] : again) {
      const auto wait = std::min(delay.count() == 0 ? options.retry_after : 2 * delay, retry_after_max);
      retries.emplace(now + wait, Retry{std::move(result), wait});
    }
    if (reply) take_poll_reply(*std::move(reply));
    wake_sleepers(now);
    send_retries(now);
    heartbeat(now);
    poll_if_idle(now);

    lock.lock();
    const auto work_waits = [this] { return stopping || polled || !refused.empty() || !cancelled.empty(); };
    const auto until = next_wake();
    if (until == Steady::time_point::max())
      wake.wait(lock, work_waits);
    else
      wake.wait_until(lock, until, work_waits);
  }
  lock.unlock();
  give_back_all();
}

void Builtin::State::poll_if_idle(Steady::time_point now) {
  if (poll_out || engine_stopping || now < poll_from || sleepers.size() >= options.running_max) return;
  poll_out = true;
  // An empty tenant on this queue means every tenant.
  inbox.submit(Poll{.tenant = {},
                    .queue = "builtin",
                    .worker = options.name,
                    .max = options.batch_max,
                    .heartbeats = true,
                    .wait_until = clock.now() + options.poll_wait},
               std::make_shared<PollWaiter>(shared_from_this()));
}

void Builtin::State::take_poll_reply(Reply reply) {
  poll_out = false;
  if (auto* handed = std::get_if<PollReply>(&reply)) {
    poll_delay = {};
    for (Handout& task : handed->jobs) accept(std::move(task));
    return;
  }
  const auto* refusal = std::get_if<Refused>(&reply);
  engine_stopping = refusal != nullptr && refusal->refusal == Refusal::stopping;
  poll_delay = std::min(poll_delay.count() == 0 ? options.retry_after : 2 * poll_delay, retry_after_max);
  poll_from = Steady::now() + poll_delay;
}

void Builtin::State::accept(Handout task) {
  HandlerResult verdict = run_builtin(task);
  // The same attempt comes again after its lease was lost: only the new lease counts.
  drop(task.task_id);
  ReportResult result{.tenant = std::nullopt,
                      .task_id = task.task_id,
                      .job_id = std::move(task.job_id),
                      .node_id = std::move(task.node_id),
                      .completed = verdict.completed,
                      .output = std::move(verdict.output),
                      .error = std::move(verdict.error),
                      .lease = task.lease,
                      .worker = options.name,
                      .execution_duration_ms = verdict.after.count()};
  if (verdict.after.count() == 0) return report(std::move(result), {});
  const auto now = Steady::now();
  if (sleepers.empty()) heartbeat_due = now + options.heartbeat_every;
  const auto entry =
      sleepers.emplace(now + verdict.after, Sleeper{task.task_id, std::move(task.lease), std::move(result)});
  by_task.emplace(std::move(task.task_id), entry);
}

void Builtin::State::report(ReportResult result, milliseconds delay) {
  auto waiter = std::make_shared<ResultWaiter>(shared_from_this(), result, delay);
  inbox.submit(std::move(result), std::move(waiter));
}

void Builtin::State::drop(const std::string& task_id) {
  const auto found = by_task.find(task_id);
  if (found == by_task.end()) return;
  sleepers.erase(found->second);
  by_task.erase(found);
}

void Builtin::State::wake_sleepers(Steady::time_point now) {
  while (!sleepers.empty() && sleepers.begin()->first <= now) {
    auto entry = sleepers.extract(sleepers.begin());
    by_task.erase(entry.mapped().task_id);
    report(std::move(entry.mapped().result), {});
  }
}

void Builtin::State::send_retries(Steady::time_point now) {
  while (!retries.empty() && retries.begin()->first <= now) {
    auto entry = retries.extract(retries.begin());
    report(std::move(entry.mapped().result), entry.mapped().delay);
  }
}

void Builtin::State::heartbeat(Steady::time_point now) {
  if (sleepers.empty() || now < heartbeat_due) return;
  heartbeat_due = now + options.heartbeat_every;
  Heartbeat beat{.tenant = std::nullopt, .worker = options.name, .tasks = {}};
  const auto send = [&] {
    inbox.submit(std::exchange(beat, {.tenant = std::nullopt, .worker = options.name, .tasks = {}}),
                 std::make_shared<HeartbeatWaiter>(shared_from_this()));
  };
  for (const auto& [due, sleeper] : sleepers) {
    beat.tasks.push_back({sleeper.task_id, sleeper.lease});
    if (beat.tasks.size() == heartbeat_chunk) send();
  }
  if (!beat.tasks.empty()) send();
}

Steady::time_point Builtin::State::next_wake() const {
  auto next = Steady::time_point::max();
  if (!sleepers.empty()) next = std::min({next, sleepers.begin()->first, heartbeat_due});
  if (!retries.empty()) next = std::min(next, retries.begin()->first);
  if (!poll_out && !engine_stopping && sleepers.size() < options.running_max)
    next = std::min(next, poll_from);
  return next;
}

void Builtin::State::give_back_all() {
  std::vector<TaskLease> tasks;
  for (auto& [due, sleeper] : sleepers)
    tasks.push_back({std::move(sleeper.task_id), std::move(sleeper.lease)});
  give_back(std::move(tasks));
}

void Builtin::State::give_back(std::vector<TaskLease> tasks) {
  if (tasks.empty()) return;
  inbox.submit(ReturnTasks{std::move(tasks)}, std::make_shared<Nobody>());
}

Builtin::Builtin(Inbox& inbox, const Clock& clock, BuiltinOptions options)
    : state_(std::make_shared<State>(inbox, clock, std::move(options))) {}

Builtin::~Builtin() { stop(); }

void Builtin::start() {
  ENSURE(!state_->thread.joinable());
  state_->thread = std::thread([state = state_] { state->run(); });
}

void Builtin::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->wake.notify_one();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace baton::worker
