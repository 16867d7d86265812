// What would happen, in words: `baton runbook plan` and `baton runbook preview`.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "cli/remote.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {

struct PlanOptions {
  RemoteOptions remote;
  std::string what;   // a file, - for standard input, or the name of a published runbook
  std::string csv;    // a file with members to take instead of the data source's; may be empty
  std::string start;  // T of those; empty: what the CSV says
  int members = 5;    // to show with their steps
};

// Asks the server and prints the plan. Answers the exit code: 1 when some variable is unknown.
[[nodiscard]] int plan_runbook(const PlanOptions& options);

// The plan as the API tells it: each batch with its phases and their times, then some members with their
// steps. Pure.
[[nodiscard]] std::string plan_text(const Fields& plan, Time now, bool colour);

// The rows of the data source as a table, by T. Pure.
[[nodiscard]] std::string preview_text(const Fields& preview);

}  // namespace baton::cli
