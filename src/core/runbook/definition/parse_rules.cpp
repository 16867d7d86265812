#include "core/runbook/definition/parse_rules.hpp"

#include "core/runbook/definition/parse_policy.hpp"

namespace baton::runbook {
namespace {

using yaml::NodeKind;

constexpr std::int64_t failed_max = 1'000'000;

}  // namespace

std::optional<Gate> read_gate(const yaml::Node& phase, const std::string& where, Diagnostics& diagnostics) {
  const auto* gate = phase.find("gate");
  if (!gate) return std::nullopt;
  const std::string what = "'gate' of " + where;
  if (gate->kind == NodeKind::string) {
    if (!diagnostics.word(*gate, what, {"approval"})) return std::nullopt;
    return Gate{};
  }
  if (!diagnostics.expect(*gate, NodeKind::mapping, what)) return std::nullopt;
  diagnostics.check_keys(*gate, {"type", "timeout", "on_timeout"}, what);
  Gate read;
  if (const auto* type = gate->find("type"))
    (void)diagnostics.word(*type, "'type' of " + what, {"approval"});
  else
    diagnostics.error(gate->at, "missing_key", what + " has no 'type'", "as {type: approval, timeout: 1h, on_timeout: hold}");
  if (const auto* timeout = gate->find("timeout")) read.timeout = read_duration(*timeout, "'timeout' of " + what, diagnostics);
  if (const auto* on_timeout = gate->find("on_timeout")) {
    const auto word = diagnostics.word(*on_timeout, "'on_timeout' of " + what, {"hold", "skip", "go"});
    if (word) read.on_timeout = static_cast<Gate::OnTimeout>(*word);
    if (!gate->find("timeout"))
      diagnostics.error(on_timeout->at, "missing_key", what + " has 'on_timeout', but no 'timeout'", "add timeout: 1h");
  }
  return read;
}

std::optional<Requirement> read_requirement(const yaml::Node& phase, const std::string& where, Diagnostics& diagnostics) {
  const auto* required = phase.find("requires");
  if (!required) return std::nullopt;
  const std::string what = "'requires' of " + where;
  if (!diagnostics.expect(*required, NodeKind::mapping, what)) return std::nullopt;
  diagnostics.check_keys(*required, {"phase", "succeeded_percent"}, what);
  Requirement read;
  if (const auto* name = required->find("phase"))
    read.phase = diagnostics.short_text(*name, "'phase' of " + what);
  else
    diagnostics.error(required->at, "missing_key", what + " has no 'phase'", "as {phase: prepare, succeeded_percent: 95}");
  if (const auto* percent = required->find("succeeded_percent")) {
    const auto number = diagnostics.integer(*percent, "'succeeded_percent' of " + what, 1, 100);
    read.succeeded_percent = static_cast<std::int32_t>(number.value_or(100));
  }
  return read;
}

std::optional<Threshold> read_threshold(const yaml::Node& body, const std::string& where, Diagnostics& diagnostics) {
  const auto* percent = body.find("max_failed_percent");
  const auto* min = body.find("min_failed");
  if (!percent && !min) return std::nullopt;
  Threshold read;
  if (percent) {
    const auto number = diagnostics.integer(*percent, "'max_failed_percent' of " + where, 0, 100);
    read.max_failed_percent = static_cast<std::int32_t>(number.value_or(100));
  } else {
    diagnostics.error(min->at, "missing_key", where + " has 'min_failed', but no 'max_failed_percent'",
                      "add max_failed_percent: 10");
  }
  if (min) {
    const auto number = diagnostics.integer(*min, "'min_failed' of " + where, 1, failed_max);
    read.min_failed = static_cast<std::int32_t>(number.value_or(3));
  }
  return read;
}

}  // namespace baton::runbook
