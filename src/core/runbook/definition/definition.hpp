// A runbook: finds members through a data source, groups them into batches by a reference time T, runs `init`
// once per batch, then phases at offsets from T, each with steps that run for each member. Published in
// versions that never change; immutable once parsed, shared by all its batches.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "core/delivery/delivery.hpp"

namespace baton::runbook {

// When a phase may begin for a member: whatever the phases before it do, or after they have ended for it.
enum class PhaseOverlap { allow, wait };
enum class Progression { per_member, lockstep };
// unsupported: only in a stored definition, whose source another scheduler reads; ours leaves it alone.
enum class SourceType { csv, sqlite, postgres, http, unsupported };
using delivery::Backoff;
enum class MultiFormat { semicolon_delimited, comma_delimited, json_array };

struct Retry {
  std::int32_t max_retries = 0;
  std::chrono::seconds interval{60};
  Backoff backoff = Backoff::fixed;
  std::optional<std::chrono::seconds> max_interval;  // of exponential backoff
};

struct PollPolicy {
  std::chrono::seconds interval{};
  std::chrono::seconds timeout{};
  bool strict = false;  // an answer without `complete` is a failed attempt, not a success
};

// A text or a document with {{Variable}} in it; see template.hpp.
struct Step {
  std::string name;
  std::string worker_id;  // the queue
  std::string function;   // may hold templates
  Json params{"{}"};      // a JSON object; its strings, nested ones too, may hold templates
  std::map<std::string, std::string> output_params;  // variable of later steps ← field of the result
  std::string on_failure;                            // of a rollback; empty: none
  std::chrono::seconds timeout{3600};                // how long a worker may take
  std::optional<PollPolicy> poll;
  std::optional<Retry> retry;  // replaces the runbook's whole
};

// A phase waits for go or no-go when it is due.
struct Gate {
  enum class OnTimeout { hold, skip, go };
  std::optional<std::chrono::seconds> timeout;
  OnTimeout on_timeout = OnTimeout::hold;
};

// A phase begins only if so many of the members that began another one, which ended before, came through it.
struct Requirement {
  std::string phase;
  std::int32_t succeeded_percent = 100;
};

// More failures than this, and the batch pauses itself.
struct Threshold {
  std::int32_t max_failed_percent = 100;
  std::int32_t min_failed = 3;  // fewer are none of its business
};

struct Phase {
  std::string name;
  std::int32_t offset_minutes = 0;  // before T; negative: after it
  std::vector<Step> steps;
  std::optional<Gate> gate;
  std::optional<Requirement> required;
  std::optional<Threshold> threshold;  // of those who fail in it
};

struct MultiValuedColumn {
  std::string name;
  MultiFormat format{};
};

struct DataSource {
  SourceType type = SourceType::csv;
  std::string connection;  // the name of an environment variable or of a configured connection
  std::string query;
  std::chrono::seconds interval{300};
  std::string primary_key;
  std::string batch_time_column;  // empty: immediate
  bool immediate = false;
  std::int32_t max_removal_percent = 25;
  std::vector<MultiValuedColumn> multi_valued_columns;
};

struct Definition {
  std::string name;
  std::string description;
  Progression progression = Progression::per_member;
  DataSource data_source;
  std::optional<Retry> retry;
  std::vector<Step> init;
  std::vector<Phase> phases;
  std::map<std::string, std::vector<Step>> rollbacks;
  std::vector<Step> on_member_removed;
  std::optional<Threshold> threshold;           // of those who fail in the batch
  std::chrono::seconds late_after{3600};        // what would begin later than this waits for a person
  std::optional<PhaseOverlap> phase_overlap;    // none: wait, with the built-in scheduler

  [[nodiscard]] const Phase* phase(std::string_view phase_name) const;
  // The steps of a rollback; empty when there is none of that name.
  [[nodiscard]] const std::vector<Step>& rollback(const std::string& rollback_name) const;
  // What holds for a step: its own policy, else the runbook's, else none.
  [[nodiscard]] Retry retry_of(const Step& step) const;
};

struct Parsed {
  std::shared_ptr<const Definition> definition;  // null when there is any error
  std::vector<Diagnostic> diagnostics;           // errors and warnings, by position
};

// publish: every rule. stored: a text that an earlier version, or another scheduler, has accepted; rules that
// only guard against slips are warnings, and so is every defect of the data source, which is then unsupported.
enum class Strictness { publish, stored };

// Reads a definition and checks it whole: all errors at once. Pure.
[[nodiscard]] Parsed parse(std::string_view yaml, Strictness strictness = Strictness::publish);

// "30s", "15m", "2h", "7d", and "0s"; none when it is not one, or longer than 3650 days.
[[nodiscard]] std::optional<std::chrono::seconds> parse_duration(std::string_view text);
// "T-5d", "T-90s", "T-0", "T+2h" in minutes before T; none when it is not one, or farther than 3650 days.
// Seconds are rounded up to minutes, away from T: "T-90s" is 2, "T+90s" is -2.
[[nodiscard]] std::optional<std::int32_t> parse_offset(std::string_view text);

// runbook_{name}_v{version} with everything but letters, digits and '_' made '_', in lower case: the table
// that holds what the data source said of the members. PostgreSQL cuts names at 63 bytes, so that versions
// would share a table: of a longer one the runbook's name is cut, and a hash of it tells it from others.
// Names that differ only in case or in '-', '.' and '_' would have the same table: who comes second finds it
// taken, and gets one with such a hash too.
[[nodiscard]] std::string data_table_name(std::string_view runbook_name, std::int32_t version,
                                          bool is_taken = false);

}  // namespace baton::runbook
