// How a batch moves. Every function here is pure: it takes the rows at hand (the ledger), a message and the
// time, and leaves behind changed rows and what goes with them. The engine loads before and
// commits after.
//
//   batch   detected ──init steps──▶ init_dispatched ──all succeeded──▶ active ──┬──▶ completed | failed
//               └────────────── no init steps ─────────────────────────▶         └──▶ cancelled, by hand
//   phase   pending ──due──▶ dispatched ──▶ completed | failed          pending ──▶ skipped | superseded
//   member  active ──▶ failed | removed             failed ──▶ active, retried by hand; removed, like any other
//   step    pending ─▶ dispatched ─▶ succeeded | failed ─rollback─▶ rolled_back
//             ▲  ▲         │  └────▶ polling ─▶ succeeded | failed | poll_timeout
//             │  └─ retry ─┘                            any that has not ended ─▶ cancelled
//             └─ retried by hand
//
// A job is what a worker gets of a step: its first run, each retry, each poll. job_state tells where it is:
// queued, leased or parked by a pause. A phase that becomes due is walked over in chunks of members, each a
// timer that is due at once, so that others get their turn; the same for what else has to see all members.
//
// Per member (the default) each member goes through the steps of a phase on its own; whose step fails for
// good is failed, and what is left of it is cancelled. In lockstep all members do one step before any does
// the next, and the first step with a failure ends the phase. Late joiners catch up beside the phases: one
// step after the other through all phases that have begun.
//
// Invariants, checked by the simulator after every commit:
//  * batch_counts equal what counting the rows gives;
//  * a job that is queued or leased belongs to a step dispatched or polling; a leased one has a timer, not
//    later than its lease;
//  * of a member's steps in a phase at most one is under way; steps before it succeeded;
//  * terminal rows never change, unless a person retries them; rolled_back comes only after failed or
//    poll_timeout;
//  * a phase has ended only if none of its steps is open and no rollback of it runs; a batch only if all its
//    phases have, and no init, rollback, removal or catch-up runs.
#pragma once

#include <string>
#include <vector>

#include "core/delivery/delivery.hpp"
#include "core/runbook/machine/ledger.hpp"
#include "core/runbook/machine/left_out.hpp"
#include "core/runbook/machine/messages.hpp"
#include "core/runbook/members/members.hpp"
#include "core/workflow/machine/rows.hpp"

namespace baton::runbook {

struct Policy : delivery::Policy {
  bool scheduler = true;               // phases and polls are fired by our own timers
  std::int32_t chunk_members = 1'000;  // seen by one step of a walk
  std::int32_t chunk_rows = 2'000;     // written by one step of a walk, about
  std::size_t chunk_bytes = 8 << 20;   // read and rendered by one step of a walk; the last member may exceed it
  // What the commands of one batch of messages may cost together, and its timers; the last of them may exceed it.
  std::size_t members_named = 2'000;  // by commands: so many are loaded
  std::size_t batch_rows = 10'000;
  std::size_t batch_bytes = 8 << 20;
};

// A job that waits for a worker from now on.
struct Queued {
  Ref ref;
  std::string queue;
  Time queued_at{};
};
// What deciding has cost, about.
struct Spent {
  std::size_t rows = 0;   // of jobs and members that were added or changed
  std::size_t bytes = 0;  // read of members and rendered for them
  friend Spent operator-(const Spent& a, const Spent& b) { return {a.rows - b.rows, a.bytes - b.bytes}; }
};
[[nodiscard]] inline bool is_enough(const Spent& spent, const Policy& policy) {
  return spent.rows >= policy.batch_rows || spent.bytes >= policy.batch_bytes;
}
// What chunks of walks have seen: `members`, and whether one ended because its budget was used up.
struct Walked {
  std::size_t members = 0;
  bool is_cut = false;
};
// How many members the next chunk is to be given, after one that was given `now`: about twice as many as the budget was
// enough for, so that the others are not loaded for nothing, and soon `most` again.
[[nodiscard]] std::int32_t next_chunk_members(const Walked& walked, std::int32_t now, std::int32_t most);
struct Decided {
  Spent spent;
  std::optional<Walked> walked;  // none: there was no chunk
  std::vector<Queued> queued;
  std::vector<BatchEvent> events;  // numbered when they are written
  std::size_t batches_ended = 0;
  std::size_t steps_ended = 0;
};

struct Context {
  Ledger& ledger;
  const Policy& policy;
  Time now;
  Decided& decided;
};

// Why something that was asked for cannot be. An empty `why` is success.
struct Outcome {
  enum class Problem {
    none,
    runbook_not_found,
    batch_not_found,
    phase_not_found,
    member_not_found,
    step_not_found,
    not_dead,
    not_possible,
    hold_not_found,
    already_decided,
    no_such_answer,
    open_batches
  };
  Problem problem = Problem::none;
  std::string why;
  bool changed = false;
};

// ---- what a scheduler says ----

[[nodiscard]] Outcome handle(const SchedulerMessage& message, Context context);
// A timer of a step, a phase, a batch or a runbook is due. Chunks of walks come this way too.
void timer_fired(Ref ref, Context context);
[[nodiscard]] bool is_chunk(Ref ref, Ledger& ledger);
// A chunk that is due, and did not have its turn, becomes due at that time instead. False: it had its turn, or the timer is
// of a job. Of those a batch leaves some due when its budget is used up, and they are the first in the next one; the time
// of a lease is not to be moved.
[[nodiscard]] bool put_behind(const RowTimer& chunk, Time at, Ledger& ledger);

// ---- a job and its worker ----

[[nodiscard]] std::string lease_token(const Execution& execution);
// False: it waits no longer, or its batch is paused or over.
[[nodiscard]] bool hand_out(Ref ref, const std::string& worker, delivery::LeaseTime lease_time, Context context);

// The step is the one that the correlation names, else the one of the job id; the job id tells which attempt
// it is.
struct JobReport {
  std::string job_id;
  std::optional<Ref> correlated;
  bool success = false;
  OptionalJson result;
  std::optional<std::string> error, lease, worker;
};
enum class Verdict {
  accepted,
  ignored,      // changed nothing, and need not be sent again
  stale,        // of another worker's lease, or of an attempt that is over
  contradicts,  // job id and correlation name different steps
  unknown,
};
struct Judged {
  Verdict verdict{};
  std::string why;
  Ref ref;  // the step, when there is one
};
[[nodiscard]] Judged report(const JobReport& report, Context context);
// Both answer false when the job is not this worker's any more.
[[nodiscard]] bool renew(std::string_view job_id, std::string_view lease, delivery::LeaseTime lease_time, Context context);
// The lease's worker has the job in hand, and its time alone ends it. True also if the job is over by then: the result may be
// faster than the word that it is being worked at. False: another worker has it, or is to get it.
[[nodiscard]] bool keep(std::string_view job_id, std::string_view lease, Context context);
// The lease's worker does not want it: another one gets it, unless it was delivered too often. False: it is not that worker's.
[[nodiscard]] bool abandon(std::string_view job_id, std::string_view lease, std::string_view reason, Context context);
// Nobody is to get it any more: it is a dead letter, for this reason. False: it is not that worker's.
[[nodiscard]] bool give_up(std::string_view job_id, std::string_view lease, std::string_view reason, Context context);
[[nodiscard]] bool give_back(std::string_view job_id, std::string_view lease, Context context);

// What a worker gets besides the row of its job.
struct JobContext {
  const Execution* row = nullptr;
  std::int64_t batch_id = 0;
  std::string runbook_name;
  std::int32_t runbook_version = 0;
};
[[nodiscard]] JobContext context_of(Ref ref, Ledger& ledger);

// The lines that a job may still store.
struct TakenLog {
  Judged judged;
  std::vector<workflow::LogLine> lines;  // log_id is given at commit
};
[[nodiscard]] TakenLog take_log(const std::string& job_id, const std::optional<std::string>& lease,
                                std::span<const delivery::LogText> lines, Context context);

// ---- what the built-in scheduler and people do ----

// Something is wrong unless that runbook, if one is named, is the active version of its name.
[[nodiscard]] Outcome still_active(std::int64_t runbook_id, Ledger& ledger);
// What a look at the data source said of its members, as it goes to the runbook's data table; the columns are those of the
// first row. None: that version is not active any more, or has no table.
[[nodiscard]] std::optional<DataRows> data_rows(std::int64_t runbook_id, const std::vector<DataRow>& rows, Time seen_at,
                                                bool finish, Ledger& ledger);
// A look at the data source has ended, well or not.
void note_sync(std::int64_t runbook_id, const std::optional<std::string>& error,
               const OptionalJson& held_removals, const std::vector<ApprovedRemovals>& approvals_seen,
               Context context);
[[nodiscard]] Outcome set_automation(const std::string& name, std::int32_t version, bool enabled,
                                     Context context);

struct Publication {
  std::string overdue_behavior = "rerun";  // or ignore
  bool rerun_init = false;
  std::optional<OpenBatches> open_batches;  // none: refused if one has begun, unless an external scheduler does it
};
struct Published {
  Outcome outcome;  // changed: it is new
  Slot<Runbook>* runbook = nullptr;
};
[[nodiscard]] Published publish(const Definition& definition, const std::string& text, const Publication& how,
                                Context context);
struct Switched {
  Outcome outcome;
  Slot<Runbook>* runbook = nullptr;  // the version that was asked for
};
// This version instead of the one that is active; 0: the latest.
[[nodiscard]] Switched activate(const std::string& name, std::int32_t version, Context context);
// The one that is active, whichever that is.
[[nodiscard]] Switched deactivate(const std::string& name, Context context);

struct Opened {
  Outcome outcome;
  Slot<Batch>* batch = nullptr;
};
[[nodiscard]] Opened open_batch(const std::string& runbook_name, std::int32_t version,
                                std::optional<Time> time, const std::string& by, Context context);
[[nodiscard]] Outcome start_batch(std::int64_t batch_id, Context context);

// Who does something, and why.
struct By {
  std::string who, reason;
  By(std::string name = {}, std::string why = {}) : who(std::move(name)), reason(std::move(why)) {}
  By(const char* name) : who(name) {}
};

struct Joined {
  Outcome outcome;
  std::vector<std::int64_t> member_ids;
  LeftOuts left_out;
  bool more = false;
  std::vector<std::string> phases;  // that are retried as a whole
  std::string note;                 // why there was nobody, when nobody was named
};
// by: of people; what the data source says is no event.
[[nodiscard]] Joined add_members(std::int64_t batch_id, const std::vector<DataRow>& members, Context context,
                                 const std::optional<By>& by = {});
[[nodiscard]] bool refresh_member(std::int64_t member_id, const DataRow& row, Context context);
// Who is removed by hand stays out although the source still lists them.
[[nodiscard]] Joined remove_members(std::int64_t batch_id, const std::vector<std::int64_t>& ids,
                                    const std::vector<std::string>& keys, const By& by, bool by_hand,
                                    Context context);
constexpr std::int32_t retried_at_once = 500;  // when nobody is named
[[nodiscard]] Joined retry_members(std::int64_t batch_id, const std::vector<std::int64_t>& ids,
                                   const std::vector<std::string>& keys, const By& by,
                                   Context context);

[[nodiscard]] Outcome pause(std::int64_t batch_id, const std::string& by, const std::string& reason, Context);
[[nodiscard]] Outcome resume(std::int64_t batch_id, const std::string& by, const std::string& reason, Context context);
[[nodiscard]] Outcome cancel(std::int64_t batch_id, const std::string& by, const std::string& reason,
                             Context);
// The next phase that is pending, or the named one, begins now. `why` of a success names it.
[[nodiscard]] Outcome advance(std::int64_t batch_id, const std::string& phase, const By& by,
                              Context);
// Those that the last look at the source has held back, and no others.
[[nodiscard]] Outcome approve_removals(std::int64_t batch_id, const By& by, Context context);
// A look at the source has seen these: they are used up, whatever it found. `held` is what it holds back now.
void note_approvals(const std::vector<ApprovedRemovals>& seen, const OptionalJson& held, Context context);

// What waits for a person goes on as it is answered; see holds.hpp. Once: who comes second hears who was first.
[[nodiscard]] Outcome answer_hold(std::int64_t batch_id, std::int64_t hold_id, const std::string& answer,
                                  const std::string& by, const std::string& reason, Context context);

[[nodiscard]] Outcome retry_step(Ref ref, const By& by, Context context);
[[nodiscard]] Outcome skip_step(Ref ref, const By& by, Context context);
[[nodiscard]] Outcome cancel_step(Ref ref, const By& by, Context context);

// A job that was given up, and is a dead letter, runs again; see retry_step.
[[nodiscard]] Outcome replay(const std::string& job_id, const std::string& by, Context context);

// Phases that another scheduler has written get a timer of ours.
void adopt_phase(std::int64_t phase_id, Context context);
// Jobs that another orchestrator has given out, or waits for, get our timeout and our retries; phases that it has
// begun are gone through.
void adopt_jobs(const std::vector<Ref>& jobs, Context context);

// ---- hints for loading ----

// What deciding about these is likely to need and the ledger does not know yet. Called again after each load
// until it adds nothing.
void foresee(Ref ref, Ledger& ledger, Needs& needs);  // a job, or a timer
void foresee_job(std::string_view job_id, Ledger& ledger, Needs& needs);
void foresee(const SchedulerMessage& message, Ledger& ledger, Needs& needs);
// The next chunk of a walk; for those that is_chunk() says yes to.
void foresee_chunk(Ref ref, const Policy& policy, Ledger& ledger, Needs& needs);
// A job is handed out, or its worker says something that is not its result.
void foresee_handout(Ref ref, Ledger& ledger, Needs& needs);
void foresee_handout(std::string_view job_id, Ledger& ledger, Needs& needs);
void foresee_hold(std::int64_t id, Ledger& ledger, Needs& needs);
void foresee_publish(const std::string& name, Ledger& ledger, Needs& needs);
void foresee_version(std::int64_t runbook_id, Ledger& ledger, Needs& needs);  // 0: none is named
void foresee_join(std::int64_t batch_id, const std::vector<DataRow>& members, Ledger& ledger, Needs& needs);
void foresee_removal(std::int64_t batch_id, const std::vector<std::int64_t>& member_ids, Ledger& ledger,
                     Needs& needs);
void foresee_member(std::int64_t member_id, Ledger& ledger, Needs& needs);
void foresee_phases(const std::vector<std::int64_t>& phase_ids, Ledger& ledger, Needs& needs);

}  // namespace baton::runbook
