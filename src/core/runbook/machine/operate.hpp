// What the handlers of people's commands share: outcomes in words, and members by name. Private to the machine.
#pragma once

#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {

[[nodiscard]] inline Outcome changed(std::string what = {}) {
  return {.problem = Problem::none, .why = std::move(what), .changed = true};
}
[[nodiscard]] inline Outcome unchanged(std::string why = {}) {
  return {.problem = Problem::none, .why = std::move(why), .changed = false};
}
[[nodiscard]] inline Outcome no_batch(std::int64_t id) {
  return wrong(Problem::batch_not_found, "there is no batch " + std::to_string(id));
}
[[nodiscard]] inline Outcome no_runbook(const std::string& name, std::int32_t version) {
  return wrong(Problem::runbook_not_found, "there is no runbook '" + name + "'" +
                                               (version > 0 ? " in version " + std::to_string(version) : ""));
}
[[nodiscard]] inline Outcome ended(const Batch& batch) {
  return wrong(Problem::not_possible,
               "batch " + std::to_string(batch.id) + " is " + std::string(name(batch.status)));
}

[[nodiscard]] inline std::string by_whom(const By& by) {
  return (by.who.empty() ? "" : " by " + by.who) + (by.reason.empty() ? "" : ": " + by.reason);
}

// Those that are named by id or by key and belong to the batch; `missing` is told of the others.
[[nodiscard]] std::vector<Slot<Member>*> named_members(std::int64_t batch_id, const std::vector<std::int64_t>& ids,
                                                       const std::vector<std::string>& keys, Ledger& ledger,
                                                       std::vector<std::string>& missing);
[[nodiscard]] Outcome no_members(std::int64_t batch_id, const std::vector<std::string>& missing);

}  // namespace baton::runbook
