// What happens in a simulated world, in words: for whoever replays a seed.
#pragma once

#include <string>

#include "ports/commands.hpp"
#include "store/memory/store.hpp"

namespace baton::simulation {

[[nodiscard]] std::string describe(const Command& command);
[[nodiscard]] std::string describe(const Reply& reply);
// The rows that a commit is about to change; one per line.
[[nodiscard]] std::string describe(const runbook::Writes& writes, const store::memory::RunbookTables& before);
[[nodiscard]] std::string describe(const message::Writes& writes);

}  // namespace baton::simulation
