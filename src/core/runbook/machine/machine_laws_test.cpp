// Laws of the machine under any sequence of what schedulers, workers and people do: the same message twice changes
// nothing, what has ended stays so, counters equal their recount, a phase ends once.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/runbook/machine/machine_fixture.hpp"

namespace baton::runbook {
namespace {

using namespace std::chrono_literals;

std::string laws_book(bool lockstep) {
  return std::string("name: waves\nprogression: ") + (lockstep ? "lockstep" : "per_member") + R"(
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
retry: {max_retries: 1, interval: 1m}
init: [{name: i, worker_id: pool, function: I}]
phases:
  - name: one
    offset: T-0
    steps:
      - {name: a, worker_id: pool, function: A, on_failure: undo}
      - {name: b, worker_id: pool, function: B, poll: {interval: 5m, timeout: 30m}}
  - {name: two, offset: T+30m, steps: [{name: c, worker_id: pool, function: C, timeout: 2m}]}
rollbacks: {undo: [{name: u, worker_id: pool, function: U}, {name: v, worker_id: pool, function: V}]}
on_member_removed: [{name: r, worker_id: pool, function: R}]
)";
}

class MachineWorld {
 public:
  explicit MachineWorld(bool lockstep) {
    machine.publish(laws_book(lockstep));
    batch = machine.open("waves", machine.now + 1min, {"ada", "bob", "eve"});
  }

  // Everything but events, which may say that something was ignored.
  [[nodiscard]] std::string seen() const {
    std::string all;
    const auto job = [&](const Execution& row) {
      all += std::to_string(row.id) + ":" + std::string(name(row.status)) + "/" + std::string(name(row.job_state)) + "/" +
             row.job_id.value_or("-") + "/" + std::to_string(row.retry_count) + "/" + std::to_string(row.poll_count) + "/" +
             std::to_string(row.delivery_count) + "/" + row.error_message.value_or("") + "/" +
             (row.timer_due ? to_iso(*row.timer_due) : "-") + " ";
    };
    for (const auto& [id, row] : machine.rows.steps) job(row);
    for (const auto& [id, row] : machine.rows.inits) job(row);
    for (const auto& [id, row] : machine.rows.cleanups) job(row);
    for (const auto& [id, row] : machine.rows.members) all += std::string(name(row.status)) + " ";
    for (const auto& [id, row] : machine.rows.phases) all += std::string(name(row.status)) + std::string(name(row.walk)) + " ";
    return all + std::string(name(machine.rows.batches.at(batch).status));
  }

  void one_act() {
    const auto kind = *rc::gen::inRange(0, 15);
    const auto waiting = machine.queued();
    const auto held = leased();
    if (kind <= 2 && !waiting.empty()) {
      (void)machine.take(*rc::gen::elementOf(waiting));
    } else if (kind <= 6 && !held.empty()) {
      const Ref ref = *rc::gen::elementOf(held);
      JobReport said{.job_id = machine.row(ref).job_id.value_or(""), .success = *rc::gen::inRange(0, 4) > 0};
      if (said.success) said.result = Json{*rc::gen::element<std::string>("{}", R"({"complete":false})", R"({"complete":true})")};
      twice([&] { (void)machine.tell(said); });
    } else if (kind == 7) {
      const auto ids = members();
      const std::int64_t id = *rc::gen::elementOf(ids);
      twice([&] { tell(MemberRemoved{id}); });
    } else if (kind == 8) {
      const auto ids = phases();
      const std::int64_t id = *rc::gen::elementOf(ids);
      twice([&] { tell(PhaseDue{id, {}}), machine.settle(); });
    } else if (kind == 9) {
      join();
    } else if (kind == 10) {
      twice([&] { (void)machine.decide([&](Context c) { return pause(batch, "ada", "", c); }); });
    } else if (kind == 11) {
      twice([&] { resume_batch(); });
    } else if (kind == 12) {
      retry_failed();
    } else if (kind == 13 && *rc::gen::inRange(0, 8) == 0) {
      twice([&] { (void)machine.decide([&](Context c) { return cancel(batch, "ada", "", c); }), machine.settle(); });
    } else {
      machine.wait(std::chrono::seconds{*rc::gen::inRange(1, 600)});
    }
    machine.settle();
  }

  void resume_batch() {
    (void)machine.decide([&](Context c) { return resume(batch, "ada", "", c); });
    machine.settle();
  }

  void tell(decltype(SchedulerMessage::what) what) {
    machine.decide([&](Context c) { return handle({"waves", 1, batch, what}, c); });
  }

  void check_counts() const {
    std::map<store::memory::CountKey, std::int64_t> expected;
    const auto add = [&](std::int64_t phase, std::string_view lane, std::int32_t index, std::string_view status) {
      ++expected[{batch, phase, std::string(lane), index, std::string(status)}];
    };
    const auto add_job = [&](const Execution& row, std::int64_t phase, std::string_view lane, std::int32_t index) {
      add(phase, lane, index, name(row.status));
      if (is_skipped(row)) add(phase, "skipped", index, lane);
    };
    for (const auto& [id, row] : machine.rows.members) add(0, "member", 0, name(row.status));
    for (const auto& [id, row] : machine.rows.inits) add_job(row, 0, "init", 0);
    for (const auto& [id, row] : machine.rows.steps) {
      add_job(row, row.phase_execution_id, row.is_catch_up ? "catch_up" : "step", row.step_index);
      if (row.is_catch_up) add_job(row, 0, "catch_up", 0);
    }
    for (const auto& [id, row] : machine.rows.cleanups) {
      add_job(row, 0, name(row.kind), 0);
      if (row.phase_execution_id) add_job(row, *row.phase_execution_id, name(row.kind), 0);
    }
    std::map<store::memory::CountKey, std::int64_t> counted;
    for (const auto& [key, count] : machine.rows.counts)
      if (count.n != 0) counted[key] = count.n;
    RC_ASSERT(counted == expected);
  }

  // What has ended, with what became of it, since somebody last retried something.
  void check_ends() {
    const auto check = [&](char table, std::int64_t id, std::string_view status, bool over, bool may_change) {
      const auto before = ended_.find({table, id});
      if (before != ended_.end() && !may_change) RC_ASSERT(before->second == status);
      if (before != ended_.end()) RC_ASSERT(over);
      if (over) ended_[{table, id}] = std::string(status);
    };
    const auto rolls_back = [](StepStatus status) { return status == StepStatus::rolled_back; };
    for (const auto& [id, row] : machine.rows.steps) check('s', id, name(row.status), is_terminal(row.status), rolls_back(row.status));
    for (const auto& [id, row] : machine.rows.inits) check('i', id, name(row.status), is_terminal(row.status), rolls_back(row.status));
    for (const auto& [id, row] : machine.rows.cleanups) check('c', id, name(row.status), is_terminal(row.status), false);
    // Who was late may come through a phase that had failed.
    for (const auto& [id, row] : machine.rows.phases)
      check('p', id, name(row.status), is_terminal(row.status), row.status == PhaseStatus::completed);
    check('b', batch, name(machine.rows.batches.at(batch).status), is_terminal(machine.rows.batches.at(batch).status), false);
    std::map<std::string, int> told;
    for (const auto& [key, event] : machine.rows.events)
      if (event.event_type.starts_with("batch_completed") || event.event_type.starts_with("batch_failed") ||
          event.event_type == "phase_completed" || event.event_type == "phase_failed")
        ++told[event.message];
    for (const auto& [message, n] : told) RC_ASSERT(n <= 1 + retries_);
  }

  MachineOnRows machine;
  std::int64_t batch = 0;

 private:
  template <class Act>
  void twice(Act&& act) {
    act();
    const std::string after = seen();
    act();
    RC_ASSERT(seen() == after);
  }
  // A scheduler of another program adds the row, and says so twice.
  void join() {
    const DataRow row{"late-" + std::to_string(machine.rows.members.size()), std::nullopt, Json{"{}"}};
    const auto ids = machine.decide([&](Context c) { return add_members(batch, {row}, c).member_ids; });
    for (const std::int64_t id : ids) twice([&] { tell(MemberAdded{id}), machine.settle(); });
  }
  // What has ended goes on, and ends once more.
  void retry_failed() {
    (void)machine.decide([&](Context c) { return retry_members(batch, {}, {}, "ada", c).member_ids; });
    machine.settle();
    ended_.clear();
    ++retries_;
  }
  [[nodiscard]] std::vector<Ref> leased() const {
    std::vector<Ref> found;
    const auto add = [&](const auto& table, RowType type) {
      for (const auto& [id, row] : table)
        if (row.job_state == JobState::leased) found.push_back({type, id});
    };
    add(machine.rows.steps, RowType::step), add(machine.rows.inits, RowType::init), add(machine.rows.cleanups, RowType::cleanup);
    return found;
  }
  [[nodiscard]] std::vector<std::int64_t> members() const {
    std::vector<std::int64_t> ids;
    for (const auto& [id, row] : machine.rows.members) ids.push_back(id);
    return ids;
  }
  [[nodiscard]] std::vector<std::int64_t> phases() const {
    std::vector<std::int64_t> ids;
    for (const auto& [id, row] : machine.rows.phases) ids.push_back(id);
    return ids;
  }

  std::map<std::pair<char, std::int64_t>, std::string> ended_;
  int retries_ = 0;
};

RC_GTEST_PROP(RunbookLaws, hold_after_every_act, (bool lockstep)) {
  MachineWorld world(lockstep);
  const int acts = *rc::gen::inRange(5, 80);
  for (int i = 0; i < acts; ++i) {
    world.one_act();
    world.check_counts();
    world.check_ends();
  }
}

RC_GTEST_PROP(RunbookLaws, every_batch_comes_to_its_end, (bool lockstep)) {
  MachineWorld world(lockstep);
  const int acts = *rc::gen::inRange(0, 60);
  for (int i = 0; i < acts; ++i) world.one_act();
  world.resume_batch();
  for (int i = 0; i < 20; ++i) {
    world.machine.work();
    world.machine.wait(30min);
  }
  RC_ASSERT(is_terminal(world.machine.rows.batches.at(world.batch).status));
  RC_ASSERT(world.machine.queued().empty());
  world.check_counts();
}

}  // namespace
}  // namespace baton::runbook
