// A thread that drives a Dispatch with the engine, the store and a Caller.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "caller/dispatch.hpp"
#include "ports/clock.hpp"
#include "ports/followed.hpp"
#include "ports/reads.hpp"

namespace baton::caller {

class Dispatcher {
 public:
  using OpenReads = std::function<Result<std::unique_ptr<Reads>>()>;

  // All of them must outlive this object.
  Dispatcher(Inbox& inbox, const Clock& clock, Caller& caller, OpenReads open_reads, const Followed& followed,
             metrics::Registry& metrics, std::shared_ptr<Places> places, DispatchOptions options);
  ~Dispatcher();  // stops
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  void start();
  // Begins no more calls, waits for those under way, though not for ever, and has their outcomes stored. What
  // is under way even then is left to the next server, as after a crash.
  void stop();

  // Calls have been given a time, or are begun already. Thread-safe, never blocks; before start() too.
  void scheduled(std::vector<DueCall> calls);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace baton::caller
