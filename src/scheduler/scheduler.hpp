// The built-in scheduler: looks at the data source of each active runbook on its interval, finds out what has
// changed, and asks the engine for it, in chunks. It holds no state of its own but a cache: whatever it was
// doing when it stopped is found again by the next look. Phases are not its business: their timers are the engine's.
//
// One thread, which may wait long for a source; wake() may be called from any thread.
#pragma once

#include <functional>
#include <memory>

#include "base/metrics.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/data_source.hpp"
#include "ports/reads.hpp"

namespace baton::scheduler {

class Scheduler {
 public:
  using OpenReads = std::function<Result<std::unique_ptr<Reads>>()>;
  // What the owner may want to log; on the scheduler's thread.
  using Log = std::function<void(const std::string& runbook, const std::string& message, bool is_error)>;

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
