// Writing: the rows of the jobs, each once, and what follows from the commit.
#include <algorithm>
#include <iterator>

#include "base/mutant.hpp"
#include "engine/kinds/workflows/transaction.hpp"

namespace baton::engine {

using namespace workflow;

namespace {

void write_node(const JobId& id, Slot& slot, WriteSet& out) {
  const NodeState& state = slot.state;
  if (state.timer_due != slot.stored_timer) {
    if (slot.stored_timer) out.timers_gone.push_back({*slot.stored_timer, subject_of(id), state.node_id});
    if (state.timer_due) out.timers_new.push_back({*state.timer_due, subject_of(id), state.node_id});
  }
  if (slot.is_new)
    out.nodes_new.push_back(std::move(slot.state));
  else if (slot.changed)
    out.nodes_changed.push_back(std::move(slot.state));
}

}  // namespace

void WorkflowTransaction::answer(const std::shared_ptr<Waiter>& waiter, Reply reply) {
  if (MUTANT(reply_before_commit)) return waiter->deliver(std::move(reply));
  turn_.effects.emplace_back(Answer{waiter, std::move(reply)});
}

void WorkflowTransaction::answer_job(const std::shared_ptr<Waiter>& waiter, const Job& job, bool created,
                                     Time wait_until) {
  if (MUTANT(reply_before_commit) && wait_until <= turn_.now) return waiter->deliver(JobReply{job, created});
  rows_.answers.push_back({waiter, job.job_id, created, wait_until});
}

// Those who ask for a job hear how it is after the whole batch, or wait for its end; those who have waited hear of
// the ends in this batch.
void WorkflowTransaction::write_answers() {
  for (const JobId& id : rows_.decided.ended)
    if (is_awaited(id)) turn_.effects.emplace_back(Ended{subject_of(id), JobReply{run(id)->job, false}});
  for (JobAnswer& answer : rows_.answers) {
    const Job& job = run(answer.job_id)->job;
    if (answer.wait_until > turn_.now && !is_terminal(job.status))
      turn_.effects.emplace_back(Await{std::move(answer.waiter), subject_of(job.job_id), answer.wait_until,
                                       AwaitJob{job.tenant, job.job_id, {}, answer.created}, answer.created});
    else
      turn_.effects.emplace_back(Answer{std::move(answer.waiter), JobReply{job, answer.created}});
  }
}

void WorkflowTransaction::write(WriteSet& out, std::int64_t commit_number) {
  // Event ids grow with the commits, so that they order a job's timeline without a counter in its row.
  std::int64_t event_id = first_event_id(commit_number);
  count(turn_.effects, kind_.jobs_ended_, rows_.decided.ended.size());
  write_answers();
  for (auto& [id, r] : rows_.runs) {
    for (auto& slot : r.nodes)
      if (slot) write_node(id, *slot, out);
    for (auto& [ref, slot] : r.items) write_node(id, slot, out);
    std::ranges::move(r.logs, std::back_inserter(out.logs_new));
    std::ranges::move(r.results, std::back_inserter(out.task_results_new));
    if (r.is_new)
      out.jobs_new.push_back(std::move(r.job));
    else if (r.row_changed())
      out.jobs_changed.push_back(std::move(r.job));
  }
  count(turn_.effects, kind_.jobs_created_, out.jobs_new.size());
  std::ranges::move(rows_.timers_stray, std::back_inserter(out.timers_gone));
  out.events_new = std::move(rows_.decided.events);
  for (Event& event : out.events_new) event.event_id = event_id++;
  // Readers find a job's events side by side; sorting keeps the writes side by side too.
  std::ranges::stable_sort(out.events_new, {}, &Event::job_id);
  std::int64_t log_id = first_event_id(commit_number);
  for (LogLine& line : out.logs_new) line.log_id = log_id++;
  out.tags_new = std::move(rows_.tags_new);
  out.workflows_new = rows_.workflows_new;
  out.idempotency_keys_new = std::move(rows_.keys_new);
}

// Of jobs that go on, what was written is what is known of them. Jobs come first: they say which do.
void WorkflowTransaction::take_back(const std::vector<Job>& rows) {
  for (const Job& row : rows) {
    Job& job = run(row.job_id)->job;
    if (is_terminal(row.status))
      job.status = row.status;
    else
      job = row;
  }
}

void WorkflowTransaction::take_back(const std::vector<NodeState>& rows) {
  for (const NodeState& row : rows) {
    Run& r = *run(row.job_id);
    if (!is_terminal(r.job.status)) r.at(*r.definition->locate(row.node_id)).state = row;
  }
}

void WorkflowTransaction::committed(const WriteSet& written) {
  take_back(written.jobs_new);
  take_back(written.jobs_changed);
  take_back(written.nodes_new);
  take_back(written.nodes_changed);
  for (const auto& [tenant, steps] : rows_.spent) kind_.shares_.charge(tenant, steps);
  for (const Workflow& row : rows_.workflows_new) {
    const auto latest = rows_.published.find({row.tenant, row.workflow_id, 0});
    const bool is_latest = latest != rows_.published.end() && latest->second.definition->version == row.version;
    ENSURE(kind_.definitions_.add(row, is_latest));  // it was parsed to be published
  }
  for (auto& [id, r] : rows_.runs)
    if (!r.expansions.empty() || !r.gatherings.empty()) kind_.progressions_.keep(id, r);
  for (const JobId& id : rows_.decided.ended) kind_.progressions_.drop(id);
  for (auto& [id, r] : rows_.runs) {
    if (is_terminal(r.job.status)) continue;
    r.stored();
    kind_.hot_runs_.keep(std::move(r));
  }
}

}  // namespace baton::engine
