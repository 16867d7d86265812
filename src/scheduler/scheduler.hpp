// The built-in scheduler: looks at the data source of each active runbook on its interval. It holds no state
// of its own but a cache: whatever it was doing when it stopped is found again by the next look. Phases are
// not its business: their timers are the engine's.
//
// One thread decides when; others look, each at one runbook, up to eight at once, so that a source that hangs
// holds up nobody else's. A runbook has one look at a time. wake() may be called from any thread.
#pragma once

#include <functional>
#include <memory>

#include "scheduler/look.hpp"

namespace baton::scheduler {

class Scheduler {
 public:
  using OpenReads = std::function<Result<std::unique_ptr<Reads>>()>;

  Scheduler(Inbox& inbox, OpenReads open_reads, DataSources& sources, const Clock& clock,
            metrics::Registry& metrics, Log log);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void start();
  // Interrupts the sources, which are of no use afterwards: none is waited for.
  void stop();
  // A runbook was published or changed, or removals were approved: look again.
  void wake();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::scheduler
