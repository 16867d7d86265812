// The workflows of a simulated world: clients that submit, repeat and cancel; workers that work, stall, die and
// come back from the dead; and what is promised about jobs (invariants.cpp). Two tenants have the same workflows,
// queues and keys, and each has somebody who commands the jobs of the other (tenants.cpp).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/workload.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

class WorkflowLoad final : public Workload {
 public:
  explicit WorkflowLoad(World& world);
  ~WorkflowLoad() override;

  [[nodiscard]] Duration storm_lasts() const override { return std::chrono::minutes{4}; }
  [[nodiscard]] Duration calm_lasts() const override { return std::chrono::hours{12}; }
  void start() override;
  void engine_started() override;
  void engine_died() override;
  void tidy_up() override;
  [[nodiscard]] bool at_rest() const override;
  void answered(const Command& command, const Reply& reply) override;
  void given_back(const TaskLease& task) override { lease_promised_.erase({task.task_id, task.lease}); }
  void committed(const WriteSet& writes) override;
  void check_touched() override;
  void check_all() override;

 private:
  void publish();
  void on_changed(const ChangeJob& change, const workflow::JobId& job_id) const;
  void on_handed_out(const Handout& task, const Poll& poll);
  void on_settled(const SettleTask& command);
  void check_refused_result(const ReportResult& command, const Refused& reply) const;
  void check_returned(const ReturnTasks& command) const;
  [[nodiscard]] const workflow::Job* named_by(const Command& command) const;
  [[nodiscard]] const workflow::Job* foreign_to(const Command& command) const;
  void check_refused(const Command& command, const Reply& reply);
  void check_tenants(const WriteSet& writes) const;
  [[nodiscard]] const workflow::NodeState& stored_node(const workflow::JobId& job_id,
                                                       const std::string& node_id) const;
  void check_job(const workflow::Job& job);
  void check_nodes(const workflow::Job& job, const workflow::Definition& definition);
  void check_node(const workflow::Definition& definition, workflow::NodeIndex index,
                  const workflow::NodeState& node);
  void check_timers(const workflow::Job& job, const workflow::Node& def, const workflow::NodeState& node,
                    const workflow::NodeState* parent) const;
  void check_task(const workflow::NodeState& node) const;
  void check_fan_out(const workflow::Job& job, const workflow::Node& def,
                     const workflow::NodeState& node) const;
  void check_fan_in(const workflow::Definition& definition, const workflow::Node& def,
                    const workflow::NodeState& node) const;
  void check_events(const workflow::Job& job, const workflow::Definition& definition);
  void check_final(const workflow::Job& job);
  void check_settled(const WriteSet& writes);
  static void expect(bool truth, const std::string& what, const std::string& about);

  World& world_;
  Random& random_;
  const bool& calm_;
  const store::MemoryDatabase& database_;

  std::map<std::string, std::shared_ptr<const workflow::Definition>> definitions_;
  std::vector<std::unique_ptr<class Client>> clients_;
  std::vector<std::unique_ptr<class Worker>> workers_;
  std::vector<std::unique_ptr<class Intruder>> intruders_;
  std::unique_ptr<class Broker> broker_;
  std::unique_ptr<class Publisher> publisher_;  // none: all workers ask for their tasks
  std::set<workflow::JobId> touched_;  // by the commits since the last look
  std::set<workflow::JobId> completed_;
  std::set<NodeKey> settled_;  // nothing comes of them any more

  std::set<std::pair<std::string, std::string>> handed_out_;            // (task, lease): each at most once
  struct Promise {
    Time until{};
    Duration set_back{};  // the clock, until then
  };
  std::map<std::pair<std::string, std::string>, Promise> lease_promised_;  // by task id and lease
  std::map<std::string, int> accepted_;                                 // results, by task id
  // by tenant and idempotency key, as acknowledged
  std::map<std::pair<workflow::Tenant, std::string>, std::string> job_of_key_;
  std::map<workflow::JobId, int> retried_;                              // how often, by its timeline
  std::map<std::pair<workflow::JobId, int>, std::string>
      final_;  // terminal jobs, as first seen since the last retry
};

}  // namespace baton::simulation
