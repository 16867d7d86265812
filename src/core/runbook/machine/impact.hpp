// What publishing a version would do to an open batch, told before; by the rules of versions.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runbook/definition/definition.hpp"
#include "core/runbook/machine/versions.hpp"

namespace baton::runbook {

struct PhaseImpact {
  // stays: it waits, and begins in the version that it has. goes_on: it runs, and ends in that version. superseded: it
  // waits, and never begins. begins_again: it begins when it is due, although it began in a version before; begins:
  // likewise, for the first time. skipped: it never begins in the new version.
  enum class What { stays, goes_on, superseded, begins_again, begins, skipped };
  What what{};
  std::string phase_name;
  std::int32_t version = 0;
  std::optional<Time> due_at;
  bool at_once = false;  // it begins, and its time is past
};
[[nodiscard]] std::string_view name(PhaseImpact::What what);

// One that has not begun goes over to the new version, whatever the answer is.
[[nodiscard]] std::vector<PhaseImpact> impact_on(const Batch& batch, const std::vector<const PhaseExecution*>& phases,
                                                 const Definition& to, std::int32_t version, OpenBatches how, Time now);

}  // namespace baton::runbook
