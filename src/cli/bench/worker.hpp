// The worker of the bench: asks for tasks in batches, answers each with its own parameters, reports in
// batches.
#pragma once

#include <string>

#include "base/result.hpp"

namespace baton::cli::bench {

struct WorkerOptions {
  std::string server;
  std::string queue = "bench";
  std::string name = "bench";
  std::size_t polls = 4;  // in flight
  std::size_t max = 500;  // tasks of one poll
};

// Runs until the server goes away or a signal comes; that is its only end.
[[nodiscard]] Error run_worker(const WorkerOptions& options);

}  // namespace baton::cli::bench
