// Writing and releasing: the rows of the batch, each once, and after the commit what follows from it.
#include <algorithm>
#include <iterator>

#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

namespace {
// Event ids grow with the commits, so that they order a job's timeline without a counter in its row.
constexpr int events_per_commit_bits = 20;
}  // namespace

WriteSet Writer::Batch::writes(std::int64_t commit_number) {
  // Answers need some job rows after those have moved into the write set.
  for (const Answer& answer : answers_)
    if (!answer.reply) jobs_after_.try_emplace(answer.job_id, run(answer.job_id)->job);
  for (const JobId& id : journal_.ended)
    if (writer_.waits_by_job_.contains(id)) jobs_after_.try_emplace(id, run(id)->job);
  for (const std::uint64_t id : waits_over_) {
    const JobId& job_id = writer_.waits_.at(id).job_id;
    if (const Run* found = run(job_id)) jobs_after_.try_emplace(job_id, found->job);
  }

  WriteSet out;
  const auto write = [&out](const JobId& id, Slot& slot) {
    const NodeState& state = slot.state;
    if (state.timer_due != slot.stored_timer) {
      if (slot.stored_timer)
        out.timers_gone.push_back({*slot.stored_timer, id, state.node_id, state.item_index});
      if (state.timer_due) out.timers_new.push_back({*state.timer_due, id, state.node_id, state.item_index});
    }
    if (slot.is_new)
      out.nodes_new.push_back(std::move(slot.state));
    else if (slot.changed)
      out.nodes_changed.push_back(std::move(slot.state));
  };
  for (auto& [id, r] : runs_) {
    for (auto& slot : r.nodes)
      if (slot) write(id, *slot);
    for (auto& [ref, slot] : r.items) write(id, slot);
    std::ranges::move(r.logs, std::back_inserter(out.logs_new));
    std::ranges::move(r.results, std::back_inserter(out.task_results_new));
    if (r.is_new)
      out.jobs_new.push_back(std::move(r.job));
    else if (r.row_changed())
      out.jobs_changed.push_back(std::move(r.job));
  }
  std::ranges::move(timers_stray_, std::back_inserter(out.timers_gone));
  for (const workflow::Timer& timer : out.timers_new)
    earliest_timer_ = earliest_timer_ ? std::min(*earliest_timer_, timer.due) : timer.due;

  out.events_new = std::move(journal_.events);
  std::int64_t event_id = commit_number << events_per_commit_bits;
  for (Event& event : out.events_new) event.event_id = event_id++;
  // Readers find a job's events side by side; sorting keeps the writes side by side too.
  std::ranges::stable_sort(out.events_new, {}, &Event::job_id);
  write_runbooks(out.runbooks, commit_number << events_per_commit_bits);
  out.calls = calls_.take_writes();
  std::ranges::move(job_logs_, std::back_inserter(out.logs_new));
  std::int64_t log_id = commit_number << events_per_commit_bits;
  for (LogLine& line : out.logs_new) line.log_id = log_id++;
  out.tags_new = tags_new_;
  out.workflows_new = workflows_new_;
  out.idempotency_keys_new = keys_new_;
  return out;
}

void Writer::Batch::release() {
  for (const Workflow& row : workflows_new_) {
    const auto latest = published_.find({row.tenant, row.workflow_id, 0});
    ENSURE(writer_.definitions_.add(
        row, latest != published_.end() &&
                 latest->second.definition->version == row.version));  // it was parsed to be published
  }
  if (earliest_timer_)
    writer_.next_timer_ =
        writer_.next_timer_ ? std::min(*writer_.next_timer_, *earliest_timer_) : *earliest_timer_;
  if (timers_taken_) writer_.timers_were_taken(more_timers_ ? std::optional{now_} : std::nullopt);
  for (auto& [id, r] : runs_)
    if (!r.expansions.empty() || !r.gatherings.empty()) writer_.progressions_.keep(id, r);
  for (const JobId& id : journal_.ended) writer_.progressions_.drop(id);
  constexpr std::chrono::seconds look_again_after{5};
  if (!lessons_.unreadable_jobs.empty() && !writer_.look_again_at_) writer_.look_again_at_ = now_ + look_again_after;
  if (auto scheduled = calls_.take_scheduled(); !scheduled.empty() && writer_.options_.calls_scheduled)
    writer_.options_.calls_scheduled(std::move(scheduled));
  if (runbooks_changed_ && writer_.options_.runbooks_changed) writer_.options_.runbooks_changed();
  if (writer_.metrics_.steps_ended) {
    writer_.metrics_.steps_ended->add(runbook_journal_.steps_ended);
    writer_.metrics_.batches_ended->add(runbook_journal_.batches_ended);
  }
  writer_.count(items_.size(), journal_.ended.size(), timers_.size() + runbook_timers_.size());
  release_workers();
  release_waits();
  release_answers();
  release_polls();
}

void Writer::Batch::release_workers() {
  for (const ReportResult& result : reported_)
    writer_.workers_.reported(*result.tenant, *result.worker, result.task_id, result.completed, now_);
}

// Those who waited for jobs that ended in this batch, and those whose patience is over.
void Writer::Batch::release_waits() {
  const auto tell = [&](std::uint64_t id) {
    const Wait wait = writer_.waits_.at(id);
    writer_.remove_wait(id);
    wait.waiter->deliver(job_reply(wait.job_id, wait.created));
  };
  for (const JobId& job_id : journal_.ended) {
    const auto it = writer_.waits_by_job_.find(job_id);
    if (it == writer_.waits_by_job_.end()) continue;
    const auto ids = it->second;
    for (const std::uint64_t id : ids) tell(id);
  }
  for (const std::uint64_t id : waits_over_)
    if (writer_.waits_.contains(id)) tell(id);
}

void Writer::Batch::release_answers() {
  for (Answer& answer : answers_) {
    if (answer.reply) {
      answer.waiter->deliver(*std::move(answer.reply));
    } else if (answer.wait_until > now_ && !is_terminal(jobs_after_.at(answer.job_id).status)) {
      writer_.add_wait({answer.tenant, answer.job_id, answer.waiter, answer.created, answer.wait_until});
    } else {
      answer.waiter->deliver(job_reply(answer.job_id, answer.created));
    }
  }
}

void Writer::Batch::release_polls() {
  if (which_timers_ != Timers::due) return;  // the queues were forgotten, and are looked at by the next batch
  writer_.hungry_ = std::move(still_hungry_);
  for (Service& service : services_) {
    Queue* queue = writer_.queues_.find(service.key);
    if (!queue) continue;
    while (!service.fresh.empty())
      queue->append(std::move(service.fresh.extract(service.fresh.begin()).value()));
    for (auto& [id, reply] : service.served) {
      writer_.count_handouts(reply.jobs.size());
      const auto poll = writer_.queues_.remove_poll(service.key, id);
      if (!poll) {  // its time ran out while the outcome of this commit was unknown
        writer_.give_back(reply);
        continue;
      }
      writer_.deadlines_.erase({poll->poll.wait_until, id, std::nullopt});
      for (const Handout& task : reply.jobs)
        writer_.workers_.took(poll->poll.tenant, poll->poll.worker, task.task_id, task.lease_until);
      poll->waiter->deliver(std::move(reply));
    }
    writer_.queues_.drop_if_idle(service.key);
  }
}

JobReply Writer::Batch::job_reply(const JobId& job_id, bool created) const {
  return {jobs_after_.at(job_id), created};
}

void Writer::Batch::refuse(Refusal refusal, const std::string& message) {
  for (Item& item : items_) {
    // A task that is given back has nobody else to remember it: it is given back later.
    if (refusal != Refusal::invalid_input && std::holds_alternative<ReturnTasks>(item.command))
      writer_.own_items_.push_back(std::move(item));
    else
      item.waiter->deliver(Refused{refusal, message, {}});
  }
  items_.clear();
  answers_.clear();
}

}  // namespace baton::engine
