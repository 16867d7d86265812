// Load on a server, and how long each job took from the moment it was meant to start until the answer that it
// has completed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/bench/wire.hpp"

namespace baton::cli::bench {

class Latencies {
 public:
  void add(Steady::duration took);
  void sort();
  [[nodiscard]] std::size_t count() const { return micros_.size(); }
  [[nodiscard]] double millis(double quantile) const;  // after sort(); 1 is the largest

 private:
  std::vector<std::uint32_t> micros_;
};

struct Plan {
  std::size_t clients = 1;  // closed loop: each sends its next job when the last one has ended
  double rate = 0;          // open loop instead: jobs/s, at random times that do not wait for answers
  std::chrono::milliseconds warm_up{};
  std::chrono::milliseconds duration{};
  std::uint64_t jobs = 0;  // instead of a duration
  // What else is to be looked at when the measured part begins and ends, and after each answer in it.
  std::function<Result<>()> on_begin, on_end;
  std::function<void(std::uint64_t done)> on_done;
};

struct Measured {
  std::uint64_t jobs = 0;    // completed in the measured part
  std::uint64_t failed = 0;  // refused, not completed in time, or not answered at all
  double seconds = 0;
  Latencies latencies;
  [[nodiscard]] double rate() const { return seconds > 0 ? static_cast<double>(jobs) / seconds : 0; }
};

[[nodiscard]] Result<Measured> run_load(const std::string& url, const std::string& workflow_id,
                                        const Plan& plan);

}  // namespace baton::cli::bench
