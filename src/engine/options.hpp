// What the engine is set to, and what it counts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "core/runbook/machine/machine.hpp"
#include "core/workflow/machine/machine.hpp"
#include "ports/call_commands.hpp"
#include "ports/feed.hpp"
#include "ports/followed.hpp"
#include "ports/subject.hpp"

namespace baton::engine {

struct WriterOptions {
  Partition partition;
  Duration short_lease = std::chrono::seconds{30};  // of workers that heartbeat, whatever the policies below say
  workflow::Policy policy;
  runbook::Policy runbooks;
  std::size_t timers_max = 1'000;     // due timers taken into one batch
  std::size_t handouts_max = 1'000;   // tasks handed out in one batch
  int chunks_max = 4;                 // steps of large fan-outs in one batch: others are to get their turn
  std::size_t queue_window = 10'000;  // of a queue's tasks that are known in memory
  std::size_t expansions_max = 64;    // sources of fan-outs that are kept between their chunks
  std::size_t hot_bytes_max = 64 << 20;  // of jobs that are kept in memory between batches
  std::size_t beside_min = 8;         // commands of a batch whose commit goes on beside the next decisions
  std::size_t events_max = 50'000;    // of one batch, about; a commit can number a million
  // What the expressions of one batch may cost, about 20 to 50 ns a step; one of them may exceed it. What a
  // tenant may spend in every batch before others go first.
  std::int64_t steps_max = 500'000, steps_share = 50'000;
  bool adopt_jobs = false;            // at start: take over what another orchestrator has given out
  int walks_max = 1;                  // chunks of members of runbooks in one batch
  std::size_t ids_block = 10'000;     // ids of steps that are reserved at a time
  Feed* feed = nullptr;               // is told what each commit changed
  Followed* followed = nullptr;       // is told how far the tables are
  // The tables follow the commits when nothing was committed for a moment, and after this time or so many rows or bytes
  // at the latest. So a burst is written once, and people who look see what was a moment ago.
  Duration follow_when_quiet{5}, follow_after{100};
  std::size_t follow_rows = 40'000, follow_bytes = 4 << 20;  // as the commits have them
  std::function<void()> runbooks_changed;  // after the commit: a scheduler should look
  std::function<void(std::vector<DueCall>)> calls_scheduled;  // after the commit: they have a time now
  std::function<void(const std::string&)> unreadable;  // a row that cannot be worked with, once for each
};

// What the writer and the kinds count; null pointers count nothing.
struct WriterMetrics {
  metrics::Counter* batches = nullptr;
  metrics::Counter* commands = nullptr;
  metrics::Counter* jobs_created = nullptr;
  metrics::Counter* jobs_ended = nullptr;
  metrics::Counter* handouts = nullptr;
  metrics::Counter* timers = nullptr;
  metrics::Counter* redecided = nullptr;
  metrics::Counter* postponed = nullptr;
  metrics::Counter* commit_failures = nullptr;
  metrics::Counter* steps_ended = nullptr;
  metrics::Counter* batches_ended = nullptr;
  metrics::Histogram* commit_seconds = nullptr;
  metrics::Histogram* follow_seconds = nullptr;
};

}  // namespace baton::engine
