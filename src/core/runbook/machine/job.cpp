// One job: dispatch, polls, retries, ends. What its worker does to it is in job_worker.cpp.
#include <algorithm>
#include <boost/json.hpp>

#include "base/json_write.hpp"
#include "base/mutant.hpp"
#include "base/result.hpp"
#include "core/runbook/definition/template.hpp"
#include "core/runbook/machine/decision.hpp"
#include "core/runbook/machine/job_row.hpp"
#include "core/runbook/members/members.hpp"

namespace baton::runbook {
namespace {

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
    if (is("data")) answer.data = Json{json_text(entry.value())};
  }
  return answer;
}

std::string why_unresolved(const NotRendered& why, bool has_member) {
  const std::string variable = "variable '" + why.variable + "'";
  if (why.is_too_long)
    return "its function or params would be longer than 1 MiB" + (why.variable.empty() ? "" : " with " + variable);
  return variable + " has no value" + (has_member ? " for this member" : " here: only batch variables are known");
}

}  // namespace

bool says_incomplete(const OptionalJson& result, bool is_poll_step) {
  return read_poll_answer(result, is_poll_step).complete == false;
}

// --- counting and status

void Decision::count(const Job& job, StepStatus status, std::int64_t by) {
  const bool skipped = status == StepStatus::succeeded && is_skipped(*job.row);
  const auto add = [&](std::int64_t batch_id, std::int64_t phase_id, std::string_view lane, std::int32_t step_index) {
    ledger.count(batch_id, phase_id, lane, step_index, name(status), by);
    if (skipped) ledger.count(batch_id, phase_id, "skipped", step_index, lane, by);
  };
  if (job.step) {
    const std::int64_t phase_id = job.step->phase_execution_id;
    const std::int64_t batch_id = ledger.existing_phase(phase_id).row.batch_id;
    const bool catch_up = job.step->is_catch_up;
    add(batch_id, phase_id, catch_up ? "catch_up" : "step", job.row->step_index);
    if (catch_up) add(batch_id, 0, "catch_up", 0);
  } else if (job.init) {
    add(job.init->batch_id, 0, "init", 0);
  } else {
    add(job.cleanup->batch_id, 0, name(job.cleanup->kind), 0);
    if (job.cleanup->phase_execution_id)
      add(job.cleanup->batch_id, *job.cleanup->phase_execution_id, name(job.cleanup->kind), 0);
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
    change(job, job_transition::take_over);
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
  ++decided.spent.rows;
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
  const bool resolved = row.params_json && row.params_json->text != "null";  // somebody else may have written it
  if (resolved && !MUTANT(params_resolved_again)) {
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
  const auto bytes_of = [](const OptionalJson& json) { return json ? json->text.size() : 0; };
  decided.spent.bytes += bytes_of(data) + bytes_of(worker_data);
  const Scope scope(data, worker_data, batch.id, batch.batch_start_time);
  const auto unresolved = [&](const NotRendered& why) {
    return Unresolved{"step '" + row.step_name + "': " + why_unresolved(why, member_id.has_value())};
  };
  auto function = scope.text(step->function);
  if (!function) throw unresolved(function.error());
  auto params = scope.json(step->params);
  decided.spent.bytes += params ? params->text.size() : params.error().is_too_long ? rendered_bytes_max : 0;
  if (!params) throw unresolved(params.error());
  row.function_name = *std::move(function);
  row.params_json = *std::move(params);
}

void Decision::enqueue(const Job& job, const Transition<JobState>& how) {
  Execution& row = *job.row;
  row.job_id = runbook::job_id(prefix(job), job.ref.id, row.retry_count,
                               row.status == StepStatus::polling ? row.poll_count : 0);
  change(job, how);
  row.queued_at = now;
  row.lease_until.reset();
  row.leased_at.reset();
  row.timer_due = poll_deadline(row);
  decided.queued.push_back({job.ref, row.worker_id, now});
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
  enqueue(job, job_transition::queue);
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
  enqueue(job, job_transition::poll);
}

// --- ends

void Decision::job_over(const Job& job) {
  change(job, job_transition::end);
  job.row->lease_until.reset();
  job.row->queued_at.reset();
  job.row->timer_due.reset();
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

void Decision::clear_dead(const Job& job) {
  if (!job.row->dead_at) return;
  job.row->dead_at.reset();
  job.state->changed = true;
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

}  // namespace baton::runbook
