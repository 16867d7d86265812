// What is promised about tenants: nobody sees, takes or changes what is another's.
#include "tests/simulation/actors.hpp"
#include "tests/simulation/workflow_load.hpp"

namespace baton::simulation {

using namespace workflow;

namespace {

// None: somebody who may act for all tenants, or who is not asked for one.
std::optional<Tenant> tenant_of(const Command& command) {
  return std::visit(
      [](const auto& c) -> std::optional<Tenant> {
        if constexpr (requires { c.tenant; }) return c.tenant;
        return std::nullopt;
      },
      command);
}

// The task that a command names; of a heartbeat the first.
std::string task_named_by(const Command& command) {
  return std::visit(
      [](const auto& c) -> std::string {
        if constexpr (requires { c.tenant, c.task_id; }) return c.task_id;
        if constexpr (requires { c.tenant, c.tasks; }) return c.tasks.empty() ? "" : c.tasks.front().task_id;
        return "";
      },
      command);
}

// A submit names the job that it makes.
JobId job_named_by(const Command& command) {
  return std::visit(overloaded{
                        [](const AwaitJob& c) { return c.job_id; },
                        [](const ChangeJob& c) { return c.job_id; },
                        [](const DecideApproval& c) { return c.job_id; },
                        [](const ExplainJob& c) { return c.job_id; },
                        [](const auto&) { return JobId{}; },
                    },
                    command);
}

bool is_marked(const std::optional<std::string>& text) { return text && text->contains(Intruder::mark); }
bool is_marked(const OptionalJson& json) { return json && json->text.contains(Intruder::mark); }

}  // namespace

const Job* WorkflowLoad::named_by(const Command& command) const {
  const std::string task = task_named_by(command);
  const auto name = parse_task_id(task);
  return database_.jobs.get(name ? JobId{std::string(name->job_id)} : job_named_by(command));
}

// The job of another tenant that a command is about, if it is about one.
const Job* WorkflowLoad::foreign_to(const Command& command) const {
  const auto tenant = tenant_of(command);
  const Job* job = tenant ? named_by(command) : nullptr;
  return job && job->tenant != *tenant ? job : nullptr;
}

// Whoever commands another tenant's job hears what it would hear of one that is not there.
void WorkflowLoad::check_refused(const Command& command, const Reply& reply) {
  const std::string task = task_named_by(command);
  const std::string about = task.empty() ? job_named_by(command).value : task;
  if (const auto* beat = std::get_if<HeartbeatReply>(&reply))
    return expect(beat->cancelled.size() == std::get<Heartbeat>(command).tasks.size(),
                  "no lease is renewed for another tenant", about);
  const auto* refused = std::get_if<Refused>(&reply);
  expect(refused, "a command about another tenant's job is refused", about);
  if (refused->refusal == Refusal::store_unavailable || refused->refusal == Refusal::store_full) return;
  const Refusal refusal = task.empty() ? Refusal::job_not_found : Refusal::task_not_found;
  const std::string message = "there is no " + std::string(task.empty() ? "job" : "task") + " '" + about + "'";
  expect(refused->refusal == refusal && refused->message == message,
         "another tenant's job is as one that is not there", about + ": " + refused->message);
}

// What a commit has changed is of one tenant through and through, and nothing of it is what an intruder said.
void WorkflowLoad::check_tenants(const WriteSet& writes) const {
  const auto no_intruder = [](bool marked, const JobId& job_id) {
    expect(!marked, "a command about another tenant's job changes nothing", job_id.value);
  };
  for (const auto* nodes : {&writes.nodes_new, &writes.nodes_changed})
    for (const NodeState& node : *nodes) {
      const Tenant& owner = database_.jobs.at(node.job_id).tenant;
      const bool serves_all = node.queue && *node.queue == builtin_queue;
      expect(serves_all ? node.tenant.empty() : node.tenant == owner, "a task waits in a queue of its job's tenant",
             node.node_id + " " + node.job_id.value);
      no_intruder(is_marked(node.worker_id) || is_marked(node.progress) || is_marked(node.checkpoint) ||
                      is_marked(node.output),
                  node.job_id);
    }
  for (const Event& event : writes.events_new) {
    expect(event.tenant == database_.jobs.at(event.job_id).tenant, "an event is of its job's tenant",
           event.job_id.value);
    no_intruder(is_marked(event.event_data), event.job_id);
  }
  for (const Job& job : writes.jobs_changed) no_intruder(is_marked(job.paused_by), job.job_id);
  for (const TaskResult& result : writes.task_results_new) no_intruder(is_marked(result.worker_id), result.job_id);
  for (const LogLine& line : writes.logs_new) no_intruder(is_marked(std::optional(line.text)), line.job_id);
}

}  // namespace baton::simulation
