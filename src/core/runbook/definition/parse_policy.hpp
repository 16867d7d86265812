// The parts of a runbook that are about time: durations, retries, polls. Private to the parser.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostics.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

// From a second to 365 days. None: it is wrong, and that is reported.
[[nodiscard]] std::optional<std::chrono::seconds> read_duration(const yaml::Node& node,
                                                                const std::string& what, Diagnostics& diagnostics);

// `where` names what they belong to: "step 'move' of phase 'cut-over'".
[[nodiscard]] Retry read_retry(const yaml::Node& node, const std::string& where, Diagnostics& diagnostics);
[[nodiscard]] PollPolicy read_poll(const yaml::Node& node, const std::string& where, Diagnostics& diagnostics);

// "T-5d" in minutes before T. None: it is wrong, and that is reported.
[[nodiscard]] std::optional<std::int32_t> read_offset(const yaml::Node& node, const std::string& what,
                                                      Diagnostics& diagnostics);

}  // namespace baton::runbook
