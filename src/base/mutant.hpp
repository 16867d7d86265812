// Deliberate bugs for the simulator to find, each switched on at run time. Only the simulation's own build of
// core and engine is compiled with BATON_MUTANTS; everywhere else MUTANT(x) is the constant false and leaves
// no trace.
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
  fire_timer_early,            // a lease is taken away before it has run out
  keep_running_after_failure,  // a failed job's other nodes go on
  lose_queue_on_restart,       // what waits for a worker is forgotten by a restart
  join_does_not_wait,          // a join runs after its first dependency
  run_skipped_nodes,           // a branch that was not taken runs all the same
  skip_does_not_spread,        // what only a skipped node leads to waits for ever
  dispatch_while_paused,       // a pause stops nothing
  resume_forgets_parked,       // what a pause held back never runs
  forget_children,             // a cancelled job's items go on
  expand_one_chunk,            // a large fan-out stops after its first items
  ignore_max_parallel,         // more items at once than allowed
  retry_keeps_attempt,         // after a retry by hand, a zombie speaks for the new attempt
  start_before_due,            // a delayed job does not wait
  forget_checkpoint,           // the next attempt begins from nothing
  dead_not_listed,             // a task given up is not found again
  priority_ignored,            // the oldest first, whatever its priority
};

#ifdef BATON_MUTANTS
inline Mutant active_mutant = Mutant::none;
#define MUTANT(name) (::baton::active_mutant == ::baton::Mutant::name)
#else
#define MUTANT(name) false
#endif

}  // namespace baton
