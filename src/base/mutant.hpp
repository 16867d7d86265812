// Deliberate bugs for the simulator to find, each switched on at run time. Only the simulation's own build of
// core and engine is compiled with BATON_MUTANTS; everywhere else MUTANT(x) is the constant false and leaves
// no trace. Each is read in one place of core, or in none: those that are seen only in what is stored are in
// tests/simulation/planted_store.cpp.
#pragma once

namespace baton {

enum class Mutant {
  none,
  accept_stale_lease,          // a zombie's result overwrites its successor's
  accept_old_attempt,          // so does the result of an earlier attempt
  skip_duplicate_guard,        // a repeated result counts twice
  reply_before_commit,         // acknowledged, then lost
  forget_lease_timer,          // a dead worker is never noticed
  lease_not_persisted,         // handing out is not a durable transition
  ignore_idempotency_key,      // a repeated submit makes a second job
  release_unknown_as_done,     // a commit of unknown outcome is taken for a success
  redo_unknown_blindly,        // … or done again though it happened
  deliveries_never_counted,    // a poison task is handed out for ever
  kept_task_redelivered,       // a task that a worker has in hand is given to another
  kept_lease_cut_short,        // a heartbeat takes from a worker what it has in hand
  abandoned_for_ever,          // a task that worker after worker abandons is handed out for ever
  lease_cut_short,             // a lease is taken away before it has run out
  keep_running_after_failure,  // a failed job's other nodes go on
  lose_queue_on_restart,       // what waits for a worker is forgotten by a restart
  join_does_not_wait,          // a join runs after its first dependency
  run_skipped_nodes,           // a branch that was not taken runs all the same
  skip_does_not_spread,        // what only a skipped node leads to waits for ever
  dispatch_while_paused,       // a pause stops nothing
  resume_forgets_parked,       // what a pause held back never runs
  forget_children,             // a cancelled job's items go on
  expand_one_chunk,            // a large fan-out stops after its first items
  timer_overtakes_message,     // a result that came in time is refused because the engine was slow
  budget_drops_rest,           // … or where the budget of a batch is used up
  ignore_max_parallel,         // more items at once than allowed
  retry_keeps_attempt,         // after a retry by hand, a zombie speaks for the new attempt
  start_before_due,            // a delayed job does not wait
  forget_checkpoint,           // the next attempt begins from nothing
  dead_not_listed,             // a task given up is not found again
  priority_ignored,            // the oldest first, whatever its priority
  hot_run_keeps_old_timer,     // a job in memory does not know that its timer was stored
  journal_not_replayed,        // what the tables did not show when the server died is lost
  journal_follows_before,      // the tables say that they show a commit, and do not
  backlog_not_asked,           // a row is loaded as it was before the last commits
  backlog_hides_waiting,       // a task that the tables do not have yet is not found in its queue
  backlog_hides_call,          // a service call is decided on as it was before the last commits
  backlog_keeps_new,           // a row that was added and changed is written as it was first
  backlog_keeps_timer,         // a timer that came and went is written
  release_before_end,          // everybody is told while a commit is under way
  failed_commit_serves_polls,  // whoever was to be served by a commit that failed never hears
  log_cut_before_sync,         // rows of the log go that the tables show, though a crash of the machine may undo that
  unchanged_not_brought,       // a document that a commit does not change is lost when the journal is replayed
  backlog_hides_timer,         // a timer that the tables do not have yet is not seen
  tenant_not_checked,          // whoever knows an id commands a job of another tenant
  // of tasks that are published to a broker elsewhere
  keep_not_stored,              // what the broker has is published again when the lease runs out
  old_delivery_kept,            // a confirmation that comes too late keeps what is another's by now
  returned_task_forgotten,      // what the broker gave back is nobody's until its lease runs out
  abandon_keeps_lease,          // … or what it rejected
  kept_task_without_timer,      // what the broker has and loses is waited for for ever
  result_without_lease_refused, // what workers behind the broker say does not count
  // of messages
  wake_forgotten,              // the timer of an entity is not set
  duplicate_not_detected,      // what is sent twice is there twice
  message_lock_not_stored,     // a message that a receiver has is given to another
  old_lock_accepted,           // a receiver settles what is another's by now
  message_abandoned_for_ever,  // a message that receiver after receiver abandons is handed out for ever
  dead_letter_lost,            // a message that is given up is gone
  scheduled_too_early,         // a message is enqueued before its time
  renewal_not_stored,          // a lock ends though its holder was told that it lasts
  message_lock_cut_short,      // … or before the time that was said first
  wake_not_earlier,            // what is due sooner than the rest waits for the rest
  replay_keeps_dead_letter,    // a dead letter that is sent again is there twice
  received_not_deleted,        // what somebody received for good is there still
  bus_counters_drift,          // dead letters are not counted
  deleted_entity_keeps_rows,   // dead letters outlive their queue
  cancelled_message_sent,      // a scheduled message that was called back is enqueued
  subscription_forgotten,      // only the first subscription of a topic has its copy
  message_tenant_not_checked,  // whoever knows a lock settles what is another tenant's
  backlog_hides_message,       // messages are loaded as they were before the last commits
  backlog_keeps_message,       // a message that came and went is written
  backlog_loses_lock,          // a message that came and was locked is written as it came
  queue_of_all_tenants,        // a worker is given what waits in another tenant's queue of the same name
  // of runbooks
  runbook_counts_drift,           // polling steps are not counted
  runbook_retry_forgotten,        // a failed step is never tried again
  runbook_pause_ignored,          // a paused batch hands out
  runbook_lease_timer_forgotten,  // a dead worker is never noticed
  runbook_terminal_changes,       // a late result changes what has ended
  runbook_old_attempt_accepted,   // the result of an earlier attempt or poll counts
  runbook_stale_lease_accepted,   // a zombie's result overwrites its successor's
  given_up_tried_again,           // a job that a worker calls hopeless is tried again
  poll_never_times_out,           // a poll goes on for ever
  outputs_forgotten,              // what a step puts out is lost
  member_runs_ahead,              // two steps of a member at once
  failed_member_goes_on,          // a failed member's other steps run
  rollback_forgotten,             // a failed step is not rolled back
  rollback_not_awaited,           // a phase ends while it is rolled back
  phase_ends_early,               // a phase ends with its first step
  phase_before_init,              // phases do not wait for the init steps
  init_all_at_once,               // init steps do not wait for each other
  held_phases_forgotten,          // a phase that was due during init never begins
  walk_ends_early,                // only the first chunk of a phase's members is begun
  walk_drops_rest,                // … or those of a chunk that its budget is enough for
  steps_made_twice,               // a repeated phase-due makes the steps again
  catch_up_forgotten,             // a late joiner's steps wait for ever
  leaver_goes_on,                 // a removed member's steps run
  supersede_forgotten,            // phases that a new version replaces begin all the same
  others_phase_not_walked,        // a phase that another orchestrator began ends with the first of its members
  others_jobs_forgotten,          // what another orchestrator gave out has no timeout
  late_removal_forgotten,         // who leaves a batch that has ended is not cleaned up
  overdue_never_ignored,          // overdue_behavior "ignore" is taken for "rerun"
  overdue_not_noted,              // … or is not marked as applied
  init_not_rerun,                 // rerun_init is not obeyed
  transition_settles_nothing,     // what ends is not looked at by its phase and its batch
  transition_keeps_end,           // what goes on after its end still has the time of it
  whole_row_written,              // an update puts back what it had read of columns that it did not decide
  params_resolved_again,          // parameters that are there are made anew from the runbook
  runbook_dead_not_listed,        // a job given up is not found again
  phases_overlap,                 // a phase does not wait for those before it
  members_overlap,                // … nor does one of its members
  late_batch_begins,              // … or one whose time is past does not wait
  late_phase_begins,              // a phase begins by itself however late
  paused_phase_begins,            // a phase of a paused batch begins
  requirement_ignored,            // a phase begins though too few came through the one that it requires
  gate_ignored,                   // a phase with a gate does not wait for go
  threshold_ignored,              // a batch goes on however many fail
  begun_batch_not_kept,           // one that was to stay on its version goes over
  // of service calls
  call_started_twice,       // a call that runs or has ended is started
  call_started_early,       // … before its time
  call_ends_twice,          // a late outcome changes what has ended
  running_call_cancelled,   // a call that is on its way is cancelled
  call_key_ignored,         // a repeated submit makes a second call
  told_call_forgotten,      // a call is not made because the tables were behind when they were looked at
  agenda_forgets_rest,      // of many calls only the first are made
  tenant_takes_all,         // one tenant has all places
  tenant_takes_origin,      // … or all those of an origin
  probe_not_sent,           // what was under way is in doubt though it declares a probe
  probe_too_early,          // … or asked about while the other side is at work
  place_given_too_early,    // more are in doubt than there are places
  call_start_not_stored,    // a call is sent whose start is not durable
  call_row_not_written,     // an event is not seen in what is made from it
  call_not_told,            // who makes the calls does not hear of another time
  damaged_row_believed,     // deciding trusts a row that is not what its events come to
  lost_row_not_rebuilt,     // a call whose row is gone is never made
  reservation_leaks,        // a place that was reserved for a call which is not begun is never free again
  begun_without_place,      // a call is begun with its submission though no place is reserved for it
  refused_start_forgotten,  // a call that was not due after all is never made
  // of commits whose outcome was in doubt
  held_answers_lost,  // whoever asked never hears
  held_waits_lost,    // … or whoever waits for an end
  held_hooks_lost,    // … or somebody outside the engine, such as who makes the calls
  // of the feed
  feed_before_commit,      // a change is told that is not durable
  feed_forgets_unknown,    // a commit of unknown outcome that happened is not told
  feed_tells_lost_commit,  // … or one that did not happen is
  feed_skips_batches,      // nothing is told of batches
  feed_tells_old_status,   // the status of a job before it ended is told
  feed_skips_calls,        // the start of a call is not told

  count  // the last: how many there are, with `none`
};

#ifdef BATON_MUTANTS
inline Mutant active_mutant = Mutant::none;
#define MUTANT(name) (::baton::active_mutant == ::baton::Mutant::name)
#define ANY_MUTANT (::baton::active_mutant != ::baton::Mutant::none)
#else
#define MUTANT(name) false
#define ANY_MUTANT false
#endif

}  // namespace baton
