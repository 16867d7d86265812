// What must be true of the durable state after every commit, and of every answer at the moment it leaves.
#include <algorithm>

#include "store/tables.hpp"
#include "tests/simulation/workflow_load.hpp"

namespace baton::simulation {

using namespace workflow;

namespace {

// What a worker has in hand is its own until its time is over, which is no end of a lease.
constexpr Time kept_for_ever{Duration{253'402'300'799'000}};

bool is_open(NodeStatus status) {
  return status == NodeStatus::ready || status == NodeStatus::dispatched || status == NodeStatus::running;
}

struct Edges {
  int fired = 0, dead = 0, open = 0;
};

}  // namespace

void WorkflowLoad::expect(bool truth, const std::string& what, const std::string& about) {
  World::expect(truth, what, about);
}

const NodeState& WorkflowLoad::stored_node(const JobId& job_id, const std::string& node_id) const {
  if (const auto it = database_.nodes.find({job_id, no_item, node_id}); it != database_.nodes.end())
    return it->second;
  const auto name = parse_item_name(node_id);
  expect(name.has_value(), "a node is stored", node_id);
  const auto it = database_.nodes.find({job_id, name->item, node_id});
  expect(it != database_.nodes.end(), "a child is stored", node_id);
  return it->second;
}

// Whatever is answered is durable already.
void WorkflowLoad::answered(const Command& command, const Reply& reply) {
  if (foreign_to(command)) return check_refused(command, reply);
  if (const auto* job = std::get_if<JobReply>(&reply)) {
    expect(database_.jobs.contains(job->job.job_id), "an acknowledged job is stored", job->job.job_id.value);
    expect(!job->job.input_data.text.empty(), "an answer has the job's documents", job->job.job_id.value);
    expect(store::differing_columns(job->job, database_.jobs.at(job->job.job_id)) == 0,
           "an answer tells the job as it is stored", job->job.job_id.value);
    const auto* submit = std::get_if<SubmitJob>(&command);
    expect(!submit || submit->tenant == job->job.tenant, "a job is its submitter's", job->job.job_id.value);
    if (submit && submit->idempotency_key) {
      const auto [it, first] =
          job_of_key_.try_emplace({submit->tenant, *submit->idempotency_key}, job->job.job_id.value);
      expect(it->second == job->job.job_id.value, "one key makes one job", *submit->idempotency_key);
    }
    if (const auto* change = std::get_if<ChangeJob>(&command)) on_changed(*change, job->job.job_id);
  } else if (const auto* result = std::get_if<ResultReply>(&reply)) {
    const auto& id = std::get<ReportResult>(command).task_id;
    if (std::get<ReportResult>(command).correlated || runbook::parse_job_id(id)) return;
    expect(database_.task_results.contains(id), "an acknowledged result is stored", id);
    if (!result->duplicate) expect(++accepted_[id] == 1, "an attempt has one accepted result", id);
  } else if (const auto* poll = std::get_if<PollReply>(&reply)) {
    for (const Handout& task : poll->jobs)
      if (!task.runbook && !task.message) on_handed_out(task, std::get<Poll>(command));
  } else if (const auto* beat = std::get_if<HeartbeatReply>(&reply)) {
    for (const TaskLease& task : std::get<Heartbeat>(command).tasks) {
      if (std::ranges::find(beat->cancelled, task.task_id) != beat->cancelled.end()) continue;
      if (runbook::parse_job_id(task.task_id)) continue;
      const auto name = parse_task_id(task.task_id);
      const NodeState& node = stored_node({std::string(name->job_id)}, std::string(name->node_id));
      auto& promise = lease_promised_[{task.task_id, task.lease}];
      if (node.lease_until && lease_token(node) == task.lease && promise.until < kept_for_ever)
        promise = {*node.lease_until, world_.clock_.set_back};
    }
  } else if (std::holds_alternative<SettleReply>(reply)) {
    on_settled(std::get<SettleTask>(command));
  } else if (const auto* refused = std::get_if<Refused>(&reply)) {
    if (const auto* said = std::get_if<ReportResult>(&command)) check_refused_result(*said, *refused);
  } else if (std::holds_alternative<ReturnReply>(reply)) {
    check_returned(std::get<ReturnTasks>(command));
  } else if (std::holds_alternative<NoteReply>(reply)) {
    const auto& note = std::get<TaskNote>(command);
    const auto name = parse_task_id(note.task_id);
    if (std::holds_alternative<TaskCheckpoint>(note.note))
      expect(stored_node({std::string(name->job_id)}, std::string(name->node_id)).checkpoint.has_value(),
             "an acknowledged checkpoint is stored", note.task_id);
  }
}

void WorkflowLoad::on_settled(const SettleTask& settled) {
  if (runbook::parse_job_id(settled.task_id)) return;
  const auto name = parse_task_id(settled.task_id);
  const NodeState& node = stored_node({std::string(name->job_id)}, std::string(name->node_id));
  const bool runs = node.status == NodeStatus::running && node.task_id == settled.task_id;
  const bool is_its = runs && lease_token(node) == settled.lease;
  const bool keeps = settled.how == SettleTask::How::keep;
  // Of a child whose job or fan-out is over nothing is kept: the walk that cancels it is on its way.
  const std::string parent = std::string(name->node_id).substr(0, name->node_id.rfind('_'));
  const bool is_orphan = node.item_index != no_item && (is_terminal(database_.jobs.at({std::string(name->job_id)}).status) ||
                                                        is_terminal(stored_node({std::string(name->job_id)}, parent).status));
  if (is_its && keeps && !is_orphan) {
    lease_promised_[{settled.task_id, settled.lease}] = {kept_for_ever, world_.clock_.set_back};
    expect(node.lease_until && *node.lease_until >= *node.started_at + Duration{20'000}, "what is kept is kept until its own time is over",
           settled.task_id);
  }
  expect(!keeps || !runs || is_its, "nobody keeps what is another's by now", settled.task_id);
  expect(!is_its || keeps, "what a worker does not want is not its any more", settled.task_id);
}

// The id of a task names the attempt: whoever has no lease is believed as long as that one is waited for.
void WorkflowLoad::check_refused_result(const ReportResult& command, const Refused& reply) const {
  if (command.lease || command.correlated || runbook::parse_job_id(command.task_id) || reply.refusal != Refusal::stale_result) return;
  const auto name = parse_task_id(command.task_id);
  if (!name || !database_.jobs.contains({std::string(name->job_id)})) return;
  const Job& job = database_.jobs.at({std::string(name->job_id)});
  const NodeState& node = stored_node(job.job_id, std::string(name->node_id));
  const bool is_awaited = node.status == NodeStatus::running && node.task_id == command.task_id && node.item_index == no_item;
  expect(!is_awaited || is_terminal(job.status), "the first result of an attempt counts, with a lease or without", command.task_id);
}

void WorkflowLoad::check_returned(const ReturnTasks& command) const {
  for (const TaskLease& task : command.tasks) {
    if (runbook::parse_job_id(task.task_id) || message::parse_task_id(task.task_id)) continue;
    const auto name = parse_task_id(task.task_id);
    const NodeState& node = stored_node({std::string(name->job_id)}, std::string(name->node_id));
    const bool is_its = node.status == NodeStatus::running && node.task_id == task.task_id && lease_token(node) == task.lease;
    expect(!is_its, "what was given back is not its holder's any more", task.task_id);
  }
}

void WorkflowLoad::on_changed(const ChangeJob& change, const JobId& job_id) const {
  const Job& job = database_.jobs.at(job_id);
  if (change.what == ChangeJob::What::cancel)
    expect(job.status == JobStatus::cancelled, "an acknowledged cancel is stored", job_id.value);
}

void WorkflowLoad::on_handed_out(const Handout& task, const Poll& poll) {
  expect(handed_out_.emplace(task.task_id, task.lease).second, "a lease is given once",
         task.task_id + " " + task.lease);
  const NodeState& node = stored_node(task.job_id, task.node_id);
  expect(node.tenant == poll.tenant && (poll.tenant.empty() || poll.tenant == database_.jobs.at(task.job_id).tenant),
         "a worker is given tasks of its own tenant only", task.task_id);
  expect(node.delivery_count >= task.delivery_count || node.retry_count > task.retry_count,
         "a delivery is counted before it leaves", task.task_id);
  expect(!node.checkpoint || task.checkpoint, "the last checkpoint goes with the next delivery",
         task.task_id);
  lease_promised_[{task.task_id, task.lease}] = {task.lease_until, world_.clock_.set_back};
  for (const NodeState* waiting : database_.nodes.with<store::memory::NodesWaiting>(node.tenant, task.queue))
    expect(waiting->priority <= node.priority, "nothing waits that is more urgent than what is handed out",
           task.task_id);
}

void WorkflowLoad::check_touched() {
  const auto touched = std::exchange(touched_, {});
  for (const JobId& id : touched)
    if (const auto it = database_.jobs.find(id); it != database_.jobs.end()) check_job(it->second);
}

void WorkflowLoad::check_job(const Job& job) {
  const Definition& definition = *definitions_.at(job.workflow_id);
  check_nodes(job, definition);
  check_events(job, definition);
  if (is_terminal(job.status)) check_final(job);
}

void WorkflowLoad::check_nodes(const Job& job, const Definition& definition) {
  int active = 0, failed = 0, ends = 0;
  for (NodeIndex i = 0; i < definition.nodes.size(); ++i) {
    const auto it = database_.nodes.find({job.job_id, no_item, definition.nodes[i].id});
    expect(it != database_.nodes.end(), "a job has all its nodes", job.job_id.value);
    const NodeState& node = it->second;
    active += is_open(node.status);
    failed += node.status == NodeStatus::failed && definition.nodes[i].on_failure == Consequence::fail;
    ends += definition.nodes[i].type == NodeType::end && node.status == NodeStatus::completed;
    check_node(definition, i, node);
    if (definition.nodes[i].type == NodeType::fan_out) check_fan_out(job, definition.nodes[i], node);
    if (definition.nodes[i].type == NodeType::fan_in) check_fan_in(definition, definition.nodes[i], node);
    if (is_terminal(job.status))
      expect(is_terminal(node.status), "an ended job has only ended nodes", node.node_id);
  }
  const std::string about = job.workflow_id + " " + job.job_id.value;
  expect(job.nodes_active == active, "nodes_active equals its recount", about);
  expect(job.nodes_failed == failed, "nodes_failed equals its recount", about);
  if (job.status == JobStatus::completed)
    expect(ends > 0 && failed == 0, "a completed job has completed an END", about);
  if (job.status == JobStatus::failed) expect(failed > 0, "a failed job has a failed node", about);
  expect(active > 0 || is_terminal(job.status), "a job with nothing active has ended", about);
}

void WorkflowLoad::check_node(const Definition& definition, NodeIndex index, const NodeState& node) {
  const std::string about = definition.workflow_id + "/" + node.node_id + " " + node.job_id.value;
  const Node& def = definition.nodes[index];
  // Edges: what has begun was allowed to begin, what waits has something to wait for.
  Edges edges;
  for (const NodeIndex from : def.incoming) {
    const NodeState& before = database_.nodes.at({node.job_id, no_item, definition.nodes[from].id});
    const bool over =
        before.status == NodeStatus::completed ||
        (before.status == NodeStatus::failed && definition.nodes[from].on_failure == Consequence::go_on);
    bool taken = over;
    if (over && definition.nodes[from].type == NodeType::conditional && before.output) {
      const auto branch = std::ranges::find_if(definition.nodes[from].branches, [&](const Branch& b) {
        return before.output->text == "{\"branch\":" + quoted(b.name) + "}";
      });
      taken = std::ranges::find(branch->next, index) != branch->next.end();
    }
    ++(taken ? edges.fired : over || before.status == NodeStatus::skipped ? edges.dead : edges.open);
  }
  const bool start = def.incoming.empty();
  const bool met = start || (edges.fired > 0 && (def.join == Join::any_of || edges.open == 0));
  const bool begun = node.status != NodeStatus::pending && node.status != NodeStatus::cancelled &&
                     node.status != NodeStatus::skipped;
  expect(!begun || met, "a node begins after what it depends on", about);
  if (node.status == NodeStatus::skipped)
    expect(edges.fired == 0 && edges.open == 0, "only what no branch leads to is skipped", about);
  const auto& job = database_.jobs.at(node.job_id);
  if (node.status == NodeStatus::pending && job.nodes_failed == 0) {
    expect(!met && edges.open > 0, "a node whose dependencies are met does not wait", about);
    expect(node.waiting_for == edges.open, "waiting_for equals its recount", about);
  }
  check_timers(job, def, node, nullptr);
  if (def.type == NodeType::task) check_task(node);
}

// Every node that waits has something that will wake it.
void WorkflowLoad::check_timers(const Job& job, const Node& def, const NodeState& node,
                         const NodeState* parent) const {
  const std::string about = job.workflow_id + "/" + node.node_id + " " + job.job_id.value;
  const bool put_off = world_.faults_.refuses_rows && job.job_id.value.ends_with('7');  // see FaultyStore
  const auto is_later = [&](const Timer& timer) {
    return timer.subject == subject_of(node.job_id) && timer.what == node.node_id && timer.due > *node.timer_due;
  };
  expect(!node.timer_due ||
             database_.timers.contains({*node.timer_due, subject_of(node.job_id), node.node_id}) ||
             (put_off && std::ranges::any_of(database_.timers, is_later)),
         "a node's timer is stored", about);
  const bool task = parent || def.type == NodeType::task;
  if (is_terminal(node.status)) {
    expect(node.timer_due.has_value() == node.sweep_next.has_value(), "only a walk goes on after the end",
           about);
  } else if (node.status == NodeStatus::running && task) {
    expect(node.lease_until && node.timer_due && *node.timer_due <= *node.lease_until,
           "a running node has a lease and a timer", about);
  } else if (node.status == NodeStatus::running) {  // a fan_out
    expect(node.timer_due || job.paused_at || node.items_created > node.items_done,
           "a fan-out has something to wait for", about);
    expect(node.timer_due || job.paused_at || node.items_created == *node.items_total || def.parallel_max > 0,
           "a fan-out goes on", about);
  } else if (node.status == NodeStatus::ready) {
    const bool swept = parent && (parent->sweep_next || is_terminal(parent->status));
    const bool parks = task || def.type == NodeType::approval || def.type == NodeType::fan_out;
    expect(node.timer_due || (parks && (job.paused_at || swept)), "what is ready has a timer or is held back",
           about);
  } else if (node.status == NodeStatus::dispatched) {
    expect(node.timer_due.has_value() == (def.type == NodeType::approval && def.timeout.count() > 0),
           "what waits for a worker has no timer, an approval has", about);
  } else {
    expect(!node.timer_due && !node.lease_until, "a node that does not run has no timer", about);
  }
  if (node.error && node.error->starts_with("given up after") && node.status == NodeStatus::failed)
    expect(node.dead_at.has_value(), "a task given up is a dead letter", about);
}

// The word that counts is that of the last holder of the lease.
void WorkflowLoad::check_task(const NodeState& node) const {
  if (node.status != NodeStatus::completed) return;
  const std::string about = node.node_id + " " + node.job_id.value;
  const auto result = database_.task_results.find(*node.task_id);
  expect(result != database_.task_results.end() && result->second.output == node.output,
         "an output is that of the accepted result", about);
  expect(node.output->text.find("\"attempt\":" + std::to_string(node.retry_count) + ",") != std::string::npos,
         "the result is of the last attempt", about);
  if (result->second.lease)
    expect(*result->second.lease == lease_token(node), "the result is of the last lease", about);
}

void WorkflowLoad::check_fan_out(const Job& job, const Node& def, const NodeState& node) const {
  const std::string about = job.workflow_id + "/" + node.node_id + " " + job.job_id.value;
  int created = 0, done = 0, failed = 0, open = 0;
  for (auto it = database_.nodes.lower_bound({job.job_id, 0, ""});
       it != database_.nodes.end() && it->first.job_id == job.job_id; ++it) {
    const NodeState& child = it->second;
    if (child.node_id != item_name(def.id, child.item_index)) continue;
    ++created;
    done += child.status == NodeStatus::completed || child.status == NodeStatus::failed;
    failed += child.status == NodeStatus::failed;
    open += is_open(child.status);
    expect(child.item_index == created - 1, "children have no gaps", about);
    check_timers(job, def, child, &node);
    check_task(child);
  }
  expect(node.items_created == created, "items_created equals its recount", about);
  expect(node.items_done == done, "items_done equals its recount", about);
  expect(node.items_failed == failed, "items_failed equals its recount", about);
  expect(!node.items_total || created <= *node.items_total, "there are no more children than items", about);
  if (def.parallel_max > 0) expect(open <= def.parallel_max, "no more items run than allowed", about);
  if (node.status == NodeStatus::completed)
    expect(done == *node.items_total, "a fan-out completes after its items", about);
  if (is_terminal(node.status) && !node.sweep_next)
    expect(open == 0, "an ended fan-out has no open child", about);
}

void WorkflowLoad::check_fan_in(const Definition& definition, const Node& def, const NodeState& node) const {
  if (node.status != NodeStatus::completed || def.aggregation != Aggregation::collect) return;
  const Node& fan_out = definition.nodes[def.incoming.front()];
  const NodeState& parent = database_.nodes.at({node.job_id, no_item, fan_out.id});
  std::string results;
  for (std::int32_t item = 0; item < parent.items_created; ++item) {
    const NodeState& child = database_.nodes.at({node.job_id, item, item_name(fan_out.id, item)});
    results += (item > 0 ? "," : "") +
               (child.status == NodeStatus::completed ? child.output->text : std::string("null"));
  }
  expect(node.output->text.starts_with("{\"results\":[" + results + "],"),
         "a fan_in has every item's output in order", node.job_id.value);
}

namespace {

struct Replayed {
  NodeStatus status = NodeStatus::pending;
  int attempt = 0, deliveries = 0, given_back = 0;
  int dispatched_attempt = -1;
};

}  // namespace

// The timeline, replayed, gives the rows.
void WorkflowLoad::check_events(const Job& job, const Definition& definition) {
  std::map<std::string, Replayed> nodes;
  int created = 0, started = 0, retried = 0;
  bool ended = false, paused = false;
  const auto first = database_.events.lower_bound({job.job_id, 0});
  for (auto it = first; it != database_.events.end() && it->first.first == job.job_id; ++it) {
    const Event& event = it->second;
    const std::string about = job.workflow_id + " " + std::string(name(event.event_type)) + " " +
                              event.node_id.value_or("") + " " + job.job_id.value;
    const auto ref = event.node_id ? definition.locate(*event.node_id) : std::nullopt;
    const bool child = ref && ref->is_item();
    expect(!ended || event.event_type == EventType::job_retried ||
               (child && event.event_type == EventType::node_cancelled),
           "nothing happens to a job that has ended", about);
    expect(created == 1 || event.event_type == EventType::job_created, "a job begins by being created",
           about);
    Replayed* node = event.node_id ? &nodes[*event.node_id] : nullptr;
    const auto moves = [&](std::initializer_list<NodeStatus> from, NodeStatus to) {
      expect(std::ranges::find(from, node->status) != from.end(), "the timeline is legal",
             about + " from " + std::string(name(node->status)));
      node->status = to;
    };
    using enum NodeStatus;
    const NodeType type = ref ? definition.nodes[ref->node].type : NodeType::task;
    switch (event.event_type) {
      case EventType::job_created: ++created; break;
      case EventType::job_started: ++started; break;
      case EventType::job_completed:
      case EventType::job_failed:
      case EventType::job_cancelled: ended = true; break;
      case EventType::job_paused: paused = true; break;
      case EventType::job_resumed: paused = false; break;
      case EventType::job_retried: {
        ++retried;
        ended = paused = false;
        for (auto& [id, replayed] : nodes) {
          const auto at = definition.locate(id);
          const bool failed_for_good = replayed.status == NodeStatus::failed &&
                                       definition.nodes[at->node].on_failure == Consequence::fail;
          if (at->is_item() || (!failed_for_good && replayed.status != cancelled)) continue;
          replayed.status = pending;
          if (definition.nodes[at->node].type == NodeType::task && replayed.dispatched_attempt >= 0)
            ++replayed.attempt;
          replayed.dispatched_attempt = -1;
          replayed.deliveries = 0;
        }
        break;
      }
      case EventType::node_ready: moves({pending}, type == NodeType::end ? completed : ready); break;
      case EventType::node_dispatched:
        expect(!paused, "a paused job dispatches nothing", about);
        // What was due may have been put on paper by a clock that was set back afterwards.
        expect(!job.due_at || event.created_at + world_.clock_.set_back >= *job.due_at,
               "a job does not begin before it is due", about);
        if (child && (node->status == cancelled || node->status == NodeStatus::failed)) {
          expect(retried > 0, "only a retry runs an ended item again", about);
          if (node->dispatched_attempt >= 0) ++node->attempt;
          node->status = pending;
        }
        moves({child ? pending : ready, ready, dispatched}, dispatched);
        if (node->dispatched_attempt != node->attempt) node->deliveries = 0;
        node->dispatched_attempt = node->attempt;
        break;
      case EventType::node_started: {
        const bool handed_out = event.event_data && event.event_data->text.starts_with("{\"worker\"");
        expect(!paused || !handed_out, "a paused job hands out nothing", about);
        if (type == NodeType::wait || (type == NodeType::fan_out && !child))
          moves({ready}, running);
        else
          moves({dispatched}, running), node->deliveries += handed_out;
        break;
      }
      case EventType::node_completed:
        moves(type == NodeType::task || child ? std::initializer_list<NodeStatus>{running}
                                              : std::initializer_list<NodeStatus>{ready, dispatched, running},
              completed);
        break;
      case EventType::node_failed:
        moves({running, dispatched, ready, child ? pending : ready}, NodeStatus::failed);
        break;
      case EventType::node_retry: moves({running}, ready), ++node->attempt; break;
      case EventType::node_timeout:
        moves({type == NodeType::approval ? dispatched : running}, node->status);
        break;
      case EventType::node_skipped: moves({pending}, skipped); break;
      case EventType::checkpoint: moves({running}, running); break;
      case EventType::node_cancelled: moves({pending, ready, dispatched, running}, cancelled); break;
      case EventType::node_lease_expired: {
        const bool back = event.event_data->text.contains("reason");
        node->given_back += back && !event.event_data->text.contains("abandoned");
        const auto lease = std::to_string(node->attempt) + "." + std::to_string(node->deliveries);
        const auto promised =
            lease_promised_.find({task_id(job.job_id, *event.node_id, node->attempt), lease});
        // By a clock that was set back a lease ends earlier, once it is renewed, and lasts as long.
        if (promised != lease_promised_.end() && !back)
          expect(event.created_at + (world_.clock_.set_back - promised->second.set_back) >= promised->second.until,
                 "a lease lasts as long as was promised",
                 about + " " + lease + " until " + to_iso(promised->second.until) + ", and it ended at " + to_iso(event.created_at));
        moves({running}, dispatched);
        break;
      }
    }
  }
  expect(created == 1 && started <= 1, "a job is created and started once", job.job_id.value);
  expect(ended == is_terminal(job.status), "a job's end is in its timeline", job.job_id.value);
  for (const auto& [id, replayed] : nodes) {
    const NodeState& node = stored_node(job.job_id, id);
    const std::string about = job.workflow_id + "/" + id + " " + job.job_id.value;
    const NodeType type = definition.nodes[definition.locate(id)->node].type;
    const bool task = type == NodeType::task || node.item_index != no_item;
    // What is held back by a pause was dispatched before, a wait or a fan-out that goes on is as it was.
    const bool same = node.status == replayed.status ||
                      (node.status == NodeStatus::ready && !is_terminal(replayed.status)) ||
                      (!task && !is_terminal(node.status) && !is_terminal(replayed.status));
    expect(
        same, "the timeline gives the rows",
        about + " is " + std::string(name(node.status)) + " and not " + std::string(name(replayed.status)));
    if (!task) continue;
    // What was given back unrun does not make a task a poisonous one.
    expect(replayed.deliveries <= 10 + replayed.given_back, "a task is delivered ten times at most", about);
    expect(node.retry_count == replayed.attempt, "retry_count equals its recount", about);
    expect(node.delivery_count == replayed.deliveries || node.status == NodeStatus::ready,
           "delivery_count equals its recount", about);
  }
  retried_[job.job_id] = retried;
}

void WorkflowLoad::check_final(const Job& job) {
  const std::string now = std::string(name(job.status)) + to_iso(*job.completed_at) +
                          (job.result_data ? job.result_data->text : "");
  const auto [it, first] = final_.try_emplace({job.job_id, retried_[job.job_id]}, now);
  expect(first || it->second == now, "what has ended never changes", job.job_id.value);
}

void WorkflowLoad::check_all() {
  for (const auto& [id, job] : database_.jobs) {
    check_job(job);
    expect(is_terminal(job.status), "every job comes to its end", job.workflow_id + " " + id.value);
  }
  for (const auto& [key, node] : database_.nodes)
    expect(is_terminal(node.status), "nothing of an ended job is left open",
           key.node_id + " " + key.job_id.value);
  for (const auto& [key, job_id] : job_of_key_)
    expect(database_.jobs.contains({job_id}), "an acknowledged job is never lost", key.second);
  // A key of a tenant made one job, whether or not anybody heard of it.
  std::map<std::pair<Tenant, std::string>, int> by_input;
  for (const auto& [id, job] : database_.jobs)
    ++by_input[{job.tenant, job.input_data.text.substr(0, job.input_data.text.find(','))}];
  for (const auto& [id, row] : database_.idempotency_keys)
    expect(by_input[{row.tenant, "{\"who\":" + quoted(row.idempotency_key)}] == 1, "one key makes one job",
           row.idempotency_key);
  for (const Timer& timer : database_.timers)
    expect(timer.subject.type != Subject::Type::job ||
               stored_node({timer.subject.id}, timer.what).timer_due == timer.due,
           "no timer is left over", timer.what);
}

}  // namespace baton::simulation
