// The running engine: one thread that owns the writer and its store, and a bounded inbox that everybody else puts commands into.
//
// submit() is thread-safe and never blocks. Commands that arrive while a commit is in flight form the next batch; when idle a batch is
// one command. Nothing sleeps and nothing polls: the thread wakes for a command, for the next timer, or to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "base/metrics.hpp"
#include "base/result.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/store.hpp"

namespace baton::engine {

struct Options {
  std::size_t inbox_max = 16'384;   // commands waiting; one more is refused
  std::size_t batch_max = 2'048;    // commands and timers in one transaction
  bool builtin = true;              // tasks without a queue whose handler is built in go to the queue "builtin"
};

class Service final : public Inbox {
 public:
  // on_fatal is called, on the engine's thread, when the writer must stop for good (fenced by another writer).
  Service(std::unique_ptr<Store> store, const Clock& clock, Options options, metrics::Registry& metrics,
          std::function<void(const Error&)> on_fatal = {});
  ~Service() override;  // stops

  // Opens the store on the caller's thread, so that what is wrong with it is told at once, then runs.
  [[nodiscard]] Result<> start();
  // Takes no more commands, finishes what the inbox holds, answers everybody who waits, and ends the thread. Idempotent.
  void stop();

  void submit(Command command, std::shared_ptr<Waiter> waiter) override;

  // False while the store is away.
  [[nodiscard]] bool ready() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::engine
