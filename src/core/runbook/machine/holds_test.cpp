// What waits for its turn, and what waits for a person.
#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

using namespace std::chrono_literals;

std::string book_of(const std::string& late_rules, const std::string& more = "") {
  return "name: waves\n" + more + R"(
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - {name: early, offset: T-2h, steps: [{name: a, worker_id: pool, function: A, timeout: 6h}, {name: a2, worker_id: pool, function: A2}]}
  - {name: late, offset: T-0, steps: [{name: b, worker_id: pool, function: B}])" + late_rules + R"(}
)";
}

class Holds : public testing::Test {
 protected:
  void given(const std::string& yaml, Duration before_t, const std::vector<std::string>& keys = {"ada", "bob"}) {
    machine_.publish(yaml);
    batch_ = machine_.open("waves", machine_.now + before_t, keys);
  }
  std::string phases() { return machine_.phases_of(batch_); }
  // The open ones, oldest first.
  std::string open() {
    std::string all;
    for (const auto& [id, hold] : machine_.rows.holds)
      if (hold.status == HoldStatus::open) all += (all.empty() ? "" : " ") + std::string(name(hold.kind));
    return all;
  }
  Outcome answer(const std::string& said, const std::string& by = "ann") {
    const auto is_open = [](const auto& entry) { return entry.second.status == HoldStatus::open; };
    auto hold = std::ranges::find_if(machine_.rows.holds, is_open);  // the oldest, else the last that was
    if (hold == machine_.rows.holds.end()) hold = std::prev(hold);
    const std::int64_t id = hold->first;
    const auto outcome = machine_.decide([&](Context c) { return answer_hold(batch_, id, said, by, "", c); });
    machine_.settle();
    return outcome;
  }
  std::vector<std::string> waiting() {
    std::vector<std::string> steps;
    for (const Ref ref : machine_.queued()) steps.push_back(machine_.row(ref).step_name);
    return steps;
  }
  void fail_one() {
    const Ref ref = machine_.queued().front();
    ASSERT_TRUE(machine_.take(ref));
    machine_.fail(ref);
    machine_.settle();
  }

  MachineOnRows machine_;
  std::int64_t batch_ = 0;
};
using Steps = std::vector<std::string>;

// A wrong year began three phases at once.
TEST_F(Holds, a_batch_whose_time_is_past_does_not_begin_by_itself) {
  given(book_of(""), -24h);
  machine_.wait(3h);
  EXPECT_EQ(open(), "late_batch");
  EXPECT_EQ(phases(), "early.v1=pending late.v1=pending");
  EXPECT_EQ(waiting(), Steps{});
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::detected);
}

TEST_F(Holds, a_late_batch_that_may_go_does_its_phases_one_after_the_other) {
  given(book_of(""), -24h, {"ada"});
  EXPECT_TRUE(answer("go").changed);
  EXPECT_EQ(waiting(), Steps{"a"});
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
}

TEST_F(Holds, of_a_late_batch_what_is_overdue_may_be_skipped) {
  given(book_of(""), -90min);
  EXPECT_TRUE(answer("skip").changed);
  EXPECT_EQ(phases(), "early.v1=skipped late.v1=skipped");
}

TEST_F(Holds, a_late_batch_may_be_cancelled) {
  given(book_of(""), -24h);
  EXPECT_TRUE(answer("cancel").changed);
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::cancelled);
  EXPECT_EQ(open(), "");
}

TEST_F(Holds, how_late_is_late_is_said_in_the_runbook) {
  given(book_of("", "late_after: 2d"), -24h);
  EXPECT_EQ(open(), "");
}

// The server was down from midnight to six.
TEST_F(Holds, a_phase_that_would_begin_much_too_late_waits_for_a_person) {
  given(book_of(""), 5h);
  machine_.now += 9h;
  machine_.settle();
  EXPECT_EQ(open(), "late_phase late_phase");
  EXPECT_EQ(waiting(), Steps{});
  answer("go");
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=pending");
  EXPECT_EQ(open(), "late_phase");  // the other one is late too
  answer("skip");
  EXPECT_EQ(phases(), "early.v1=completed late.v1=skipped");
}

TEST_F(Holds, a_phase_that_became_due_in_a_pause_waits_and_is_held_if_the_pause_was_long) {
  given(book_of(""), 3h);
  const auto pause_for = [&](Duration time) {
    machine_.decide([&](Context c) { return pause(batch_, "ann", "lunch", c); });
    machine_.wait(time);
    EXPECT_EQ(waiting(), Steps{});
    machine_.decide([&](Context c) { return resume(batch_, "ann", "", c); });
    machine_.settle();
  };
  pause_for(90min);  // half an hour too late
  EXPECT_EQ(waiting(), (Steps{"a", "a"}));
  machine_.work();
  pause_for(5h);
  EXPECT_EQ(open(), "late_phase");
}

TEST_F(Holds, a_member_begins_a_phase_when_the_one_before_has_ended_for_it) {
  given(book_of(""), 2h);
  const Ref slow = machine_.queued().front();
  ASSERT_TRUE(machine_.take(slow, false));
  machine_.succeed(machine_.queued().front());  // bob: a
  machine_.succeed(machine_.queued().front());  // bob: a2
  machine_.now += 2h;
  machine_.settle();
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=dispatched");
  EXPECT_EQ(waiting(), Steps{"b"});  // bob's
  machine_.work();
  machine_.succeed(slow);
  machine_.settle();
  EXPECT_EQ(waiting(), Steps{"a2"});
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
}

TEST_F(Holds, phases_overlap_where_the_runbook_says_so) {
  given(book_of("", "phase_overlap: allow"), 2h, {"ada"});
  machine_.now += 2h;
  machine_.settle();
  EXPECT_EQ(waiting(), (Steps{"a", "b"}));
}

TEST_F(Holds, in_lockstep_a_phase_waits_for_the_whole_one_before) {
  given(book_of("", "progression: lockstep"), 2h);
  machine_.now += 2h;
  machine_.settle();
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=pending");
  EXPECT_EQ(machine_.rows.phases.at(2).waits_for, PhaseWait::phases_before);
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
}

TEST_F(Holds, a_gate_waits_for_go) {
  given(book_of(", gate: approval"), 1h);
  machine_.work();
  machine_.wait(1h);
  EXPECT_EQ(open(), "gate");
  EXPECT_EQ(phases(), "early.v1=completed late.v1=pending");
  machine_.wait(100h);
  EXPECT_EQ(phases(), "early.v1=completed late.v1=pending");
  answer("go");
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
  EXPECT_EQ(machine_.rows.holds.begin()->second.decided_by, "ann");
}

TEST_F(Holds, no_go_skips_the_phase) {
  given(book_of(", gate: approval"), 1h);
  machine_.work();
  machine_.wait(1h);
  answer("no-go");
  EXPECT_EQ(phases(), "early.v1=completed late.v1=skipped");
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
}

class UnansweredGate : public Holds, public testing::WithParamInterface<std::pair<const char*, const char*>> {};
TEST_P(UnansweredGate, does_as_its_runbook_says) {
  const auto& [word, status] = GetParam();
  given(book_of(std::string(", gate: {type: approval, timeout: 30m, on_timeout: ") + word + "}"), 1h);
  machine_.work();
  machine_.wait(89min);
  EXPECT_EQ(phases(), "early.v1=completed late.v1=pending");
  machine_.wait(2min);
  EXPECT_EQ(phases(), std::string("early.v1=completed late.v1=") + status);
}
INSTANTIATE_TEST_SUITE_P(All, UnansweredGate,
                         testing::Values(std::pair{"go", "dispatched"}, std::pair{"skip", "skipped"}, std::pair{"hold", "pending"}));

TEST_F(Holds, a_phase_that_requires_more_than_came_through_waits_for_a_person) {
  given(book_of(", requires: {phase: early, succeeded_percent: 95}"), 1h);
  fail_one();
  machine_.work();
  machine_.wait(1h);
  EXPECT_EQ(open(), "required");
  EXPECT_NE(machine_.rows.holds.begin()->second.message.find("1 of 2 did"), std::string::npos);
  answer("go");
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
}

TEST_F(Holds, a_phase_whose_requirement_is_met_begins) {
  given(book_of(", requires: {phase: early, succeeded_percent: 50}"), 1h);
  fail_one();
  machine_.work();
  machine_.wait(1h);
  EXPECT_EQ(open(), "");
  EXPECT_EQ(waiting(), Steps{"b"});
}

TEST_F(Holds, a_batch_in_which_too_many_fail_pauses_itself) {
  given(book_of("", "max_failed_percent: 20\nmin_failed: 2"), 2h, {"ada", "bob", "eve", "joe", "kim", "lea"});
  fail_one();
  EXPECT_EQ(open(), "");
  fail_one();
  EXPECT_EQ(open(), "threshold");
  EXPECT_EQ(machine_.rows.batches.at(batch_).paused_by, "baton");
  EXPECT_FALSE(machine_.take(machine_.queued().front()));
  // Resumed by the answer only, so that nobody goes on who has not read it.
  EXPECT_EQ(machine_.decide([&](Context c) { return resume(batch_, "joe", "", c); }).problem, Outcome::Problem::not_possible);
  answer("go");
  EXPECT_FALSE(machine_.rows.batches.at(batch_).paused_at);
  fail_one();  // one more: below the threshold, since the first two are accepted
  EXPECT_EQ(open(), "");
  fail_one();
  EXPECT_EQ(open(), "threshold");
}

TEST_F(Holds, a_hold_is_decided_once) {
  given(book_of(""), -24h);
  EXPECT_TRUE(answer("go", "ann").changed);
  EXPECT_EQ(answer("go", "ann").problem, Outcome::Problem::none);
  const auto second = answer("cancel", "bob");
  EXPECT_EQ(second.problem, Outcome::Problem::already_decided);
  EXPECT_NE(second.why.find("ann"), std::string::npos);
}

TEST_F(Holds, what_cannot_be_answered_is_refused_with_what_can) {
  given(book_of(""), -24h);
  const auto refused = answer("maybe");
  EXPECT_EQ(refused.problem, Outcome::Problem::no_such_answer);
  EXPECT_NE(refused.why.find("go, skip, cancel"), std::string::npos);
}

TEST_F(Holds, what_a_hold_is_about_may_be_over_without_an_answer) {
  given(book_of(", gate: approval"), 1h);
  machine_.work();
  machine_.wait(1h);
  machine_.decide([&](Context c) { return cancel(batch_, "ann", "", c); });
  EXPECT_EQ(open(), "");
  EXPECT_EQ(answer("go").problem, Outcome::Problem::already_decided);
}

// Publishing a fix in the middle repeated the cut-over of a running wave beside itself.
TEST_F(Holds, a_member_never_does_two_versions_of_a_phase_at_once) {
  given(book_of(""), 2h, {"ada"});
  const Ref running = machine_.queued().front();
  ASSERT_TRUE(machine_.take(running, false));
  machine_.publish(book_of("", "description: second"));
  machine_.settle();
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=superseded early.v2=dispatched late.v2=pending");
  EXPECT_EQ(waiting(), Steps{});
  machine_.succeed(running);
  machine_.settle();
  EXPECT_EQ(waiting(), Steps{"a2"});
}

}  // namespace
}  // namespace baton::runbook
