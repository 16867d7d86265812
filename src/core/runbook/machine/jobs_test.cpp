// A job and its worker: leases, deliveries, dead letters, jobs of another orchestrator.
#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

using namespace std::chrono_literals;

const std::string jobs_book = R"(name: waves
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - name: work
    offset: T-0
    steps:
      - {name: a, worker_id: pool, function: A, timeout: 10m, retry: {max_retries: 1, interval: 1m}}
      - {name: b, worker_id: pool, function: B, poll: {interval: 5m, timeout: 1h}}
)";

class Jobs : public testing::Test {
 protected:
  Jobs() {
    machine_.publish(jobs_book);
    batch_ = machine_.open("waves", machine_.now, {"ada"});
    machine_.settle();
    step_ = machine_.queued().at(0);
  }
  const StepExecution& row() const { return machine_.rows.steps.at(step_.id); }
  template <class Change>
  void change(Change&& change) {
    machine_.rows.steps.change(step_.id, std::forward<Change>(change));
  }
  // As another orchestrator leaves it.
  void leave(StepStatus status) {
    machine_.database.timers.clear();
    machine_.rows.counts.clear();
    change([&](StepExecution& at) {
      at.status = status;
      at.job_id = "guid";
      at.job_state = JobState::none;
      at.timer_due.reset(), at.queued_at.reset(), at.timeout_sec.reset(), at.max_retries.reset();
      at.retry_interval_sec.reset(), at.poll_timeout_sec.reset(), at.poll_interval_sec.reset();
      at.counted_as.reset();
    });
  }
  void adopt() {
    machine_.decide([&](Context c) { return adopt_jobs({step_}, c), 0; });
  }
  // Ten workers take it, and none says a word.
  void give_up(Ref step) {
    for (int n = 0; n < 10; ++n) {
      ASSERT_TRUE(machine_.take(step)) << n;
      machine_.wait(31s);
    }
    ASSERT_TRUE(machine_.row(step).dead_at.has_value());
  }
  Judged report(const std::string& job_id, std::optional<std::string> lease, const std::string& result = "{}") {
    return machine_.tell({.job_id = job_id, .success = true, .result = Json{result}, .lease = std::move(lease)});
  }
  Outcome replay(const std::string& job_id) {
    return machine_.decide([&](Context c) { return runbook::replay(job_id, "ada", c); });
  }

  MachineOnRows machine_;
  std::int64_t batch_ = 0;
  Ref step_;
};

TEST_F(Jobs, that_ten_workers_were_silent_about_are_dead_and_can_be_replayed) {
  for (int n = 0; n < 10; ++n) {
    EXPECT_EQ(row().dead_at, std::nullopt) << n;
    ASSERT_TRUE(machine_.take(step_)) << n;
    machine_.wait(31s);
  }
  EXPECT_EQ(row().status, StepStatus::failed);
  EXPECT_EQ(row().job_id, "step-" + std::to_string(step_.id));
  EXPECT_TRUE(row().dead_at.has_value());
  EXPECT_EQ(replay("step-77").problem, Outcome::Problem::step_not_found);
  EXPECT_EQ(replay(*row().job_id).problem, Outcome::Problem::none);
  EXPECT_EQ(row().dead_at, std::nullopt);
  EXPECT_EQ(row().job_id, "step-" + std::to_string(step_.id) + "-retry-1");
  EXPECT_EQ(replay(*row().job_id).problem, Outcome::Problem::not_dead);
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::active);
}

// Nobody can replay or retry what was to be done to somebody who is gone.
TEST_F(Jobs, of_a_member_that_is_removed_are_no_dead_letters_any_more) {
  give_up(step_);
  const SchedulerMessage removed{"waves", 1, batch_, MemberRemoved{row().batch_member_id}};
  machine_.decide([&](Context c) { return handle(removed, c); });
  EXPECT_EQ(row().dead_at, std::nullopt);
  EXPECT_EQ(row().status, StepStatus::failed);
  EXPECT_EQ(replay(*row().job_id).problem, Outcome::Problem::not_dead);
  EXPECT_EQ(machine_.rows.members.at(row().batch_member_id).status, MemberStatus::removed) << "it had failed before";
  const auto retried = machine_.decide([&](Context c) { return retry_members(batch_, {}, {}, "ada", c).member_ids; });
  EXPECT_TRUE(retried.empty()) << "its removal steps have run";
}

TEST_F(Jobs, of_a_member_that_is_removed_by_hand_are_no_dead_letters_any_more) {
  machine_.publish(std::string("progression: lockstep\n") + jobs_book);  // there members stay active when a step fails
  batch_ = machine_.open("waves", machine_.now - 1min, {"bob", "cyd"});
  machine_.settle();
  step_ = machine_.queued().back();
  give_up(step_);
  ASSERT_EQ(machine_.rows.members.at(row().batch_member_id).status, MemberStatus::active);
  machine_.decide([&](Context c) {
    return remove_members(batch_, {row().batch_member_id}, {}, "ada", true, c).member_ids;
  });
  EXPECT_EQ(machine_.rows.members.at(row().batch_member_id).status, MemberStatus::removed);
  EXPECT_EQ(row().dead_at, std::nullopt);
}

// As with the message of a scheduler: what it leaves behind is cleaned up, and nobody retries it.
TEST_F(Jobs, that_a_person_skips_succeed_and_are_counted_as_skipped) {
  const auto skip = [&](Ref ref, const std::string& by) {
    return machine_.decide([&](Context c) { return skip_step(ref, by, c); });
  };
  const std::int64_t phase = row().phase_execution_id;
  const auto skipped = [&](std::int32_t index) {
    const auto found = machine_.rows.counts.find({batch_, phase, "skipped", index, "step"});
    return found == machine_.rows.counts.end() ? 0 : found->second.n;
  };
  ASSERT_TRUE(skip(step_, "ada").changed);
  EXPECT_EQ(row().status, StepStatus::succeeded);
  EXPECT_TRUE(is_skipped(row()));
  EXPECT_EQ(row().result_json->text, R"({"skipped_by":"ada"})");
  EXPECT_EQ(skipped(0), 1);
  machine_.settle();
  const Ref poll = machine_.queued().at(0);
  ASSERT_TRUE(skip(poll, "").changed);
  EXPECT_TRUE(is_skipped(machine_.row(poll))) << "also what is polled, by nobody in particular";
  EXPECT_EQ(skipped(1), 1);
  EXPECT_EQ((machine_.rows.counts.at({batch_, phase, "step", 1, "succeeded"}).n), 1) << "it has succeeded all the same";
  EXPECT_FALSE(is_result_of_skip(R"({"id":"skipped_by"})"));
}

TEST(FailedMembers, can_be_removed_by_hand) {
  MachineOnRows machine;
  machine.publish(jobs_book + "on_member_removed: [{name: r, worker_id: pool, function: R}]\n");
  const auto batch = machine.open("waves", machine.now, {"ada", "bob"});
  machine.settle();
  const Ref step = machine.queued().at(0);
  const auto member = machine.rows.steps.at(step.id).batch_member_id;
  for (int tries = 0; tries < 2; ++tries) {
    ASSERT_TRUE(machine.take(step));
    ASSERT_EQ(machine.fail(step).verdict, Verdict::accepted);
    machine.wait(1min);
  }
  ASSERT_EQ(machine.rows.members.at(member).status, MemberStatus::failed);
  const auto remove = [&] {
    return machine.decide([&](Context c) { return remove_members(batch, {}, {"ada"}, "eve", true, c); });
  };
  EXPECT_EQ(remove().member_ids, std::vector{member});
  EXPECT_EQ(machine.rows.members.at(member).status, MemberStatus::removed);
  EXPECT_EQ(machine.rows.members.at(member).removed_by, "eve");
  EXPECT_EQ(machine.rows.cleanups.size(), 1U);
  const auto again = remove().left_out;
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().reason, "removed");
  EXPECT_EQ(again.front().member_keys, std::vector<std::string>{"ada"});
  EXPECT_EQ(machine.rows.cleanups.size(), 1U);
}

TEST(FailedMembers, that_are_not_retried_are_told_with_the_reason) {
  MachineOnRows machine;
  machine.publish(R"(name: waves
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases: [{name: work, offset: T-0, steps: [{name: a, worker_id: pool, function: A, on_failure: undo}]}]
rollbacks: {undo: [{name: back, worker_id: pool, function: Back}]}
)");
  const auto batch = machine.open("waves", machine.now, {"ada", "bob", "cyd", "dee", "eve", "fay", "gil", "hal"});
  machine.settle();
  const auto retry = [&](const std::vector<std::string>& keys) {
    return machine.decide([&](Context c) { return retry_members(batch, {}, keys, "eve", c); });
  };
  EXPECT_EQ(retry({}).note, "no member of batch " + std::to_string(batch) + " has failed");
  const Ref step = machine.queued().at(0);
  ASSERT_TRUE(machine.take(step));
  ASSERT_EQ(machine.fail(step).verdict, Verdict::accepted);
  machine.decide([&](Context c) { return remove_members(batch, {}, {"bob"}, "eve", true, c).member_ids; });

  const Joined named = retry({"ada", "bob", "cyd", "dee", "eve", "fay", "gil", "hal"});
  EXPECT_TRUE(named.member_ids.empty());
  ASSERT_EQ(named.left_out.size(), 3U);
  EXPECT_EQ(named.left_out[0].reason, "rolling_back");
  EXPECT_EQ(named.left_out[1].reason, "removed");
  EXPECT_EQ(named.left_out[2].reason, "not_failed");
  EXPECT_EQ(named.left_out[2].count, 6U);
  EXPECT_EQ(named.left_out[2].member_keys, (std::vector<std::string>{"cyd", "dee", "eve", "fay", "gil"}));
  const Joined all = retry({});
  ASSERT_EQ(all.left_out.size(), 1U);
  EXPECT_EQ(all.left_out[0].member_keys, std::vector<std::string>{"ada"});
  EXPECT_EQ(retry({"ada", "nobody", "no one"}).outcome.why,
            "batch " + std::to_string(batch) + " has no member 'nobody', 'no one'; nothing was done");
  machine.work();
  EXPECT_EQ(retry({"ada"}).member_ids.size(), 1U);
}

// It was taken out of the phase on purpose; what comes after the cancelled step would run without it.
TEST(LockstepRetry, leaves_out_a_member_whose_step_was_cancelled) {
  MachineOnRows machine;
  machine.publish(R"(name: waves
progression: lockstep
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases: [{name: work, offset: T-0, steps: [{name: a, worker_id: pool, function: A}, {name: b, worker_id: pool, function: B}]}]
)");
  const auto batch = machine.open("waves", machine.now, {"ada", "bob"});
  machine.settle();
  const Ref cancelled = machine.queued().at(1);
  machine.decide([&](Context c) { return cancel_step(cancelled, "eve", c); });
  ASSERT_TRUE(machine.take(machine.queued().at(0)));
  ASSERT_EQ(machine.succeed({RowType::step, 1}).verdict, Verdict::accepted);
  machine.settle();
  ASSERT_EQ(machine.queued().size(), 1U);
  const Ref second = machine.queued().at(0);
  ASSERT_TRUE(machine.take(second));
  ASSERT_EQ(machine.fail(second).verdict, Verdict::accepted);
  machine.settle();
  ASSERT_EQ(machine.phases_of(batch), "work.v1=failed");
  machine.decide([&](Context c) { return retry_members(batch, {}, {}, "eve", c).outcome; });
  machine.settle();
  EXPECT_EQ(machine.queued(), std::vector{second});
}

TEST_F(Jobs, of_a_batch_that_is_cancelled_are_no_dead_letters_any_more) {
  batch_ = machine_.open("waves", machine_.now, {"bob", "cyd"});
  machine_.settle();
  step_ = machine_.queued().back();
  give_up(step_);
  machine_.decide([&](Context c) { return cancel(batch_, "ada", "", c); });
  machine_.settle();
  EXPECT_EQ(machine_.rows.batches.at(batch_).status, BatchStatus::cancelled);
  EXPECT_EQ(row().dead_at, std::nullopt);
}

// A removal can be replayed whatever became of the batch; rollbacks and init steps cannot.
TEST_F(Jobs, beside_the_phases_are_dead_letters_in_a_cancelled_batch_only_if_they_can_be_replayed) {
  machine_.publish(jobs_book + R"(init: [{name: i, worker_id: pool, function: I, on_failure: undo}]
rollbacks: {undo: [{name: u, worker_id: pool, function: U}, {name: v, worker_id: pool, function: V}]}
on_member_removed: [{name: r, worker_id: pool, function: R}]
)");
  batch_ = machine_.open("waves", machine_.now + 24h, {"bob", "cyd"});
  const auto waits = [&](RowType type) {
    for (const Ref ref : machine_.queued())
      if (ref.type == type) return ref;
    return Ref{};
  };
  const auto member = std::prev(machine_.rows.members.end())->first;
  machine_.decide([&](Context c) { return remove_members(batch_, {member}, {}, "ada", true, c).member_ids; });
  const Ref removal = waits(RowType::cleanup);
  give_up(removal);
  const Ref init = waits(RowType::init);
  give_up(init);
  const Ref rollback = waits(RowType::cleanup);
  give_up(rollback);
  ASSERT_FALSE(is_terminal(machine_.rows.batches.at(batch_).status)) << "the second rollback is to come";
  machine_.decide([&](Context c) { return cancel(batch_, "ada", "", c); });
  machine_.settle();
  for (const Ref ref : {init, rollback}) {
    EXPECT_FALSE(machine_.row(ref).dead_at.has_value()) << name(ref.type);
    EXPECT_EQ(replay(*machine_.row(ref).job_id).problem, Outcome::Problem::not_dead);
  }
  EXPECT_TRUE(machine_.row(removal).dead_at.has_value());
  EXPECT_EQ(replay(*machine_.row(removal).job_id).problem, Outcome::Problem::none);
}

TEST_F(Jobs, of_another_orchestrator_time_out_and_are_retried) {
  leave(StepStatus::dispatched);
  change([&](StepExecution& at) { at.dispatched_at = machine_.now - 4min; });
  adopt();
  EXPECT_EQ(row().lease_until, machine_.now + 6min) << "the timeout began when it was given out";
  machine_.wait(6min - 1s);
  EXPECT_EQ(row().status, StepStatus::dispatched);
  machine_.wait(1s);
  EXPECT_EQ(row().status, StepStatus::pending);
  EXPECT_EQ(row().retry_count, 1);
  machine_.wait(1min);
  EXPECT_EQ(row().job_id, "step-" + std::to_string(step_.id) + "-retry-1");
}

TEST_F(Jobs, of_another_orchestrator_that_are_overdue_have_a_moment_to_report) {
  leave(StepStatus::dispatched);
  change([&](StepExecution& at) { at.dispatched_at = machine_.now - 24h; });
  adopt();
  EXPECT_EQ(row().lease_until, machine_.now + machine_.policy.short_lease);
  EXPECT_EQ(machine_.tell({.job_id = "any", .correlated = step_, .success = true, .result = {}}).verdict,
            Verdict::accepted);
  EXPECT_EQ(row().status, StepStatus::succeeded);
}

TEST_F(Jobs, of_another_orchestrator_that_poll_time_out) {
  leave(StepStatus::polling);
  change([&](StepExecution& at) { at.is_poll_step = true; });
  change([&](StepExecution& at) { at.poll_timeout_sec = 3600; });
  change([&](StepExecution& at) { at.last_polled_at = machine_.now - 30min; });
  machine_.policy.scheduler = false;
  adopt();
  EXPECT_EQ(row().poll_started_at, machine_.now - 30min);
  machine_.wait(30min);
  EXPECT_EQ(row().status, StepStatus::poll_timeout);
}

TEST_F(Jobs, of_another_orchestrator_that_wait_for_a_retry_run_again) {
  leave(StepStatus::pending);
  change([&](StepExecution& at) { at.retry_count = 1; });
  change([&](StepExecution& at) { at.retry_after = machine_.now + 5min; });
  adopt();
  machine_.wait(5min);
  EXPECT_EQ(row().status, StepStatus::dispatched);
  EXPECT_EQ(row().job_id, "step-" + std::to_string(step_.id) + "-retry-1");
}

TEST_F(Jobs, of_another_orchestrator_are_taken_over_once) {
  leave(StepStatus::dispatched);
  adopt();
  const auto until = row().lease_until;
  machine_.now += 1min;
  adopt();
  EXPECT_EQ(row().lease_until, until);
}

TEST_F(Jobs, of_ours_are_not_taken_over) {
  const auto before = row().queued_at;
  adopt();
  EXPECT_EQ(row().job_state, JobState::queued);
  EXPECT_EQ(row().queued_at, before);
  ASSERT_TRUE(machine_.take(step_));
  adopt();
  EXPECT_EQ(row().delivery_count, 1);
  EXPECT_EQ(machine_.tell({.job_id = "guid", .correlated = step_, .success = true}).verdict, Verdict::stale);
}

TEST_F(Jobs, that_another_worker_was_given_meanwhile_are_not_reported_by_the_first) {
  ASSERT_TRUE(machine_.take(step_));
  const std::string old = lease_token(row());
  machine_.wait(31s);
  ASSERT_EQ(row().job_state, JobState::queued);
  ASSERT_TRUE(machine_.take(step_));
  EXPECT_EQ(report(*row().job_id, old).verdict, Verdict::stale);
  EXPECT_EQ(row().status, StepStatus::dispatched);
  EXPECT_EQ(report(*row().job_id, lease_token(row())).verdict, Verdict::accepted);
  EXPECT_EQ(report(*row().job_id, old).verdict, Verdict::ignored) << "the step is over";
}

TEST_F(Jobs, whose_lease_ran_out_are_reported_by_the_same_worker_until_another_has_them) {
  ASSERT_TRUE(machine_.take(step_));
  const std::string lease = lease_token(row());
  machine_.wait(31s);
  EXPECT_EQ(report(*row().job_id, lease).verdict, Verdict::accepted);
}

// Leases are counted anew for each poll: the old one has the number of the new one.
TEST_F(Jobs, of_an_earlier_poll_have_an_old_lease) {
  ASSERT_TRUE(machine_.take(step_));
  ASSERT_EQ(machine_.succeed(step_).verdict, Verdict::accepted);
  machine_.settle();
  step_ = machine_.queued().at(0);
  const std::string incomplete = R"({"complete":false})";
  ASSERT_TRUE(machine_.take(step_));
  const std::string first = *row().job_id;
  const std::string lease = lease_token(row());
  ASSERT_EQ(report(first, lease, incomplete).verdict, Verdict::accepted);
  EXPECT_EQ(report(first, lease, incomplete).verdict, Verdict::ignored) << "it is a repetition";
  EXPECT_EQ(report(first, "9", incomplete).verdict, Verdict::stale);
  machine_.wait(5min);
  ASSERT_TRUE(machine_.take(step_));
  ASSERT_NE(row().job_id, first);
  ASSERT_EQ(lease_token(row()), lease);
  EXPECT_EQ(report(first, lease).verdict, Verdict::stale);
  EXPECT_EQ(report(first, std::nullopt).verdict, Verdict::ignored) << "of a worker that knows no leases";
  EXPECT_EQ(report(first, lease, incomplete).verdict, Verdict::ignored) << "it is a repetition";
  EXPECT_EQ(row().status, StepStatus::polling);
  EXPECT_EQ(report(*row().job_id, lease).verdict, Verdict::accepted);
}

TEST_F(Jobs, whose_id_contradicts_the_correlation_are_refused) {
  ASSERT_TRUE(machine_.take(step_));
  const Judged judged = machine_.tell({.job_id = "step-77", .correlated = step_, .success = true});
  EXPECT_EQ(judged.verdict, Verdict::contradicts);
  EXPECT_EQ(row().status, StepStatus::dispatched);
}

}  // namespace
}  // namespace baton::runbook
