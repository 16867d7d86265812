// baton_simulation [--seeds N] [--from SEED] [--seed SEED] [--trace SEED] [--minutes M] [--mutants]
//   --seeds N    runs N seeds (2,000 when nothing is said)
//   --seed S     replays one, exactly
//   --trace S    replays one and tells what happens in it
//   --minutes M  goes on with new seeds for that long
//   --mutants    plants each known bug in turn and checks that some seed finds it
//   --mutant M   plants this one only
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/simulation/world.hpp"

namespace {

using namespace baton;
using simulation::Loads;
using simulation::Violation;
using simulation::World;

struct Totals {
  std::size_t seeds = 0, steps = 0, jobs = 0, batches = 0, calls = 0, messages = 0, restarts = 0;
};

std::string run(World& world) {
  try {
    world.run();
  } catch (const Violation& violation) {
    return violation.what;
  } catch (const BrokenInvariant& invariant) {
    return "an ENSURE failed: " + invariant.what;
  }
  return {};
}

// The broken invariant, or nothing.
std::string run_seed(std::uint64_t seed, Totals& totals, bool trace = false) {
  World world(seed);
  world.trace(trace);
  std::string broken = run(world);
  ++totals.seeds;
  totals.steps += world.steps();
  totals.jobs += world.jobs();
  totals.batches += world.batches();
  totals.calls += world.calls();
  totals.messages += world.messages();
  totals.restarts += world.restarts();
  return broken;
}

struct NamedMutant {
  Mutant mutant;
  std::string_view name;
};
constexpr std::array mutants{
    NamedMutant{Mutant::accept_stale_lease, "accept_stale_lease"},
    NamedMutant{Mutant::hot_run_keeps_old_timer, "hot_run_keeps_old_timer"},
    NamedMutant{Mutant::journal_not_replayed, "journal_not_replayed"},
    NamedMutant{Mutant::journal_follows_before, "journal_follows_before"},
    NamedMutant{Mutant::backlog_not_asked, "backlog_not_asked"},
    NamedMutant{Mutant::backlog_hides_waiting, "backlog_hides_waiting"},
    NamedMutant{Mutant::backlog_hides_call, "backlog_hides_call"},
    NamedMutant{Mutant::backlog_keeps_new, "backlog_keeps_new"},
    NamedMutant{Mutant::backlog_keeps_timer, "backlog_keeps_timer"},
    NamedMutant{Mutant::release_before_end, "release_before_end"},
    NamedMutant{Mutant::failed_commit_serves_polls, "failed_commit_serves_polls"},
    NamedMutant{Mutant::log_cut_before_sync, "log_cut_before_sync"},
    NamedMutant{Mutant::unchanged_not_brought, "unchanged_not_brought"},
    NamedMutant{Mutant::backlog_hides_timer, "backlog_hides_timer"},
    NamedMutant{Mutant::tenant_not_checked, "tenant_not_checked"},
    NamedMutant{Mutant::keep_not_stored, "keep_not_stored"},
    NamedMutant{Mutant::old_delivery_kept, "old_delivery_kept"},
    NamedMutant{Mutant::returned_task_forgotten, "returned_task_forgotten"},
    NamedMutant{Mutant::abandon_keeps_lease, "abandon_keeps_lease"},
    NamedMutant{Mutant::kept_task_without_timer, "kept_task_without_timer"},
    NamedMutant{Mutant::result_without_lease_refused, "result_without_lease_refused"},
    NamedMutant{Mutant::wake_forgotten, "wake_forgotten"},
    NamedMutant{Mutant::duplicate_not_detected, "duplicate_not_detected"},
    NamedMutant{Mutant::message_lock_not_stored, "message_lock_not_stored"},
    NamedMutant{Mutant::old_lock_accepted, "old_lock_accepted"},
    NamedMutant{Mutant::message_abandoned_for_ever, "message_abandoned_for_ever"},
    NamedMutant{Mutant::dead_letter_lost, "dead_letter_lost"},
    NamedMutant{Mutant::scheduled_too_early, "scheduled_too_early"},
    NamedMutant{Mutant::renewal_not_stored, "renewal_not_stored"},
    NamedMutant{Mutant::message_lock_cut_short, "message_lock_cut_short"},
    NamedMutant{Mutant::wake_not_earlier, "wake_not_earlier"},
    NamedMutant{Mutant::replay_keeps_dead_letter, "replay_keeps_dead_letter"},
    NamedMutant{Mutant::received_not_deleted, "received_not_deleted"},
    NamedMutant{Mutant::bus_counters_drift, "bus_counters_drift"},
    NamedMutant{Mutant::deleted_entity_keeps_rows, "deleted_entity_keeps_rows"},
    NamedMutant{Mutant::cancelled_message_sent, "cancelled_message_sent"},
    NamedMutant{Mutant::subscription_forgotten, "subscription_forgotten"},
    NamedMutant{Mutant::message_tenant_not_checked, "message_tenant_not_checked"},
    NamedMutant{Mutant::backlog_hides_message, "backlog_hides_message"},
    NamedMutant{Mutant::backlog_keeps_message, "backlog_keeps_message"},
    NamedMutant{Mutant::backlog_loses_lock, "backlog_loses_lock"},
    NamedMutant{Mutant::queue_of_all_tenants, "queue_of_all_tenants"},
    NamedMutant{Mutant::accept_old_attempt, "accept_old_attempt"},
    NamedMutant{Mutant::skip_duplicate_guard, "skip_duplicate_guard"},
    NamedMutant{Mutant::reply_before_commit, "reply_before_commit"},
    NamedMutant{Mutant::forget_lease_timer, "forget_lease_timer"},
    NamedMutant{Mutant::lease_not_persisted, "lease_not_persisted"},
    NamedMutant{Mutant::ignore_idempotency_key, "ignore_idempotency_key"},
    NamedMutant{Mutant::release_unknown_as_done, "release_unknown_as_done"},
    NamedMutant{Mutant::redo_unknown_blindly, "redo_unknown_blindly"},
    NamedMutant{Mutant::deliveries_never_counted, "deliveries_never_counted"},
    NamedMutant{Mutant::kept_task_redelivered, "kept_task_redelivered"},
    NamedMutant{Mutant::kept_lease_cut_short, "kept_lease_cut_short"},
    NamedMutant{Mutant::abandoned_for_ever, "abandoned_for_ever"},
    NamedMutant{Mutant::lease_cut_short, "lease_cut_short"},
    NamedMutant{Mutant::keep_running_after_failure, "keep_running_after_failure"},
    NamedMutant{Mutant::lose_queue_on_restart, "lose_queue_on_restart"},
    NamedMutant{Mutant::join_does_not_wait, "join_does_not_wait"},
    NamedMutant{Mutant::run_skipped_nodes, "run_skipped_nodes"},
    NamedMutant{Mutant::skip_does_not_spread, "skip_does_not_spread"},
    NamedMutant{Mutant::dispatch_while_paused, "dispatch_while_paused"},
    NamedMutant{Mutant::resume_forgets_parked, "resume_forgets_parked"},
    NamedMutant{Mutant::forget_children, "forget_children"},
    NamedMutant{Mutant::expand_one_chunk, "expand_one_chunk"},
    NamedMutant{Mutant::timer_overtakes_message, "timer_overtakes_message"},
    NamedMutant{Mutant::budget_drops_rest, "budget_drops_rest"},
    NamedMutant{Mutant::ignore_max_parallel, "ignore_max_parallel"},
    NamedMutant{Mutant::retry_keeps_attempt, "retry_keeps_attempt"},
    NamedMutant{Mutant::start_before_due, "start_before_due"},
    NamedMutant{Mutant::forget_checkpoint, "forget_checkpoint"},
    NamedMutant{Mutant::dead_not_listed, "dead_not_listed"},
    NamedMutant{Mutant::priority_ignored, "priority_ignored"},
    NamedMutant{Mutant::runbook_counts_drift, "runbook_counts_drift"},
    NamedMutant{Mutant::runbook_retry_forgotten, "runbook_retry_forgotten"},
    NamedMutant{Mutant::runbook_pause_ignored, "runbook_pause_ignored"},
    NamedMutant{Mutant::runbook_lease_timer_forgotten, "runbook_lease_timer_forgotten"},
    NamedMutant{Mutant::runbook_terminal_changes, "runbook_terminal_changes"},
    NamedMutant{Mutant::runbook_old_attempt_accepted, "runbook_old_attempt_accepted"},
    NamedMutant{Mutant::runbook_stale_lease_accepted, "runbook_stale_lease_accepted"},
    NamedMutant{Mutant::given_up_tried_again, "given_up_tried_again"},
    NamedMutant{Mutant::poll_never_times_out, "poll_never_times_out"},
    NamedMutant{Mutant::outputs_forgotten, "outputs_forgotten"},
    NamedMutant{Mutant::member_runs_ahead, "member_runs_ahead"},
    NamedMutant{Mutant::failed_member_goes_on, "failed_member_goes_on"},
    NamedMutant{Mutant::rollback_forgotten, "rollback_forgotten"},
    NamedMutant{Mutant::rollback_not_awaited, "rollback_not_awaited"},
    NamedMutant{Mutant::phase_ends_early, "phase_ends_early"},
    NamedMutant{Mutant::phase_before_init, "phase_before_init"},
    NamedMutant{Mutant::init_all_at_once, "init_all_at_once"},
    NamedMutant{Mutant::held_phases_forgotten, "held_phases_forgotten"},
    NamedMutant{Mutant::walk_ends_early, "walk_ends_early"},
    NamedMutant{Mutant::walk_drops_rest, "walk_drops_rest"},
    NamedMutant{Mutant::steps_made_twice, "steps_made_twice"},
    NamedMutant{Mutant::catch_up_forgotten, "catch_up_forgotten"},
    NamedMutant{Mutant::leaver_goes_on, "leaver_goes_on"},
    NamedMutant{Mutant::supersede_forgotten, "supersede_forgotten"},
    NamedMutant{Mutant::others_phase_not_walked, "others_phase_not_walked"},
    NamedMutant{Mutant::others_jobs_forgotten, "others_jobs_forgotten"},
    NamedMutant{Mutant::late_removal_forgotten, "late_removal_forgotten"},
    NamedMutant{Mutant::overdue_never_ignored, "overdue_never_ignored"},
    NamedMutant{Mutant::overdue_not_noted, "overdue_not_noted"},
    NamedMutant{Mutant::init_not_rerun, "init_not_rerun"},
    NamedMutant{Mutant::transition_settles_nothing, "transition_settles_nothing"},
    NamedMutant{Mutant::transition_keeps_end, "transition_keeps_end"},
    NamedMutant{Mutant::whole_row_written, "whole_row_written"},
    NamedMutant{Mutant::params_resolved_again, "params_resolved_again"},
    NamedMutant{Mutant::runbook_dead_not_listed, "runbook_dead_not_listed"},
    NamedMutant{Mutant::phases_overlap, "phases_overlap"},
    NamedMutant{Mutant::members_overlap, "members_overlap"},
    NamedMutant{Mutant::late_batch_begins, "late_batch_begins"},
    NamedMutant{Mutant::late_phase_begins, "late_phase_begins"},
    NamedMutant{Mutant::paused_phase_begins, "paused_phase_begins"},
    NamedMutant{Mutant::requirement_ignored, "requirement_ignored"},
    NamedMutant{Mutant::gate_ignored, "gate_ignored"},
    NamedMutant{Mutant::threshold_ignored, "threshold_ignored"},
    NamedMutant{Mutant::begun_batch_not_kept, "begun_batch_not_kept"},
    NamedMutant{Mutant::call_started_twice, "call_started_twice"},
    NamedMutant{Mutant::call_started_early, "call_started_early"},
    NamedMutant{Mutant::call_ends_twice, "call_ends_twice"},
    NamedMutant{Mutant::running_call_cancelled, "running_call_cancelled"},
    NamedMutant{Mutant::call_key_ignored, "call_key_ignored"},
    NamedMutant{Mutant::told_call_forgotten, "told_call_forgotten"},
    NamedMutant{Mutant::agenda_forgets_rest, "agenda_forgets_rest"},
    NamedMutant{Mutant::call_start_not_stored, "call_start_not_stored"},
    NamedMutant{Mutant::call_row_not_written, "call_row_not_written"},
    NamedMutant{Mutant::damaged_row_believed, "damaged_row_believed"},
    NamedMutant{Mutant::lost_row_not_rebuilt, "lost_row_not_rebuilt"},
    NamedMutant{Mutant::reservation_leaks, "reservation_leaks"},
    NamedMutant{Mutant::begun_without_place, "begun_without_place"},
    NamedMutant{Mutant::call_not_told, "call_not_told"},
    NamedMutant{Mutant::tenant_takes_all, "tenant_takes_all"},
    NamedMutant{Mutant::tenant_takes_origin, "tenant_takes_origin"},
    NamedMutant{Mutant::probe_not_sent, "probe_not_sent"},
    NamedMutant{Mutant::probe_too_early, "probe_too_early"},
    NamedMutant{Mutant::place_given_too_early, "place_given_too_early"},
    NamedMutant{Mutant::refused_start_forgotten, "refused_start_forgotten"},
    NamedMutant{Mutant::held_answers_lost, "held_answers_lost"},
    NamedMutant{Mutant::held_waits_lost, "held_waits_lost"},
    NamedMutant{Mutant::held_hooks_lost, "held_hooks_lost"},
    NamedMutant{Mutant::feed_before_commit, "feed_before_commit"},
    NamedMutant{Mutant::feed_forgets_unknown, "feed_forgets_unknown"},
    NamedMutant{Mutant::feed_tells_lost_commit, "feed_tells_lost_commit"},
    NamedMutant{Mutant::feed_skips_batches, "feed_skips_batches"},
    NamedMutant{Mutant::feed_tells_old_status, "feed_tells_old_status"},
    NamedMutant{Mutant::feed_skips_calls, "feed_skips_calls"},
};

// One that is not in the list would never be looked for.
static_assert([] {
  for (int i = 1; i < static_cast<int>(Mutant::count); ++i)
    if (std::ranges::count(mutants, static_cast<Mutant>(i), &NamedMutant::mutant) != 1) return false;
  return true;
}());

// Whether a world with these loads may come across the bug.
bool may_meet(const Loads& loads, Mutant mutant) {
  if (mutant >= Mutant::wake_forgotten && mutant < Mutant::queue_of_all_tenants) return loads.messages;
  if (mutant < Mutant::runbook_counts_drift) return loads.workflows;
  if (mutant < Mutant::call_started_twice) return loads.runbooks;
  if (mutant < Mutant::feed_before_commit || mutant == Mutant::feed_skips_calls) return loads.calls;
  if (mutant == Mutant::feed_skips_batches) return loads.runbooks;
  return mutant == Mutant::feed_tells_old_status ? loads.workflows : true;
}

int find_mutants(std::string_view only = {}) {
  int tried = 0, missed = 0;
  for (const auto& [mutant, name] : mutants) {
    if (!only.empty() && name != only) continue;
    ++tried;
    active_mutant = mutant;
    Totals totals;
    std::string broken;
    std::uint64_t seed = 1;
    for (; seed <= 1'000; ++seed)
      if (may_meet(simulation::loads_of(seed), mutant))
        if (broken = run_seed(seed, totals); !broken.empty()) break;
    if (broken.empty()) ++missed;
    std::printf(
        "%-28s %s\n", std::string(name).c_str(),
        broken.empty() ? "NOT FOUND" : ("found by seed " + std::to_string(seed) + ": " + broken).c_str());
    std::fflush(stdout);
  }
  active_mutant = Mutant::none;
  std::printf("%d passed, %d failed\n", tried - missed, missed);
  return tried > 0 && missed == 0 ? 0 : 1;
}

int run_seeds(std::uint64_t from, std::uint64_t count, double minutes, bool trace) {
  using clock = std::chrono::steady_clock;
  const auto started = clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(clock::now() - started).count(); };
  Totals totals;
  for (std::uint64_t i = 0; minutes > 0 ? elapsed() < minutes * 60 : i < count; ++i) {
    const std::string broken = run_seed(from + i, totals, trace);
    if (!broken.empty()) {
      std::printf("seed %llu: %s\nreplay it with --seed %llu\n", static_cast<unsigned long long>(from + i),
                  broken.c_str(), static_cast<unsigned long long>(from + i));
      return 1;
    }
    if ((i + 1) % 500 == 0)
      std::fprintf(stderr, "%llu seeds, %.0f s\n", static_cast<unsigned long long>(i + 1), elapsed());
  }
  std::printf(
      "%zu seeds from %llu: %zu steps, %zu jobs, %zu batches, %zu calls, %zu messages, %zu restarts, %.1f s\n%zu passed, 0 failed\n",
      totals.seeds, static_cast<unsigned long long>(from), totals.steps, totals.jobs, totals.batches, totals.calls,
      totals.messages, totals.restarts,
      elapsed(), totals.seeds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t from = 1, count = 2'000;
  double minutes = 0;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--mutants") return find_mutants();
    if (option == "--mutant") return find_mutants(value);
    if (option == "--seeds")
      count = std::strtoull(value, nullptr, 10);
    else if (option == "--from")
      from = std::strtoull(value, nullptr, 10);
    else if (option == "--seed")
      from = std::strtoull(value, nullptr, 10), count = 1;
    else if (option == "--trace")
      from = std::strtoull(value, nullptr, 10), count = 1, trace = true;
    else if (option == "--minutes")
      minutes = std::strtod(value, nullptr);
    else
      return std::fprintf(stderr, "unknown option %s; see the head of tests/simulation/main.cpp\n", argv[i]),
             2;
    ++i;
  }
  return run_seeds(from, count, minutes, trace);
}
