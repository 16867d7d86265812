#include "core/runbook/machine/impact.hpp"

#include <array>

#include "core/runbook/definition/plan.hpp"

namespace baton::runbook {
namespace {

using enum PhaseImpact::What;

PhaseImpact of_phase(PhaseImpact::What what, const PhaseExecution& phase) {
  return {.what = what, .phase_name = phase.phase_name, .version = phase.runbook_version, .due_at = phase.due_at};
}

}  // namespace

std::string_view name(PhaseImpact::What what) {
  constexpr std::array<std::string_view, 6> words{"stays", "goes_on", "superseded", "begins_again", "begins", "skipped"};
  return words[static_cast<std::size_t>(what)];
}

std::vector<PhaseImpact> impact_on(const Batch& batch, const std::vector<const PhaseExecution*>& phases,
                                   const Definition& to, std::int32_t version, OpenBatches how, Time now) {
  const bool is_kept = how == OpenBatches::keep && has_begun(batch, phases);
  std::vector<PhaseImpact> impact;
  for (const PhaseExecution* phase : phases) {
    if (phase->status == PhaseStatus::dispatched) impact.push_back(of_phase(goes_on, *phase));
    if (phase->status == PhaseStatus::pending) impact.push_back(of_phase(is_kept ? stays : superseded, *phase));
  }
  if (is_kept) return impact;
  for (const Phase* phase : phases_in_order(to)) {
    PhaseImpact one{.what = begins, .phase_name = phase->name, .version = version, .due_at = {}};
    if (batch.batch_start_time) one.due_at = due_at(*phase, *batch.batch_start_time);
    const Earlier before = earlier(phases, phase->name, version, now);
    if (is_left_out(how, before, one.due_at, now))
      one.what = skipped;
    else if (before.state == Earlier::State::over)
      one.what = begins_again;
    one.at_once = one.what != skipped && one.due_at && *one.due_at <= now;
    impact.push_back(std::move(one));
  }
  return impact;
}

}  // namespace baton::runbook
