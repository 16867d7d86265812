// What may become of a row. A status, the state of a job and a walk change only by a transition, which is a
// value: where from, where to. Whoever changes one has looked before that it may; Decision::change ENSUREs
// it, so that a slip of ours stops the process and is never stored. Rows of others reach no illegal one: from
// what has not ended, most is allowed, and where we do not look before, everything.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

// Another program may have written any combination of status, job_state and walk.
struct Anywhere {};
inline constexpr Anywhere anywhere{};

template <class Status>
struct Transition {
  std::string_view name;
  unsigned from = 0;  // a bit for each status
  Status to{};

  constexpr Transition(std::string_view called, std::initializer_list<Status> before, Status after)
      : name(called), to(after) {
    for (const Status status : before) from |= 1U << static_cast<unsigned>(status);
  }
  constexpr Transition(std::string_view called, Anywhere, Status after)
      : name(called), from(~0U), to(after) {}
  [[nodiscard]] constexpr bool allows(Status status) const {
    return (from >> static_cast<unsigned>(status) & 1U) != 0;
  }
};

namespace batch_transition {
using enum BatchStatus;
inline constexpr Transition begin_init{"begin init", {detected}, init_dispatched};
inline constexpr Transition activate{"activate", {detected, init_dispatched}, active};
inline constexpr Transition complete{"complete", {active}, completed};
inline constexpr Transition fail{"fail", {detected, init_dispatched, active}, failed};
inline constexpr Transition cancel{"cancel", {detected, init_dispatched, active}, cancelled};
// A person retries a part of it.
inline constexpr Transition reopen{"reopen", {completed, failed}, active};
inline constexpr Transition reopen_init{"reopen init", {completed, failed}, init_dispatched};
}  // namespace batch_transition

namespace phase_transition {
using enum PhaseStatus;
inline constexpr Transition dispatch{"dispatch", {pending}, dispatched};
inline constexpr Transition complete{"complete", {dispatched}, completed};
inline constexpr Transition fail{"fail", {dispatched}, failed};
inline constexpr Transition skip{"skip", {pending}, skipped};
inline constexpr Transition supersede{"supersede", {pending}, superseded};
// Whoever was late or retried came through after all.
inline constexpr Transition complete_late{"complete late", {failed}, completed};
// A person retries it, or the init steps that ended it.
inline constexpr Transition retry{"retry", {failed}, dispatched};
inline constexpr Transition wait_again{"wait again", {skipped}, pending};
}  // namespace phase_transition

namespace hold_transition {
using enum HoldStatus;
inline constexpr Transition answer{"answer", {open}, answered};
inline constexpr Transition withdraw{"withdraw", {open}, obsolete};
}  // namespace hold_transition

namespace member_transition {
using enum MemberStatus;
inline constexpr Transition fail{"fail", {active}, failed};
inline constexpr Transition remove{"remove", {active, failed}, removed};
inline constexpr Transition retry{"retry", {failed}, active};
}  // namespace member_transition

// Steps, init steps and cleanups.
namespace step_transition {
using enum StepStatus;
inline constexpr Transition dispatch{"dispatch", {pending}, dispatched};
inline constexpr Transition poll{"poll", {pending, dispatched, polling}, polling};
inline constexpr Transition succeed{"succeed", {pending, dispatched, polling}, succeeded};
inline constexpr Transition retry{"retry", {pending, dispatched, polling}, pending};
inline constexpr Transition fail{"fail", {pending, dispatched, polling}, failed};
inline constexpr Transition time_out{"time out", {polling}, poll_timeout};
inline constexpr Transition cancel{"cancel", {pending, dispatched, polling}, cancelled};
inline constexpr Transition roll_back{"roll back", {failed, poll_timeout}, rolled_back};
// A person retries it, or what it came after.
inline constexpr Transition again{"again", {failed, poll_timeout, rolled_back, cancelled}, pending};
}  // namespace step_transition

// The job of a step. All but queue and end follow a look at the state that they come from.
namespace job_transition {
using enum JobState;
// A step that is pending is dispatched, and nothing but its status is looked at: another program may have
// put it back to pending, or ended it and a person retries it, while its job was queued, leased or parked.
inline constexpr Transition queue{"queue", anywhere, queued};
inline constexpr Transition poll{"poll", {none}, queued};
// A worker went silent or gave the job back.
inline constexpr Transition redeliver{"redeliver", {leased}, queued};
inline constexpr Transition park{"park", {queued}, parked};
inline constexpr Transition unpark{"unpark", {parked}, queued};
inline constexpr Transition hand_out{"hand out", {queued}, leased};
// Another orchestrator gave it out, and may have written that it is leased.
inline constexpr Transition take_over{"take over", {none, leased}, leased};
// Also when nobody has the job: a step that waits is cancelled, one between two polls times out.
inline constexpr Transition end{"end", anywhere, none};
}  // namespace job_transition

// What is done to all members of a phase, or of a batch: that is cancel and resume. Enumerators have the
// names of transitions here, so they are written in full.
namespace walk_transition {
// A phase that becomes due waits for the init steps, or begins. If the last of them ends in the same decision,
// it has begun already, as everything that is held; while the members are imported it is held all the same.
inline constexpr Transition hold{"hold", {Walk::none, Walk::held, Walk::start}, Walk::held};
inline constexpr Transition start{"start", {Walk::none, Walk::held, Walk::start}, Walk::start};
inline constexpr Transition advance{"advance", {Walk::none, Walk::again}, Walk::advance};
inline constexpr Transition stop{"stop", {Walk::none}, Walk::stop};
// A phase that failed is retried. If another program has written that it failed, it may be in the middle of
// any walk.
inline constexpr Transition again{"again", anywhere, Walk::again};
inline constexpr Transition hold_again{"hold again", anywhere, Walk::held};
// What has ended is walked over no more, wherever the walk was.
inline constexpr Transition end{"end", anywhere, Walk::none};
// A batch may be cancelled in the middle of a resume, and paused and resumed again. One that failed and is
// reopened by a retry may still have the walk that cancels the rest.
inline constexpr Transition cancel{"cancel", anywhere, Walk::cancel};
inline constexpr Transition resume{"resume", anywhere, Walk::resume};
}  // namespace walk_transition

}  // namespace baton::runbook
