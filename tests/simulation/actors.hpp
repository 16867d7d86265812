// The engine's neighbours: clients that submit, repeat and cancel; workers that work, stall, die and come
// back from the dead; intruders that command what is another tenant's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/simulation/world.hpp"

namespace baton::simulation {

// Submits a few jobs one after another. With a key it repeats a submit until it is answered; without one it
// never does. Its keys are made from its number, so that two tenants use the same ones.
class Client {
 public:
  Client(World& world, workflow::Tenant tenant, int number, int jobs)
      : world_(world), tenant_(std::move(tenant)), number_(number), jobs_(jobs) {}
  void start();

 private:
  void next_job();
  void submit(const std::string& key, const std::string& workflow_id, const Json& input);
  void meddle(const workflow::JobId& job_id);

  World& world_;
  const workflow::Tenant tenant_;
  const int number_;
  const int jobs_;
  int submitted_ = 0;
  std::map<std::string, bool> answered_;
};

// Polls one queue for ever. What it does with a task depends on the handler and on chance.
class Worker {
 public:
  // Without a tenant it is the built-in worker, which serves all.
  Worker(World& world, std::optional<workflow::Tenant> tenant, int number, std::string queue, bool modern)
      : world_(world),
        tenant_(std::move(tenant)),
        name_("worker-" + std::to_string(number)),
        queue_(std::move(queue)),
        modern_(modern) {}
  void start() { poll(); }
  // The built-in worker lives in the engine's process.
  void engine_died() {
    if (!tenant_) die();
  }

 private:
  void poll();
  void on_tasks(const PollReply& reply);
  void work_on(const Handout& task);
  void note(const Handout& task);
  [[nodiscard]] bool settle(const Handout& task);
  void beat();
  void report(const Handout& task, const ReportResult& result);
  void die();

  World& world_;
  const std::optional<workflow::Tenant> tenant_;
  const std::string name_;
  const std::string queue_;
  const bool modern_;  // heartbeats and echoes leases; otherwise it knows only the plain result body
  std::uint64_t life_ = 0;
  std::uint64_t polls_ = 0;
  std::map<std::string, std::string> running_;  // task id → lease
  bool beating_ = false;
};

// Has got hold of ids, and of leases, of another tenant's jobs, and commands them a few times. Whatever it says has its
// mark in it, so that what it would change is found wherever it is stored.
class Intruder {
 public:
  static constexpr std::string_view mark = "intruder";
  Intruder(World& world, workflow::Tenant tenant, int attempts)
      : world_(world), tenant_(std::move(tenant)), attempts_(attempts) {}
  void start();

 private:
  void attempt();
  [[nodiscard]] const workflow::Job* any_job() const;
  [[nodiscard]] const workflow::NodeState* any_task(const workflow::JobId& job_id) const;
  [[nodiscard]] Command about(const workflow::Job& job) const;
  [[nodiscard]] Command about(const workflow::NodeState& task) const;
  [[nodiscard]] Command note(const workflow::NodeState& task) const;

  World& world_;
  const workflow::Tenant tenant_;
  int attempts_;
};

}  // namespace baton::simulation
