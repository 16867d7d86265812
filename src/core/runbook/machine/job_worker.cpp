// A job and its worker: handed out, reported, renewed, given back, gone silent.
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"
#include "core/runbook/machine/job_row.hpp"

namespace baton::runbook {

std::string lease_token(const Execution& execution) { return std::to_string(execution.delivery_count); }

bool hand_out(Ref ref, const std::string& worker, delivery::LeaseTime lease_time, Context context) {
  const auto job = context.ledger.job(ref);
  if (!job || job->row->job_state != JobState::queued) return false;
  Decision decision(context);
  Execution& row = *job->row;
  if (is_terminal(row.status)) {  // another program has ended it
    decision.job_over(*job);
    decision.adopt(*job);
    return false;
  }
  const Batch& batch = decision.batch_of(*job);
  if (!may_run(*job, batch)) {
    decision.cancel(*job, "the batch is " + std::string(name(batch.status)));
    decision.settle();
    return false;
  }
  if (batch.paused_at && !is_terminal(batch.status) && !MUTANT(runbook_pause_ignored)) {
    decision.change(*job, job_transition::park);
    return false;
  }
  if (++row.delivery_count == 1) row.log_bytes = 0;
  decision.change(*job, job_transition::hand_out);
  row.leased_by = worker;
  row.leased_at = context.now;
  row.queued_at.reset();
  row.lease_until = delivery::lease_end(context.now, deadline(row), lease_time);
  const auto poll_until = decision.poll_deadline(row);
  row.timer_due = poll_until ? std::min(*poll_until, *row.lease_until) : *row.lease_until;
  return true;
}

namespace {

constexpr const char* no_reason = "the worker gave no reason";

// What a result that cannot be taken in is told, and the batch's events with it.
Judged not_taken(Verdict verdict, const std::string& why, const JobReport& said, const Job& job,
                 Decision& decision) {
  decision.event(decision.batch_of(job).id, "result_ignored",
                 "a result of " + said.job_id + " was ignored: " + why, member_of(job), said.job_id);
  return {verdict, why, job.ref};
}

// The very failure because of which the step waits for its next attempt.
bool is_repeated_failure(const JobReport& said, const JobName& named, const Execution& row) {
  return !said.success && row.status == StepStatus::pending && row.retry_after &&
         row.retry_count == named.retry + 1 &&
         row.error_message == clean_text(said.error.value_or(no_reason), error_bytes_max);
}

// Whoever asks whether a result is of an earlier attempt or poll than the step is at asks here.
bool is_of_another_attempt(bool differs) { return differs && !MUTANT(runbook_old_attempt_accepted); }

// Why a result is of another attempt, or another job, than the step is at.
std::optional<std::string> other_attempt(const JobReport& said, const std::optional<JobName>& named, const Job& job) {
  const Execution& row = *job.row;
  if (is_from_another(row)) {
    const bool is_older = named && named->ref == job.ref && named->retry < row.retry_count;
    const bool is_other = !said.correlated && row.status == StepStatus::dispatched && row.job_id &&
                          *row.job_id != said.job_id;  // of polls it may not note the last
    if (!is_of_another_attempt(is_older || is_other)) return std::nullopt;
    return "it is not of the attempt that the step is at";
  }
  if (is_of_another_attempt(!named || named->retry != std::max(row.retry_count, 0)))
    return "the attempt is over: the step is at retry " + std::to_string(row.retry_count);
  return std::nullopt;
}

// A lease that ran out is still the last one given until somebody else is handed the job. Leases are counted anew for each
// poll, so that of an earlier one is over whatever its number. Who repeats that a poll was not complete was heard, though:
// nothing else makes a step poll again.
bool has_old_lease(const JobReport& said, const Execution& row) {
  if (!said.lease || MUTANT(runbook_stale_lease_accepted)) return false;
  if (!is_of_another_attempt(said.job_id != row.job_id)) return *said.lease != lease_token(row);
  return !said.success || !says_incomplete(said.result, row.is_poll_step);
}

}  // namespace

Judged report(const JobReport& said, Context context) {
  const auto named = parse_job_id(said.job_id);
  const auto ref = said.correlated ? said.correlated : named ? std::optional{named->ref} : std::nullopt;
  const auto job = ref ? context.ledger.job(*ref) : std::nullopt;
  if (!job) return {Verdict::unknown, "there is no job '" + said.job_id + "'", {}};
  Execution& row = *job->row;
  Decision decision(context);
  const bool is_anothers = is_from_another(row);
  const bool has_ended = is_terminal(row.status);
  const bool is_awaited = (is_out(row) && !has_ended) || MUTANT(runbook_terminal_changes);
  if (!is_anothers) {
    if (named && named->ref != *ref)
      return {Verdict::contradicts,
              "jobId '" + said.job_id + "' and correlationData, which names " + std::string(name(ref->type)) +
                  " " + std::to_string(ref->id) + ", do not mean the same step",
              *ref};
    if (has_ended && !is_awaited)
      return not_taken(Verdict::ignored, "the step is " + std::string(name(row.status)), said, *job,
                       decision);
    if (named && is_repeated_failure(said, *named, row))
      return not_taken(Verdict::ignored, "it was taken in before", said, *job, decision);
  }
  if (const auto why = other_attempt(said, named, *job))
    return not_taken(Verdict::stale, *why, said, *job, decision);
  if (!is_anothers && has_old_lease(said, row))
    return {Verdict::stale, "the lease is over: another worker has the job now, or its poll was answered", *ref};
  const bool is_other_poll = row.job_id != said.job_id || !is_awaited;
  if (!is_anothers && is_of_another_attempt(is_other_poll))
    return not_taken(Verdict::ignored, "it is not the job that the step waits for", said, *job, decision);
  if (is_anothers) decision.adopt(*job);
  if (said.worker) row.leased_by = said.worker;
  if (said.success)
    decision.succeed(*job, said.result);
  else
    decision.attempt_failed(*job, said.error.value_or(no_reason));
  decision.settle();
  return {Verdict::accepted, "", *ref};
}

namespace {

// Reads what settling the phase will read, so that what cannot be read is found before anything is changed.
void look_through(std::int64_t phase_id, Ledger& ledger) {
  const PhaseExecution& phase = ledger.existing_phase(phase_id).row;
  const Batch& batch = ledger.existing_batch(phase.batch_id).row;
  (void)ledger.definition(batch, phase.runbook_version);
  (void)ledger.inits_of(batch.id);
  (void)ledger.phases_of(batch.id);
}

}  // namespace

void adopt_jobs(const std::vector<Ref>& jobs, Context context) {
  Decision decision(context);
  for_all(jobs, [&](Ref ref) {
    try {
      if (ref.type == RowType::phase) {
        look_through(ref.id, context.ledger);
        return decision.phase_touched(ref.id);
      }
      const auto job = context.ledger.job(ref);
      if (!job) return;
      (void)decision.definition_of(*job);
      if (job->step) look_through(job->step->phase_execution_id, context.ledger);
      decision.adopt(*job);
      if (job->step) decision.phase_touched(job->step->phase_execution_id);
    } catch (const Unreadable&) {  // one of many: it is told when it is asked for by itself
    }
  });
  decision.settle();
}

namespace {

std::optional<Job> leased_job(std::string_view job_id, std::string_view lease, Context context) {
  const auto named = parse_job_id(job_id);
  const auto job = named ? context.ledger.job(named->ref) : std::nullopt;
  if (!job || job->row->job_state != JobState::leased || job->row->job_id != job_id ||
      lease_token(*job->row) != lease)
    return std::nullopt;
  return job;
}

}  // namespace

bool renew(std::string_view job_id, std::string_view lease, delivery::LeaseTime lease_time, Context context) {
  const auto job = leased_job(job_id, lease, context);
  if (!job) return false;
  Execution& row = *job->row;
  const bool is_kept = row.lease_until >= deadline(row);
  if (!is_kept) row.lease_until = delivery::lease_end(context.now, deadline(row), lease_time);
  row.timer_due = delivery::timer_after_renewal(row.timer_due, *row.lease_until);
  job->state->changed = true;
  return true;
}

bool give_back(std::string_view job_id, std::string_view lease, Context context) {
  const auto job = leased_job(job_id, lease, context);
  if (!job) return false;
  Decision(context).enqueue(*job, job_transition::redeliver);
  return true;
}

bool keep(std::string_view job_id, std::string_view lease, Context context) {
  const auto named = parse_job_id(job_id);
  const auto job = named ? context.ledger.job(named->ref) : std::nullopt;
  if (!job) return false;
  const bool is_over = job->row->job_id != job_id || is_terminal(job->row->status) || job->row->job_state == JobState::none;
  return is_over || renew(job_id, lease, std::nullopt, context);
}

bool abandon(std::string_view job_id, std::string_view lease, std::string_view reason, Context context) {
  const auto job = leased_job(job_id, lease, context);
  if (!job) return false;
  const std::int32_t deliveries = job->row->delivery_count;
  if (deliveries < context.policy.deliveries_max) return give_back(job_id, lease, context);
  return give_up(job_id, lease, "given up after " + std::to_string(deliveries) + " deliveries: " + std::string(reason),
                 context);
}

bool give_up(std::string_view job_id, std::string_view lease, std::string_view reason, Context context) {
  const auto job = leased_job(job_id, lease, context);
  if (!job) return false;
  Decision decision(context);
  if (MUTANT(given_up_tried_again)) return give_back(job_id, lease, context);
  job->row->dead_at = context.now;
  decision.fail(*job, step_transition::fail, std::string(reason));
  decision.settle();
  return true;
}

namespace {

void lease_ran_out(const Job& job, Decision& decision) {
  Execution& row = *job.row;
  const auto poll_until = decision.poll_deadline(row);
  if (poll_until && decision.now >= *poll_until)
    return decision.fail(job, step_transition::time_out, timed_out_polling(row));
  const delivery::Lease lease{row.leased_at.value_or(Time{}), row.lease_until.value_or(decision.now),
                              deadline(row), row.delivery_count};
  std::visit(overloaded{
                 [&](delivery::StillHeld held) {
                   row.lease_until = held.until;
                   row.timer_due = poll_until ? std::min(*poll_until, held.until) : held.until;
                   job.state->changed = true;
                 },
                 [&](delivery::TimedOut) {
                   decision.attempt_failed(
                       job, "timed out after " + std::to_string(row.timeout_sec.value_or(3600)) + " s");
                 },
                 [&](delivery::Redeliver) { decision.enqueue(job, job_transition::redeliver); },
                 [&](delivery::GivenUp) {
                   row.dead_at = decision.now;
                   decision.fail(job, step_transition::fail,
                                 "given up after " + std::to_string(row.delivery_count) +
                                     " deliveries, each of whose workers went silent");
                 },
             },
             delivery::expiry(lease, decision.policy, decision.now));
}

}  // namespace

void job_timer_fired(const Job& job, Decision& decision) {
  Execution& row = *job.row;
  if (!row.timer_due || *row.timer_due > decision.now) return;  // moved or cleared in this very batch
  row.timer_due.reset();
  job.state->changed = true;
  if (is_terminal(row.status)) {  // another program has ended it
    decision.job_over(job);
    return decision.adopt(job);
  }
  if (row.job_state == JobState::leased) return lease_ran_out(job, decision);
  if (row.status == StepStatus::pending) return decision.retry(job);
  if (row.status != StepStatus::polling) return;
  const auto until = decision.poll_deadline(row);
  if (until && decision.now >= *until)
    decision.fail(job, step_transition::time_out, timed_out_polling(row));
  else if (row.job_state == JobState::none && decision.policy.scheduler)
    decision.poll(job);
  else
    row.timer_due = row.job_state == JobState::none ? decision.next_poll(row) : until;
}

}  // namespace baton::runbook
