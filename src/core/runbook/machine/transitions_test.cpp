#include "core/runbook/machine/transitions.hpp"

#include <gtest/gtest.h>

namespace baton::runbook {
namespace {

TEST(Transitions, lead_out_of_an_end_only_by_hand_or_by_a_rollback) {
  using namespace step_transition;
  for (const auto& each : {dispatch, poll, succeed, retry, fail, time_out, cancel}) {
    for (const StepStatus ended : {succeeded, failed, poll_timeout, rolled_back, cancelled})
      EXPECT_FALSE(each.allows(ended)) << each.name << " from " << name(ended);
  }
  EXPECT_FALSE(again.allows(succeeded));
  EXPECT_FALSE(roll_back.allows(cancelled));
}

TEST(Transitions, of_a_cancelled_batch_are_none) {
  using namespace batch_transition;
  for (const auto& each : {begin_init, activate, complete, fail, cancel, reopen, reopen_init})
    EXPECT_FALSE(each.allows(BatchStatus::cancelled)) << each.name;
}

TEST(Transitions, of_a_superseded_phase_are_none) {
  using namespace phase_transition;
  for (const auto& each : {dispatch, complete, fail, skip, supersede, complete_late, phase_transition::retry, wait_again})
    EXPECT_FALSE(each.allows(PhaseStatus::superseded)) << each.name;
}

TEST(Transitions, of_a_member_that_left_are_none) {
  for (const auto& each : {member_transition::fail, member_transition::remove, member_transition::retry})
    EXPECT_FALSE(each.allows(MemberStatus::removed)) << each.name;
}

}  // namespace
}  // namespace baton::runbook
