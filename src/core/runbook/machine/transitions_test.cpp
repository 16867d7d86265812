#include "core/runbook/machine/transitions.hpp"

#include <gtest/gtest.h>

namespace baton::runbook {
namespace {

TEST(Transitions, lead_out_of_an_end_only_by_hand_or_by_a_rollback) {
  using namespace step_transition;
  for (const auto& each : {dispatch, poll, succeed, retry, fail, time_out, step_transition::cancel}) {
    for (const StepStatus ended : {succeeded, failed, poll_timeout, rolled_back, cancelled})
      EXPECT_FALSE(each.allows(ended)) << each.name << " from " << name(ended);
  }
  EXPECT_FALSE(again.allows(succeeded));
  EXPECT_FALSE(roll_back.allows(cancelled));
}

TEST(Transitions, of_a_cancelled_batch_are_none) {
  using namespace batch_transition;
  for (const auto& each : {begin_init, batch_transition::activate, complete, fail, batch_transition::cancel, reopen, reopen_init})
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

TEST(Transitions, give_a_worker_only_what_is_queued) {
  using namespace job_transition;
  for (const JobState elsewhere : {none, leased, parked}) {
    EXPECT_FALSE(job_transition::hand_out.allows(elsewhere)) << name(elsewhere);
    EXPECT_FALSE(park.allows(elsewhere)) << name(elsewhere);
  }
  EXPECT_FALSE(take_over.allows(queued));
  EXPECT_FALSE(poll.allows(leased));
}

TEST(Transitions, end_a_job_and_a_walk_wherever_another_program_has_left_them) {
  using enum JobState;
  for (const JobState state : {none, queued, leased, parked})
    EXPECT_TRUE(job_transition::end.allows(state)) << name(state);
  for (auto walk = Walk::none; walk <= Walk::resume; walk = static_cast<Walk>(static_cast<int>(walk) + 1))
    EXPECT_TRUE(walk_transition::end.allows(walk)) << name(walk);
}

TEST(Transitions, of_a_phase_replace_no_other_walk_but_at_its_end) {
  using namespace walk_transition;
  for (const Walk under_way : {Walk::start, Walk::advance, Walk::stop}) {
    EXPECT_FALSE(walk_transition::advance.allows(under_way)) << name(under_way);
    EXPECT_FALSE(walk_transition::stop.allows(under_way)) << name(under_way);
  }
}

}  // namespace
}  // namespace baton::runbook
