// What must be true of the durable state after every commit, and of every answer at the moment it leaves.
#include <algorithm>

#include "tests/simulation/world.hpp"

namespace baton::simulation {

using namespace workflow;

void World::expect(bool truth, const std::string& what, const std::string& about) const {
  if (!truth) throw Violation{what + (about.empty() ? "" : " (" + about + ")")};
}

// Whatever is answered is durable already.
void World::on_deliver(const Reply& reply, const std::optional<Command>& command) {
  if (const auto* job = std::get_if<JobReply>(&reply)) {
    expect(database_.jobs.contains(job->job.job_id), "an acknowledged job is stored", job->job.job_id.value);
    const auto* submit = std::get_if<SubmitJob>(&*command);
    if (submit && submit->idempotency_key) {
      const auto [it, first] = job_of_key_.try_emplace(*submit->idempotency_key, job->job.job_id.value);
      expect(it->second == job->job.job_id.value, "one key makes one job", *submit->idempotency_key);
    }
    if (std::holds_alternative<CancelJob>(*command))
      expect(database_.jobs.at(job->job.job_id).status == JobStatus::cancelled,
             "an acknowledged cancel is stored", job->job.job_id.value);
  } else if (const auto* result = std::get_if<ResultReply>(&reply)) {
    const auto& id = std::get<ReportResult>(*command).task_id;
    expect(database_.task_results.contains(id), "an acknowledged result is stored", id);
    if (!result->duplicate) expect(++accepted_[id] == 1, "an attempt has one accepted result", id);
  } else if (const auto* poll = std::get_if<PollReply>(&reply)) {
    for (const Handout& task : poll->jobs) {
      expect(handed_out_.emplace(task.task_id, task.lease).second, "a lease is given once",
             task.task_id + " " + task.lease);
      const NodeState& node = database_.nodes.at({task.job_id, task.node_id});
      expect(node.delivery_count >= task.delivery_count || node.retry_count > task.retry_count,
             "a delivery is counted before it leaves", task.task_id);
      lease_promised_[{task.task_id, task.lease}] = task.lease_until;
    }
  } else if (const auto* beat = std::get_if<HeartbeatReply>(&reply)) {
    for (const TaskLease& task : std::get<Heartbeat>(*command).tasks) {
      if (std::ranges::find(beat->cancelled, task.task_id) != beat->cancelled.end()) continue;
      const auto name = parse_task_id(task.task_id);
      const NodeState& node = database_.nodes.at({name->job_id, name->node_id});
      if (node.lease_until && lease_token(node) == task.lease)
        lease_promised_[{task.task_id, task.lease}] = *node.lease_until;
    }
  }
}

void World::check_touched() {
  const auto touched = std::exchange(touched_, {});
  for (const JobId& id : touched)
    if (const auto it = database_.jobs.find(id); it != database_.jobs.end()) check_job(it->second);
}

void World::check_job(const Job& job) {
  const Definition& definition = *definitions_.at(job.workflow_id);
  check_nodes(job, definition);
  check_events(job);
  if (is_terminal(job.status)) check_final(job);
}

void World::check_nodes(const Job& job, const Definition& definition) {
  int active = 0, failed = 0, ends = 0;
  for (NodeIndex i = 0; i < definition.nodes.size(); ++i) {
    const auto it = database_.nodes.find({job.job_id, definition.nodes[i].id});
    expect(it != database_.nodes.end(), "a job has all its nodes", job.job_id.value);
    const NodeState& node = it->second;
    active += node.status == NodeStatus::ready || node.status == NodeStatus::dispatched ||
              node.status == NodeStatus::running;
    failed += node.status == NodeStatus::failed;
    ends += definition.nodes[i].type == NodeType::end && node.status == NodeStatus::completed;
    check_node(definition, i, node);
    if (is_terminal(job.status))
      expect(is_terminal(node.status), "an ended job has only ended nodes", node.node_id);
  }
  expect(job.nodes_active == active, "nodes_active equals its recount",
         job.workflow_id + " " + job.job_id.value);
  expect(job.nodes_failed == failed, "nodes_failed equals its recount", job.job_id.value);
  if (job.status == JobStatus::completed)
    expect(ends > 0 && failed == 0, "a completed job has completed an END", job.job_id.value);
  if (job.status == JobStatus::failed) expect(failed > 0, "a failed job has a failed node", job.job_id.value);
  expect(active > 0 || is_terminal(job.status), "a job with nothing active has ended", job.job_id.value);
}

void World::check_node(const Definition& definition, NodeIndex index, const NodeState& node) {
  const std::string about = definition.workflow_id + "/" + node.node_id + " " + node.job_id.value;
  // Edges: what has begun was allowed to begin, what waits has something to wait for.
  int fired = 0;
  for (NodeIndex i = 0; i < definition.nodes.size(); ++i)
    if (std::ranges::find(definition.nodes[i].next, index) != definition.nodes[i].next.end())
      fired += database_.nodes.at({node.job_id, definition.nodes[i].id}).status == NodeStatus::completed;
  const Node& def = definition.nodes[index];
  const bool met = def.join == Join::any_of ? fired > 0 || def.dependencies == 0 : fired == def.dependencies;
  const bool begun = node.status != NodeStatus::pending && node.status != NodeStatus::cancelled;
  expect(!begun || met, "a node begins after what it depends on", about);
  const auto& job = database_.jobs.at(node.job_id);
  if (node.status == NodeStatus::pending && job.nodes_failed == 0) {
    expect(!met, "a node whose dependencies are met does not wait", about);
    expect(node.waiting_for == def.dependencies - fired, "waiting_for equals its recount", about);
  }
  // Leases and timers.
  const bool timer_stored =
      node.timer_due && database_.timers.contains({*node.timer_due, node.job_id, node.node_id});
  expect(!node.timer_due || timer_stored, "a node's timer is stored", about);
  if (node.status == NodeStatus::running) {
    expect(node.lease_until && node.timer_due && *node.timer_due <= *node.lease_until,
           "a running node has a lease and a timer", about);
  } else if (node.status == NodeStatus::ready) {
    expect(node.timer_due.has_value(), "a node that waits for its retry has a timer", about);
  } else {
    expect(!node.timer_due && !node.lease_until, "a node that does not run has no timer", about);
  }
  // The word that counts is that of the last holder of the lease.
  if (node.status == NodeStatus::completed && def.type == NodeType::task) {
    const auto result = database_.task_results.find(*node.task_id);
    expect(result != database_.task_results.end() && result->second.output == node.output,
           "an output is that of the accepted result", about);
    expect(
        node.output->text.find("\"attempt\":" + std::to_string(node.retry_count) + ",") != std::string::npos,
        "the result is of the last attempt", about);
    if (result->second.lease)
      expect(*result->second.lease == lease_token(node), "the result is of the last lease", about);
  }
}

// The timeline, replayed, gives the rows.
void World::check_events(const Job& job) {
  struct Replayed {
    NodeStatus status = NodeStatus::pending;
    int attempt = 0, deliveries = 0, given_back = 0;
  };
  std::map<std::string, Replayed> nodes;
  int created = 0, started = 0, ended = 0;
  const auto first = database_.events.lower_bound({job.job_id, 0});
  for (auto it = first; it != database_.events.end() && it->first.first == job.job_id; ++it) {
    const Event& event = it->second;
    const std::string about =
        std::string(name(event.event_type)) + " " + event.node_id.value_or("") + " " + job.job_id.value;
    expect(ended == 0, "nothing happens to a job that has ended", about);
    expect(created == 1 || event.event_type == EventType::job_created, "a job begins by being created",
           about);
    Replayed* node = event.node_id ? &nodes[*event.node_id] : nullptr;
    const auto moves = [&](std::initializer_list<NodeStatus> from, NodeStatus to) {
      expect(std::ranges::find(from, node->status) != from.end(), "the timeline is legal",
             about + " from " + std::string(name(node->status)));
      node->status = to;
    };
    using enum NodeStatus;
    switch (event.event_type) {
      case EventType::job_created: ++created; break;
      case EventType::job_started: ++started; break;
      case EventType::job_completed:
      case EventType::job_failed:
      case EventType::job_cancelled: ++ended; break;
      case EventType::node_ready: moves({pending}, event.node_id == "end" ? completed : ready); break;
      case EventType::node_dispatched: moves({ready}, dispatched), node->deliveries = 0; break;
      case EventType::node_started:
        moves({dispatched}, running), node->deliveries += event.event_data.has_value();
        break;
      case EventType::node_completed: moves({running}, completed); break;
      case EventType::node_failed: moves({running, dispatched}, NodeStatus::failed); break;
      case EventType::node_retry: moves({running}, ready), ++node->attempt; break;
      case EventType::node_timeout: moves({running}, running); break;
      case EventType::node_cancelled: moves({pending, ready, dispatched, running}, cancelled); break;
      case EventType::node_lease_expired: {
        const bool back = event.event_data->text.contains("reason");
        node->given_back += back;
        const auto lease = std::to_string(node->attempt) + "." + std::to_string(node->deliveries);
        const auto promised =
            lease_promised_.find({task_id(job.job_id, *event.node_id, node->attempt), lease});
        if (promised != lease_promised_.end() && !back)
          expect(event.created_at >= promised->second, "a lease lasts as long as was promised", about);
        moves({running}, dispatched);
        break;
      }
    }
  }
  expect(created == 1 && started <= 1, "a job is created and started once", job.job_id.value);
  expect(ended == (is_terminal(job.status) ? 1 : 0), "a job's end is in its timeline once", job.job_id.value);
  for (const auto& [id, replayed] : nodes) {
    const NodeState& node = database_.nodes.at({job.job_id, id});
    expect(node.status == replayed.status, "the timeline gives the rows",
           id + " is " + std::string(name(node.status)) + " and not " + std::string(name(replayed.status)));
    // What was given back unrun does not make a task a poisonous one.
    expect(replayed.deliveries <= 10 + replayed.given_back, "a task is delivered ten times at most",
           id + " " + job.job_id.value);
    expect(node.retry_count == replayed.attempt, "retry_count equals its recount",
           id + " " + job.job_id.value);
    expect(node.delivery_count == replayed.deliveries || node.status == NodeStatus::ready,
           "delivery_count equals its recount", id + " " + job.job_id.value);
  }
}

void World::check_final(const Job& job) {
  const std::string now = std::string(name(job.status)) + to_iso(*job.completed_at) +
                          (job.result_data ? job.result_data->text : "");
  const auto [it, first] = final_.try_emplace(job.job_id, now);
  expect(first || it->second == now, "what has ended never changes", job.job_id.value);
}

void World::check_all() {
  for (const auto& [id, job] : database_.jobs) {
    check_job(job);
    expect(is_terminal(job.status), "every job comes to its end", job.workflow_id + " " + id.value);
  }
  for (const auto& [key, job_id] : job_of_key_)
    expect(database_.jobs.contains({job_id}), "an acknowledged job is never lost", key);
  // A key made one job, whether or not anybody heard of it.
  std::map<std::string, int> by_key;
  for (const auto& [id, row] : database_.idempotency_keys) ++by_key[row.idempotency_key];
  std::map<std::string, int> by_input;
  for (const auto& [id, job] : database_.jobs) ++by_input[job.input_data.text];
  for (const auto& [key, n] : by_key)
    expect(by_input["{\"who\":" + quoted(key) + "}"] == 1, "one key makes one job", key);
  for (const Timer& timer : database_.timers)
    expect(database_.nodes.at({timer.job_id, timer.node_id}).timer_due == timer.due, "no timer is left over",
           timer.node_id);
}

}  // namespace baton::simulation
