#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::scheduler {
namespace {

using Steady = std::chrono::steady_clock;

// So many sources may hang before others wait for them.
constexpr std::size_t looks_max = 8;
// Other programs may write the table of runbooks too, and do not wake us.
constexpr std::chrono::seconds look_at_least_every{30};
constexpr std::chrono::seconds pause_without_store{1};

}  // namespace

struct Scheduler::State {
  State(Inbox& i, OpenReads o, DataSources& d, const Clock& c, metrics::Registry& m, Log l)
      : open_reads(std::move(o)),
        log(std::move(l)),
        tools{i,
              d,
              c,
              log,
              m.counter("baton_scheduler_syncs_total", "Looks at data sources that went well."),
              m.counter("baton_scheduler_sync_failures_total", "Looks at data sources that failed."),
              stopping} {}

  // What is known of a runbook. While it is being looked at `sent` is the looker's, the rest the loop's.
  struct Seen {
    std::int64_t id = 0;
    bool automation = true;
    std::vector<runbook::ApprovedRemovals> approved;
    Steady::time_point next;
    Sent sent;
    bool is_busy = false;     // under the mutex: a look is queued or under way
    bool is_wanted = false;   // under the mutex: another one, as soon as it is over
    bool has_failed = false;  // under the mutex: there was no store to look into
  };
  struct Order {
    runbook::Runbook row;
    std::shared_ptr<const runbook::Definition> definition;
    Seen* seen = nullptr;
  };

  void loop();
  void loop_of_looker();
  [[nodiscard]] Steady::time_point look();
  [[nodiscard]] Steady::time_point follow_moved_phases();
  Steady::time_point moved_looked{};
  std::int64_t moved_after = 0;        // the last phase of the page before; 0: the first page is next
  std::weak_ptr<Waiter> moved_waiter;  // as long as commands that it was given are under way
  [[nodiscard]] Steady::time_point look_at(const runbook::Runbook& row);
  [[nodiscard]] bool is_busy(Seen& seen, bool is_due);
  void order(Order order);
  [[nodiscard]] bool carry_out(const Order& order, std::unique_ptr<Reads>& own);
  void end(Seen& seen, bool had_store);

  OpenReads open_reads;
  Log log;
  std::unique_ptr<Reads> reads;      // the loop's; each looker has its own
  std::map<std::string, Seen> seen;  // by runbook name; the loop's
  std::vector<std::thread> lookers;  // the loop's; as many as were ever needed at once

  std::mutex mutex;
  std::condition_variable changed;  // for the loop
  std::condition_variable ordered;  // for the lookers
  std::deque<Order> orders;
  std::size_t idle = 0;  // lookers without an order
  bool woken = false;
  std::atomic<bool> stopping = false;  // written under the mutex
  LookTools tools;
  std::thread thread;
};

void Scheduler::State::loop() {
  while (true) {
    auto wake_at = Steady::now() + pause_without_store;
    if (!reads)
      if (auto opened = open_reads()) reads = *std::move(opened);
    if (reads) wake_at = look();
    std::unique_lock lock(mutex);
    changed.wait_until(lock, wake_at, [&] { return stopping || woken; });
    if (stopping) return;
    woken = false;
  }
}

// At all runbooks: looks are ordered at those whose time has come. Answers when there is something to do
// again.
Steady::time_point Scheduler::State::look() {
  const auto active = reads->active_runbooks();
  if (!active) {
    reads.reset();
    return Steady::now() + pause_without_store;
  }
  const auto is_active = [&](const std::string& name) {
    return std::ranges::any_of(*active, [&](const auto& row) { return row.name == name; });
  };
  for (auto each = seen.begin(); each != seen.end();)
    each = is_active(each->first) || is_busy(each->second, false) ? std::next(each) : seen.erase(each);
  auto wake_at = Steady::now() + look_at_least_every;
  wake_at = std::min(wake_at, follow_moved_phases());
  for (const runbook::Runbook& row : *active) {
    if (stopping) break;
    wake_at = std::min(wake_at, look_at(row));
  }
  return wake_at;
}

// Another program may add phases or write when they are due, and does not say so. Each is a command of its own, so that a row that
// it holds keeps no other from its time. They are taken page by page, because some may stay as they are, whatever is
// said to the engine, and those after them must get their turn; after the last page it begins anew.
// Not with each change of a runbook, nor while the engine has not decided the last ones: it goes through all open
// batches. Answers when to look again, if there is more or it may not look now.
Steady::time_point Scheduler::State::follow_moved_phases() {
  constexpr std::size_t at_once = 500;
  constexpr std::chrono::seconds pause{1};
  const auto now = Steady::now();
  if (now < moved_looked + pause) return moved_looked + pause;
  moved_looked = now;
  if (!moved_waiter.expired()) return now + pause;
  const auto moved = reads->moved_phases(moved_after, at_once);
  if (!moved) return Steady::time_point::max();
  const bool is_last = moved->size() < at_once;
  moved_after = is_last ? 0 : moved->back();
  const auto nobody = std::make_shared<Nobody>();
  moved_waiter = nobody;
  for (const std::int64_t id : *moved) tools.inbox.submit(AdoptPhases{{id}}, nobody);
  return is_last ? Steady::time_point::max() : now + pause;
}

Steady::time_point Scheduler::State::look_at(const runbook::Runbook& row) {
  Seen& last = seen[row.name];
  const bool is_new = last.id != row.id || (row.automation_enabled && !last.automation);
  if (!row.automation_enabled) {
    last.id = row.id;
    last.automation = false;
    return Steady::time_point::max();
  }
  auto parsed = runbook::parse(row.yaml_content, runbook::Strictness::stored);
  if (!parsed.definition || parsed.definition->data_source.type == runbook::SourceType::unsupported)
    return Steady::time_point::max();
  const auto approvals = reads->approved_removals(row.name);
  const bool newly_approved = approvals && !approvals->empty() && last.approved != *approvals;
  const auto now = Steady::now();
  const bool is_due = is_new || newly_approved || now >= last.next;
  // It is seen again as it is now when the look that is under way is over.
  if (is_busy(last, is_due)) return is_due ? Steady::time_point::max() : last.next;
  last.id = row.id;
  last.automation = true;
  if (approvals) last.approved = *approvals;
  if (is_due) {
    last.next = now + parsed.definition->data_source.interval;
    order({row, std::move(parsed.definition), &last});
  }
  return last.next;
}

bool Scheduler::State::is_busy(Seen& last, bool is_due) {
  const std::scoped_lock lock(mutex);
  if (!last.is_busy) {
    if (std::exchange(last.has_failed, false)) last.next = Steady::now() + pause_without_store;
    return false;
  }
  last.is_wanted |= is_due;
  return true;
}

void Scheduler::State::order(Order order) {
  const std::scoped_lock lock(mutex);
  order.seen->is_busy = true;
  orders.push_back(std::move(order));
  if (orders.size() > idle && lookers.size() < looks_max) {
    lookers.emplace_back([this] { loop_of_looker(); });
    ++idle;
  }
  ordered.notify_one();
}

void Scheduler::State::loop_of_looker() {
  std::unique_ptr<Reads> own;
  std::unique_lock lock(mutex);
  while (true) {
    ordered.wait(lock, [&] { return stopping || !orders.empty(); });
    if (stopping) return;
    const Order order = std::move(orders.front());
    orders.pop_front();
    --idle;
    lock.unlock();
    const bool had_store = carry_out(order, own);
    lock.lock();
    ++idle;
    end(*order.seen, had_store);
  }
}

// False: there is no store to read.
bool Scheduler::State::carry_out(const Order& order, std::unique_ptr<Reads>& own) {
  if (!own) {
    auto opened = open_reads();
    if (!opened) return false;
    own = *std::move(opened);
  }
  if (!Look(tools, *own, order.row, *order.definition, order.seen->sent).run()) own.reset();
  return true;
}

// Under the mutex.
void Scheduler::State::end(Seen& last, bool had_store) {
  last.is_busy = false;
  last.has_failed = !had_store;
  if (!std::exchange(last.is_wanted, false) && had_store) return;
  woken = true;
  changed.notify_all();
}

Scheduler::Scheduler(Inbox& inbox, OpenReads open_reads, DataSources& sources, const Clock& clock,
                     metrics::Registry& metrics, Log log)
    : state_(std::make_unique<State>(inbox, std::move(open_reads), sources, clock, metrics, std::move(log))) {
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::start() {
  state_->thread = std::thread([this] { state_->loop(); });
}

void Scheduler::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->ordered.notify_all();
  state_->tools.sources.interrupt();
  if (state_->thread.joinable()) state_->thread.join();
  for (std::thread& looker : state_->lookers)
    if (looker.joinable()) looker.join();
}

void Scheduler::wake() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->woken = true;
  }
  state_->changed.notify_all();
}

}  // namespace baton::scheduler
