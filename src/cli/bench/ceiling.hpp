// The most that the store can do: the rows of finished echo jobs, exactly as the engine writes them, straight
// into it.
#pragma once

#include <chrono>
#include <string>

#include "base/result.hpp"

namespace baton::cli::bench {

struct Ceiling {
  double rate = 0;  // jobs/s
  std::uint64_t jobs = 0;
  std::size_t batch = 0;  // jobs in a pair of transactions
};

// Two transactions for each batch of jobs: one creates them and hands them out, one completes them. Only the
// time inside Store::commit counts. The store must not have another writer.
[[nodiscard]] Result<Ceiling> measure_ceiling(const std::string& store_url, const std::string& definition,
                                              std::size_t batch, std::chrono::milliseconds duration);

}  // namespace baton::cli::bench
