// Which step of a member is the next.
#include "core/runbook/machine/ledger.hpp"

#include <gtest/gtest.h>

namespace baton::runbook {
namespace {

class StepAhead : public testing::Test {
 protected:
  StepAhead() {
    Loaded loaded;
    for (const int index : {3, 4, 6}) {  // 6 was asked for by its id
      StepExecution step;
      step.id = index;
      step.batch_member_id = 1;
      step.phase_execution_id = 2;
      step.step_index = index;
      step.status = index == 3 ? StepStatus::dispatched : StepStatus::pending;
      loaded.steps.push_back(step);
    }
    ledger_.add(std::move(loaded), {need::StepsAhead{1, 2}, need::Step{3}, need::Step{4}, need::Step{6}});
  }
  void succeeds(std::int64_t id) { ledger_.job({RowType::step, id})->row->status = StepStatus::succeeded; }

  IdPool ids_;
  Ledger ledger_{[](const Runbook&) { return nullptr; }, ids_};
};

TEST_F(StepAhead, IsTheFirstThatHasNotSucceeded) {
  EXPECT_EQ(ledger_.step_ahead(1, 2)->row.id, 3);
  succeeds(3);
  EXPECT_EQ(ledger_.step_ahead(1, 2)->row.id, 4);
}

TEST_F(StepAhead, IsNotOneBehindThoseThatNobodyLoaded) {
  succeeds(3);
  succeeds(4);
  try {
    (void)ledger_.step_ahead(1, 2);
    FAIL() << "5 may be there";
  } catch (const NotLoaded& missing) {
    EXPECT_EQ(missing.needs, (Needs{need::StepsOf{1, 2}}));
  }
}

}  // namespace
}  // namespace baton::runbook
