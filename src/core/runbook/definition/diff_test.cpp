#include "core/runbook/definition/diff.hpp"

#include <gtest/gtest.h>

namespace baton::runbook {
namespace {

std::string book(const std::string& phases, const std::string& more = "") {
  return "name: waves\n" + more +
         "data_source: {type: csv, connection: X, primary_key: Key, batch_time_column: T}\nphases:\n" + phases;
}
const std::string early = "  - {name: early, offset: T-2h, steps: [{name: a, worker_id: w, function: A}, {name: b, worker_id: w, function: B}]}\n";
const std::string late = "  - {name: late, offset: T-0, steps: [{name: c, worker_id: w, function: C}]}\n";

std::vector<std::string> diff(const std::string& from, const std::string& to) {
  std::vector<std::string> lines;
  for (const auto& each : differences(*parse(from).definition, *parse(to).definition))
    lines.push_back(each.where + (each.field.empty() ? "" : ": " + each.field + " " + each.from + " -> " + each.to) + " " +
                    std::string(name(each.what)));
  return lines;
}
using Lines = std::vector<std::string>;

TEST(Differences, of_the_same_there_are_none) { EXPECT_EQ(diff(book(early + late), book(late + early)), Lines{}); }

TEST(Differences, are_told_by_name_and_field) {
  const std::string other =
      "  - {name: early, offset: T-3h, steps: [{name: a, worker_id: w, function: A2, params: {x: 1}}, {name: b, worker_id: w, function: B}]}\n";
  EXPECT_EQ(diff(book(early + late), book(other + late, "late_after: 2h\n")),
            (Lines{"the runbook: late_after 3600s -> 7200s changed", "phase 'early': offset T-2h -> T-3h changed",
                   "phase 'early', step 'a': function A -> A2 changed",
                   "phase 'early', step 'a': params {} -> {\"x\":1} changed"}));
}

TEST(Differences, a_phase_that_comes_or_goes_is_told_as_one) {
  EXPECT_EQ(diff(book(early), book(late)), (Lines{"phase 'late' added", "phase 'early' removed"}));
}

TEST(Differences, steps_come_go_and_change_places) {
  const std::string swapped =
      "  - {name: early, offset: T-2h, steps: [{name: n, worker_id: w, function: N}, {name: b, worker_id: w, function: B}, {name: a, worker_id: w, function: A}]}\n";
  EXPECT_EQ(diff(book(early), book(swapped)),
            (Lines{"phase 'early': order of steps a, b -> b, a changed", "phase 'early', step 'n' added"}));
  EXPECT_EQ(diff(book(swapped), book(early)),
            (Lines{"phase 'early': order of steps b, a -> a, b changed", "phase 'early', step 'n' removed"}));
}

}  // namespace
}  // namespace baton::runbook
