// What a person wants to know of a batch, read from the JSON of the API. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "cli/terminal/fields.hpp"
#include "cli/terminal/gauge.hpp"

namespace baton::cli {

struct PhaseView {
  std::string name, status;
  std::int64_t offset_minutes = 0;
  std::int64_t version = 0;
  std::optional<Time> due_at;  // none: by hand
  bool is_walking = false;     // its members are still being gone through
  Tally steps;
  [[nodiscard]] bool has_ended() const;
};

struct BatchView {
  std::int64_t id = 0;
  std::string runbook, status;
  std::int64_t version = 0;
  std::optional<Time> start;  // T
  bool is_manual = false, is_importing = false;
  std::optional<Time> paused_at, completed_at;
  std::string paused_by, error;
  std::int64_t active = 0, failed = 0, removed = 0;  // members
  std::int64_t held_removals = 0;                    // members that leave once somebody approves
  Tally init;
  std::vector<PhaseView> phases;        // in the order of their times
  Tally catch_up, rollbacks, removals;  // what goes on beside the phases

  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] Tally steps() const;  // init, phases and what goes on beside them
};

[[nodiscard]] BatchView read_batch(const Fields& batch);
[[nodiscard]] std::optional<Time> time_of(const Fields& fields, std::string_view key);

}  // namespace baton::cli
