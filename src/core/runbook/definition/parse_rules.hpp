// Reads what a runbook says about when not to go on: gates, requirements, thresholds.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostics.hpp"
#include "base/yaml.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

// `gate` of a phase: the word approval, or a mapping.
[[nodiscard]] std::optional<Gate> read_gate(const yaml::Node& phase, const std::string& where, Diagnostics& diagnostics);
// `requires` of a phase. Whether that phase is there, and earlier, is looked at when all are read.
[[nodiscard]] std::optional<Requirement> read_requirement(const yaml::Node& phase, const std::string& where,
                                                          Diagnostics& diagnostics);
// `max_failed_percent` and `min_failed`, of a phase or of the runbook.
[[nodiscard]] std::optional<Threshold> read_threshold(const yaml::Node& body, const std::string& where,
                                                      Diagnostics& diagnostics);

}  // namespace baton::runbook
