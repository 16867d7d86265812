// What a step would be for a member, before anything has run: a dry run for people. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

struct PlannedStep {
  std::string function_name;
  Json params;                          // {{Variable}} stays where the value is not known yet
  std::vector<std::string> unresolved;  // nobody knows them: the step would fail
  std::vector<std::string> later;       // steps before it put them out; or the id that the batch will get
};

// The variables that the steps so far put out.
using Outputs = std::vector<std::string>;
void add_outputs(Outputs& outputs, const Step& step);

// `data` is what the source says of the member; none for init steps, which see the batch only.
[[nodiscard]] PlannedStep plan_step(const Step& step, const OptionalJson& data,
                                    std::optional<Time> batch_start_time, const Outputs& outputs);

// The same, and nothing but what is unresolved: for members whose plan nobody looks at.
[[nodiscard]] std::vector<std::string> unresolved_of(const Step& step, const OptionalJson& data,
                                                     std::optional<Time> batch_start_time,
                                                     const Outputs& outputs);

// The phases in the order in which they become due.
[[nodiscard]] std::vector<const Phase*> phases_in_order(const Definition& definition);
[[nodiscard]] Time due_at(const Phase& phase, Time batch_start_time);

}  // namespace baton::runbook
