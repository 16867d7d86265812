// The contract of core/runbook/store_needs.hpp, on every adapter.
#include <algorithm>

#include "tests/contract/store/runbook_rows.hpp"

namespace baton::contract {
namespace {

using namespace runbook;
using What = Need::What;
using RunbookTimer = runbook::Timer;

class RunbookStoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    store = database.store();
    const auto state = store->open();
    ASSERT_TRUE(state) << state.error().message;
  }

  Result<> try_commit(const Writes& writes) {
    WriteSet set;
    set.runbooks = writes;
    EXPECT_FALSE(set.empty());
    auto done = store->commit(set, number + 1);
    if (done) ++number;
    return done;
  }

  void commit(const Writes& writes) {
    const auto done = try_commit(writes);
    ASSERT_TRUE(done) << done.error().message;
  }

  runbook::Loaded load(const std::vector<Need>& needs) {
    auto loaded = store->load(needs);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? std::move(*loaded) : runbook::Loaded{};
  }

  Database database{GetParam()};
  std::unique_ptr<Store> store;
  std::int64_t number = 0;
};

INSTANTIATE_TEST_SUITE_P(All, RunbookStoreContract,
                         ::testing::Values(Kind::memory, Kind::sqlite, Kind::postgres), name_of);

TEST_P(RunbookStoreContract, EveryColumnComesBackAsItWasWritten) {
  Writes w;
  w.runbooks_new = {runbook_row(1)};
  w.batches_new = {batch_row(2)};
  w.members_new = {member_row(3)};
  w.phases_new = {phase_row(4)};
  w.steps_new = {step_row(5)};
  w.inits_new = {init_row(6)};
  w.cleanups_new = {cleanup_row(7)};
  w.counts = {{1, 2, "step", 3, "failed", 4'000'000'000}};
  commit(w);
  const auto l = load({{What::runbook, 1},
                       {What::batch, 2},
                       {What::member, 3},
                       {What::phase, 4},
                       {What::step, 5},
                       {What::init, 6},
                       {What::cleanup, 7},
                       {What::counts_of, 1, 2}});
  EXPECT_TRUE(same(w.runbooks_new[0], l.runbooks.at(0)));
  EXPECT_TRUE(same(w.batches_new[0], l.batches.at(0)));
  EXPECT_TRUE(same(w.members_new[0], l.members.at(0)));
  EXPECT_TRUE(same(w.phases_new[0], l.phases.at(0)));
  EXPECT_TRUE(same(w.steps_new[0], l.steps.at(0)));
  EXPECT_TRUE(same(w.inits_new[0], l.inits.at(0)));
  EXPECT_TRUE(same(w.cleanups_new[0], l.cleanups.at(0)));
  EXPECT_TRUE(same(w.counts[0], l.counts.at(0)));
}

TEST_P(RunbookStoreContract, AbsentValuesStayAbsent) {
  Writes w;
  w.runbooks_new = {Runbook{.id = 1, .name = "bare"}};
  w.batches_new = {Batch{.id = 1}};
  w.members_new = {Member{.id = 1}};
  w.phases_new = {PhaseExecution{.id = 1}};
  w.steps_new.resize(1), w.steps_new[0].id = 1;
  w.inits_new.resize(1), w.inits_new[0].id = 1;
  w.cleanups_new.resize(1), w.cleanups_new[0].id = 1;
  commit(w);
  const auto l = load({{What::runbook, 1},
                       {What::batch, 1},
                       {What::member, 1},
                       {What::phase, 1},
                       {What::step, 1},
                       {What::init, 1},
                       {What::cleanup, 1}});
  EXPECT_TRUE(same(w.runbooks_new[0], l.runbooks.at(0)));
  EXPECT_TRUE(same(w.batches_new[0], l.batches.at(0)));
  EXPECT_TRUE(same(w.members_new[0], l.members.at(0)));
  EXPECT_TRUE(same(w.phases_new[0], l.phases.at(0)));
  EXPECT_TRUE(same(w.steps_new[0], l.steps.at(0)));
  EXPECT_TRUE(same(w.inits_new[0], l.inits.at(0)));
  EXPECT_TRUE(same(w.cleanups_new[0], l.cleanups.at(0)));
}

}  // namespace
}  // namespace baton::contract
