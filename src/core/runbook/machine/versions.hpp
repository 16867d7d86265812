// What becomes of an open batch when a version is published. The machine decides by these rules, and impact.hpp tells
// people by the same ones before.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

[[nodiscard]] bool has_begun(const PhaseExecution& phase);
// Its init steps or any of its phases have.
[[nodiscard]] bool has_begun(const Batch& batch, const std::vector<const PhaseExecution*>& phases);

// What the version of a runbook is for; that of a version which was published by another program: as its
// overdue_behavior says.
[[nodiscard]] OpenBatches open_batches_of(const Runbook& runbook);

// What became of a phase in the versions before.
struct Earlier {
  // later: it waits for its time. due: its time has come, and it has not begun, because it waits for its turn or for a
  // person. over: it has begun, or was skipped.
  enum class State { none, later, due, over };
  State state = State::none;
  std::optional<Time> expected_at;  // due: see PhaseExecution
};
[[nodiscard]] Earlier earlier(const std::vector<const PhaseExecution*>& phases, std::string_view phase_name,
                              std::int32_t before_version, Time now);

// A phase of the new version is skipped when a batch goes over to it. keep: the batch has not begun.
[[nodiscard]] bool is_left_out(OpenBatches how, const Earlier& earlier, std::optional<Time> due_at, Time now);

}  // namespace baton::runbook
