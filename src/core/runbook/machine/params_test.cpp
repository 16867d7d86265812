// What a step's params may cost, and how much of that one chunk of a walk does.
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

}  // namespace
}  // namespace baton::runbook
