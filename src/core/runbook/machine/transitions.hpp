// What may become of a row. A status changes only by a transition, which is a value: where from, where to.
// Whoever changes one has looked before that it may; Decision::change ENSUREs it, so that a slip of ours
// stops the process and is never stored. Rows of others reach no illegal one: from what has not ended, most
// is allowed.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

template <class Status>
struct Transition {
  std::string_view name;
  unsigned from = 0;  // a bit for each status
  Status to{};

  constexpr Transition(std::string_view called, std::initializer_list<Status> before, Status after)
      : name(called), to(after) {
    for (const Status status : before) from |= 1U << static_cast<unsigned>(status);
  }
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

}  // namespace baton::runbook
