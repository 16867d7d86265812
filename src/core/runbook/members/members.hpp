// From the rows of a data source to the members of batches. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/runbook/definition/definition.hpp"
#include "core/runbook/members/source_table.hpp"

namespace baton::runbook {

// One member as the source has it now.
struct SourceMember {
  std::string member_key;
  std::optional<Time> batch_time;  // none: immediate, or a manual batch
  Json data;  // {"Column": "text", a number or a boolean of the source, or null; a multi-valued column: ["a", "b"]}
};

// The rows as members. Wrong rows are all reported (the first hundred), each by its line in the file, or else by its
// number, and by column, and then there are no members: nothing is half-imported. Wrong are: a missing key or time column, an empty or repeated key,
// a time that cannot be read, a json_array that is none, a row with too few or too many cells.
// `with_times` false: manual batches have no T; the time column may be missing.
[[nodiscard]] std::expected<std::vector<SourceMember>, std::vector<std::string>> read_members(
    const DataSource& source, const SourceTable& table, bool with_times);

// The same for a row of the runbook's data table, where every cell is text: multi-valued columns are lists again.
// A cell that says no list of its format is left as it is.
[[nodiscard]] Json with_lists(const DataSource& source, Json data);

// Times as people write them in CSV files: ISO 8601 with or without T, seconds and offset (none: UTC), a date
// alone (midnight UTC). 5/12/2026 is refused: it is two days, depending on who reads it.
[[nodiscard]] std::optional<Time> parse_batch_time(std::string_view text);

// A member as it is stored, of any batch of the runbook (all versions).
struct KnownMember {
  std::int64_t id = 0;
  std::int64_t batch_id = 0;
  std::string member_key;
  std::string status;               // active, failed, removed
  bool batch_open = true;           // the batch is not completed, failed or cancelled
  bool batch_manual = false;
  std::optional<Time> batch_time;   // the batch's T
  std::uint64_t data_hash = 0;      // of data_json, see hash_data(); 0: it has none
  bool removed_by_hand = false;     // and stays out, whatever the source says
};
[[nodiscard]] std::uint64_t hash_data(std::string_view data_json);

// Held removals that somebody has approved. The mark names those who leave: the approval is for no others.
struct ApprovedRemovals {
  std::int64_t batch_id = 0;
  std::string mark;
  friend auto operator<=>(const ApprovedRemovals&, const ApprovedRemovals&) = default;
};

struct MemberRef {
  std::int64_t batch_id = 0;
  std::int64_t id = 0;
};

// What must change so that the batches hold what the source says.
struct Diff {
  struct Joins {
    std::optional<std::int64_t> batch_id;  // an open batch of that T; none: a new one
    Time batch_time{};
    std::vector<std::size_t> members;      // places in the source's list
  };
  struct Refresh {
    MemberRef member;
    std::size_t source = 0;
  };
  struct Held {  // more leave than max_removal_percent allows: held until somebody approves
    std::int64_t batch_id = 0;
    std::size_t active = 0;
    std::vector<MemberRef> members;
    std::string mark;  // of these members
  };
  std::vector<Joins> joins;        // by T
  std::vector<Refresh> refreshes;  // active members of open batches whose data has changed
  std::vector<MemberRef> leaves;   // members of open batches that the source no longer has there
  std::vector<Held> held;
};

// T of an immediate batch: now, rounded down to five minutes.
[[nodiscard]] Time immediate_time(Time now);

// Rules:
//  * manual batches are not touched, and their members do not count;
//  * with a time column: a source member belongs to the batch of its T. It joins if no member of that key is in
//    any batch of that T, or if all that are have been removed (it came back); the open batch of that T is
//    used, else a new one. A key that is active in an open batch of another T leaves that one;
//  * who has failed in an open batch and is gone from the source leaves it;
//  * immediate: a key that is active or failed in any batch, open or ended, is left out, so that nobody is
//    migrated twice; the others join one new batch of T = immediate_time(now), or the open one of that T;
//  * a batch from which more than max_removal_percent of its active members would leave, and at least five, is
//    held, and so is one that would lose as many when those who failed are counted too: none of them leaves, nor
//    joins another batch, and nobody joins it, which would make the leavers few enough to leave after all. It is
//    not held if those who leave are the very ones in `approved`.
[[nodiscard]] Diff diff_members(const DataSource& source, const std::vector<SourceMember>& members,
                                const std::vector<KnownMember>& known,
                                const std::vector<ApprovedRemovals>& approved, Time now);

}  // namespace baton::runbook
