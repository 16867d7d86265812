// What a new version does to open batches: open_batches, overdue_behavior, ignore_overdue_applied, rerun_init.
#include "core/runbook/machine/impact.hpp"
#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

using namespace std::chrono_literals;

std::string versioned_book(const std::string& init = "", const std::string& more = "") {
  return "name: waves\n" + more + R"(
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
)" + init + R"(
phases:
  - {name: early, offset: T-2h, steps: [{name: a, worker_id: pool, function: A}]}
  - {name: late, offset: T-0, steps: [{name: b, worker_id: pool, function: B}]}
)";
}
const std::string one_init = "init: [{name: i, worker_id: pool, function: I}]";

class NewVersion : public testing::Test {
 protected:
  // One hour before T: the early phase is done, the late one waits.
  void given(const std::string& yaml) {
    machine_.publish(yaml);
    batch_ = machine_.open("waves", machine_.now + 3h, {"ada"});
    machine_.work();
    machine_.wait(2h);
    machine_.work();
    ASSERT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=pending");
  }
  const Runbook& version(std::int32_t n) {
    for (const auto& [id, row] : machine_.rows.runbooks)
      if (row.version == n) return row;
    throw std::runtime_error("there is no such version");
  }
  std::string inits() {
    std::string all;
    for (const auto& [id, row] : machine_.rows.inits)
      all += (all.empty() ? "v" : " v") + std::to_string(row.runbook_version) + "=" + std::string(name(row.status));
    return all;
  }

  MachineOnRows machine_;
  std::int64_t batch_ = 0;
};

TEST_F(NewVersion, runs_what_is_overdue_again) {
  given(versioned_book());
  machine_.publish(versioned_book("", "description: second"));
  machine_.settle();
  EXPECT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=superseded early.v2=dispatched late.v2=pending");
  EXPECT_FALSE(version(2).ignore_overdue_applied);
  machine_.work();
  machine_.wait(1h);
  machine_.work();
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
}

TEST_F(NewVersion, leaves_out_what_is_overdue_when_told_to_ignore_it) {
  given(versioned_book());
  machine_.publish(versioned_book("", "description: second"), "ignore");
  machine_.settle();
  EXPECT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=superseded early.v2=skipped late.v2=pending");
  EXPECT_TRUE(version(2).ignore_overdue_applied);
  machine_.wait(1h);
  machine_.work();
  EXPECT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=superseded early.v2=skipped late.v2=completed");
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
}

// Who applied it was perhaps another scheduler.
TEST_F(NewVersion, ignores_what_is_overdue_once) {
  given(versioned_book());
  machine_.publish(versioned_book("", "description: second"), "ignore");
  machine_.rows.runbooks.change(version(2).id, [](Runbook& row) { row.ignore_overdue_applied = true; });
  machine_.settle();
  EXPECT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=superseded early.v2=dispatched late.v2=pending");
}

// A batch that comes later was never overdue under an older version: the flag says nothing about it.
TEST_F(NewVersion, does_not_leave_out_phases_of_batches_that_come_later) {
  given(versioned_book());
  machine_.publish(versioned_book("", "description: second"), "ignore");
  machine_.settle();
  const auto later = machine_.open("waves", machine_.now + 30min, {"bob"});
  EXPECT_EQ(machine_.phases_of(later), "early.v2=dispatched late.v2=pending");
}

TEST_F(NewVersion, runs_init_again_when_told_to) {
  given(versioned_book(one_init));
  machine_.publish(versioned_book(one_init, "description: second"), "rerun", true);
  machine_.settle();
  EXPECT_EQ(inits(), "v1=succeeded v2=dispatched");
  EXPECT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=superseded early.v2=dispatched late.v2=pending");
  EXPECT_EQ(machine_.queued().size(), 1U) << "phases wait for the init steps";
  machine_.work();
  EXPECT_EQ(inits(), "v1=succeeded v2=succeeded");
  EXPECT_EQ(machine_.phases_of(batch_), "early.v1=completed late.v1=superseded early.v2=completed late.v2=pending");
}

TEST_F(NewVersion, does_not_run_init_again_unless_told_to) {
  given(versioned_book(one_init));
  machine_.publish(versioned_book(one_init, "description: second"));
  machine_.settle();
  EXPECT_EQ(inits(), "v1=succeeded");
}

// ---- in the middle of a batch

// Fixing a typo in a later phase repeated the cut-over of a running wave beside itself.
class InTheMiddle : public NewVersion {
 protected:
  static std::string fixed() { return versioned_book("", "description: fixed"); }
  // Both phases were made, the early one has begun and its step is out.
  void given_under_way(const std::string& yaml = versioned_book(), const std::vector<std::string>& keys = {"ada"}) {
    machine_.publish(yaml);
    batch_ = machine_.open("waves", machine_.now + 3h, keys);
    machine_.wait(61min);
    ASSERT_EQ(phases(), "early.v1=dispatched late.v1=pending");
  }
  MachineOnRows::Said publish(std::optional<OpenBatches> how, const std::string& yaml = fixed()) {
    const auto said = machine_.publish_as(yaml, {.open_batches = how});
    machine_.settle();
    return said;
  }
  std::string phases() { return machine_.phases_of(batch_); }
  std::vector<PhaseExecution> copied() const {
    std::vector<PhaseExecution> rows;
    for (const auto& [id, phase] : machine_.rows.phases) rows.push_back(phase);
    return rows;
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
  // Of each phase that has begun, how many steps were made.
  std::string steps() {
    std::map<std::string, int> made;
    for (const auto& [id, step] : machine_.rows.steps) {
      const auto& phase = machine_.rows.phases.at(step.phase_execution_id);
      ++made[phase.phase_name + ".v" + std::to_string(phase.runbook_version)];
    }
    std::string all;
    for (const auto& [phase, n] : made) all += (all.empty() ? "" : " ") + phase + "=" + std::to_string(n);
    return all;
  }
  void work_to_the_end() {
    machine_.work();
    machine_.wait(3h);
    machine_.work();
  }
};

TEST_F(InTheMiddle, publishing_is_refused_until_it_is_said_what_becomes_of_the_batch) {
  given_under_way();
  const auto said = publish(std::nullopt);
  EXPECT_EQ(said.outcome.problem, Outcome::Problem::open_batches);
  EXPECT_NE(said.outcome.why.find("begun: " + std::to_string(batch_) + "."), std::string::npos) << said.outcome.why;
  EXPECT_EQ(machine_.rows.runbooks.size(), 1U);
  EXPECT_TRUE(version(1).is_active);
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=pending");
}

TEST_F(InTheMiddle, the_very_text_changes_nothing_and_is_not_asked_about) {
  given_under_way();
  const auto said = publish(std::nullopt, versioned_book());
  EXPECT_EQ(said.outcome.problem, Outcome::Problem::none);
  EXPECT_FALSE(said.outcome.changed);
}

TEST_F(InTheMiddle, an_external_scheduler_is_not_asked) {
  given_under_way();
  machine_.policy.scheduler = false;
  EXPECT_EQ(publish(std::nullopt).version, 2);
  EXPECT_EQ(version(2).open_batches, std::nullopt);
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=pending");
}

TEST_F(InTheMiddle, init_is_a_beginning) {
  machine_.publish(versioned_book(one_init));
  batch_ = machine_.open("waves", machine_.now + 3h, {"ada"});
  EXPECT_EQ(publish(std::nullopt, versioned_book(one_init, "description: fixed")).version, 0);
}

class NotBegun : public InTheMiddle, public testing::WithParamInterface<std::optional<OpenBatches>> {};
TEST_P(NotBegun, goes_over_whatever_is_said) {
  machine_.publish(versioned_book());
  batch_ = machine_.open("waves", machine_.now + 3h, {"ada"});
  EXPECT_EQ(publish(GetParam()).version, 2);
  EXPECT_EQ(phases(), "early.v1=superseded late.v1=superseded early.v2=pending late.v2=pending");
}
INSTANTIATE_TEST_SUITE_P(Answers, NotBegun,
                         testing::Values(std::nullopt, OpenBatches::keep, OpenBatches::ignore, OpenBatches::rerun));

// Between the publication and the look at the batches.
TEST_F(InTheMiddle, a_batch_that_begins_just_then_stays) {
  machine_.publish(versioned_book());
  batch_ = machine_.open("waves", machine_.now + 3h, {"ada"});
  EXPECT_EQ(machine_.publish_as(fixed(), {}).version, 2);
  (void)machine_.decide([&](Context c) { return advance(batch_, "early", "ann", c); });
  machine_.settle();
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=pending");
}

TEST_F(InTheMiddle, keep_lets_it_finish_on_its_version_once) {
  given_under_way();
  EXPECT_EQ(publish(OpenBatches::keep).version, 2);
  EXPECT_EQ(version(2).open_batches, OpenBatches::keep);
  EXPECT_EQ(version(2).overdue_behavior, "rerun") << "the contract knows no other word";
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=pending");
  EXPECT_EQ(machine_.rows.batches.at(batch_).runbook_id, version(1).id);
  work_to_the_end();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
  EXPECT_EQ(steps(), "early.v1=1 late.v1=1");
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
  EXPECT_NE(machine_.events_of(batch_).find("version_kept"), std::string::npos);
}

TEST_F(InTheMiddle, who_joins_a_batch_that_was_kept_catches_up_in_its_version) {
  given_under_way();
  publish(OpenBatches::keep);
  (void)machine_.decide([&](Context c) { return add_members(batch_, {{"bob", {}, Json{R"({"Key":"bob"})"}}}, c).member_ids; });
  work_to_the_end();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=completed");
  EXPECT_EQ(steps(), "early.v1=2 late.v1=2");
}

TEST_F(InTheMiddle, a_batch_that_was_kept_goes_over_to_a_later_version) {
  given_under_way();
  publish(OpenBatches::keep);
  publish(OpenBatches::ignore, versioned_book("", "description: third"));
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=superseded early.v3=skipped late.v3=pending");
  work_to_the_end();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=superseded early.v3=skipped late.v3=completed");
}

TEST_F(InTheMiddle, ignore_does_nothing_twice) {
  given_under_way();
  publish(OpenBatches::ignore);
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=superseded early.v2=skipped late.v2=pending");
  work_to_the_end();
  EXPECT_EQ(steps(), "early.v1=1 late.v2=1");
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
}

TEST_F(InTheMiddle, ignore_does_not_begin_again_what_somebody_began_early) {
  machine_.publish(versioned_book());
  batch_ = machine_.open("waves", machine_.now + 3h, {"ada"});
  (void)machine_.decide([&](Context c) { return advance(batch_, "late", "ann", c); });
  machine_.settle();
  machine_.work();
  publish(OpenBatches::ignore);
  EXPECT_EQ(phases(), "early.v1=superseded late.v1=completed early.v2=pending late.v2=skipped");
  work_to_the_end();
  EXPECT_EQ(steps(), "early.v2=1 late.v1=1");
}

// It waits for the phase before: its turn comes, and it was never begun.
TEST_F(InTheMiddle, ignore_does_not_lose_what_is_due_and_waits_for_its_turn) {
  given_under_way(versioned_book("", "progression: lockstep"));
  machine_.wait(2h);
  ASSERT_EQ(phases(), "early.v1=dispatched late.v1=pending");
  publish(OpenBatches::ignore, versioned_book("", "progression: lockstep\ndescription: fixed"));
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=superseded early.v2=skipped late.v2=pending");
  machine_.work();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=superseded early.v2=skipped late.v2=completed");
}

TEST_F(InTheMiddle, a_phase_that_waits_because_it_is_late_waits_in_the_new_version_too) {
  machine_.publish(versioned_book());
  batch_ = machine_.open("waves", machine_.now + 3h, {"ada"});
  machine_.now += 2h + 10min;  // nobody was there when it was due
  machine_.settle();
  ASSERT_EQ(phases(), "early.v1=pending late.v1=pending");
  publish(OpenBatches::ignore);
  EXPECT_EQ(phases(), "early.v1=superseded late.v1=superseded early.v2=pending late.v2=pending");
  EXPECT_EQ(machine_.rows.holds.size(), 2U);
  EXPECT_EQ(std::prev(machine_.rows.holds.end())->second.status, HoldStatus::open);
}

TEST_F(InTheMiddle, by_hand_ignore_leaves_out_what_has_begun) {
  machine_.publish(versioned_book());
  batch_ = machine_.open("waves", std::nullopt, {"ada"});
  (void)machine_.decide([&](Context c) { return advance(batch_, "", "ann", c); });
  machine_.settle();
  machine_.work();
  ASSERT_EQ(phases(), "early.v1=completed late.v1=pending");
  publish(OpenBatches::ignore);
  EXPECT_EQ(phases(), "early.v1=completed late.v1=superseded early.v2=skipped late.v2=pending");
}

// The steps of the new version wait until those of the old one are over.
TEST_F(InTheMiddle, rerun_never_runs_two_versions_of_a_phase_at_once) {
  given_under_way();
  publish(OpenBatches::rerun);
  EXPECT_EQ(waiting(), std::vector<std::string>{"a"}) << "of version 1";
  const Ref first = machine_.queued().front();
  ASSERT_TRUE(machine_.take(first));
  machine_.succeed(first);
  machine_.settle();
  EXPECT_EQ(waiting(), std::vector<std::string>{"a"}) << "of version 2";
  EXPECT_NE(machine_.queued().front(), first);
  work_to_the_end();
  EXPECT_EQ(phases(), "early.v1=completed late.v1=superseded early.v2=completed late.v2=completed");
  EXPECT_EQ(steps(), "early.v1=1 early.v2=1 late.v2=1");
}

TEST_F(InTheMiddle, who_failed_in_the_old_version_is_retried_in_the_one_that_runs) {
  given_under_way(versioned_book(), {"ada", "bob"});
  fail_one();
  publish(OpenBatches::rerun);
  machine_.work();
  ASSERT_EQ(phases(), "early.v1=completed late.v1=superseded early.v2=completed late.v2=pending");
  Ref failed;
  for (const auto& [id, step] : machine_.rows.steps)
    if (step.status == StepStatus::failed) failed = {RowType::step, id};
  const auto refused = machine_.decide([&](Context c) { return retry_step(failed, "ann", c); });
  EXPECT_EQ(refused.problem, Outcome::Problem::not_possible);
  EXPECT_NE(refused.why.find("begun again in version 2"), std::string::npos) << refused.why;
  const auto retried = machine_.decide([&](Context c) { return retry_members(batch_, {}, {}, "ann", c).member_ids.size(); });
  EXPECT_EQ(retried, 1U);
  work_to_the_end();
  EXPECT_EQ(machine_.row(failed).status, StepStatus::failed) << "nobody does that any more";
  EXPECT_EQ(steps(), "early.v1=2 early.v2=2 late.v2=2");
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::completed);
}

TEST_F(InTheMiddle, a_phase_is_not_advanced_while_its_old_version_runs) {
  machine_.publish(versioned_book());
  batch_ = machine_.open("waves", std::nullopt, {"ada"});
  (void)machine_.decide([&](Context c) { return advance(batch_, "early", "ann", c); });
  machine_.settle();
  publish(OpenBatches::rerun);
  ASSERT_EQ(phases(), "early.v1=dispatched late.v1=superseded early.v2=pending late.v2=pending");
  const auto refused = machine_.decide([&](Context c) { return advance(batch_, "early", "ann", c); });
  EXPECT_EQ(refused.problem, Outcome::Problem::not_possible);
  EXPECT_EQ(refused.why, "phase 'early' is still running in version 1");
}

// The one that was active before is active again: open batches stay where they are.
TEST_F(InTheMiddle, making_a_version_active_moves_nobody) {
  given_under_way();
  publish(OpenBatches::ignore);
  (void)machine_.decide([&](Context c) { return activate("waves", 1, c).outcome; });
  machine_.settle();
  EXPECT_EQ(phases(), "early.v1=dispatched late.v1=superseded early.v2=skipped late.v2=pending");
}

// What is foretold is what happens.
class Foretold : public InTheMiddle, public testing::WithParamInterface<std::pair<OpenBatches, std::string>> {};
TEST_P(Foretold, is_what_happens) {
  const auto [how, expected] = GetParam();
  given_under_way();
  const std::vector<PhaseExecution> before = copied();
  std::vector<const PhaseExecution*> rows;
  for (const PhaseExecution& phase : before) rows.push_back(&phase);
  const auto impact = impact_on(machine_.rows.batches.at(batch_), rows, *parse(fixed()).definition, 2, how, machine_.now);
  std::string foretold;
  for (const PhaseImpact& each : impact)
    foretold += (foretold.empty() ? "" : " ") + each.phase_name + ".v" + std::to_string(each.version) + "=" +
                std::string(name(each.what)) + (each.at_once ? "!" : "");
  EXPECT_EQ(foretold, expected);
  publish(how);
  std::string happened;
  for (const PhaseExecution& phase : copied())
    happened += (happened.empty() ? "" : " ") + std::string(name(phase.status));
  EXPECT_EQ(happened, how == OpenBatches::keep     ? "dispatched pending"
                      : how == OpenBatches::ignore ? "dispatched superseded skipped pending"
                                                   : "dispatched superseded dispatched pending");
}
INSTANTIATE_TEST_SUITE_P(
    Answers, Foretold,
    testing::Values(std::pair{OpenBatches::keep, "early.v1=goes_on late.v1=stays"},
                    std::pair{OpenBatches::ignore, "early.v1=goes_on late.v1=superseded early.v2=skipped late.v2=begins"},
                    std::pair{OpenBatches::rerun,
                              "early.v1=goes_on late.v1=superseded early.v2=begins_again! late.v2=begins"}));

// ---- which version is active

class ActiveVersion : public testing::Test {
 protected:
  ActiveVersion() {
    machine_.publish(versioned_book());
    machine_.publish(versioned_book("", "description: second"));
  }
  struct Told {
    Outcome outcome;
    std::int32_t version = 0;  // 0: none
  };
  static Told told(const Switched& switched) {
    return {switched.outcome, switched.runbook ? switched.runbook->row.version : 0};
  }
  Told activate_version(const std::string& name, std::int32_t version) {
    return machine_.decide([&](Context context) { return told(activate(name, version, context)); });
  }
  Told deactivate_named(const std::string& name) {
    return machine_.decide([&](Context context) { return told(deactivate(name, context)); });
  }
  std::vector<std::int32_t> active() const {
    std::vector<std::int32_t> found;
    for (const auto& [id, row] : machine_.rows.runbooks)
      if (row.is_active) found.push_back(row.version);
    return found;
  }

  MachineOnRows machine_;
};
using Versions = std::vector<std::int32_t>;

TEST_F(ActiveVersion, is_one_and_without_a_number_the_latest) {
  EXPECT_EQ(active(), Versions{2});
  EXPECT_EQ(activate_version("waves", 1).version, 1);
  EXPECT_EQ(active(), Versions{1});
  EXPECT_EQ(activate_version("waves", 0).version, 2);
  EXPECT_EQ(active(), Versions{2});
  EXPECT_FALSE(activate_version("waves", 2).outcome.changed) << "it is";
}

TEST_F(ActiveVersion, is_switched_off_whichever_it_is) {
  (void)activate_version("waves", 1);
  const Told off = deactivate_named("waves");
  EXPECT_TRUE(off.outcome.changed);
  EXPECT_EQ(off.version, 1) << "not the latest";
  EXPECT_EQ(active(), Versions{});
  EXPECT_FALSE(deactivate_named("waves").outcome.changed) << "none is active";
}

TEST_F(ActiveVersion, must_be_there) {
  using enum Outcome::Problem;
  EXPECT_EQ(activate_version("waves", 3).outcome.problem, runbook_not_found);
  EXPECT_EQ(activate_version("none", 0).outcome.problem, runbook_not_found);
  EXPECT_EQ(deactivate_named("none").outcome.problem, runbook_not_found);
  EXPECT_EQ(active(), Versions{2}) << "nothing was switched off";
}

// Somebody writes another time into the row: our timer is of the old one.
TEST(PutOffBySql, a_phase_begins_at_the_time_that_its_row_has_then) {
  MachineOnRows machine;
  machine.publish(versioned_book());
  const std::int64_t batch = machine.open("waves", machine.now + 3h, {"ada"});
  machine.rows.phases.change(machine.rows.phases.begin()->first, [](PhaseExecution& early) { *early.due_at += 30min; });
  machine.wait(1h + 29min);
  EXPECT_EQ(machine.phases_of(batch), "early.v1=pending late.v1=pending");
  machine.wait(2min);
  EXPECT_EQ(machine.phases_of(batch), "early.v1=dispatched late.v1=pending");
}

// Another orchestrator has begun a phase of the new version, and its init steps run again.
TEST_F(NewVersion, who_is_late_waits_for_init_steps_that_run_again) {
  given(versioned_book(one_init));
  machine_.publish(versioned_book(one_init, "description: second"), "rerun", true);
  machine_.settle();
  const auto of_version_2 = [](const auto& entry) {
    return entry.second.runbook_version == 2 && entry.second.phase_name == "early";
  };
  const std::int64_t phase = std::ranges::find_if(machine_.rows.phases, of_version_2)->first;
  machine_.rows.phases.change(phase, [](PhaseExecution& row) {
    row.walk = Walk::none;
    row.walk_after = 0;
  });
  const auto joined = machine_.decide([&](Context c) { return add_members(batch_, {{"bob", {}, Json{"{}"}}}, c).member_ids; });
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(machine_.queued().size(), 1U) << "the init step";
  machine_.work();
  EXPECT_EQ(inits(), "v1=succeeded v2=succeeded");
  EXPECT_NE(machine_.phases_of(batch_).find("early.v2=completed"), std::string::npos);
}

}  // namespace
}  // namespace baton::runbook
