// A store, and what the tests of runbooks do with it.
#pragma once

#include "tests/contract/store/runbook_rows.hpp"

namespace baton::contract {

class RunbookStoreContract : public StoreContract {
 protected:
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
};

// All rows that have ids, in their order.
inline void expect_same(const runbook::Loaded& expected, const runbook::Loaded& stored) {
  const auto compare = [](const auto& rows, const auto& found) {
    ASSERT_EQ(rows.size(), found.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(same(rows[i], found[i]));
  };
  compare(expected.runbooks, stored.runbooks);
  compare(expected.batches, stored.batches);
  compare(expected.members, stored.members);
  compare(expected.phases, stored.phases);
  compare(expected.steps, stored.steps);
  compare(expected.inits, stored.inits);
  compare(expected.cleanups, stored.cleanups);
  compare(expected.holds, stored.holds);
}
inline void expect_same(const runbook::Writes& written, const runbook::Loaded& stored) {
  runbook::Loaded expected;
  expected.runbooks = written.runbooks_new;
  expected.batches = written.batches_new;
  expected.members = written.members_new;
  expected.phases = written.phases_new;
  expected.steps = written.steps_new;
  expected.inits = written.inits_new;
  expected.cleanups = written.cleanups_new;
  expected.holds = written.holds_new;
  expect_same(expected, stored);
}

}  // namespace baton::contract
