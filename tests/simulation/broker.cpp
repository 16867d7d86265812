#include "tests/simulation/broker.hpp"

#include "tests/simulation/workload.hpp"

namespace baton::simulation {

using namespace std::chrono_literals;
using workflow::Tenant;

namespace {

const Tenant published_for{"default"};

}  // namespace

// ---- the broker

void Broker::publish(const Handout& task, OnOutcome on_outcome, std::function<void()> on_lost) {
  Random& random = world_.random_;
  World::expect(task.lease.empty(), "what is published carries no lease", task.task_id);
  const auto name = workflow::parse_task_id(task.task_id);
  World::expect(name && world_.database_.jobs.contains({std::string(name->job_id)}), "what is published was committed", task.task_id);
  const Duration way{random.between(0, 300)};
  const auto what = world_.calm_ ? 50 : random.below(100);
  if (what < 6) return world_.at(way, [on_outcome] { on_outcome(Outcome::released); });
  if (what < 12) return world_.at(way, [on_outcome] { on_outcome(Outcome::rejected); });
  if (what < 18) return world_.at(way + Duration{random.between(0, 9'000)}, on_lost);  // before it was there
  // It has it. A copy that it knows already is confirmed as well.
  const bool is_new = known_.insert(task.task_id).second;
  if (is_new || !detects_duplicates_) deliver(task);
  if (what < 24) return world_.at(way + Duration{random.between(0, 9'000)}, on_lost);  // the confirmation is on its way
  const Duration slowly{what < 34 ? random.between(0, 30'000) : 0};
  world_.at(way + slowly, [on_outcome] { on_outcome(Outcome::accepted); });
}

void Broker::deliver(const Handout& task) {
  Random& random = world_.random_;
  const int copies = !world_.calm_ && random.chance(0.2) ? 2 : 1;
  for (int i = 0; i < copies; ++i)
    world_.at(Duration{random.between(0, random.chance(0.2) ? 40'000 : 2'000)}, [this, task] { work_on(task); });
}

void Broker::work_on(const Handout& task) {
  Random& random = world_.random_;
  if (!world_.calm_ && random.chance(0.1)) return deliver(task);  // the worker died with it: another gets it
  ReportResult result{.tenant = published_for,
                      .task_id = task.task_id,
                      .job_id = task.job_id,
                      .node_id = task.node_id,
                      .completed = task.handler != "poison" && (task.handler != "flaky" || random.chance(0.6)),
                      .worker = "behind the broker"};
  if (result.completed)
    result.output = Json{"{\"attempt\":" + std::to_string(task.retry_count) + ",\"by\":" + std::to_string(random.below(1'000)) + "}"};
  else
    result.error = "bad luck";
  world_.at(Duration{random.between(0, 3'000)}, [this, result] { report(result); });
  if (!world_.calm_ && random.chance(0.2)) world_.at(Duration{random.between(0, 60'000)}, [this, result] { report(result); });
}

// Within the server: what it had no time for, or was not alive for, is delivered again.
void Broker::report(const ReportResult& result) {
  auto is_settled = std::make_shared<bool>(false);
  world_.tell_engine(result, [is_settled](const Reply& reply) {
    const auto* refused = std::get_if<Refused>(&reply);
    const bool may_pass = refused && (refused->refusal == Refusal::store_unavailable || refused->refusal == Refusal::store_full);
    *is_settled = !may_pass;
  });
  world_.at(Duration{world_.random_.between(1'000, 10'000)}, [this, result, is_settled] {
    if (!*is_settled) report(result);
  });
}

// ---- the publisher

void Publisher::engine_started() { poll(); }

void Publisher::engine_died() {
  ++life_;
  ++connection_;
  unconfirmed_.clear();
  renewing_ = false;
}

void Publisher::if_alive(Duration delay, std::function<void()> act) {
  world_.at(delay, [this, life = life_, act = std::move(act)] {
    if (life == life_) act();
  });
}

void Publisher::poll() {
  Poll command{.tenant = published_for,
               .queue = queue_,
               .worker = "bus:elsewhere",
               .max = static_cast<std::uint32_t>(world_.random_.between(1, 4)),
               .heartbeats = true,
               .lease_time = lease_time_,
               .wait_until = world_.clock_.now() + world_.poll_patience()};
  world_.tell_engine(command, [this, life = life_](const Reply& reply) {
    if (life != life_) return;
    if (const auto* given = std::get_if<PollReply>(&reply))
      for (const Handout& task : given->jobs) publish(task);
    if_alive(Duration{world_.random_.between(0, 2'000)}, [this] { poll(); });
  });
}

void Publisher::publish(const Handout& task) {
  const TaskLease lease{task.task_id, task.lease};
  if (task.runbook || task.message) return give_back({lease});
  if (!world_.calm_ && world_.random_.chance(0.03)) return settle(lease, SettleTask::How::give_up);  // it is too large for the broker
  unconfirmed_.insert_or_assign(task.task_id, lease);
  Handout published = task;
  published.lease.clear();
  const auto is_mine = [this, life = life_, connection = connection_] { return life == life_ && connection == connection_; };
  broker_.publish(
      published,
      [=, this](Broker::Outcome outcome) {
        if (is_mine() && unconfirmed_.erase(lease.task_id) > 0) conclude(lease, outcome);
      },
      [=, this] {
        if (is_mine()) lose_connection();
      });
  if (!renewing_) renew();
}

void Publisher::conclude(const TaskLease& task, Broker::Outcome outcome) {
  using Outcome = Broker::Outcome;
  if (outcome == Outcome::released) return give_back({task});
  settle(task, outcome == Outcome::accepted ? SettleTask::How::keep : SettleTask::How::abandon);
}

// Whether the broker has these is not known. Mostly that is noticed.
void Publisher::lose_connection() {
  ++connection_;
  std::vector<TaskLease> tasks;
  for (auto& [id, task] : std::exchange(unconfirmed_, {})) tasks.push_back(std::move(task));
  if (world_.random_.chance(0.8)) give_back(std::move(tasks));
}

void Publisher::renew() {
  renewing_ = !unconfirmed_.empty();
  if (!renewing_) return;
  Heartbeat command{.tenant = std::nullopt, .worker = "bus:elsewhere", .tasks = {}, .lease_time = lease_time_};
  for (const auto& [id, task] : unconfirmed_) command.tasks.push_back(task);
  world_.tell_engine(command, [](const Reply&) {});
  if_alive(lease_time_ / 3, [this] { renew(); });
}

// Said until the engine has had the time for it.
void Publisher::settle(const TaskLease& task, SettleTask::How how) {
  world_.tell_engine(SettleTask{std::nullopt, task.task_id, task.lease, how, "the broker said so"}, [=, this, life = life_](const Reply& reply) {
    const auto* refused = std::get_if<Refused>(&reply);
    const bool may_pass = refused && (refused->refusal == Refusal::store_unavailable || refused->refusal == Refusal::store_full);
    if (may_pass && life == life_) if_alive(1s, [=, this] { settle(task, how); });
  });
}

void Publisher::give_back(std::vector<TaskLease> tasks) {
  if (tasks.empty()) return;
  for (const TaskLease& task : tasks)
    for (const auto& load : world_.loads_) load->given_back(task);
  world_.tell_engine(ReturnTasks{std::move(tasks), "the broker did not confirm the message"}, [](const Reply&) {});
}

}  // namespace baton::simulation
