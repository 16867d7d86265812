// What the built-in scheduler and people do: make batches, add and remove members, steer. Retries by hand are in
// retry.cpp, versions in versions.cpp.
#include <algorithm>
#include <boost/json.hpp>

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/operate.hpp"

namespace baton::runbook {
// --- batches

namespace {

// T of a batch that has not begun is past: whoever wrote it may have meant another one.
bool is_late(const Batch& batch, Context context) {
  if (!batch.batch_start_time || !context.policy.scheduler || batch.status != BatchStatus::detected) return false;
  const auto* book = context.ledger.runbook(batch.runbook_id);
  if (!book) return false;
  const Definition& definition = context.ledger.definition(book->row);
  return !definition.data_source.immediate && context.now - *batch.batch_start_time > definition.late_after;
}

void hold_late_batch(Slot<Batch>& batch, Decision& decision) {
  if (batch.row.hold_id || MUTANT(late_batch_begins)) return;
  const auto& hold = decision.open_hold(HoldKind::late_batch, batch, nullptr,
                                        "the time of the batch, " + to_iso(*batch.row.batch_start_time) + ", is past");
  batch.row.hold_id = hold.row.id;
  batch.changed = true;
}

}  // namespace

Opened open_batch(const std::string& runbook_name, std::int32_t version, std::optional<Time> time,
                  const std::string& by, Context context) {
  auto* book = context.ledger.runbook(runbook_name, version);
  if (!book) return {no_runbook(runbook_name, version), nullptr};
  if (!book->row.is_active && version == 0)
    return {wrong(Problem::not_possible, "runbook '" + runbook_name + "' has no active version"), nullptr};
  const Definition& definition = context.ledger.definition(book->row);
  if (time)
    if (auto* there = context.ledger.batch_of_time(runbook_name, *time)) return {unchanged(), there};
  Batch row;
  row.runbook_id = book->row.id;
  row.batch_start_time = time;
  row.detected_at = context.now;
  row.is_manual = !time;
  row.importing = true;
  if (context.policy.scheduler) row.phase_overlap = definition.phase_overlap.value_or(PhaseOverlap::wait);
  if (!by.empty()) row.created_by = by;
  Slot<Batch>& batch = context.ledger.create(std::move(row));
  Decision decision(context);
  decision.create_phases(batch, book->row, definition);
  decision.event(batch.row.id, "batch_detected",
                 (time ? "a batch of runbook '" + runbook_name + "' for " + to_iso(*time)
                       : "a manual batch of runbook '" + runbook_name + "'") +
                     by_whom(by));
  return {changed(), &batch};
}

Outcome start_batch(std::int64_t batch_id, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return no_batch(batch_id);
  if (!batch->row.importing) return unchanged();
  if (is_terminal(batch->row.status)) return ended(batch->row);
  batch->row.importing = false;
  batch->changed = true;
  Decision decision(context);
  if (is_late(batch->row, context))
    hold_late_batch(*batch, decision);
  else
    decision.begin_batch(*batch);
  decision.settle();
  return changed();
}

void Decision::begin_batch(Slot<Batch>& batch) {
  const auto* book = ledger.runbook(batch.row.runbook_id);
  if (!book || ledger.definition(book->row).init.empty())
    activate(batch);
  else
    begin_init(batch, book->row.version);
}

// --- members

namespace {

constexpr std::size_t named_in_event = 20;

std::string counted_members(std::size_t n) {
  return n == 1 ? "1 member was" : std::to_string(n) + " members were";
}

// "ada, eve and 3 more"
std::string names_of(const std::vector<std::string>& keys, std::size_t all) {
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + ("'" + key + "'");
  if (all > keys.size()) names += " and " + std::to_string(all - keys.size()) + " more";
  return names;
}

}  // namespace

Joined add_members(std::int64_t batch_id, const std::vector<DataRow>& members, Context context,
                   const std::optional<By>& by) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return {.outcome = no_batch(batch_id)};
  if (is_terminal(batch->row.status)) return {.outcome = ended(batch->row)};
  Joined joined{.outcome = changed()};
  Decision decision(context);
  std::vector<std::string> keys;  // the first of them
  for_all(members, [&](const DataRow& from) {
    const auto same = context.ledger.members_named(batch_id, from.member_key);
    if (std::ranges::any_of(same, [](const auto* m) { return m->row.status != MemberStatus::removed; })) {
      leave_out(joined.left_out, "in_batch", "in the batch already", from.member_key);
      return;
    }
    Member row;
    row.batch_id = batch_id;
    row.member_key = from.member_key;
    row.added_at = context.now;
    row.data_json = from.data;
    const bool late = !batch->row.importing && batch->row.status == BatchStatus::active;
    if (late) row.add_dispatched_at = context.now;
    Slot<Member>& member = context.ledger.create(std::move(row));
    decision.adopt(member);
    joined.member_ids.push_back(member.row.id);
    if (keys.size() < named_in_event) keys.push_back(from.member_key);
    decision.catch_up(member, *batch);
  });
  if (by && !joined.member_ids.empty() && !batch->row.importing)
    decision.event(batch_id, "members_added",
                   counted_members(joined.member_ids.size()) + " added by hand (" +
                       names_of(keys, joined.member_ids.size()) + ")" + by_whom(*by));
  decision.settle();
  return joined;
}

bool refresh_member(std::int64_t member_id, const DataRow& row, Context context) {
  auto* member = context.ledger.member(member_id);
  if (!member || member->row.status == MemberStatus::removed || member->row.member_key != row.member_key)
    return false;
  member->row.data_json = row.data;
  member->changed = true;
  ++context.decided.spent.rows;
  return true;
}

std::vector<Slot<Member>*> named_members(std::int64_t batch_id, const std::vector<std::int64_t>& ids,
                                         const std::vector<std::string>& keys, Ledger& ledger,
                                         std::vector<std::string>& missing) {
  std::vector<Slot<Member>*> found;
  for_all(ids, [&](std::int64_t id) {
    auto* member = ledger.member(id);
    if (member && member->row.batch_id == batch_id)
      found.push_back(member);
    else
      missing.push_back(std::to_string(id));
  });
  for_all(keys, [&](const std::string& key) {
    const auto same = ledger.members_named(batch_id, key);
    const auto presence = [](const auto* m) {
      return m->row.status == MemberStatus::active ? 2 : m->row.status == MemberStatus::failed ? 1 : 0;
    };
    if (same.empty())
      missing.push_back("'" + key + "'");
    else
      found.push_back(*std::ranges::max_element(same, {}, presence));
  });
  return found;
}

Outcome no_members(std::int64_t batch_id, const std::vector<std::string>& missing) {
  constexpr std::size_t named = LeftOut::keys_max;
  std::string text;
  for (std::size_t i = 0; i < std::min(missing.size(), named); ++i) text += (i > 0 ? ", " : "") + missing[i];
  if (missing.size() > named) text += " and " + std::to_string(missing.size() - named) + " more";
  return wrong(Problem::member_not_found, "batch " + std::to_string(batch_id) + " has no member " + text +
                                              "; nothing was done");
}

Joined remove_members(std::int64_t batch_id, const std::vector<std::int64_t>& ids,
                      const std::vector<std::string>& keys, const By& by, bool by_hand, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return {.outcome = no_batch(batch_id)};
  if (is_terminal(batch->row.status)) return {.outcome = ended(batch->row)};
  std::vector<std::string> missing;
  const auto members = named_members(batch_id, ids, keys, context.ledger, missing);
  if (!missing.empty()) return {.outcome = no_members(batch_id, missing)};
  Joined left{.outcome = changed()};
  Decision decision(context);
  std::vector<std::string> names;  // the first of them
  const auto* book = context.ledger.runbook(batch->row.runbook_id);
  for_all(members, [&](Slot<Member>* member) {
    if (member->row.status == MemberStatus::removed) {
      leave_out(left.left_out, "removed", "removed already", member->row.member_key);
      return;
    }
    decision.remove(*member, *batch, book ? book->row.version : 0);
    if (by_hand) member->row.removed_by = by.who.empty() ? "hand" : by.who;
    left.member_ids.push_back(member->row.id);
    if (names.size() < named_in_event) names.push_back(member->row.member_key);
  });
  if ((by_hand || !by.who.empty()) && !left.member_ids.empty())
    decision.event(batch_id, "members_removed",
                   counted_members(left.member_ids.size()) + " removed (" +
                       names_of(names, left.member_ids.size()) + ")" + by_whom(by));
  decision.settle();
  return left;
}

// --- steering

Outcome pause(std::int64_t batch_id, const std::string& by, const std::string& reason, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return no_batch(batch_id);
  if (is_terminal(batch->row.status)) return ended(batch->row);
  if (batch->row.paused_at) return unchanged();
  Decision(context).pause(*batch, by, reason);
  return changed();
}

void Decision::pause(Slot<Batch>& batch, const std::string& by, const std::string& reason) {
  batch.row.paused_at = now;
  if (!by.empty()) batch.row.paused_by = by;
  if (!reason.empty()) batch.row.paused_reason = reason;
  batch.changed = true;
  event(batch.row.id, "batch_paused", "paused" + by_whom(by) + (reason.empty() ? "" : ": " + reason));
}

Outcome resume(std::int64_t batch_id, const std::string& by, const std::string& reason, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return no_batch(batch_id);
  if (is_terminal(batch->row.status)) return ended(batch->row);
  if (!batch->row.paused_at) return unchanged();
  Decision decision(context);
  if (const auto* hold = decision.find_open(HoldKind::threshold, batch_id))
    return wrong(Problem::not_possible, "batch " + std::to_string(batch_id) + " has paused itself, because " +
                                            batch->row.paused_reason.value_or("too many failed") + ": answer hold " +
                                            std::to_string(hold->row.id) + " with go or cancel");
  decision.resume(*batch, by, reason);
  decision.settle();
  return changed();
}

void Decision::resume(Slot<Batch>& batch, const std::string& by, const std::string& reason) {
  batch.row.paused_at.reset();
  batch.row.paused_by.reset();
  batch.row.paused_reason.reset();
  change(batch, walk_transition::resume);
  event(batch.row.id, "batch_resumed", "resumed" + by_whom(by) + (reason.empty() ? "" : ": " + reason));
  for (const Slot<PhaseExecution>* phase : ledger.phases_of(batch.row.id))  // too many may have failed meanwhile
    if (phase->row.dispatched_at) check_threshold(batch, phase->row);
  consider_waiting(batch);
}

Outcome cancel(std::int64_t batch_id, const std::string& by, const std::string& reason, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return no_batch(batch_id);
  if (batch->row.status == BatchStatus::cancelled) return unchanged();
  if (is_terminal(batch->row.status)) return ended(batch->row);
  Decision(context).cancel(*batch, by, reason);
  return changed();
}

void Decision::cancel(Slot<Batch>& batch, const std::string& by, const std::string& reason) {
  end(batch, batch_transition::cancel, "cancelled" + by_whom(by) + (reason.empty() ? "" : ": " + reason));
  cancel_inits_and_cleanups(batch.row);
  batch.row.importing = false;
  batch.row.paused_at.reset();
  batch.row.paused_by.reset();
  batch.row.paused_reason.reset();
  change(batch, walk_transition::cancel);
}

Outcome advance(std::int64_t batch_id, const std::string& phase_name, const By& by,
                Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return no_batch(batch_id);
  if (is_terminal(batch->row.status)) return ended(batch->row);
  auto phases = context.ledger.phases_of(batch_id);
  std::ranges::stable_sort(phases, {},
                           [](const auto* p) { return std::pair(-p->row.offset_minutes, p->row.id); });
  Slot<PhaseExecution>* next = nullptr;
  for (Slot<PhaseExecution>* phase : phases) {
    if (!phase_name.empty()) {
      if (phase->row.phase_name == phase_name && phase->row.status == PhaseStatus::pending) next = phase;
    } else if (phase->row.status == PhaseStatus::dispatched) {
      return wrong(Problem::not_possible, "phase '" + phase->row.phase_name +
                                              "' is still running; name the phase to begin it all the same");
    } else if (phase->row.status == PhaseStatus::pending && !next) {
      next = phase;
    }
  }
  if (next && batch->row.hold_id)
    return wrong(Problem::not_possible, "batch " + std::to_string(batch_id) + " waits for an answer to hold " +
                                            std::to_string(*batch->row.hold_id));
  if (!next)
    return wrong(phase_name.empty() ? Problem::not_possible : Problem::phase_not_found,
                 phase_name.empty() ? "no phase is pending" : "no phase '" + phase_name + "' is pending");
  for (const Slot<PhaseExecution>* phase : phases)
    if (batch->row.phase_overlap && phase->row.phase_name == next->row.phase_name &&
        phase->row.runbook_version < next->row.runbook_version && phase->row.status == PhaseStatus::dispatched)
      return wrong(Problem::not_possible, "phase '" + next->row.phase_name + "' is still running in version " +
                                              std::to_string(phase->row.runbook_version));
  Decision decision(context);
  decision.event(batch_id, "batch_advanced",
                 "phase '" + next->row.phase_name + "' was begun by hand" + by_whom(by));
  const std::string begun = next->row.phase_name;
  decision.phase_due(*next, *batch);
  decision.settle();
  return changed(begun);
}

namespace {

struct HeldRemovals {
  std::string mark;  // empty: none
  std::int64_t leaving = 0;
};

// The entry of a batch in what the last look at the source has held back.
HeldRemovals held_of(const OptionalJson& all, std::int64_t batch_id) {
  if (!all) return {};
  boost::system::error_code error;
  const auto list = boost::json::parse(all->text, error);
  if (error || !list.is_array()) return {};
  for (const auto& entry : list.get_array()) {
    const auto* held = entry.if_object();
    const auto* id = held ? held->if_contains("batch_id") : nullptr;
    if (!id || !id->is_int64() || id->get_int64() != batch_id) continue;
    const auto* mark = held->if_contains("mark");
    const auto* leaving = held->if_contains("leaving");
    return {mark && mark->is_string() ? std::string(mark->get_string()) : "",
            leaving && leaving->is_int64() ? leaving->get_int64() : 0};
  }
  return {};
}

}  // namespace

Outcome approve_removals(std::int64_t batch_id, const By& by, Context context) {
  auto* batch = context.ledger.batch(batch_id);
  if (!batch) return no_batch(batch_id);
  if (is_terminal(batch->row.status)) return ended(batch->row);
  const auto* of = context.ledger.runbook(batch->row.runbook_id);
  const auto* active = of ? context.ledger.runbook(of->row.name, 0) : nullptr;
  const HeldRemovals held = active ? held_of(active->row.held_removals, batch_id) : HeldRemovals{};
  if (held.mark.empty())
    return wrong(Problem::not_possible,
                 "nothing is held: no member waits to leave batch " + std::to_string(batch_id));
  if (batch->row.removals_approved == held.mark) return unchanged();
  batch->row.removals_approved = held.mark;
  batch->changed = true;
  Decision(context).event(batch_id, "removals_approved",
                          std::to_string(held.leaving) + " held removals were approved" + by_whom(by));
  return changed();
}

void note_approvals(const std::vector<ApprovedRemovals>& seen, const OptionalJson& held, Context context) {
  for (const ApprovedRemovals& approval : seen) {
    auto* batch = context.ledger.batch(approval.batch_id);
    if (!batch || batch->row.removals_approved != approval.mark) continue;
    batch->row.removals_approved.reset();
    batch->changed = true;
    if (!held_of(held, approval.batch_id).mark.empty())
      Decision(context).event(approval.batch_id, "removals_held",
                              "others would leave than was approved: they are held again");
  }
}

}  // namespace baton::runbook
