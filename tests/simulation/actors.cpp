#include "tests/simulation/actors.hpp"

#include "tests/simulation/definitions.hpp"

namespace baton::simulation {

using namespace std::chrono_literals;
using workflow::JobId;

void Client::start() {
  world_.at(Duration{world_.random_.between(0, 3'000)}, [this] { next_job(); });
}

void Client::next_job() {
  if (submitted_ == jobs_) return;
  const int n = submitted_++;
  const auto parsed = workflow::parse(definitions[world_.random_.below(definitions.size())]);
  const std::string key = "client-" + std::to_string(number_) + "-" + std::to_string(n);
  std::string items;
  for (auto left = world_.random_.below(9); left > 0; --left)
    items += (items.empty() ? "" : ",") + std::to_string(left);
  submit(world_.random_.chance(0.8) ? key : "", parsed.definition->workflow_id,
         Json{"{\"who\":" + quoted(key) + ",\"n\":" + std::to_string(world_.random_.below(10)) +
              ",\"items\":[" + items + "]}"});
  world_.at(Duration{world_.random_.between(1, 8'000)}, [this] { next_job(); });
}

void Client::submit(const std::string& key, const std::string& workflow_id, const Json& input) {
  if (!key.empty() && answered_[key]) return;
  SubmitJob command{.job_id = {uuid7(world_.clock_.now(), world_.random_.next(), world_.random_.next())},
                    .tenant = tenant_,
                    .workflow_id = workflow_id,
                    .input_data = input,
                    .request_hash = input.text};
  if (!key.empty()) command.idempotency_key = key;
  command.priority = static_cast<std::int32_t>(world_.random_.between(-1, 1));
  if (world_.random_.chance(0.1))
    command.due_at = world_.clock_.now() + Duration{world_.random_.between(-1'000, 20'000)};
  if (world_.random_.chance(0.3))
    command.wait_until = world_.clock_.now() + Duration{world_.random_.between(1, 20'000)};
  world_.send(command, [this, key](const Reply& reply) {
    const auto* job = std::get_if<JobReply>(&reply);
    if (!job) return;
    if (!key.empty()) answered_[key] = true;
    meddle(job->job.job_id);
  });
  // No answer within this time: ask again. Only a submit with a key may be repeated.
  if (!key.empty())
    world_.at(Duration{world_.random_.between(2'000, 30'000)},
              [this, key, workflow_id, input] { submit(key, workflow_id, input); });
}

// What people do to jobs: cancel, pause and resume, retry what failed, decide what is asked of them.
void Client::meddle(const JobId& job_id) {
  using What = ChangeJob::What;
  const auto change = [this, job_id](What what, std::int64_t within) {
    world_.at(Duration{world_.random_.between(0, within)}, [this, job_id, what] {
      world_.send(ChangeJob{tenant_, job_id, what, "a person", "changed my mind"}, [](const Reply&) {});
    });
  };
  if (world_.random_.chance(0.06)) change(What::cancel, 10'000);
  if (world_.random_.chance(0.15)) {
    change(What::pause, 8'000);
    if (world_.random_.chance(0.8)) change(What::resume, 25'000);
    if (world_.random_.chance(0.3)) change(What::pause, 30'000);
  }
  for (int i = 0; i < 3; ++i)
    if (world_.random_.chance(0.5)) change(What::retry, 90'000);
  for (const char* node : {"ask", "maybe"})
    if (world_.random_.chance(0.5))
      world_.at(Duration{world_.random_.between(0, 50'000)}, [this, job_id, node] {
        world_.send(DecideApproval{tenant_, job_id, node, world_.random_.chance(0.7), "a person", ""},
                    [](const Reply&) {});
      });
  if (world_.random_.chance(0.1))
    world_.at(Duration{world_.random_.between(0, 9'000)},
              [this, job_id] { world_.send(ExplainJob{tenant_, job_id}, [](const Reply&) {}); });
}

void Worker::poll() {
  const std::uint64_t this_poll = ++polls_;
  const Duration wait = world_.poll_patience();
  Poll command{.tenant = tenant_.value_or(workflow::Tenant{}),
               .queue = queue_,
               .worker = name_,
               .max = static_cast<std::uint32_t>(world_.random_.between(1, 3)),
               .heartbeats = modern_,
               .wait_until = world_.clock_.now() + wait};
  const std::uint64_t life = life_;
  world_.send(command, [this, life, this_poll](const Reply& reply) {
    if (life != life_) return;
    if (const auto* tasks = std::get_if<PollReply>(&reply)) on_tasks(*tasks);
    if (this_poll == polls_)
      world_.at(Duration{world_.random_.between(0, 500)}, [this, this_poll] {
        if (this_poll == polls_) poll();
      });
  });
  // The answer may have been lost on the way.
  world_.at(wait + Duration{world_.random_.between(1'000, 10'000)}, [this, this_poll] {
    if (this_poll == polls_) poll();
  });
}

void Worker::on_tasks(const PollReply& reply) {
  for (const Handout& task : reply.jobs) {
    running_[task.task_id] = task.lease;
    work_on(task);
  }
  if (modern_ && !beating_) {
    beating_ = true;
    beat();
  }
}

// Some have their tasks under locks: they take one in hand, and renew nothing then, or have another worker get it, or nobody.
// False: it is not to be worked at.
bool Worker::settle(const Handout& task) {
  using How = SettleTask::How;
  const bool is_hopeless = task.handler == "poison";
  if (!modern_ || !tenant_ || !world_.random_.chance(is_hopeless ? 0.5 : 0.2)) return true;
  const How how = is_hopeless || world_.random_.chance(0.2) ? How::abandon
                  : world_.random_.chance(0.05)             ? How::give_up
                                                            : How::keep;
  running_.erase(task.task_id);
  world_.send(SettleTask{tenant_, task.task_id, task.lease, how, "not for me"}, [](const Reply&) {});
  if (how == How::keep && world_.random_.chance(0.3))  // a renewal that was on its way, or of who does not know better
    world_.at(Duration{world_.random_.between(0, 2'000)}, [this, task] {
      world_.send(Heartbeat{.tenant = tenant_, .worker = name_, .tasks = {{task.task_id, task.lease}}}, [](const Reply&) {});
    });
  return how == How::keep;
}

void Worker::work_on(const Handout& task) {
  if (!settle(task)) return;
  if (task.handler == "poison" || world_.random_.chance(world_.calm_ ? 0 : world_.faults_.worker_dies)) {
    world_.at(Duration{world_.random_.between(0, 2'000)}, [this, life = life_] {
      if (life == life_) die();
    });
    return;
  }
  // The output tells which delivery of which attempt made it, so that a zombie's word can be told from its
  // successor's.
  ReportResult result{.tenant = tenant_,
                      .task_id = task.task_id,
                      .job_id = task.job_id,
                      .node_id = task.node_id,
                      .completed = task.handler != "flaky" || world_.random_.chance(0.6),
                      .worker = name_};
  if (result.completed)
    result.output =
        Json{"{\"attempt\":" + std::to_string(task.retry_count) + ",\"lease\":" + quoted(task.lease) + "}"};
  else
    result.error = "bad luck";
  if (modern_) result.lease = task.lease;
  Duration takes{world_.random_.between(0, 3'000)};
  if (world_.random_.chance(0.1)) note(task);
  const bool stalls = !world_.calm_ && world_.random_.chance(world_.faults_.worker_stalls);
  if (stalls) {  // goes silent, and reports when nobody expects it any more
    takes += Duration{world_.random_.between(20'000, 90'000)};
    running_.erase(task.task_id);
  }
  world_.at(takes, [this, task, result, stalls, life = life_] {
    if (life == life_ || stalls) report(task, result);
  });
}

void Worker::note(const Handout& task) {
  TaskNote note{.tenant = tenant_, .task_id = task.task_id};
  if (modern_) note.lease = task.lease;
  switch (world_.random_.below(3)) {
    case 0: note.note = TaskProgress{Json{R"({"progress":50})"}}; break;
    case 1: note.note = TaskCheckpoint{Json{"{\"by\":" + quoted(task.lease) + "}"}}; break;
    default: note.note = TaskLog{{{"stderr", world_.clock_.now(), "half way"}}};
  }
  world_.send(note, [](const Reply&) {});
}

void Worker::report(const Handout& task, const ReportResult& result) {
  auto answered = std::make_shared<bool>(false);
  world_.send(result, [this, answered, id = task.task_id](const Reply& reply) {
    const auto* refused = std::get_if<Refused>(&reply);
    if (refused && refused->refusal == Refusal::store_unavailable) return;
    *answered = true;
    running_.erase(id);
  });
  world_.at(Duration{world_.random_.between(500, 9'000)}, [this, task, result, answered, life = life_] {
    if (!*answered && life == life_) report(task, result);
  });
}

void Worker::beat() {
  if (running_.empty()) {
    beating_ = false;
    return;
  }
  Heartbeat command{.tenant = tenant_, .worker = name_, .tasks = {}};
  for (const auto& [task, lease] : running_) command.tasks.push_back({task, lease});
  world_.send(command, [this](const Reply& reply) {
    if (const auto* beat = std::get_if<HeartbeatReply>(&reply))
      for (const std::string& id : beat->cancelled) running_.erase(id);
  });
  world_.at(9s, [this, life = life_] {
    if (life == life_) beat();
  });
}

void Worker::die() {
  ++life_;
  ++polls_;
  running_.clear();
  beating_ = false;
  world_.at(Duration{world_.random_.between(100, 5'000)}, [this] { poll(); });
}

void Intruder::start() {
  world_.at(Duration{world_.random_.between(0, 10'000)}, [this] { attempt(); });
}

void Intruder::attempt() {
  if (attempts_-- == 0) return;
  if (const workflow::Job* job = any_job()) {
    const workflow::NodeState* task = world_.random_.chance(0.5) ? any_task(job->job_id) : nullptr;
    world_.send(task ? about(*task) : about(*job), [](const Reply&) {});
  }
  start();
}

// Of another tenant, and mostly one that goes on: to that something can be done.
const workflow::Job* Intruder::any_job() const {
  const bool ended = world_.random_.chance(0.2);
  std::vector<const workflow::Job*> found;
  for (const auto& [id, job] : world_.database_.jobs)
    if (job.tenant != tenant_ && is_terminal(job.status) == ended) found.push_back(&job);
  return found.empty() ? nullptr : found[world_.random_.below(found.size())];
}

const workflow::NodeState* Intruder::any_task(const JobId& job_id) const {
  std::vector<const workflow::NodeState*> found;
  const auto& nodes = world_.database_.nodes;
  for (auto it = nodes.lower_bound({job_id, workflow::no_item, ""});
       it != nodes.end() && it->first.job_id == job_id; ++it)
    if (it->second.task_id) found.push_back(&it->second);
  return found.empty() ? nullptr : found[world_.random_.below(found.size())];
}

Command Intruder::about(const workflow::Job& job) const {
  using What = ChangeJob::What;
  const std::string by(mark);
  switch (world_.random_.below(7)) {
    case 0: return ChangeJob{tenant_, job.job_id, What::cancel, by, by};
    case 1: return ChangeJob{tenant_, job.job_id, What::pause, by, by};
    case 2: return ChangeJob{tenant_, job.job_id, What::resume, by, by};
    case 3: return ChangeJob{tenant_, job.job_id, What::retry, by, by};
    case 4: return DecideApproval{tenant_, job.job_id, world_.random_.chance(0.5) ? "ask" : "maybe", true, by, by};
    case 5: return ExplainJob{tenant_, job.job_id};
    default:
      return AwaitJob{.tenant = tenant_,
                      .job_id = job.job_id,
                      .wait_until = world_.clock_.now() + Duration{world_.random_.between(0, 9'000)}};
  }
}

Command Intruder::about(const workflow::NodeState& task) const {
  const std::string lease = workflow::lease_token(task);
  switch (world_.random_.below(4)) {
    case 0: return Heartbeat{.tenant = tenant_, .worker = std::string(mark), .tasks = {{*task.task_id, lease}}};
    case 1: return ReplayTask{tenant_, *task.task_id, std::string(mark)};
    case 2: return note(task);
    default:
      return ReportResult{.tenant = tenant_,
                          .task_id = *task.task_id,
                          .job_id = task.job_id,
                          .node_id = task.node_id,
                          .completed = true,
                          .output = Json{"{\"by\":" + quoted(mark) + "}"},
                          .lease = lease,
                          .worker = std::string(mark)};
  }
}

Command Intruder::note(const workflow::NodeState& task) const {
  TaskNote note{.tenant = tenant_, .task_id = *task.task_id, .lease = workflow::lease_token(task)};
  const Json said{"{\"by\":" + quoted(mark) + "}"};
  switch (world_.random_.below(3)) {
    case 0: note.note = TaskProgress{said}; break;
    case 1: note.note = TaskCheckpoint{said}; break;
    default: note.note = TaskLog{{{"stderr", world_.clock_.now(), std::string(mark)}}};
  }
  return note;
}

}  // namespace baton::simulation
