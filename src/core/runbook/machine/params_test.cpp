// What a step's params may cost, and how much of that one chunk of a walk does.
#include "core/runbook/definition/template.hpp"
#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

const std::string params_book = R"(name: waves
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - name: work
    offset: T-0
    steps:
      - {name: a, worker_id: pool, function: A, params: {Text: "{{Key}}{{Key}}{{Key}}{{Key}}"}}
      - {name: b, worker_id: pool, function: B, params: {Text: "{{Key}}"}}
)";

TEST(Params, that_would_be_longer_than_a_mebibyte_fail_the_step_of_that_member) {
  MachineOnRows machine;
  machine.publish(params_book);
  machine.open("waves", machine.now, {std::string(300'000, 'x'), "ada"});
  machine.settle();
  ASSERT_EQ(machine.queued().size(), 1U);
  const StepExecution& failed = machine.rows.steps.begin()->second;
  EXPECT_EQ(failed.status, StepStatus::failed);
  EXPECT_EQ(failed.error_message, "step 'a': its function or params would be longer than 1 MiB with variable 'Key'");
  EXPECT_EQ(machine.rows.members.begin()->second.status, MemberStatus::failed);
  EXPECT_EQ(machine.row(machine.queued().front()).params_json, Json{R"({"Text":"adaadaadaada"})"});
}

// Ten members, and a phase that becomes due in a minute.
class WalkBudget : public testing::Test {
 protected:
  void open(const std::string& book) {
    machine_.publish(book);
    std::vector<std::string> keys;
    for (int i = 0; i < 10; ++i) keys.push_back("m" + std::to_string(i));
    batch_ = machine_.open("waves", machine_.now + std::chrono::minutes{1}, keys);
    machine_.now += std::chrono::minutes{1};
  }
  const PhaseExecution& phase() const { return machine_.rows.phases.begin()->second; }
  void fire() {
    machine_.decide([&](Context c) { return timer_fired({RowType::phase, phase().id}, c), 0; });
  }

  MachineOnRows machine_;
  std::int64_t batch_ = 0;
};

// For each member 12 bytes are read, {"Key":"m0"}, and 19 rendered, {"Text":"m0m0m0m0"}.
TEST_F(WalkBudget, ends_a_chunk_after_the_member_that_used_it_up) {
  machine_.policy.chunk_bytes = 100;
  open(params_book);
  fire();
  ASSERT_EQ(phase().walk, Walk::start);
  std::vector<std::size_t> queued;
  while (phase().walk != Walk::none && queued.size() < 10) {
    fire();
    queued.push_back(machine_.queued().size());
  }
  EXPECT_EQ(queued, (std::vector<std::size_t>{4, 8, 10}));
  machine_.work();
  EXPECT_EQ(machine_.phases_of(batch_), "work.v1=completed");
}

TEST_F(WalkBudget, is_enough_for_one_member_at_least) {
  machine_.policy.chunk_bytes = 1;
  open("progression: lockstep\n" + params_book);
  machine_.settle();
  EXPECT_EQ(machine_.queued().size(), 10U);
  machine_.work();
  EXPECT_EQ(machine_.phases_of(batch_), "work.v1=completed");
  for (const auto& [id, step] : machine_.rows.steps) EXPECT_EQ(step.status, StepStatus::succeeded) << id;
  EXPECT_EQ(machine_.rows.steps.size(), 20U);
}

TEST(ChunkMembers, are_twice_as_many_as_the_budget_was_enough_for) {
  EXPECT_EQ(next_chunk_members({.members = 8, .is_cut = true}, 1'000, 1'000), 16);
  EXPECT_EQ(next_chunk_members({.members = 1, .is_cut = true}, 2, 1'000), 2);
  EXPECT_EQ(next_chunk_members({.members = 16}, 16, 1'000), 32) << "the budget was enough";
  EXPECT_EQ(next_chunk_members({.members = 0}, 600, 1'000), 1'000);
  EXPECT_EQ(next_chunk_members({.members = 900, .is_cut = true}, 1'000, 1'000), 1'000);
  EXPECT_EQ(next_chunk_members({.members = 1, .is_cut = true}, 1, 1), 1);
}

// One that had its turn stays where it put itself.
TEST_F(WalkBudget, when_others_had_the_turn_a_chunk_goes_behind_their_timers) {
  machine_.policy.chunk_bytes = 1;
  open(params_book);
  fire();
  const auto put_behind_now = [&](Time due, auto&& before) {
    return machine_.decide([&](Context c) {
      before(c);
      return put_behind({due, RowType::phase, phase().id}, machine_.now + Duration{7}, c.ledger);
    });
  };
  const auto nothing = [](Context) {};
  const auto its_turn = [&](Context c) { timer_fired({RowType::phase, phase().id}, c); };
  machine_.now += Duration{5};
  const Time due = *phase().timer_due;
  EXPECT_FALSE(put_behind_now(due - Duration{1}, nothing)) << "a timer that the row does not have any more";
  EXPECT_FALSE(put_behind_now(due, its_turn)) << "it has had its turn";
  ASSERT_EQ(phase().timer_due, machine_.now) << "and goes on";
  EXPECT_TRUE(put_behind_now(machine_.now, nothing));
  EXPECT_EQ(phase().timer_due, machine_.now + Duration{7});
  EXPECT_TRUE(machine_.database.timers.contains(
      {machine_.now + Duration{7}, subject_of(Ref{RowType::phase, phase().id}), ""}));
  const Ref job = machine_.queued().front();
  EXPECT_FALSE(machine_.decide([&](Context c) {
    return put_behind({machine_.now, job.type, job.id}, machine_.now + Duration{7}, c.ledger);
  }));
}

// What cannot be rendered has cost as much as what can.
TEST_F(WalkBudget, is_used_up_by_params_that_are_too_long) {
  const std::string large(300'000, 'x');
  machine_.publish(params_book);
  machine_.open("waves", machine_.now + std::chrono::minutes{1}, {large + "0", large + "1", "ada"});
  machine_.now += std::chrono::minutes{1};
  machine_.policy.chunk_bytes = rendered_bytes_max;
  fire();
  fire();
  EXPECT_EQ(phase().walk_after, machine_.rows.members.begin()->first);
  machine_.settle();
  EXPECT_EQ(machine_.queued().size(), 1U);
}

}  // namespace
}  // namespace baton::runbook
