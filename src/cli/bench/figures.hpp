// What a bench has found, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench/ceiling.hpp"
#include "cli/bench/load.hpp"

namespace baton::cli::bench {

// What was used up so far; the difference of two is what a level cost.
struct Usage {
  double commits = 0;
  double commit_seconds = 0;
  double server_cpu = 0;  // seconds
  double worker_cpu = 0;
  double client_cpu = 0;
};

struct Level {
  std::size_t clients = 0;
  double rate = 0;  // more than 0: an open loop of so many jobs/s
  Measured measured;
  Usage usage;
  std::optional<Ceiling> ceiling;

  [[nodiscard]] double per_commit()
      const;  // jobs that went through one transaction; each takes part in two or more
  [[nodiscard]] double ratio() const { return ceiling ? measured.rate() / ceiling->rate : 0; }
};

struct Resident {
  std::uint64_t jobs = 0;
  double mebibytes = 0;
};

struct Findings {
  std::string store;  // without a password
  std::size_t workers = 1;
  std::vector<Level> levels;
  std::vector<Resident> resident;       // of a soak, at each tenth of it
  [[nodiscard]] double growth() const;  // from the first to the last of them, 0.1 is 10 %
};

[[nodiscard]] std::string heading();
[[nodiscard]] std::string line(const Level& level);
[[nodiscard]] std::string ceiling_lines(const Findings& findings);
[[nodiscard]] std::string soak_lines(const Findings& findings);
[[nodiscard]] std::string to_json(const Findings& findings);

}  // namespace baton::cli::bench
