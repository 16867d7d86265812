// Where decisions are made: the verbs that the handlers of messages share. Private to the machine. Lives for
// one message; settle() comes last and ends what has nothing left to do.
#pragma once

#include <map>
#include <set>
#include <string_view>

#include "core/runbook/machine/machine.hpp"
#include "core/runbook/machine/transitions.hpp"
#include "core/runbook/machine/versions.hpp"

namespace baton::runbook {

class Decision {
 public:
  explicit Decision(Context context)
      : ledger(context.ledger), policy(context.policy), now(context.now), decided(context.decided) {}

  // --- transitions (transitions.cpp)
  // The only ways to another status, state of a job or walk. What comes with it is recorded: counts, times,
  // what is to be settled.
  void change(Slot<Batch>& batch, const Transition<BatchStatus>& transition);
  void change(Slot<PhaseExecution>& phase, const Transition<PhaseStatus>& transition);
  void change(Slot<Member>& member, const Transition<MemberStatus>& transition);
  void change(Slot<Hold>& hold, const Transition<HoldStatus>& transition);
  void change(const Job& job, const Transition<StepStatus>& transition);
  void change(const Job& job, const Transition<JobState>& transition);
  void change(Slot<PhaseExecution>& phase, const Transition<Walk>& transition);
  void change(Slot<Batch>& batch, const Transition<Walk>& transition);
  void created(const Job& job);  // a new row is counted

  // --- jobs (job.cpp)
  // The first touch of a row that somebody else has written or changed: it is counted, and what another
  // orchestrator has given out is taken over.
  void adopt(const Job& job);
  void dispatch(const Job& job);  // a pending one: resolves it and queues it
  void retry(const Job& job);         // the same, when the time to wait is over
  void poll(const Job& job);      // a polling one without a job: asks the worker again
  void succeed(const Job& job, OptionalJson result);
  void attempt_failed(const Job& job, const std::string& error);
  void fail(const Job& job, const Transition<StepStatus>& how, const std::string& error);  // for good
  void cancel(const Job& job, const std::string& reason);
  void enqueue(const Job& job, const Transition<JobState>& how);
  void still_polling(const Job& job, OptionalJson result);
  void job_over(const Job& job);  // no worker has it any more
  void clear_dead(const Job& job);  // it is no dead letter any more: nobody can replay it
  [[nodiscard]] Batch& batch_of(const Job& job);
  [[nodiscard]] const Definition& book_of(const Job& job);
  [[nodiscard]] const Step* definition_of(const Job& job);  // null: the runbook has no such step
  [[nodiscard]] std::optional<Time> poll_deadline(const Execution& row) const;
  [[nodiscard]] Time next_poll(const Execution& row) const;              // or when it is given up
  [[nodiscard]] bool make_again(const Job& job, const std::string& by);  // retried by hand
  void set_catch_up(const Job& job);

  // --- progress (progress.cpp)
  void step_succeeded(StepExecution& step);
  void step_failed(const Job& job);
  void init_succeeded(InitExecution& init);
  void cleanup_ended(CleanupExecution& cleanup);
  void advance_member(Slot<Member>& member, PhaseExecution& phase);  // per member: its next step in a phase
  void advance_catch_up(Slot<Member>& member);
  void fail_member(Slot<Member>& member, const std::string& reason);
  void adopt(Slot<Member>& member);
  void begin_rollback(const Job& cause);
  void begin_removal(Slot<Member>& member, Batch& batch, std::int32_t version);
  void settle();
  void phase_touched(std::int64_t id) { phases_.insert(id); }
  void batch_touched(std::int64_t id) { batches_.insert(id); }

  // --- phases and batches (phase.cpp, versions.cpp)
  void phase_due(Slot<PhaseExecution>& phase, Slot<Batch>& batch);
  void walk(Slot<PhaseExecution>& phase);
  void run_again(Slot<PhaseExecution>& phase,
                 const std::string& by);  // lockstep: from the step that stopped it
  void walk(Slot<Batch>& batch);
  void begin_init(Slot<Batch>& batch, std::int32_t version);
  void next_init(Slot<Batch>& batch);
  // An active batch that changed over to a version has init steps to do, or to go on with.
  [[nodiscard]] bool reruns_init(Slot<Batch>& batch, std::int32_t version);
  void activate(Slot<Batch>& batch);
  void create_phases(Slot<Batch>& batch, const Runbook& runbook, const Definition& definition);
  void transition(Slot<Batch>& batch, const Runbook& to, const Definition& definition);
  void transition_chunk(Slot<Runbook>& runbook);
  // Of a version that a batch has just gone over to; `before` by name.
  void fit_new_phases(Slot<Batch>& batch, const Runbook& to, const std::map<std::string, Earlier>& before);
  void catch_up(Slot<Member>& member, Slot<Batch>& batch, bool also_failed = false);
  void remove(Slot<Member>& member, Slot<Batch>& batch, std::int32_t version);
  void end(Slot<Batch>& batch, const Transition<BatchStatus>& how, const std::string& message);
  void cancel_inits_and_cleanups(Batch& batch);
  [[nodiscard]] bool gate_is_open(Slot<Batch>& batch);

  // --- what waits for its turn, or for a person (holds.cpp)
  // A phase of ours is due, or what it waited for may be over: it begins, or it is noted what it waits for.
  void consider(Slot<PhaseExecution>& phase, Slot<Batch>& batch);
  void consider_waiting(Slot<Batch>& batch);  // all of its phases that are due and have not begun
  void gate_timed_out(Slot<PhaseExecution>& phase, Slot<Batch>& batch);
  // Per member: no phase that comes before is under way for it.
  [[nodiscard]] bool may_begin(const Member& member, const PhaseExecution& phase);
  Slot<Hold>& open_hold(HoldKind kind, Slot<Batch>& batch, const PhaseExecution* phase, std::string message,
                        OptionalJson details = {});
  [[nodiscard]] Slot<Hold>* find_open(HoldKind kind, std::int64_t batch_id, std::int64_t phase_id = 0);
  // Nobody needs to answer any more: those of the batch, or of one of its phases.
  void close_holds(std::int64_t batch_id, std::int64_t phase_id, std::string_view why);
  void decide(Slot<Hold>& hold, const std::string& answer, const std::string& by, const std::string& reason);
  void check_threshold(Slot<Batch>& batch, const PhaseExecution& phase);
  void begin_batch(Slot<Batch>& batch);  // init, or its phases
  void pause(Slot<Batch>& batch, const std::string& by, const std::string& reason);
  void resume(Slot<Batch>& batch, const std::string& by, const std::string& reason);
  void cancel(Slot<Batch>& batch, const std::string& by, const std::string& reason);
  void skip(Slot<PhaseExecution>& phase, Slot<Batch>& batch, const std::string& why);

  void event(std::int64_t batch_id, std::string_view type, std::string message,
             std::optional<std::int64_t> member_id = std::nullopt,
             std::optional<std::string> job_id = std::nullopt);

  Ledger& ledger;
  const Policy& policy;
  const Time now;
  Decided& decided;

 private:
  void resolve(const Job& job);
  void recount(const Job& job);
  void touched(const Job& job);
  void take_over(const Job& job);
  void count(const Job& job, StepStatus status, std::int64_t by);
  void complete_phases(const Slot<Member>& member);
  void settle_phase(Slot<PhaseExecution>& phase);
  void settle_batch(Slot<Batch>& batch);
  void cancel_phases(Batch& batch);
  void resume_rest(Batch& batch);
  void walk_member(Slot<Member>& member, Slot<PhaseExecution>& phase, const Definition& definition);
  void start_member(Slot<Member>& member, Slot<PhaseExecution>& phase, const Definition& definition);
  void create_steps(Slot<Member>& member, PhaseExecution& phase, const Definition& definition, bool catch_up);
  void begin_sequence(const std::vector<Step>& steps, const Definition& definition,
                      const CleanupExecution& like);

  [[nodiscard]] PhaseWait wait_of(Slot<PhaseExecution>& phase, Slot<Batch>& batch);
  [[nodiscard]] bool waits_for_phases_before(const PhaseExecution& phase, const Batch& batch, bool lockstep);
  [[nodiscard]] bool is_answered(HoldKind kind, const PhaseExecution& phase);
  void settle_member(std::int64_t member_id);
  void decide_phase(Slot<Hold>& hold, Slot<PhaseExecution>& phase, Slot<Batch>& batch);
  void decide_batch(Slot<Hold>& hold, Slot<Batch>& batch);

  std::set<std::int64_t> phases_, batches_;  // to be settled
  std::set<std::int64_t> members_;           // of whom a step has ended
  std::set<std::int64_t> failing_;           // phases in which a step has failed
  std::int64_t listed_phase_ = 0;            // whose member_ids are in listed_
  std::set<std::int64_t> listed_;
};

using Problem = Outcome::Problem;
[[nodiscard]] inline Outcome wrong(Problem problem, std::string why) {
  return {.problem = problem, .why = std::move(why), .changed = false};
}

struct Unresolved {
  std::string message;
};

// Does it for each until it is enough, so that what any of them lacks is asked for at once, not one after the other.
// Answers how many it was done for; the first always is.
template <class Range, class Act, class Enough>
std::size_t for_all_until(Range&& range, Act&& act, Enough&& enough) {
  Needs missing;
  std::size_t done = 0;
  for (auto& each : range) {
    try {
      act(each);
    } catch (NotLoaded& lack) {
      missing.merge(lack.needs);
    }
    ++done;
    if (enough()) break;
  }
  if (!missing.empty()) throw NotLoaded{std::move(missing)};
  return done;
}
template <class Range, class Act>
void for_all(Range&& range, Act&& act) {
  (void)for_all_until(range, act, [] { return false; });
}

// A new row for a step of a definition: retry and poll policies are decided here, once.
void fill_from(const Step& step, const Definition& definition, std::size_t index, Execution& row);
[[nodiscard]] Job job_of(Slot<StepExecution>& slot);
[[nodiscard]] Job job_of(Slot<InitExecution>& slot);
[[nodiscard]] Job job_of(Slot<CleanupExecution>& slot);

void job_timer_fired(const Job& job, Decision& decision);
[[nodiscard]] std::set<std::int64_t> read_ids(const Json& list);
bool list_also(PhaseExecution& phase, const std::vector<std::int64_t>& more);

// We have been through its members, or are. Not so when another orchestrator dispatched it, or when it is held.
[[nodiscard]] inline bool is_walked(const PhaseExecution& phase) {
  return phase.walk == Walk::none ? phase.walk_after > 0 : phase.walk != Walk::held;
}

// How many members the next step of a walk sees.
[[nodiscard]] std::int32_t phase_chunk(const PhaseExecution& phase, const Definition& definition,
                                       const Policy& policy);
[[nodiscard]] std::int32_t batch_chunk(const Batch& batch, Ledger& ledger, const Policy& policy);

}  // namespace baton::runbook
