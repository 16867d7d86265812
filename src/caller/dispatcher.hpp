// Makes the service calls that are due: takes a place, has the start stored, sends, and has the outcome stored.
//
// One thread, which knows the engine's inbox, a connection to read with, and a Caller. It remembers nothing that
// matters: what waits and what was started is in the store. What an earlier server had started and not ended is not
// sent again; it is settled when this one starts, by the probe that its request declares or as OutcomeUnknown.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ports/call_commands.hpp"
#include "ports/caller.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/reads.hpp"

namespace baton::caller {

struct DispatcherOptions {
  std::size_t starts_max = 128;    // calls in one command: others wait for it
  std::size_t outcomes_max = 200;  // outcomes in one command
  Duration look_ahead{1'000};      // a window is filled so long before it is needed
  Duration retry_after{50};        // when the engine or the store cannot listen; doubles up to a second
  Duration patience{5'000};        // how long stop() waits for calls that are under way
  std::string name = "server";     // of this process among all that ever were
  std::function<void(const std::string&)> log;
};

class Dispatcher {
 public:
  using OpenReads = std::function<Result<std::unique_ptr<Reads>>()>;

  // All of them must outlive this object.
  Dispatcher(Inbox& inbox, const Clock& clock, Caller& caller, OpenReads open_reads, DispatcherOptions options);
  ~Dispatcher();  // stops
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  void start();
  // Begins no more calls, waits for those under way as long as it is patient, and has their outcomes stored.
  void stop();

  // Calls have been given a time. Thread-safe, never blocks; before start() too.
  void scheduled(std::vector<DueCall> calls);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace baton::caller
