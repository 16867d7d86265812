// What a new version does to open batches: overdue_behavior, ignore_overdue_applied, rerun_init.
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
