// The handlers that live inside the server, for demos and tests: echo, sleep, fail and flaky, on the reserved
// queue "builtin".
//
// It is a worker like any other: it knows only the inbox, holds leases, heartbeats, and reports results. One
// thread, one outstanding long poll; a sleeping task is an entry in an ordered map and costs no thread.
// start() and stop() belong to one owner thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "ports/clock.hpp"
#include "ports/commands.hpp"

namespace baton::worker {

struct BuiltinOptions {
  std::string name = "builtin";
  std::uint32_t batch_max = 256;                      // tasks in one poll
  std::size_t running_max = 100'000;                  // sleepers held; beyond that it asks for no more
  std::chrono::milliseconds poll_wait{30'000};        // how long one poll waits in the engine
  std::chrono::milliseconds heartbeat_every{10'000};  // a third of the lease
  std::chrono::milliseconds retry_after{100};  // first wait when the engine is too busy to listen; doubles
};

class Builtin {
 public:
  // The inbox must outlive this object; late answers after stop() are harmless.
  Builtin(Inbox& inbox, const Clock& clock, BuiltinOptions options = {});
  ~Builtin();  // stops
  Builtin(const Builtin&) = delete;
  Builtin& operator=(const Builtin&) = delete;

  void start();
  // Ends the thread at once and gives back what was still sleeping, so that the next server need not wait for
  // the leases. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace baton::worker
