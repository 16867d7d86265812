// One job: dispatch, polls, retries, its worker.
#include <algorithm>
#include <boost/json.hpp>

#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/definition/template.hpp"
#include "core/runbook/machine/decision.hpp"
#include "core/runbook/members/members.hpp"

namespace baton::runbook {
namespace {

constexpr const char* no_reason = "the worker gave no reason";

std::string_view prefix(const Job& job) {
  if (job.step) return "step";
  return job.init ? "init" : name(job.cleanup->kind);
}

Duration retry_delay(const Execution& row) {
  const std::chrono::seconds interval{
      std::max(row.retry_interval_sec.value_or(60), 0)};  // others write these rows too
  const std::chrono::seconds most{row.retry_max_interval_sec.value_or(24 * 3600)};
  return delivery::RetryDelay{interval, row.retry_backoff == "exponential", std::max(most, interval)}.before(
      std::clamp(row.retry_count, 0, 1'000) + 1);
}

// What a poll step's worker says: {"complete": false} is not done yet, {"complete": true, "data": …} is.
struct PollAnswer {
  std::optional<bool> complete;
  OptionalJson data;
};

PollAnswer read_poll_answer(const OptionalJson& result, bool is_poll_step) {
  PollAnswer answer;
  const auto is_same_letter = [](char a, char b) { return (a | 0x20) == b; };
  const std::string_view word = "complete";
  if (!result || (!is_poll_step && std::ranges::search(result->text, word, is_same_letter).empty()))
    return answer;
  boost::system::error_code error;
  const auto value = boost::json::parse(result->text, error);
  if (error || !value.is_object()) return answer;
  for (const auto& entry : value.get_object()) {
    const auto is = [&](std::string_view key) {
      return std::ranges::equal(entry.key(), key, is_same_letter);
    };
    if (is(word) && entry.value().is_bool()) answer.complete = entry.value().get_bool();
    if (is("data")) answer.data = Json{boost::json::serialize(entry.value())};
  }
  return answer;
}

Time deadline(const Execution& row) {
  return row.leased_at.value_or(Time{}) + std::chrono::seconds{row.timeout_sec.value_or(3600)};
}

bool is_out(const Execution& row) { return row.job_state != JobState::none; }

// Another orchestrator gave the job out, and we have not: ours are queued before anybody has them, and are
// counted when they are delivered. Its worker may report under any job id.
bool is_from_another(const Execution& row) {
  if (row.delivery_count > 0) return false;
  if (row.status == StepStatus::dispatched)
    return row.job_state == JobState::none || row.job_state == JobState::leased;
  return row.status == StepStatus::polling && row.job_state == JobState::none;
}

// Somebody may leave a batch that has ended: that is cleaned up all the same.
bool may_run(const Job& job, const Batch& batch) {
  if (!is_terminal(batch.status)) return true;
  return job.cleanup && job.cleanup->kind == CleanupKind::removal;
}

std::optional<std::int64_t> member_of(const Job& job) {
  if (job.step) return job.step->batch_member_id;
  return job.cleanup ? job.cleanup->batch_member_id : std::nullopt;
}

std::string timed_out_polling(const Execution& row) {
  return "polling timed out after " + std::to_string(row.poll_timeout_sec.value_or(0)) + " s";
}

}  // namespace

// --- counting and status

void Decision::count(const Job& job, StepStatus status, std::int64_t by) {
  if (MUTANT(runbook_counts_drift) && status == StepStatus::polling) return;
  if (job.step) {
    const std::int64_t phase_id = job.step->phase_execution_id;
    const std::int64_t batch_id = ledger.existing_phase(phase_id).row.batch_id;
    const bool catch_up = job.step->is_catch_up;
    ledger.count(batch_id, phase_id, catch_up ? "catch_up" : "step", job.row->step_index, name(status), by);
    if (catch_up) ledger.count(batch_id, 0, "catch_up", 0, name(status), by);
  } else if (job.init) {
    ledger.count(job.init->batch_id, 0, "init", 0, name(status), by);
  } else {
    ledger.count(job.cleanup->batch_id, 0, name(job.cleanup->kind), 0, name(status), by);
    if (job.cleanup->phase_execution_id)
      ledger.count(job.cleanup->batch_id, *job.cleanup->phase_execution_id, name(job.cleanup->kind), 0,
                   name(status), by);
  }
}

void Decision::adopt(const Job& job) {
  if (job.step && !job.row->counted_as) {  // also what another scheduler has made for one who is late
    const auto* member = ledger.member(job.step->batch_member_id);
    if (member && member->row.catching_up) job.step->is_catch_up = true;
  }
  take_over(job);
  recount(job);
}

// What another orchestrator has left dispatched or polling, or waiting for a retry, gets a timer of ours.
// Whatever the row does not say of timeouts and retries is as in the runbook.
void Decision::take_over(const Job& job) {
  Execution& row = *job.row;
  if (row.timer_due || MUTANT(others_jobs_forgotten)) return;  // it is ours already
  if (row.status == StepStatus::pending && row.retry_after && row.retry_count > 0) {
    row.timer_due = row.retry_after;
    job.state->changed = true;
  }
  if (!is_from_another(row)) return;
  if (const Step* step = definition_of(job)) {
    Execution planned;
    fill_from(*step, book_of(job), static_cast<std::size_t>(row.step_index), planned);
    const auto unless_said = [](auto& said, const auto& otherwise) {
      if (!said) said = otherwise;
    };
    unless_said(row.timeout_sec, planned.timeout_sec);
    if (!row.max_retries) {
      row.max_retries = planned.max_retries;
      unless_said(row.retry_interval_sec, planned.retry_interval_sec);
      unless_said(row.retry_backoff, planned.retry_backoff);
      unless_said(row.retry_max_interval_sec, planned.retry_max_interval_sec);
    }
    unless_said(row.poll_interval_sec, planned.poll_interval_sec);
    unless_said(row.poll_timeout_sec, planned.poll_timeout_sec);
  }
  job.state->changed = true;
  if (row.status == StepStatus::dispatched) {
    row.job_state = JobState::leased;
    row.leased_at = std::min(row.dispatched_at.value_or(now), now);
    row.lease_until = std::max(deadline(row), now + policy.short_lease);  // its worker may be about to report
    row.timer_due = row.lease_until;
  } else {
    if (!row.poll_started_at)
      row.poll_started_at = row.last_polled_at ? row.last_polled_at : std::optional{now};
    row.timer_due = next_poll(row);
  }
}

void Decision::recount(const Job& job) {
  if (job.row->counted_as == job.row->status) return;
  if (job.row->counted_as) count(job, *job.row->counted_as, -1);
  count(job, job.row->status, 1);
  job.row->counted_as = job.row->status;
  job.state->changed = true;
}

// A step is taken out of its phase: nobody there waits for it any more.
void Decision::set_catch_up(const Job& job) {
  if (job.step->is_catch_up) return;
  if (job.row->counted_as) count(job, *job.row->counted_as, -1);
  job.row->counted_as.reset();
  job.step->is_catch_up = true;
  adopt(job);
}

Batch& Decision::batch_of(const Job& job) {
  const std::int64_t id = job.step   ? ledger.existing_phase(job.step->phase_execution_id).row.batch_id
                          : job.init ? job.init->batch_id
                                     : job.cleanup->batch_id;
  return ledger.existing_batch(id).row;
}

// --- resolving

const Definition& Decision::book_of(const Job& job) {
  const std::int32_t version = job.step
                                   ? ledger.existing_phase(job.step->phase_execution_id).row.runbook_version
                               : job.init ? job.init->runbook_version
                                          : job.cleanup->runbook_version;
  return ledger.definition(batch_of(job), version);
}

const Step* Decision::definition_of(const Job& job) {
  const auto pick = [&](const std::vector<Step>& steps) -> const Step* {
    const auto at = static_cast<std::size_t>(job.row->step_index);
    if (at < steps.size() && steps[at].name == job.row->step_name) return &steps[at];
    const auto it = std::ranges::find(steps, job.row->step_name, &Step::name);
    return it == steps.end() ? nullptr : &*it;
  };
  if (job.step) {
    const PhaseExecution& phase = ledger.existing_phase(job.step->phase_execution_id).row;
    const Phase* definition = book_of(job).phase(phase.phase_name);
    return definition ? pick(definition->steps) : nullptr;
  }
  const Definition& definition = book_of(job);
  if (job.init) return pick(definition.init);
  return pick(job.cleanup->kind == CleanupKind::removal ? definition.on_member_removed
                                                        : definition.rollback(job.cleanup->sequence));
}

// Fills in function and parameters from the data of this moment.
void Decision::resolve(const Job& job) {
  Execution& row = *job.row;
  if (row.params_json && row.params_json->text != "null") {  // somebody else may have written it
    boost::system::error_code error;
    if (const auto value = boost::json::parse(row.params_json->text, error); !error && value.is_object())
      return;
    throw Unresolved{"step '" + row.step_name + "': its params_json is not a JSON object"};
  }
  const Batch& batch = batch_of(job);
  const Step* step = definition_of(job);
  if (!step) throw Unresolved{"step '" + row.step_name + "': the runbook has no such step"};
  OptionalJson data, worker_data;
  std::optional<std::int64_t> member_id;
  std::int32_t version = 0;
  if (job.step) {
    member_id = job.step->batch_member_id;
    version = ledger.existing_phase(job.step->phase_execution_id).row.runbook_version;
  } else if (job.cleanup) {
    member_id = job.cleanup->batch_member_id;
    version = job.cleanup->runbook_version;
  }
  if (member_id) {
    const auto* member = ledger.member(*member_id);
    if (!member) throw Unresolved{"step '" + row.step_name + "': its member does not exist"};
    data = member->row.data_json;
    worker_data = member->row.worker_data_json;
    if (!data) {
      const auto* book = ledger.runbook(ledger.existing_runbook(batch.runbook_id).row.name, version);
      if (book && !book->row.data_table_name.empty())
        data = ledger.data_row(book->row.data_table_name, member->row.member_key);
      if (data) data = with_lists(book_of(job).data_source, *std::move(data));
    }
  }
  const Scope scope(data, worker_data, batch.id, batch.batch_start_time);
  const auto unknown = [&](const std::string& variable) {
    return Unresolved{"step '" + row.step_name + "': variable '" + variable + "' has no value" +
                      (member_id ? " for this member" : " here: only batch variables are known")};
  };
  auto function = scope.text(step->function);
  if (!function) throw unknown(function.error());
  auto params = scope.json(step->params);
  if (!params) throw unknown(params.error());
  row.function_name = *std::move(function);
  row.params_json = *std::move(params);
}

void Decision::enqueue(const Job& job) {
  Execution& row = *job.row;
  row.job_id = runbook::job_id(prefix(job), job.ref.id, row.retry_count,
                               row.status == StepStatus::polling ? row.poll_count : 0);
  row.job_state = JobState::queued;
  row.queued_at = now;
  row.lease_until.reset();
  row.leased_at.reset();
  row.timer_due = poll_deadline(row);
  job.state->changed = true;
  journal.queued.push_back({job.ref, row.worker_id, now});
}

void Decision::dispatch(const Job& job) {
  Execution& row = *job.row;
  if (row.status != StepStatus::pending) return;
  row.retry_after.reset();
  row.timer_due.reset();
  row.delivery_count = 0;
  try {
    resolve(job);
  } catch (const Unresolved& problem) {
    return fail(job, step_transition::fail, problem.message);
  }
  row.dispatched_at = now;
  change(job, step_transition::dispatch);
  enqueue(job);
}

// Of a phase that another orchestrator began, or that waits for the init steps, the walk gives it out.
void Decision::retry(const Job& job) {
  const auto* phase = job.step && !job.step->is_catch_up ? &ledger.existing_phase(job.step->phase_execution_id) : nullptr;
  if (phase && phase->row.status == PhaseStatus::dispatched && !is_walked(phase->row)) {
    job.row->retry_after.reset();
    job.row->timer_due.reset();
    job.state->changed = true;
    return phase_touched(phase->row.id);
  }
  dispatch(job);
}

// --- polling

std::optional<Time> Decision::poll_deadline(const Execution& row) const {
  if (row.status != StepStatus::polling || !row.poll_started_at || !row.poll_timeout_sec) return std::nullopt;
  if (MUTANT(poll_never_times_out)) return std::nullopt;
  return *row.poll_started_at + std::chrono::seconds{*row.poll_timeout_sec};
}

void Decision::still_polling(const Job& job, OptionalJson result) {
  Execution& row = *job.row;
  job_over(job);
  row.delivery_count = std::max(row.delivery_count, 1);  // from here on it is ours, whoever began it
  if (!row.poll_started_at) row.poll_started_at = now;
  row.last_polled_at = now;
  row.result_json = std::move(result);
  change(job, step_transition::poll);
  row.timer_due = next_poll(row);
}

// Also when another scheduler asks: it may be replaced by ours before it has.
Time Decision::next_poll(const Execution& row) const {
  const Time next = now + std::chrono::seconds{std::max(row.poll_interval_sec.value_or(300), 1)};
  const auto until = poll_deadline(row);
  return until ? std::min(*until, next) : next;
}

void Decision::poll(const Job& job) {
  Execution& row = *job.row;
  if (row.status != StepStatus::polling || is_out(row)) return;
  const auto until = poll_deadline(row);
  if (until && now >= *until) return fail(job, step_transition::time_out, timed_out_polling(row));
  ++row.poll_count;
  row.last_polled_at = now;
  row.delivery_count = 0;
  enqueue(job);
}

// --- ends

void Decision::job_over(const Job& job) {
  job.row->job_state = JobState::none;
  job.row->lease_until.reset();
  job.row->queued_at.reset();
  job.row->timer_due.reset();
  job.state->changed = true;
}

void Decision::succeed(const Job& job, OptionalJson result) {
  Execution& row = *job.row;
  const PollAnswer answer = read_poll_answer(result, row.is_poll_step);
  if (answer.complete == false && row.is_poll_step) return still_polling(job, std::move(result));
  if (answer.complete == false)
    return attempt_failed(job, "the worker says that it is not complete, but the step has no 'poll'");
  // Workers that exist leave `complete` out when they are done.
  if (row.is_poll_step && !answer.complete) {
    const std::string said = "answered " + (result ? clean_text(result->text, 200) : "nothing");
    const Step* step = definition_of(job);
    if (step && step->poll && step->poll->strict)
      return attempt_failed(job,
                            "a step with 'poll: {strict: true}' must answer {\"complete\": true} or "
                            "{\"complete\": false}, and it " +
                                said);
    event(batch_of(job).id, "poll_answer_unclear",
          "step '" + row.step_name +
              "' has 'poll', its answer has no 'complete', and so it counts as done: it " + said,
          member_of(job), row.job_id);
  }
  job_over(job);
  row.error_message.reset();
  row.result_json = result ? result : OptionalJson{Json{"null"}};
  change(job, step_transition::succeed);
  if (job.step) {
    const Step* definition = definition_of(job);
    if (definition && !definition->output_params.empty()) {
      auto* member = ledger.member(job.step->batch_member_id);
      const Json& source = row.is_poll_step && answer.data ? *answer.data : *row.result_json;
      if (member && !MUTANT(outputs_forgotten)) {
        member->row.worker_data_json =
            merge_outputs(member->row.worker_data_json, source, definition->output_params);
        member->changed = true;
        adopt(*member);
      }
    }
    step_succeeded(*job.step);
  } else if (job.init) {
    init_succeeded(*job.init);
  } else {
    cleanup_ended(*job.cleanup);
  }
}

void Decision::attempt_failed(const Job& job, const std::string& error) {
  Execution& row = *job.row;
  const bool again = row.retry_count < row.max_retries.value_or(0) && may_run(job, batch_of(job));
  if (!again || MUTANT(runbook_retry_forgotten)) return fail(job, step_transition::fail, error);
  job_over(job);
  const Duration delay = retry_delay(row);
  row.retry_count = std::max(row.retry_count, 0) + 1;
  row.retry_after = now + delay;
  row.job_id.reset();
  row.error_message = clean_text(error, error_bytes_max);
  row.poll_started_at.reset();
  row.last_polled_at.reset();
  row.poll_count = 0;
  change(job, step_transition::retry);
  row.timer_due = row.retry_after;
}

void Decision::fail(const Job& job, const Transition<StepStatus>& how, const std::string& error) {
  Execution& row = *job.row;
  job_over(job);
  row.retry_after.reset();
  row.error_message = clean_text(error, error_bytes_max);
  change(job, how);
  if (job.step) {
    step_failed(job);
  } else if (job.init) {
    event(job.init->batch_id, "init_failed",
          "init step '" + row.step_name + "' failed: " + *row.error_message, std::nullopt, row.job_id);
    begin_rollback(job);
  } else {
    event(job.cleanup->batch_id, std::string(name(job.cleanup->kind)) + "_step_failed",
          "step '" + row.step_name + "' of '" + job.cleanup->sequence + "' failed: " + *row.error_message,
          job.cleanup->batch_member_id, row.job_id);
    cleanup_ended(*job.cleanup);
  }
}

void Decision::cancel(const Job& job, const std::string& reason) {
  if (is_terminal(job.row->status)) return;
  job_over(job);
  job.row->retry_after.reset();
  if (!reason.empty()) job.row->error_message = reason;
  change(job, step_transition::cancel);
}

// By hand: an attempt of its own, with as many retries as the runbook gives.
bool Decision::make_again(const Job& job, const std::string& by) {
  Execution& row = *job.row;
  if (!is_failure(row.status) && row.status != StepStatus::cancelled) return false;
  if (row.dispatched_at) ++row.retry_count;  // it had an attempt; the next one has another name
  if (const Step* step = definition_of(job))
    row.max_retries = row.retry_count + book_of(job).retry_of(*step).max_retries;
  row.dead_at.reset();
  row.job_id.reset();
  row.poll_started_at.reset();
  row.last_polled_at.reset();
  row.poll_count = 0;
  row.delivery_count = 0;
  if (definition_of(job)) row.params_json = Json{"null"};  // resolved anew: the data may have been corrected
  row.error_message = "retried by " + (by.empty() ? std::string("hand") : by) +
                      (row.error_message ? "; before: " + *row.error_message : "");
  change(job, step_transition::again);
  return true;
}

// --- a job and its worker

std::string lease_token(const Execution& execution) { return std::to_string(execution.delivery_count); }

bool hand_out(Ref ref, const std::string& worker, bool heartbeats, Context context) {
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
    row.job_state = JobState::parked;
    job->state->changed = true;
    return false;
  }
  if (++row.delivery_count == 1) row.log_bytes = 0;
  row.job_state = JobState::leased;
  row.leased_by = worker;
  row.leased_at = context.now;
  row.queued_at.reset();
  row.lease_until = delivery::lease_end(context.now, deadline(row), heartbeats, context.policy);
  const auto poll_until = decision.poll_deadline(row);
  if (!MUTANT(runbook_lease_timer_forgotten))
    row.timer_due = poll_until ? std::min(*poll_until, *row.lease_until) : *row.lease_until;
  job->state->changed = true;
  return true;
}

namespace {

// What a result that cannot be taken in is told, and the batch's events with it.
Judged not_taken(Verdict verdict, const std::string& why, const Report& said, const Job& job,
                 Decision& decision) {
  decision.event(decision.batch_of(job).id, "result_ignored",
                 "a result of " + said.job_id + " was ignored: " + why, member_of(job), said.job_id);
  return {verdict, why, job.ref};
}

// The very failure because of which the step waits for its next attempt.
bool is_repeated_failure(const Report& said, const JobName& named, const Execution& row) {
  return !said.success && row.status == StepStatus::pending && row.retry_after &&
         row.retry_count == named.retry + 1 &&
         row.error_message == clean_text(said.error.value_or(no_reason), error_bytes_max);
}

}  // namespace

Judged report(const Report& said, Context context) {
  const auto named = parse_job_id(said.job_id);
  const auto ref = said.correlated ? said.correlated : named ? std::optional{named->ref} : std::nullopt;
  const auto job = ref ? context.ledger.job(*ref) : std::nullopt;
  if (!job) return {Verdict::unknown, "there is no job '" + said.job_id + "'", {}};
  Execution& row = *job->row;
  Decision decision(context);
  if (is_from_another(row)) {
    const bool is_older = named && named->ref == *ref && named->retry < row.retry_count;
    const bool is_other = !said.correlated && row.status == StepStatus::dispatched && row.job_id &&
                          *row.job_id != said.job_id;  // of polls it may not note the last
    if ((is_older || is_other) && !MUTANT(runbook_old_attempt_accepted))
      return not_taken(Verdict::stale, "it is not of the attempt that the step is at", said, *job, decision);
    decision.adopt(*job);
  } else {
    if (named && named->ref != *ref)
      return {Verdict::contradicts,
              "jobId '" + said.job_id + "' and correlationData, which names " + std::string(name(ref->kind)) +
                  " " + std::to_string(ref->id) + ", do not mean the same step",
              *ref};
    if (is_terminal(row.status) && !MUTANT(runbook_terminal_changes))
      return not_taken(Verdict::ignored, "the step is " + std::string(name(row.status)), said, *job,
                       decision);
    if (named && is_repeated_failure(said, *named, row))
      return not_taken(Verdict::ignored, "it was taken in before", said, *job, decision);
    const bool old_attempt = !named || named->retry != std::max(row.retry_count, 0);
    if (old_attempt && !MUTANT(runbook_old_attempt_accepted))
      return not_taken(Verdict::stale,
                       "the attempt is over: the step is at retry " + std::to_string(row.retry_count), said,
                       *job, decision);
    const bool over = !is_out(row) && !MUTANT(runbook_terminal_changes);
    if ((row.job_id != said.job_id || over) && !MUTANT(runbook_old_attempt_accepted))
      return not_taken(Verdict::ignored, "it is not the job that the step waits for", said, *job, decision);
    // A lease that ran out is still the last one given until somebody else is handed the job.
    if (said.lease && *said.lease != lease_token(row) && !MUTANT(runbook_stale_lease_accepted))
      return {Verdict::stale, "the lease is over: the job was given to another worker", *ref};
  }
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
      if (ref.kind == Kind::phase) {
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

bool renew(std::string_view job_id, std::string_view lease, Context context) {
  const auto job = leased_job(job_id, lease, context);
  if (!job) return false;
  Execution& row = *job->row;
  row.lease_until = delivery::lease_end(context.now, deadline(row), true, context.policy);
  row.timer_due = delivery::timer_after_renewal(row.timer_due, *row.lease_until);
  job->state->changed = true;
  return true;
}

bool give_back(std::string_view job_id, std::string_view lease, Context context) {
  const auto job = leased_job(job_id, lease, context);
  if (!job) return false;
  Decision(context).enqueue(*job);
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
                 [&](delivery::Redeliver) { decision.enqueue(job); },
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
