#include "engine/service.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/writer.hpp"

namespace baton::engine {
namespace {

// How long callers are held whose commit has an unknown outcome, before they are told so.
constexpr std::chrono::seconds held_max{10};

constexpr const char* away_message = "the store is not reachable at the moment";

WriterMetrics register_metrics(metrics::Registry& m) {
  return {
      .batches = &m.counter("baton_engine_batches_total", "Batches that the writer has finished."),
      .commands = &m.counter("baton_engine_commands_total", "Commands that the writer has decided."),
      .handouts = &m.counter("baton_task_handouts_total", "Tasks handed to workers."),
      .timers = &m.counter("baton_timers_fired_total", "Timers fired."),
      .redecided = &m.counter("baton_engine_batches_redecided_total",
                              "Batches decided again because a row was needed that had not been foreseen."),
      .postponed = &m.counter("baton_timers_postponed_total",
                              "Timers put off because the store refused what they led to."),
      .commit_failures =
          &m.counter("baton_store_commit_failures_total", "Commits that failed or whose outcome was lost."),
      .commit_seconds = &m.histogram("baton_store_commit_seconds", "Time of one commit."),
      .follow_seconds =
          &m.histogram("baton_store_follow_seconds", "Time in which the tables followed the commits once, beside the engine.")};
}

WriterOptions writer_options(const Options& o, const Hooks& hooks) {
  WriterOptions options;
  options.partition = o.partition;
  options.feed = o.feed;
  options.followed = o.followed;
  options.short_lease = o.short_lease;
  options.unreadable = hooks.unreadable;
  return options;
}

struct Waiting {
  Item item;
  std::size_t bytes = 0;
};

}  // namespace

struct Service::State {
  State(std::unique_ptr<Store> s, const Clock& c, Kinds k, Options o, metrics::Registry& m, Hooks h)
      : store(std::move(s)),
        clock(c),
        options(o),
        hooks(std::move(h)),
        writer(*store, c, std::move(k), writer_options(o, hooks), register_metrics(m)),
        inbox_depth(m.gauge("baton_engine_inbox_commands", "Commands waiting for the writer.")),
        refused(m.counter("baton_engine_refused_total", "Commands refused because the inbox was full.")),
        slow_turns(m.counter("baton_engine_slow_turns_total", "Turns of the engine over one second.")),
        turn_seconds(m.histogram("baton_engine_turn_seconds", "Time of one turn of the engine.")) {}

  // What another program does to the store for a while keeps no server from starting. Before the thread runs.
  Result<> open_first() {
    const auto began = std::chrono::steady_clock::now();
    for (bool was_told = false;; was_told = true) {
      Result<> opened = writer.open();
      const bool is_busy = !opened && opened.error().code == Code::busy && writer.away();
      if (!is_busy || std::chrono::steady_clock::now() - began >= options.busy_max) return opened;
      if (!was_told && hooks.store_busy) hooks.store_busy(opened.error());
      std::this_thread::sleep_for(std::chrono::milliseconds{100});  // nobody tells when the other program lets go
    }
  }

  // Takes what is in the inbox, or waits for the next thing to do. False: stopping, and the inbox is empty.
  bool take(std::vector<Item>& batch) {
    std::size_t own_bytes = 0, bytes = 0;
    for (const Item& item : writer.own_items()) own_bytes += size_of(item.command);
    std::unique_lock lock(mutex);
    // While a commit goes on, the next batch is begun when it is worth it: it cannot be stored before the other is.
    wanted = std::max<std::size_t>(1, writer.commands_under_way() / 2);
    while (inbox.size() < wanted && !stopping && !writer.has_own_items() && !has_news()) {
      const auto wake = writer.next_wake();
      if (wake && *wake <= clock.now()) break;
      // Tables that follow must not wait for a clock that was set back.
      if (writer.is_behind()) {
        work.wait_for(lock, std::clamp(*wake - clock.now(), Duration{1}, Duration{100}));
        continue;
      }
      // The wait is on the wall clock, so that a clock that is set wakes it at the right time.
      // A time after the year 2262 does not fit the nanoseconds of the wait, which would end at once.
      if (wake)
        work.wait_until(lock, std::min(*wake, clock.now() + std::chrono::hours{1}));
      else
        work.wait(lock);
    }
    if (inbox.empty() && stopping && !writer.has_own_items()) return false;
    // What a full batch put off is part of the next one: so it is bounded, and the rest waits where more can be refused.
    while (!inbox.empty() && writer.own_items().size() + batch.size() < batch_size && own_bytes + bytes < options.batch_bytes_max) {
      bytes += inbox.front().bytes;
      batch.push_back(std::move(inbox.front().item));
      inbox.pop_front();
    }
    inbox_bytes -= bytes;
    inbox_depth.set(static_cast<std::int64_t>(inbox.size()));
    return true;
  }

  // Something that went on beside has come to its end, and the writer has not waited for it. Under the mutex.
  bool has_news() { return std::exchange(store_ended, false) && writer.is_waiting_for_store(); }

  void loop() {
    std::vector<Item> batch;
    while (take(batch)) {
      if (writer.away())
        refuse(batch, Refusal::store_unavailable, away_message);
      else
        run(std::move(batch));
      batch.clear();
      if (writer.away() && !come_back()) break;
    }
    {
      const std::scoped_lock lock(mutex);
      stopping = true;
      refuse_inbox(Refusal::stopping, "the server is stopping");
    }
    writer.finish();
    if (options.followed) options.followed->close();
  }

  // The next batch is as large as this one says that the time allows; one that put something off says nothing. A commit that goes on beside is of the turn that
  // began it, until its end.
  void run(std::vector<Item> batch) {
    const bool full = batch.size() + writer.own_items().size() >= batch_size;
    const auto now = std::chrono::steady_clock::now();
    const auto began = std::exchange(committing_since, std::nullopt).value_or(now);
    turn_began = began.time_since_epoch().count();
    writer.run(std::move(batch));
    const auto end = std::chrono::steady_clock::now();
    turn_seconds.observe(end - now);
    if (end - began > options.slow_after) tell_slow(end - began);
    if (writer.commands_under_way() > 0) committing_since = now;
    // Whoever sees that it is over sees that it was counted.
    turn_began = committing_since ? committing_since->time_since_epoch().count() : 0;
    if (end - now > options.batch_time)
      batch_size = std::max(options.batch_min, batch_size * 3 / 4);
    else if (full && writer.own_items().empty())
      batch_size = std::min(options.batch_max, batch_size * 5 / 4);
  }

  void tell_slow(std::chrono::steady_clock::duration took) {
    slow_turns.add();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took);
    if (hooks.slow_turn) hooks.slow_turn({ms, writer.last_turn().text()});
  }

  // Reopens the store, refusing whoever is there and whoever comes meanwhile: an open() may take long. False: it is over.
  bool come_back() {
    {
      const std::scoped_lock lock(mutex);
      away = true;
      refuse_inbox(Refusal::store_unavailable, away_message);
    }
    ready = false;
    if (hooks.store_lost) hooks.store_lost(writer.trouble());
    const auto lost_at = std::chrono::steady_clock::now();
    Duration pause{50};
    while (true) {
      if (!writer.fatal() && !is_stopping()) (void)writer.open();
      if (writer.fatal()) {
        if (hooks.fatal) hooks.fatal(*writer.fatal());
        return false;
      }
      if (!writer.away()) {
        {
          const std::scoped_lock lock(mutex);
          away = false;
        }
        ready = true;
        if (options.followed) options.followed->set_away(false);
        if (hooks.store_back) hooks.store_back();
        return true;
      }
      if (options.followed) options.followed->set_away(true);  // who reads may wait for the first try, and no longer
      if (stops_soon || std::chrono::steady_clock::now() - lost_at > held_max) writer.abandon_held();
      writer.expire_while_away();
      std::unique_lock lock(mutex);
      work.wait_for(lock, pause, [&] { return stopping; });
      pause = std::min(pause * 2, Duration{1'000});
      if (stopping) return false;
    }
  }

  bool is_stopping() {
    const std::scoped_lock lock(mutex);
    return stopping;
  }

  // Under the mutex.
  void refuse_inbox(Refusal refusal, const std::string& why) {
    std::deque<Waiting> kept;
    inbox_bytes = 0;
    for (Waiting& waiting : inbox) {
      // A task that is given back has nobody else to remember it.
      if (refusal == Refusal::store_unavailable &&
          std::holds_alternative<ReturnTasks>(waiting.item.command)) {
        inbox_bytes += waiting.bytes;
        kept.push_back(std::move(waiting));
      } else {
        waiting.item.waiter->deliver(Refused{refusal, why, {}});
      }
    }
    inbox = std::move(kept);
  }

  static void refuse(std::vector<Item>& items, Refusal refusal, const std::string& why) {
    for (Item& item : items) item.waiter->deliver(Refused{refusal, why, {}});
  }

  // Before the store, which tells them when its tables have followed, until it is gone.
  std::mutex mutex;
  std::condition_variable work;
  bool store_ended = false;  // under mutex: the store has come to the end of something that went on beside
  std::size_t wanted = 1;    // under mutex: as many commands in the inbox wake the thread

  std::unique_ptr<Store> store;
  const Clock& clock;
  const Options options;
  const Hooks hooks;
  Writer writer;  // of the engine's thread
  metrics::Gauge& inbox_depth;
  metrics::Counter& refused;
  metrics::Counter& slow_turns;
  metrics::Histogram& turn_seconds;
  std::atomic<std::chrono::steady_clock::rep> turn_began = 0;  // 0: none is under way

  std::deque<Waiting> inbox;  // under mutex, as are inbox_bytes, stopping and away
  std::size_t inbox_bytes = 0;
  bool stopping = false;
  bool away = false;  // the store is: everybody is refused but those who give tasks back
  std::atomic<bool> stops_soon = false;
  std::atomic<bool> ready = false;
  std::size_t batch_size = 512;  // of the next one; the thread's own, as is committing_since
  std::optional<std::chrono::steady_clock::time_point> committing_since;  // the turn whose commit is under way
  std::thread thread;
};

Service::Service(std::unique_ptr<Store> store, const Clock& clock, Kinds kinds, Options options,
                 metrics::Registry& metrics, Hooks hooks)
    : state_(std::make_unique<State>(std::move(store), clock, std::move(kinds), options, metrics, std::move(hooks))) {}

Service::~Service() { stop(); }

Result<> Service::start() {
  state_->store->on_ended([state = state_.get()] {
    {
      const std::scoped_lock lock(state->mutex);
      state->store_ended = true;
    }
    state->work.notify_one();
  });
  Followed* const followed = state_->options.followed;
  if (followed) state_->store->on_followed([followed](std::int64_t number) { followed->followed(number); });
  TRY(state_->open_first());
  state_->ready = true;
  if (followed)
    followed->on_wanted([state = state_.get()] {
      { const std::scoped_lock lock(state->mutex); }  // it is not between its look and its wait
      state->work.notify_one();
    });
  state_->thread = std::thread([this] { state_->loop(); });
  return {};
}

void Service::begin_stop() { state_->stops_soon = true; }

void Service::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->work.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
  state_->ready = false;
}

void Service::submit(Command command, std::shared_ptr<Waiter> waiter) {
  Refused refused;
  std::unique_lock lock(state_->mutex);
  const std::size_t bytes = size_of(command);
  const bool fits = state_->inbox.size() < state_->options.inbox_max &&
                    state_->inbox_bytes + bytes <= state_->options.inbox_bytes_max;
  const bool is_welcome = (fits && !state_->away) || std::holds_alternative<ReturnTasks>(command);
  if (!state_->stopping && is_welcome) {
    state_->inbox.push_back({{std::move(command), std::move(waiter), state_->clock.now()}, bytes});
    state_->inbox_bytes += bytes;
    const bool wakes = state_->inbox.size() == state_->wanted;
    lock.unlock();  // which the engine would wait for
    if (wakes) state_->work.notify_one();
    return;
  }
  if (state_->stopping)
    refused = {Refusal::stopping, "the server is stopping", {}};
  else if (state_->away)
    refused = {Refusal::store_unavailable, away_message, {}};
  else
    refused = {Refusal::overloaded, "the server is overloaded; try again", {}};
  lock.unlock();
  if (refused.refusal != Refusal::store_unavailable) state_->refused.add();
  waiter->deliver(std::move(refused));
}

Readiness Service::readiness() const {
  using enum Readiness::State;
  const auto turn = turn_time();
  const bool stalls = turn >= state_->options.stalled_after;
  const bool is_refusing = state_->options.followed && state_->options.followed->refuses_reads();
  return {!is_open()                         ? store_away
          : stalls                           ? stalled
          : is_refusing                      ? tables_behind
          : turn > state_->options.slow_after ? slow
                                             : ready,
          turn};
}

bool Service::is_open() const { return state_->ready; }

std::chrono::milliseconds Service::turn_time() const {
  const auto began = state_->turn_began.load();
  if (began == 0) return {};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - std::chrono::steady_clock::duration{began});
}

}  // namespace baton::engine
