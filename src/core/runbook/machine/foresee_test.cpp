// What is loaded before is enough to decide.
#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

const std::string foreseen_book = R"(name: waves
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - name: work
    offset: T-0
    steps: [{name: a, worker_id: pool, function: A}, {name: b, worker_id: pool, function: B}]
)";

class Foreseen : public testing::Test {
 protected:
  Foreseen() {
    machine_.publish(foreseen_book);
    batch_ = machine_.open("waves", machine_.now + std::chrono::hours{1}, {"ada", "bob"});
    importing_ = machine_.decide([&](Context c) {
      return open_batch("waves", 0, machine_.now + std::chrono::hours{2}, "", c).batch->row.id;
    });
  }
  std::int64_t first_member() const { return machine_.rows.members.begin()->first; }

  // Loads what is foreseen, round after round as the engine does, and decides: how much was missing then.
  template <class Foresee, class Decide>
  std::size_t missing(Foresee&& foresee, Decide&& decide) {
    IdPool ids;
    ids[Table::batch_members] = {4713, 4712, 4711};
    Ledger ledger([](const Runbook& row) { return parse(row.yaml_content, Strictness::stored).definition; }, ids);
    constexpr int rounds_max = 8;
    for (int round = 0; round < rounds_max; ++round) {
      Needs needs;
      foresee(ledger, needs);
      std::erase_if(needs, [&](const Need& need) { return ledger.knows(need); });
      if (needs.empty()) break;
      ledger.add(machine_.rows.load({needs.begin(), needs.end()}), needs);
    }
    Decided decided;
    try {
      decide(Context{ledger, machine_.policy, machine_.now, decided});
    } catch (const NotLoaded& lack) {
      return lack.needs.size();
    }
    return 0;
  }
  // With what is foreseen nothing is missing, and without it something is.
  template <class Foresee, class Decide>
  void expect_enough(Foresee&& foresee, Decide&& decide) {
    EXPECT_EQ(missing(foresee, decide), 0U);
    EXPECT_GT(missing([](Ledger&, Needs&) {}, decide), 0U) << "the test is worth nothing";
  }

  MachineOnRows machine_;
  std::int64_t batch_ = 0, importing_ = 0;
};

TEST_F(Foreseen, is_all_that_an_import_needs) {
  const std::vector<DataRow> members{{"eve", {}, Json{"{}"}}, {"ada", {}, Json{"{}"}}};
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_join(importing_, members, ledger, needs); },
                [&](Context c) { EXPECT_EQ(add_members(importing_, members, c).outcome.problem, Outcome::Problem::none); });
}

TEST_F(Foreseen, is_all_that_the_start_of_a_batch_needs) {
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee({RowType::batch, importing_}, ledger, needs); },
                [&](Context c) { EXPECT_TRUE(start_batch(importing_, c).changed); });
}

TEST_F(Foreseen, is_all_that_the_removal_of_a_member_needs_before_it_has_begun) {
  const std::vector<std::int64_t> ids{first_member()};
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_removal(batch_, ids, ledger, needs); },
                [&](Context c) { EXPECT_EQ(remove_members(batch_, ids, {}, "ada", true, c).member_ids, ids); });
}

TEST_F(Foreseen, is_all_that_a_refreshed_member_needs) {
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_member(first_member(), ledger, needs); },
                [&](Context c) { EXPECT_TRUE(refresh_member(first_member(), {"ada", {}, Json{"{}"}}, c)); });
}

TEST_F(Foreseen, is_all_that_a_look_at_a_source_needs) {
  const std::int64_t book = machine_.rows.runbooks.begin()->first;
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_version(book, ledger, needs); },
                [&](Context c) { note_sync(book, std::nullopt, std::nullopt, {}, c); });
  Needs none;
  IdPool ids;
  Ledger ledger([](const Runbook&) { return nullptr; }, ids);
  foresee_version(0, ledger, none);
  EXPECT_TRUE(none.empty());
}

TEST_F(Foreseen, is_all_that_an_adopted_phase_needs) {
  const std::vector<std::int64_t> phases{machine_.rows.phases.begin()->first};
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_phases(phases, ledger, needs); },
                [&](Context c) { adopt_phase(phases.front(), c); });
}

TEST_F(Foreseen, is_all_that_a_job_and_its_result_need) {
  machine_.wait(std::chrono::hours{1});
  ASSERT_EQ(machine_.queued().size(), 2U);
  const Ref job = machine_.queued().front();
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_handout(job, ledger, needs); },
                [&](Context c) { EXPECT_TRUE(hand_out(job, "w", c.policy.short_lease, c)); });
  ASSERT_TRUE(machine_.take(job));
  const std::string job_id = machine_.row(job).job_id.value();
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_handout(job_id, ledger, needs); },
                [&](Context c) { EXPECT_TRUE(renew(job_id, lease_token(machine_.row(job)), c.policy.short_lease, c)); });
  const JobReport said{.job_id = job_id, .success = true, .result = Json{"{}"}};
  expect_enough([&](Ledger& ledger, Needs& needs) { foresee_job(job_id, ledger, needs); },
                [&](Context c) { EXPECT_EQ(report(said, c).verdict, Verdict::accepted); });
  Needs none;
  IdPool ids;
  Ledger ledger([](const Runbook&) { return nullptr; }, ids);
  foresee_job("no job", ledger, none);
  foresee_handout("no job", ledger, none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace baton::runbook
