// A store, and what the tests of runbooks do with it.
#pragma once

#include "tests/contract/store/runbook_rows.hpp"

namespace baton::contract {

class RunbookStoreContract : public ::testing::TestWithParam<StoreType> {
 protected:
  void SetUp() override {
    store = database.store();
    const auto state = store->open(partition);
    ASSERT_TRUE(state) << state.error().message;
  }

  Result<> try_commit(const runbook::Writes& writes, std::vector<Timer> timers = {}) {
    WriteSet set;
    set.runbooks = writes;
    set.timers_new = std::move(timers);
    EXPECT_FALSE(set.empty());
    auto done = store->commit(set, number + 1);
    if (done) ++number;
    return done;
  }

  void commit(const runbook::Writes& writes) {
    const auto done = try_commit(writes);
    ASSERT_TRUE(done) << done.error().message;
  }

  runbook::Loaded load(const std::vector<runbook::Need>& needs) {
    auto loaded = store->load(needs);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? std::move(*loaded) : runbook::Loaded{};
  }

  Database database{GetParam()};
  std::unique_ptr<Store> store;
  std::int64_t number = 0;
};

}  // namespace baton::contract
