// What the writer is set to, and what it counts. What a kind of work is set to and counts is in its own folder.
#pragma once

#include <functional>
#include <string>

#include "base/metrics.hpp"
#include "ports/feed.hpp"
#include "ports/followed.hpp"
#include "ports/subject.hpp"

namespace baton::engine {

struct WriterOptions {
  Partition partition;
  Duration short_lease = std::chrono::seconds{30};  // of workers that heartbeat, whatever kind their work is of
  std::size_t timers_max = 1'000;     // due timers taken into one batch
  std::size_t handouts_max = 1'000;   // tasks handed out in one batch
  std::size_t queue_window = 10'000;  // of a queue's tasks that are known in memory
  std::size_t beside_rows = 64;       // of a commit that goes on beside the next decisions; one command has about ten
  Feed* feed = nullptr;               // is told what each commit changed
  Followed* followed = nullptr;       // is told how far the tables are
  // The tables begin to follow the commits when nothing was committed for a moment, and so that they are at the end after
  // this time, or at so many rows or bytes, at the latest. So a burst is written once, and people who look see what was a moment ago.
  Duration follow_when_quiet{5}, follow_after{100};
  std::size_t follow_rows = 40'000, follow_bytes = 4 << 20;  // as the commits have them
  std::function<void(const std::string&)> unreadable;  // a row that cannot be worked with, once for each
};

// Null pointers count nothing.
struct WriterMetrics {
  metrics::Counter* batches = nullptr;
  metrics::Counter* commands = nullptr;
  metrics::Counter* handouts = nullptr;
  metrics::Counter* timers = nullptr;
  metrics::Counter* redecided = nullptr;
  metrics::Counter* postponed = nullptr;
  metrics::Counter* commit_failures = nullptr;
  metrics::Histogram* commit_seconds = nullptr;
  metrics::Histogram* follow_seconds = nullptr;
};

}  // namespace baton::engine
