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

// What waits for an answer of a person.
struct HoldView {
  std::string id, kind, message, phase;
  std::vector<std::string> answers;
  [[nodiscard]] std::string command() const;  // that answers it
};

struct PhaseView {
  std::string name, status, outcome;
  std::string label;  // its name, with its version when there are several of that name
  std::string waits_for;  // in words; empty: for nothing
  std::int64_t offset_minutes = 0;
  std::int64_t version = 0;
  std::optional<Time> due_at;  // none: by hand
  bool is_walking = false;     // its members are still being gone through
  Tally steps;
  std::int64_t members = 0, members_done = 0;  // that have begun it, and came through
  std::optional<Time> next_retry;
  [[nodiscard]] bool has_ended() const;
};

struct BatchView {
  std::int64_t id = 0;
  std::string runbook, status, outcome;
  std::int64_t version = 0;
  std::optional<Time> start;  // T
  bool is_manual = false, is_importing = false;
  std::optional<Time> paused_at, completed_at;
  std::string paused_by, paused_reason, error;
  bool is_held = false;                // nothing of it begins
  std::vector<HoldView> holds;         // open
  std::vector<std::string> no_worker;  // queues with work of it and without a worker, each in a sentence
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
