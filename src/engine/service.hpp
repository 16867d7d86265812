// The running engine: one thread that owns the writer and its store, and a bounded inbox that everybody else
// puts commands into.
//
// submit() is thread-safe and never blocks; while the store is away it refuses. Commands that arrive while a commit is in flight form the next
// batch; when idle a batch is one command. Nothing sleeps and nothing polls: the thread wakes for a command,
// for the next timer, or to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "base/metrics.hpp"
#include "base/result.hpp"
#include "engine/kind.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/feed.hpp"
#include "ports/followed.hpp"
#include "ports/readiness.hpp"
#include "ports/store.hpp"

namespace baton::engine {

struct Options {
  Partition partition;
  Feed* feed = nullptr;  // is told what each commit changed; must outlive the service
  Followed* followed = nullptr;  // is told how far the tables are; must outlive the service
  std::size_t inbox_max = 16'384;                        // commands waiting; one more is refused
  std::size_t inbox_bytes_max = std::size_t{256} << 20;  // and what they carry
  std::size_t batch_min = 128, batch_max = 4'096;        // commands in one transaction
  std::chrono::milliseconds batch_time{25};              // and how long one may take: what is due meanwhile waits
  std::size_t batch_bytes_max = std::size_t{32} << 20;   // and what they carry
  Duration short_lease = std::chrono::seconds{30};  // of workers that heartbeat
  std::chrono::milliseconds busy_max{30'000};      // how long a start waits for another program that holds the store
  std::chrono::milliseconds slow_after{1'000};     // a turn is told to the hook and counted
  std::chrono::milliseconds stalled_after{5'000};  // the server is not ready
};

// A turn that took longer than it should, for whoever looks for the cause.
struct SlowTurn {
  std::chrono::milliseconds took{};
  std::string cause;
};

// What the owner may want to hear, on the engine's thread. Any of them may be empty.
struct Hooks {
  std::function<void(const SlowTurn&)> slow_turn;  // over Options::slow_after
  std::function<void(const Error&)> fatal;       // the writer must stop for good: another one has taken over, or what is stored does not fit together
  std::function<void(const Error&)> store_busy;  // the start waits for another program, on its own thread
  std::function<void(const Error&)> store_lost;  // commands are refused until it is back
  std::function<void()> store_back;
  std::function<void(const std::string&)> unreadable;  // a row that cannot be worked with, once for each
};

class Service final : public Inbox {
 public:
  Service(std::unique_ptr<Store> store, const Clock& clock, Kinds kinds, Options options, metrics::Registry& metrics,
          Hooks hooks = {});
  ~Service() override;  // stops

  // Opens the store on the caller's thread, so that what is wrong with it is told at once, then runs.
  [[nodiscard]] Result<> start();
  // stop() comes soon: whoever waits for a commit of unknown outcome while the store is away is told so. Otherwise goes
  // on as before. Thread-safe.
  void begin_stop();
  // Takes no more commands, finishes what the inbox holds, answers everybody who waits, and ends the thread.
  // Idempotent.
  void stop();

  void submit(Command command, std::shared_ptr<Waiter> waiter) override;

  // Stalled: one turn takes so long that requests time out before it ends.
  [[nodiscard]] Readiness readiness() const;
  [[nodiscard]] bool is_open() const;  // the store is there
  // How long the turn takes that is under way; zero between turns.
  [[nodiscard]] std::chrono::milliseconds turn_time() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::engine
