// Versions: publish, make active, and what becomes of open batches.
#include "core/runbook/machine/versions.hpp"

#include <algorithm>

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/operate.hpp"

namespace baton::runbook {

// --- the rules

bool has_begun(const PhaseExecution& phase) {
  return phase.dispatched_at || phase.status == PhaseStatus::dispatched || phase.status == PhaseStatus::completed ||
         phase.status == PhaseStatus::failed;
}

bool has_begun(const Batch& batch, const std::vector<const PhaseExecution*>& phases) {
  return batch.init_dispatched_at || batch.status == BatchStatus::init_dispatched ||
         std::ranges::any_of(phases, [](const auto* phase) { return has_begun(*phase); });
}

OpenBatches open_batches_of(const Runbook& runbook) {
  if (runbook.open_batches) return *runbook.open_batches;
  return runbook.overdue_behavior == "ignore" ? OpenBatches::ignore : OpenBatches::rerun;
}

Earlier earlier(const std::vector<const PhaseExecution*>& phases, std::string_view phase_name,
                std::int32_t before_version, Time now) {
  using enum Earlier::State;
  Earlier found;
  for (const PhaseExecution* phase : phases) {
    if (phase->phase_name != phase_name || phase->runbook_version >= before_version) continue;
    if (phase->status == PhaseStatus::superseded) continue;
    if (phase->status != PhaseStatus::pending) return {.state = over, .expected_at = {}};
    const bool is_due = phase->due_at && *phase->due_at <= now;
    found = {.state = is_due ? due : later, .expected_at = is_due ? phase->expected_at : std::nullopt};
  }
  return found;
}

bool is_left_out(OpenBatches how, const Earlier& earlier, std::optional<Time> due_at, Time now) {
  if (how == OpenBatches::rerun) return false;
  if (earlier.state == Earlier::State::over) return true;
  // What has only waited for its turn is not overdue: it goes on waiting, in the new version.
  return how == OpenBatches::ignore && due_at && *due_at <= now && earlier.state != Earlier::State::due;
}

// --- publish

namespace {

// Open batches that were on their way to it stay where they are.
void switch_off_replaced(Slot<Runbook>& book) {
  book.row.is_active = false;
  book.row.transition_after.reset();
  book.row.timer_due.reset();
  book.changed = true;
}

std::vector<const PhaseExecution*> rows_of(const std::vector<Slot<PhaseExecution>*>& slots) {
  std::vector<const PhaseExecution*> rows;
  for (const Slot<PhaseExecution>* slot : slots) rows.push_back(&slot->row);
  return rows;
}

// Refused while open batches have begun.
Outcome ask_what_becomes_of_them(const std::string& name, Ledger& ledger) {
  constexpr std::int32_t named_max = 5;
  std::vector<std::int64_t> begun;
  for_all(ledger.begun_batches(name, named_max + 1), [&](const Slot<Batch>* batch) {
    if (has_begun(batch->row, rows_of(ledger.phases_of(batch->row.id)))) begun.push_back(batch->row.id);
  });
  if (begun.empty()) return changed();
  std::ranges::sort(begun);
  std::string batches;
  for (std::size_t i = 0; i < begun.size() && i < named_max; ++i)
    batches += (i == 0 ? "" : ", ") + std::to_string(begun[i]);
  if (begun.size() > named_max) batches += " and others";
  return wrong(Problem::open_batches,
               "open batches of runbook '" + name + "' have begun: " + batches +
                   ". Say what becomes of them: keep (they finish on their version), ignore (the new version for what is not "
                   "due yet and has not begun) or rerun (what is overdue begins again)");
}

}  // namespace

Published publish(const Definition& definition, const std::string& text, const Publication& how, Context context) {
  auto* active = context.ledger.runbook(definition.name, 0);
  const auto* latest = context.ledger.latest_version(definition.name);
  if (active && active->row.is_active && active->row.yaml_content == text) return {unchanged(), active};
  auto said = how.open_batches;
  if (!said && how.overdue_behavior == "ignore") said = OpenBatches::ignore;
  const bool is_for_open_ones = latest && context.policy.scheduler;
  if (is_for_open_ones && !said)
    if (auto refused = ask_what_becomes_of_them(definition.name, context.ledger); refused.problem != Problem::none)
      return {std::move(refused), nullptr};
  Runbook row;
  row.name = definition.name;
  row.version = latest ? latest->row.version + 1 : 1;
  row.yaml_content = text;
  row.data_table_name = data_table_name(definition.name, row.version);
  if (context.ledger.is_table_of_another(row.data_table_name, definition.name))
    row.data_table_name = data_table_name(definition.name, row.version, true);
  row.overdue_behavior = said ? *said == OpenBatches::ignore ? "ignore" : "rerun" : how.overdue_behavior;
  row.rerun_init = how.rerun_init;
  row.created_at = context.now;
  row.open_batches = said;
  if (is_for_open_ones) {
    // One that begins before it is looked at stays where it is: nobody has said anything else.
    row.open_batches = said.value_or(OpenBatches::keep);
    row.transition_after = 0;
    row.timer_due = context.now;
  }
  if (active && active->row.is_active) {
    row.automation_enabled = active->row.automation_enabled;
    switch_off_replaced(*active);
  }
  return {changed(), &context.ledger.create(std::move(row))};
}

Switched activate(const std::string& runbook_name, std::int32_t version, Context context) {
  auto* was = context.ledger.runbook(runbook_name, 0);
  auto* book = version > 0 ? context.ledger.runbook(runbook_name, version)
                           : context.ledger.latest_version(runbook_name);
  if (!book) return {no_runbook(runbook_name, version), nullptr};
  if (book->row.is_active) return {unchanged(), book};
  if (was && was->row.is_active) switch_off_replaced(*was);
  book->row.is_active = true;
  // Open batches that were on their way to this version when it was deactivated go on.
  book->row.timer_due = book->row.transition_after ? std::optional{context.now} : std::nullopt;
  book->changed = true;
  return {changed(), book};
}

Switched deactivate(const std::string& runbook_name, Context context) {
  auto* book = context.ledger.runbook(runbook_name, 0);
  if (!book) return {no_runbook(runbook_name, 0), nullptr};
  if (!book->row.is_active) return {unchanged(), book};
  book->row.is_active = false;
  book->row.timer_due.reset();  // open batches that were on their way to this version wait
  book->changed = true;
  return {changed(), book};
}

// --- open batches

// An open batch goes over to another version: its phases that wait are replaced.
void Decision::transition(Slot<Batch>& batch, const Runbook& to, const Definition& definition) {
  const auto old = ledger.phases_of(batch.row.id);
  std::map<std::string, Earlier> before;
  for (const Phase& phase : definition.phases)
    before[phase.name] = earlier(rows_of(old), phase.name, to.version, now);
  for (Slot<PhaseExecution>* phase : old) {
    if (phase->row.status != PhaseStatus::pending || phase->row.runbook_version >= to.version) continue;
    if (MUTANT(supersede_forgotten)) continue;
    if (phase->row.waits_for == PhaseWait::answer) close_holds(batch.row.id, phase->row.id, "a new version has replaced the phase");
    change(*phase, phase_transition::supersede);
  }
  const bool has = std::ranges::any_of(old, [&](const auto* phase) { return phase->row.runbook_version == to.version; });
  batch.row.runbook_id = to.id;
  batch.changed = true;
  // One that knew no rule goes on without waiting for phases before, but never with two versions of one at once.
  batch.row.phase_overlap =
      batch.row.phase_overlap ? definition.phase_overlap.value_or(PhaseOverlap::wait) : PhaseOverlap::allow;
  if (has) return;  // it was done before
  create_phases(batch, to, definition);
  fit_new_phases(batch, to, before);
  event(batch.row.id, "version_changed", "the batch goes on with version " + std::to_string(to.version));
  if (to.rerun_init && batch.row.status == BatchStatus::active && !definition.init.empty() &&
      !MUTANT(init_not_rerun))
    begin_init(batch, to.version);
  batch_touched(batch.row.id);
}

void Decision::fit_new_phases(Slot<Batch>& batch, const Runbook& to, const std::map<std::string, Earlier>& before) {
  OpenBatches how = open_batches_of(to);
  if (how == OpenBatches::ignore && (to.ignore_overdue_applied || MUTANT(overdue_never_ignored))) how = OpenBatches::rerun;
  for (Slot<PhaseExecution>* phase : ledger.phases_of(batch.row.id)) {
    PhaseExecution& row = phase->row;
    if (row.runbook_version != to.version || !before.contains(row.phase_name)) continue;
    const Earlier& earlier = before.at(row.phase_name);
    if (is_left_out(how, earlier, row.due_at, now))
      change(*phase, phase_transition::skip);
    else if (earlier.state == Earlier::State::due && row.due_at && *row.due_at <= now)
      row.expected_at = earlier.expected_at;  // it is as late as it was
  }
}

void Decision::transition_chunk(Slot<Runbook>& runbook) {
  constexpr std::int32_t batches_at_once = 50;
  Runbook& row = runbook.row;
  runbook.changed = true;
  row.timer_due.reset();
  if (!row.transition_after || !row.is_active) return;
  const auto batches = ledger.open_batches(row.name, *row.transition_after, batches_at_once);
  const Definition& definition = ledger.definition(row);
  for_all(batches, [&](Slot<Batch>* batch) {
    const auto* now_at = ledger.runbook(batch->row.runbook_id);
    if (!now_at || now_at->row.version >= row.version) return;
    const bool may_stay = open_batches_of(row) == OpenBatches::keep && !MUTANT(begun_batch_not_kept);
    if (may_stay && has_begun(batch->row, rows_of(ledger.phases_of(batch->row.id))))
      event(batch->row.id, "version_kept",
            "version " + std::to_string(row.version) + " was published; the batch finishes on version " +
                std::to_string(now_at->row.version));
    else
      transition(*batch, row, definition);
  });
  if (batches.size() == static_cast<std::size_t>(batches_at_once)) {
    row.transition_after = batches.back()->row.id;
    row.timer_due = now;
    return;
  }
  row.transition_after.reset();
  if (row.overdue_behavior == "ignore") row.ignore_overdue_applied = true;
}

}  // namespace baton::runbook
