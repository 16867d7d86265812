#include "base/result.hpp"
#include "ports/commands.hpp"

namespace baton {
namespace {

constexpr std::size_t names = 256;  // about what a few names take

std::size_t size_of(const OptionalJson& json) { return json ? json->text.size() : 0; }

std::size_t size_of(const std::variant<TaskProgress, TaskCheckpoint, TaskLog>& note) {
  return std::visit(overloaded{
                        [](const TaskProgress& n) { return n.progress.text.size(); },
                        [](const TaskCheckpoint& n) { return n.data.text.size(); },
                        [](const TaskLog& n) {
                          std::size_t bytes = 0;
                          for (const auto& line : n.lines) bytes += line.text.size() + 64;
                          return bytes;
                        },
                    },
                    note);
}

std::size_t size_of(const std::vector<runbook::DataRow>& rows) {
  std::size_t bytes = 0;
  for (const auto& row : rows) bytes += row.data.text.size() + names;
  return bytes;
}

std::size_t size_of(const std::vector<NewCall>& calls) {
  std::size_t bytes = 0;
  for (const NewCall& each : calls)
    bytes += each.request.body.size() + each.request.url.size() + each.request.headers.size() +
             each.request_spec.text.size() + size_of(each.request.probe) + each.tags.size() * names + names;
  return bytes;
}

std::size_t size_of(const std::vector<Settlement>& settlements) {
  std::size_t bytes = 0;
  for (const Settlement& each : settlements) {
    bytes += names + each.reason.size() + each.description.size();
    for (const auto& [name, value] : each.changes.set) {
      const auto* text = std::get_if<std::string>(&value);
      bytes += name.size() + (text ? text->size() : sizeof(value));
    }
  }
  return bytes;
}

std::size_t size_of(const std::vector<std::vector<NewMessage>>& transfers) {
  std::size_t bytes = 0;
  for (const auto& transfer : transfers)
    for (const NewMessage& each : transfer)
      bytes += each.content.size() + each.annotations.size() + (each.envelope ? each.content.size() : 0) + names;
  return bytes;
}

}  // namespace

// Each command is named, those that hold no more than names too: a new one that is forgotten does not compile.
std::size_t size_of(const Command& command) {
  return names +
         std::visit(
             overloaded{
                 [](const one_of<AwaitJob, ChangeJob, DecideApproval, ReplayTask, ExplainJob, ListWorkers, Poll> auto&) {
                   return std::size_t{0};
                 },
                 [](const one_of<ChangeRunbook, OpenBatch, StartBatch, ChangeBatch, AnswerHold, ChangeStep> auto&) {
                   return std::size_t{0};
                 },
                 [](const LookAtQueues& c) { return c.queues.size() * names; },
                 [](const one_of<RepeatCall, ChangeCall> auto&) { return std::size_t{0}; },
                 [](const SubmitJob& c) { return c.input_data.text.size(); },
                 [](const one_of<PublishWorkflow, PublishRunbook> auto& c) { return c.text.size(); },
                 [](const ReportResult& c) { return size_of(c.output) + (c.error ? c.error->size() : 0); },
                 [](const TaskNote& c) { return size_of(c.note); },
                 [](const SettleTask& c) { return c.reason.size(); },
                 [](const one_of<Heartbeat, ReturnTasks> auto& c) { return c.tasks.size() * names; },
                 [](const NoteSync& c) {
                   return size_of(c.held_removals) + (c.error ? c.error->size() : 0) + c.approvals_seen.size() * names;
                 },
                 [](const AddMembers& c) { return size_of(c.members); },
                 [](const SyncData& c) { return size_of(c.rows); },
                 [](const RefreshMembers& c) {
                   std::size_t bytes = 0;
                   for (const auto& one : c.members) bytes += one.row.data.text.size() + names;
                   return bytes;
                 },
                 [](const one_of<RemoveMembers, RetryMembers> auto& c) {
                   return c.member_ids.size() * sizeof(std::int64_t) + c.member_keys.size() * names;
                 },
                 [](const RunbookEvent& c) {
                   const auto* due = std::get_if<runbook::PhaseDue>(&c.message.what);
                   return due ? due->member_ids.size() * sizeof(std::int64_t) : std::size_t{0};
                 },
                 [](const AdoptPhases& c) { return c.phase_ids.size() * sizeof(std::int64_t); },
                 [](const AdoptJobs& c) { return c.jobs.size() * sizeof(runbook::Ref); },
                 [](const SubmitCalls& c) { return size_of(c.calls); },
                 [](const one_of<StartCalls, RebuildCalls> auto& c) { return c.keys.size() * names; },
                 [](const EndCalls& c) { return c.outcomes.size() * 4 * names; },
                 [](const SendMessages& c) { return size_of(c.transfers); },
                 [](const SettleMessages& c) { return size_of(c.settlements); },
                 [](const RenewLocks& c) { return c.locks.size() * sizeof(MessageLock); },
                 [](const one_of<ReceiveDeferred, CancelScheduled, ReplayDeadLetters> auto& c) {
                   return c.sequence_numbers.size() * sizeof(std::int64_t);
                 },
                 [](const one_of<PeekMessages, ChangeEntity, ChangeRule, FindEntity, ListEntities> auto&) { return std::size_t{0}; },
             },
             command);
}

}  // namespace baton
