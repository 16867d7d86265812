// What people, schedulers and workers say about runbooks: each command is one call into core, and its outcome an
// answer.
#include <algorithm>
#include <iterator>

#include "engine/kinds/runbooks/transaction.hpp"

namespace baton::engine {
namespace {

Refusal refusal(runbook::Outcome::Problem problem) {
  using Problem = runbook::Outcome::Problem;
  switch (problem) {
    case Problem::runbook_not_found: return Refusal::runbook_not_found;
    case Problem::batch_not_found: return Refusal::batch_not_found;
    case Problem::phase_not_found: return Refusal::phase_not_found;
    case Problem::member_not_found: return Refusal::member_not_found;
    case Problem::step_not_found: return Refusal::step_not_found;
    case Problem::not_dead: return Refusal::not_dead;
    case Problem::hold_not_found: return Refusal::hold_not_found;
    case Problem::already_decided: return Refusal::already_decided;
    case Problem::no_such_answer: return Refusal::invalid_input;
    case Problem::open_batches: return Refusal::open_batches;
    default: return Refusal::not_possible;
  }
}

bool is_wrong(const runbook::Outcome& outcome) {
  return outcome.problem != runbook::Outcome::Problem::none;
}
Reply refused(const runbook::Outcome& outcome) { return Refused{refusal(outcome.problem), outcome.why, {}}; }

Reply members_reply(const runbook::Joined& joined) {
  if (is_wrong(joined.outcome)) return refused(joined.outcome);
  return MembersReply{joined.member_ids, joined.left_out, joined.more, joined.phases, joined.note};
}

Reply no_task(const std::string& task_id) {
  return Refused{Refusal::task_not_found, "there is no task '" + task_id + "'", {}};
}

}  // namespace

Reply RunbookTransaction::reply_to(const Command& command) {
  return std::visit(overloaded{
                        [&](const auto& c) -> Reply
                          requires requires { this->decide(c); }
                        { return decide(c); },
                        [](const auto&) -> Reply {
                          ENSURE(false);  // another kind's
                          return {};
                        },
                    },
                    command);
}

Reply RunbookTransaction::decide(const PublishRunbook& c) {
  const runbook::Publication how{c.overdue_behavior, c.rerun_init, c.open_batches};
  const auto published = runbook::publish(*c.definition, c.text, how, context());
  if (is_wrong(published.outcome)) return refused(published.outcome);
  return RunbookReply{published.runbook->row, published.outcome.changed};
}

Reply RunbookTransaction::decide(const ChangeRunbook& c) {
  using What = ChangeRunbook::What;
  if (c.what == What::deactivate || c.what == What::activate) {
    const auto switched = c.what == What::activate ? runbook::activate(c.name, c.version, context())
                                                   : runbook::deactivate(c.name, context());
    if (is_wrong(switched.outcome)) return refused(switched.outcome);
    return RunbookReply{switched.runbook->row, switched.outcome.changed};
  }
  const auto outcome = runbook::set_automation(c.name, c.version, c.what == What::automation_on, context());
  if (is_wrong(outcome)) return refused(outcome);
  return RunbookReply{round_->ledger.runbook(c.name, c.version)->row, outcome.changed};
}

// What the scheduler found out of a version that is not active any more is not worth anything.
std::optional<Refused> RunbookTransaction::replaced(std::int64_t of_runbook) {
  const auto outcome = runbook::still_active(of_runbook, round_->ledger);
  if (!is_wrong(outcome)) return std::nullopt;
  const bool gone = outcome.problem == runbook::Outcome::Problem::runbook_not_found;
  return Refused{gone ? Refusal::runbook_not_found : Refusal::runbook_replaced, outcome.why, {}};
}

Reply RunbookTransaction::decide(const NoteSync& c) {
  if (auto no = replaced(c.runbook_id)) return *std::move(no);
  runbook::note_sync(c.runbook_id, c.error, c.held_removals, c.approvals_seen, context());
  return RunbookReply{round_->ledger.runbook(c.runbook_id)->row, true};
}

Reply RunbookTransaction::decide(const OpenBatch& c) {
  if (auto no = replaced(c.of_runbook)) return *std::move(no);
  const auto opened = runbook::open_batch(c.runbook_name, c.version, c.batch_start_time, c.by, context());
  if (is_wrong(opened.outcome)) return refused(opened.outcome);
  return BatchReply{opened.batch->row, opened.outcome.changed, ""};
}

Reply RunbookTransaction::decide(const AddMembers& c) {
  if (auto no = replaced(c.of_runbook)) return *std::move(no);
  return members_reply(runbook::add_members(
      c.batch_id, c.members, context(),
      c.of_runbook == 0 ? std::optional(runbook::By(c.by, c.reason)) : std::nullopt));
}

Reply RunbookTransaction::decide(const StartBatch& c) {
  if (auto no = replaced(c.of_runbook)) return *std::move(no);
  const auto outcome = runbook::start_batch(c.batch_id, context());
  if (is_wrong(outcome)) return refused(outcome);
  return BatchReply{round_->ledger.batch(c.batch_id)->row, outcome.changed, ""};
}

Reply RunbookTransaction::decide(const RefreshMembers& c) {
  if (auto no = replaced(c.of_runbook)) return *std::move(no);
  MembersReply reply;
  for (const auto& one : c.members) {
    if (runbook::refresh_member(one.member_id, one.row, context()))
      reply.member_ids.push_back(one.member_id);
    else
      leave_out(reply.left_out, "gone", "removed, or not there", one.row.member_key);
  }
  return reply;
}

Reply RunbookTransaction::decide(const RemoveMembers& c) {
  if (auto no = replaced(c.of_runbook)) return *std::move(no);
  return members_reply(runbook::remove_members(c.batch_id, c.member_ids, c.member_keys, {c.by, c.reason},
                                               c.of_runbook == 0, context()));
}

Reply RunbookTransaction::decide(const SyncData& c) {
  if (auto no = replaced(c.runbook_id)) return *std::move(no);
  return RunbookReply{round_->ledger.runbook(c.runbook_id)->row, true};
}

Reply RunbookTransaction::decide(const RetryMembers& c) {
  return members_reply(runbook::retry_members(c.batch_id, c.member_ids, c.member_keys, {c.by, c.reason},
                                              context()));
}

Reply RunbookTransaction::decide(const ChangeBatch& c) {
  using What = ChangeBatch::What;
  runbook::Outcome outcome;
  switch (c.what) {
    case What::pause: outcome = runbook::pause(c.batch_id, c.by, c.reason, context()); break;
    case What::resume: outcome = runbook::resume(c.batch_id, c.by, c.reason, context()); break;
    case What::cancel: outcome = runbook::cancel(c.batch_id, c.by, c.reason, context()); break;
    case What::advance: outcome = runbook::advance(c.batch_id, c.phase, {c.by, c.reason}, context()); break;
    case What::approve_removals: outcome = runbook::approve_removals(c.batch_id, {c.by, c.reason}, context()); break;
  }
  if (is_wrong(outcome)) return refused(outcome);
  return BatchReply{round_->ledger.batch(c.batch_id)->row, outcome.changed, outcome.why};
}

Reply RunbookTransaction::decide(const AnswerHold& c) {
  const auto outcome = runbook::answer_hold(c.batch_id, c.hold_id, c.answer, c.by, c.reason, context());
  if (is_wrong(outcome)) return refused(outcome);
  return HoldReply{round_->ledger.hold(c.hold_id)->row, outcome.changed};
}

Reply RunbookTransaction::decide(const ChangeStep& c) {
  using What = ChangeStep::What;
  const runbook::By by(c.by, c.reason);
  const auto outcome = c.what == What::retry  ? runbook::retry_step(c.ref, by, context())
                       : c.what == What::skip ? runbook::skip_step(c.ref, by, context())
                                              : runbook::cancel_step(c.ref, by, context());
  if (is_wrong(outcome)) return refused(outcome);
  return StepReply{c.ref, round_->ledger.job(c.ref)->row->status};
}

Reply RunbookTransaction::decide(const RunbookEvent& c) {
  const auto outcome = runbook::handle(c.message, context());
  if (is_wrong(outcome)) return refused(outcome);
  return EventReply{outcome.changed, outcome.why};
}

Reply RunbookTransaction::decide(const AdoptPhases& c) {
  for (const std::int64_t id : c.phase_ids) runbook::adopt_phase(id, context());
  return EventReply{true, ""};
}

Reply RunbookTransaction::decide(const AdoptJobs& c) {
  runbook::adopt_jobs(c.jobs, context());
  return EventReply{true, ""};
}

// ---- workers

Reply RunbookTransaction::decide(const ReportResult& c) {
  if (!may_touch_jobs(c.tenant)) return no_task(c.task_id);
  const runbook::JobReport said{.job_id = c.task_id,
                             .correlated = c.correlated,
                             .success = c.completed,
                             .result = c.output,
                             .error = c.error,
                             .lease = c.lease,
                             .worker = c.worker};
  const auto judged = runbook::report(said, context());
  switch (judged.verdict) {
    case runbook::Verdict::accepted:
      if (const auto job = round_->ledger.job(judged.ref); job && job->row->leased_by)
        turn_.effects.emplace_back(
            WorkerReported{tenant_of_runbooks, *job->row->leased_by, c.task_id, c.completed});
      return ResultReply{};
    case runbook::Verdict::ignored: return ResultReply{.duplicate = false, .ignored = judged.why};
    case runbook::Verdict::stale: return Refused{Refusal::stale_result, judged.why, {}};
    case runbook::Verdict::contradicts: return Refused{Refusal::invalid_input, judged.why, {}};
    case runbook::Verdict::unknown: break;
  }
  return Refused{Refusal::task_not_found, judged.why, {}};
}

// What a job says goes to the same table as what a task says, under the name of its step.
Reply RunbookTransaction::decide(const TaskNote& c) {
  if (!may_touch_jobs(c.tenant)) return no_task(c.task_id);
  const auto* log = std::get_if<TaskLog>(&c.note);
  const auto lines = log ? std::span<const delivery::LogText>(log->lines) : std::span<const delivery::LogText>();
  auto taken = runbook::take_log(c.task_id, c.lease, lines, context());
  switch (taken.judged.verdict) {
    case runbook::Verdict::accepted: break;
    case runbook::Verdict::unknown: return Refused{Refusal::task_not_found, taken.judged.why, {}};
    default: return Refused{Refusal::stale_result, taken.judged.why, {}};
  }
  if (!log)
    return Refused{Refusal::not_possible, "jobs of runbooks have neither progress nor checkpoints", {}};
  const std::size_t stored = taken.lines.size();
  std::ranges::move(taken.lines, std::back_inserter(round_->logs));
  return NoteReply{stored};
}

Reply RunbookTransaction::decide(const SettleTask& c) {
  if (!may_touch_jobs(c.tenant)) return no_task(c.task_id);
  const bool is_its = c.how == SettleTask::How::keep      ? runbook::keep(c.task_id, c.lease, context())
                      : c.how == SettleTask::How::abandon ? runbook::abandon(c.task_id, c.lease, c.reason, context())
                                                          : runbook::give_up(c.task_id, c.lease, c.reason, context());
  if (is_its) return SettleReply{};
  return Refused{Refusal::stale_result, "the lease of job '" + c.task_id + "' is over", {}};
}

Reply RunbookTransaction::decide(const ReplayTask& c) {
  if (!may_touch_jobs(c.tenant)) return no_task(c.task_id);
  const auto outcome = runbook::replay(c.task_id, c.by, context());
  if (is_wrong(outcome)) return refused(outcome);
  const runbook::Ref ref = runbook::parse_job_id(c.task_id)->ref;
  return StepReply{ref, round_->ledger.job(ref)->row->status};
}

}  // namespace baton::engine
