#include "core/runbook/machine/holds.hpp"
#include "tests/simulation/runbook_actors.hpp"

#include <algorithm>

namespace baton::simulation {

using namespace std::chrono_literals;
using runbook::Batch;
using runbook::RowType;
using runbook::StepStatus;

// ---- workers ----

void PoolWorker::poll() {
  const std::uint64_t this_poll = ++polls_;
  const Duration wait = side_.calm()                   ? Duration{12h}
                        : side_.random().chance(0.5) ? side_.within(0s, 1min)
                                                     : side_.within(1min, 3h);
  const Poll command{.tenant = {"default"},
                     .queue = queue_,
                     .worker = name_,
                     .max = static_cast<std::uint32_t>(side_.random().between(1, 3)),
                     .heartbeats = modern_,
                     .wait_until = side_.now() + wait};
  side_.send(command, [this, life = life_, this_poll](const Reply& reply) {
    if (life != life_) return;
    if (const auto* jobs = std::get_if<PollReply>(&reply))
      for (const Handout& job : jobs->jobs) {
        running_[job.task_id] = job.lease;
        work_on(job);
      }
    if (modern_ && !beating_ && !running_.empty()) {
      beating_ = true;
      beat();
    }
    if (this_poll == polls_)
      side_.at(side_.within(0s, 5s), [this, this_poll] {
        if (this_poll == polls_) poll();
      });
  });
  // The answer may have been lost on the way.
  side_.at(wait + side_.within(1s, 5min), [this, this_poll] {
    if (this_poll == polls_) poll();
  });
}

ReportResult PoolWorker::outcome_of(const Handout& job) {
  const std::string& function = job.handler;
  ReportResult result{
      .tenant = workflow::Tenant{"default"}, .task_id = job.task_id, .completed = true, .worker = name_};
  if (function == "Doomed" || (function == "Flaky" && side_.random().chance(0.4))) {
    result.completed = false;
    result.error = "bad luck";
    return result;
  }
  // The result tells which delivery of which job made it, so that a zombie's word can be told from its
  // successor's.
  const std::string who = "\"job\":" + quoted(job.task_id) + ",\"echo\":" + (modern_ ? "true" : "false") +
                          ",\"lease\":" + quoted(job.lease);
  const std::string id = "\"id\":" + quoted("from-" + job.task_id);
  const bool polls = function == "Wait" || function == "Never";
  const bool done = function == "Work" || function == "Flaky" || side_.random().chance(0.4);
  if (!polls)
    result.output = Json{"{" + id + "," + who + "}"};
  else if (done && function == "Wait")
    result.output = Json{"{\"complete\":true,\"data\":{" + id + "}," + who + "}"};
  else
    result.output = Json{"{\"complete\":false," + who + "}"};
  if (modern_) result.lease = job.lease;
  return result;
}

// As a worker of the bus, which has its jobs under locks. False: it is not to be worked at.
bool PoolWorker::settle(const Handout& job) {
  using How = SettleTask::How;
  Random& random = side_.random();
  if (!modern_ || !random.chance(job.handler == "Poison" ? 0.5 : 0.2)) return true;
  const How how = job.handler == "Poison" || random.chance(0.2) ? How::abandon
                  : random.chance(0.05) && job.handler != "Never" ? How::give_up  // its end must be its timeout
                                                                : How::keep;
  running_.erase(job.task_id);
  side_.send(SettleTask{workflow::Tenant{"default"}, job.task_id, job.lease, how, "not for me"});
  return how == How::keep;
}

void PoolWorker::work_on(const Handout& job) {
  Random& random = side_.random();
  if (!settle(job)) return;
  if (job.handler == "Poison" || (!side_.calm() && random.chance(side_.faults().worker_dies))) {
    side_.at(side_.within(0s, 20s), [this, life = life_] {
      if (life == life_) die();
    });
    return;
  }
  const ReportResult result = outcome_of(job);
  Duration takes = random.chance(0.9) ? side_.within(0s, 20s) : side_.within(20s, 4min);
  const bool stalls = !side_.calm() && random.chance(side_.faults().worker_stalls);
  if (stalls) {  // goes silent, and reports when nobody expects it any more
    takes += side_.within(20s, 2h);
    running_.erase(job.task_id);
  }
  side_.at(takes, [this, result, stalls, life = life_] {
    if (life == life_ || stalls) report(result);
  });
  // What was said is said again by a broker that lost count.
  if (!side_.calm() && random.chance(side_.faults().message_repeated))
    side_.at(takes + side_.within(1min, 5h), [this, result] { side_.send(result); });
}

void PoolWorker::report(const ReportResult& result) {
  auto answered = std::make_shared<bool>(false);
  side_.send(result, [this, answered, id = result.task_id](const Reply& reply) {
    const auto* refused = std::get_if<Refused>(&reply);
    if (refused && (refused->refusal == Refusal::store_unavailable || refused->refusal == Refusal::store_full))
      return;
    *answered = true;
    running_.erase(id);
  });
  side_.at(side_.within(2s, 1min), [this, result, answered, life = life_] {
    if (!*answered && life == life_) report(result);
  });
}

void PoolWorker::beat() {
  if (running_.empty()) {
    beating_ = false;
    return;
  }
  Heartbeat command{.tenant = workflow::Tenant{"default"}, .worker = name_, .tasks = {}};
  for (const auto& [job, lease] : running_) command.tasks.push_back({job, lease});
  side_.send(command, [this](const Reply& reply) {
    if (const auto* beat = std::get_if<HeartbeatReply>(&reply))
      for (const std::string& id : beat->cancelled) running_.erase(id);
  });
  side_.at(10s, [this, life = life_] {
    if (life == life_) beat();
  });
}

void PoolWorker::die() {
  ++life_;
  ++polls_;
  running_.clear();
  beating_ = false;
  side_.at(side_.within(1s, 10min), [this] { poll(); });
}

// ---- the built-in scheduler ----

void Planner::start() {
  side_.at(side_.within(0s, 10min), [this] { publish(); });
  const auto batches = side_.random().between(1, 2);
  for (int i = 0; i < batches; ++i) side_.at(side_.within(10min, 6h), [this] { new_batch(); });
  if (side_.random().chance(0.5)) side_.at(side_.within(2h, 30h), [this] { publish(); });
  if (side_.random().chance(0.2)) side_.at(side_.within(2h, 30h), [this] { publish(); });
}

void Planner::publish() {
  const std::string_view text = texts_[published_++ % texts_.size()];
  PublishRunbook command{.definition = side_.parsed(text), .text = std::string(text), .rerun_init = side_.random().chance(0.4)};
  // Whoever says nothing hears that batches are open, if any has begun.
  if (side_.random().chance(0.85)) command.open_batches = static_cast<runbook::OpenBatches>(side_.random().below(3));
  if (!side_.scheduler() && side_.random().chance(0.5)) command.overdue_behavior = "ignore";
  side_.send_surely(command, [](const Reply&) {});
}

void Planner::new_batch() {
  OpenBatch command{.runbook_name = side_.parsed(texts_[0])->name};
  if (side_.random().chance(0.85)) command.batch_start_time = side_.now() + (side_.random().chance(0.1) ? side_.within(-9h, -1h) : side_.within(-1h, 26h));
  side_.send_surely(command, [this](const Reply& reply) {
    if (const auto* opened = std::get_if<BatchReply>(&reply))
      import(opened->batch.id, static_cast<int>(side_.random().between(0, 8)));
    else if (!side_.calm())
      side_.at(side_.within(10min, 1h), [this] { new_batch(); });
  });
}

void Planner::import(std::int64_t batch_id, int members) {
  if (members <= 0) {
    side_.send_surely(StartBatch{batch_id}, [](const Reply&) {});
    const auto changes = side_.random().below(5);
    for (std::uint64_t i = 0; i < changes; ++i)
      side_.at(side_.within(0s, 30h), [this, batch_id] { members_change(batch_id); });
    return;
  }
  AddMembers command{.batch_id = batch_id, .members = {}};
  for (int i = 0; i < 3 && members > 0; ++i, --members) command.members.push_back(side_.member_data(next_key()));
  side_.send_surely(command, [this, batch_id, members](const Reply&) { import(batch_id, members); });
}

void Planner::members_change(std::int64_t batch_id) {
  std::vector<const runbook::Member*> members;
  for (const auto& [id, member] : side_.rows().members)
    if (member.batch_id == batch_id) members.push_back(&member);
  Random& random = side_.random();
  const auto what = random.below(5);
  if (what < 2 || members.empty()) {
    // Or somebody who is there already, or who comes back.
    const bool known = !members.empty() && random.chance(0.3);
    const std::string key = known ? members[random.below(members.size())]->member_key : next_key();
    return side_.send_surely(AddMembers{.batch_id = batch_id, .members = {side_.member_data(key)}},
                             [](const Reply&) {});
  }
  const runbook::Member& member = *members[random.below(members.size())];
  if (what < 4) {
    RemoveMembers command{.batch_id = batch_id, .by = random.chance(0.5) ? "" : "a person"};
    if (random.chance(0.5))
      command.member_ids.push_back(member.id);
    else
      command.member_keys.push_back(member.member_key);
    return side_.send_surely(command, [](const Reply&) {});
  }
  side_.send_surely(RefreshMembers{{{member.id, side_.member_data(member.member_key)}}}, [](const Reply&) {});
}

// ---- people ----

void Person::start() {
  side_.at(side_.within(5min, 3h), [this] {
    if (side_.calm()) return;
    meddle();
    start();
  });
}

void Person::meddle() {
  Random& random = side_.random();
  if (random.chance(0.4)) answer();
  if (const Batch* batch = side_.any_batch(random.chance(0.2)); batch && random.chance(0.6)) return steer(*batch);
  touch_step();
}

// What waits for people; perhaps somebody else has said something already.
void Person::answer() {
  std::vector<const runbook::Hold*> holds;
  for (const auto& [id, hold] : side_.rows().holds)
    if (hold.status == runbook::HoldStatus::open || side_.random().chance(0.05)) holds.push_back(&hold);
  if (holds.empty()) return;
  const runbook::Hold& hold = *holds[side_.random().below(holds.size())];
  const auto answers = runbook::answers_of(hold.kind);
  const auto& said = side_.random().chance(0.6) ? answers.front() : answers[side_.random().below(answers.size())];
  side_.send(AnswerHold{.batch_id = hold.batch_id, .hold_id = hold.id, .answer = std::string(said.word), .by = "a person"});
}

void Person::steer(const Batch& batch) {
  using What = ChangeBatch::What;
  Random& random = side_.random();
  const auto change = [&](What what, Duration after = 0s) {
    side_.at(after, [this, id = batch.id, what] {
      side_.send(ChangeBatch{.batch_id = id, .what = what, .by = "a person", .reason = "a whim"});
    });
  };
  const auto dice = random.below(100);
  if (dice < 30) {
    change(What::pause);
    if (random.chance(0.8)) change(What::resume, side_.within(1min, 5h));
    if (random.chance(0.2)) change(What::pause, side_.within(1min, 5h));
  } else if (dice < 35) {
    change(What::cancel);
  } else if (dice < 45) {
    change(What::advance);
  } else if (dice < 50) {
    change(What::approve_removals);
  } else if (dice < 80) {
    RetryMembers command{.batch_id = batch.id, .by = "a person"};
    for (const auto& [id, member] : side_.rows().members)
      if (member.batch_id == batch.id && member.status == runbook::MemberStatus::failed && random.chance(0.5))
        command.member_ids.push_back(id);
    side_.send(command);
  } else {
    // What a scheduler might say, again or out of place.
    runbook::SchedulerMessage message{.batch_id = batch.id};
    const auto& book = side_.rows().runbooks.at(batch.runbook_id);
    message.runbook_name = book.name;
    message.runbook_version = book.version;
    const auto any = [&](const auto& table, auto&& of_batch) {
      std::vector<std::int64_t> ids;
      for (const auto& [id, row] : table)
        if (of_batch(row)) ids.push_back(id);
      return ids.empty() ? 0 : ids[random.below(ids.size())];
    };
    const auto same = [&](const auto& row) { return row.batch_id == batch.id; };
    const auto in_time = [&](const runbook::PhaseExecution& phase) {
      return same(phase) && phase.status != runbook::PhaseStatus::pending;
    };
    switch (random.below(6)) {
      case 0: message.what = runbook::BatchInit{}; break;
      case 1: message.what = runbook::MemberAdded{any(side_.rows().members, same)}; break;
      case 2: message.what = runbook::MemberRemoved{any(side_.rows().members, same)}; break;
      default: message.what = runbook::PhaseDue{any(side_.rows().phases, in_time), {}};
    }
    side_.send(RunbookEvent{message});
  }
}

void Person::touch_step() {
  Random& random = side_.random();
  std::vector<std::pair<runbook::Ref, StepStatus>> refs;
  const auto look = [&](RowType type, const auto& table) {
    for (const auto& [id, row] : table)
      if (row.status != StepStatus::succeeded || random.chance(0.02)) refs.push_back({{type, id}, row.status});
  };
  look(RowType::step, side_.rows().steps);
  look(RowType::init, side_.rows().inits);
  look(RowType::cleanup, side_.rows().cleanups);
  if (refs.empty()) return;
  const auto& [ref, status] = refs[random.below(refs.size())];
  using What = ChangeStep::What;
  const What what = is_terminal(status)    ? What::retry
                    : random.chance(0.5) ? What::skip
                    : random.chance(0.7) ? What::cancel
                                         : What::retry;
  side_.send(ChangeStep{.ref = ref, .what = what, .by = "a person"});
}

}  // namespace baton::simulation
