#include "ports/commands.hpp"

namespace baton {
namespace {

std::string id_of_task(std::string_view task_id) {
  if (const auto named = runbook::parse_job_id(task_id)) return std::to_string(named->ref.id);
  if (message::parse_task_id(task_id)) return std::string(task_id);
  const auto named = workflow::parse_task_id(task_id);
  return named ? std::string(named->job_id) : "";
}

template <class Id>
std::string first_of(const std::vector<Id>& all, auto&& id_of) {
  return all.empty() ? "" : id_of(all.front());
}
std::string id_of_key(const call::CallKey& key) { return key.id.value; }

}  // namespace

Subject::Type type_of_task(std::string_view task_id) {
  if (message::parse_task_id(task_id)) return Subject::Type::message;
  const auto named = runbook::parse_job_id(task_id);
  return named ? subject_type(named->ref.type) : Subject::Type::job;
}

namespace {

// Of what workers say of their work. Messages are settled in other words: who says so of one means no task that there is.
Subject::Type type_of_reported(std::string_view task_id) {
  const Subject::Type type = type_of_task(task_id);
  return type == Subject::Type::message ? Subject::Type::job : type;
}

}  // namespace

Subject::Type subject_type(const Command& command) {
  using enum Subject::Type;
  return std::visit(
      overloaded{
          [](const one_of<SubmitJob, AwaitJob, ChangeJob, DecideApproval, ExplainJob> auto&) { return job; },
          [](const one_of<ReplayTask, TaskNote, SettleTask> auto& c) { return type_of_reported(c.task_id); },
          [](const ReportResult& c) {
            return c.correlated ? subject_type(c.correlated->type) : type_of_reported(c.task_id);
          },
          [](const ReturnTasks& c) { return c.tasks.empty() ? job : type_of_task(c.tasks.front().task_id); },
          [](const PublishWorkflow&) { return workflow; },
          [](const Poll&) { return queue; },
          [](const one_of<Heartbeat, ListWorkers, LookAtQueues> auto&) { return worker; },
          [](const one_of<PublishRunbook, ChangeRunbook, OpenBatch> auto&) { return runbook; },
          [](const one_of<NoteSync, SyncData> auto&) { return version; },
          [](const one_of<AddMembers, StartBatch, RemoveMembers, RetryMembers, ChangeBatch, AnswerHold,
                          RunbookEvent> auto&) { return batch; },
          [](const RefreshMembers&) { return member; },
          [](const AdoptPhases&) { return phase; },
          [](const ChangeStep& c) { return subject_type(c.ref.type); },
          [](const AdoptJobs& c) { return c.jobs.empty() ? step : subject_type(c.jobs.front().type); },
          [](const one_of<SubmitCalls, RepeatCall, ChangeCall, StartCalls, EndCalls, RebuildCalls> auto&) {
            return call;
          },
          [](const one_of<SendMessages, SettleMessages, RenewLocks, PeekMessages, ReceiveDeferred, CancelScheduled, ReplayDeadLetters,
                          ChangeEntity, ChangeRule, FindEntity, ListEntities> auto&) { return entity; },
      },
      command);
}

Subject subject_of(const Command& command) {
  const auto number = [](std::int64_t id) { return std::to_string(id); };
  std::string id = std::visit(
      overloaded{
          [](const one_of<SubmitJob, AwaitJob, ChangeJob, DecideApproval, ExplainJob> auto& c) {
            return c.job_id.value;
          },
          [](const one_of<ReplayTask, TaskNote, SettleTask> auto& c) { return id_of_task(c.task_id); },
          [](const ReportResult& c) {
            return c.correlated ? std::to_string(c.correlated->id) : id_of_task(c.task_id);
          },
          [](const ReturnTasks& c) {
            return first_of(c.tasks, [](const TaskLease& task) { return id_of_task(task.task_id); });
          },
          [](const PublishWorkflow& c) { return c.definition->workflow_id; },
          [](const Poll& c) { return c.queue; },
          [](const Heartbeat& c) { return c.worker; },
          [](const one_of<ListWorkers, LookAtQueues> auto&) { return std::string(); },  // all that this node has seen
          [](const PublishRunbook& c) { return c.definition->name; },
          [](const ChangeRunbook& c) { return c.name; },
          [](const OpenBatch& c) { return c.runbook_name; },
          [&](const one_of<NoteSync, SyncData> auto& c) { return number(c.runbook_id); },
          [&](const one_of<AddMembers, StartBatch, RemoveMembers, RetryMembers, ChangeBatch, AnswerHold> auto& c) {
            return number(c.batch_id);
          },
          [&](const RunbookEvent& c) { return number(c.message.batch_id); },
          [&](const RefreshMembers& c) {
            return first_of(c.members, [&](const RefreshMembers::One& one) { return number(one.member_id); });
          },
          [&](const AdoptPhases& c) { return first_of(c.phase_ids, number); },
          [&](const ChangeStep& c) { return number(c.ref.id); },
          [&](const AdoptJobs& c) {
            return first_of(c.jobs, [&](const runbook::Ref& ref) { return number(ref.id); });
          },
          [](const SubmitCalls& c) {
            return first_of(c.calls, [](const NewCall& one) { return id_of_key(one.key); });
          },
          [](const RepeatCall& c) { return c.new_id.value; },
          [](const ChangeCall& c) { return id_of_key(c.key); },
          [](const one_of<StartCalls, RebuildCalls> auto& c) { return first_of(c.keys, id_of_key); },
          [](const EndCalls& c) {
            return first_of(c.outcomes, [](const CallOutcome& one) { return id_of_key(one.key); });
          },
          [](const SendMessages& c) { return c.to.path; },
          [](const one_of<PeekMessages, ReceiveDeferred, CancelScheduled, ReplayDeadLetters> auto& c) { return c.from.path; },
          [](const one_of<ChangeEntity, FindEntity> auto& c) { return c.key.path; },
          [](const ChangeRule& c) { return c.subscription.path; },
          [](const ListEntities& c) { return c.topic; },
          [](const SettleMessages& c) {
            return first_of(c.settlements, [](const Settlement& one) { return message::task_id(one.lock.message); });
          },
          [](const RenewLocks& c) {
            return first_of(c.locks, [](const MessageLock& one) { return message::task_id(one.message); });
          },
      },
      command);
  return {subject_type(command), std::move(id)};
}

}  // namespace baton
