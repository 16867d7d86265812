#include "tests/simulation/trace.hpp"

#include "base/result.hpp"

namespace baton::simulation {
namespace {

using namespace runbook;

std::string number(std::int64_t n) { return std::to_string(n); }

std::string describe(const SchedulerMessage& message) {
  return " of batch " + number(message.batch_id) + " v" + number(message.runbook_version) +
         std::visit(overloaded{
                        [](const BatchInit&) { return std::string(" batch-init"); },
                        [](const PhaseDue& m) { return " phase-due " + number(m.phase_execution_id); },
                        [](const MemberAdded& m) { return " member-added " + number(m.batch_member_id); },
                        [](const MemberRemoved& m) { return " member-removed " + number(m.batch_member_id); },
                        [](const PollCheck& m) { return " poll-check " + number(m.step_execution_id.value_or(0)); },
                        [](const RetryCheck& m) { return " retry-check " + number(m.step_execution_id.value_or(0)); },
                    },
                    message.what);
}

std::string when(const std::optional<Time>& time) { return time ? to_iso(*time) : "-"; }

std::string state(const Batch& row) {
  return std::string(name(row.status)) + (row.importing ? " importing" : "") + (row.paused_at ? " paused" : "") +
         " walk " + std::string(name(row.walk)) + " after " + number(row.walk_after) + " book " + number(row.runbook_id);
}
std::string state(const Member& row) {
  return std::string(name(row.status)) + (row.catching_up ? " catching up" : "") + " '" + row.member_key + "'";
}
std::string state(const PhaseExecution& row) {
  return std::string(name(row.status)) + " '" + row.phase_name + "' v" + number(row.runbook_version) + " walk " +
         std::string(name(row.walk)) + " after " + number(row.walk_after) + " at " + number(row.current_index) + " timer " +
         when(row.timer_due);
}
std::string state(const Runbook& row) {
  return row.name + " v" + number(row.version) + (row.is_active ? " active" : "");
}
std::string state(const Execution& row) {
  return std::string(name(row.status)) + " " + std::string(name(row.job_state)) + " '" + row.step_name + "' " +
         row.job_id.value_or("-") + " delivery " + number(row.delivery_count) + " timer " + when(row.timer_due) +
         (row.error_message ? " " + *row.error_message : "");
}

template <class Row>
std::string of(const Row& row) {
  std::string text;
  if constexpr (requires { row.batch_id; }) text += " batch " + number(row.batch_id);
  if constexpr (requires { row.is_catch_up; })
    text += " phase " + number(row.phase_execution_id) + " member " + number(row.batch_member_id) +
            (row.is_catch_up ? " catch-up" : "");
  if constexpr (requires { row.caused_by_step_id; })
    text += " of step " + number(row.caused_by_step_id.value_or(0));
  return text;
}

template <class Row>
void lines(std::string& out, std::string_view what, const std::vector<Row>& fresh,
           const std::vector<Update<Row>>& changed, const auto& before) {
  for (const Row& row : fresh) out += "    new " + std::string(what) + " " + number(row.id) + of(row) + ": " + state(row) + "\n";
  for (const auto& [loaded, row] : changed) {
    const auto it = before.find(row.id);
    out += "    " + std::string(what) + " " + number(row.id) + of(row) + ": " +
           (it == before.end() ? "?" : state(it->second)) + "\n        -> " + state(row) + "\n";
  }
}

}  // namespace

std::string describe(const Command& command) {
  return std::visit(
      overloaded{
          [](const PublishRunbook& c) { return "publish " + c.definition->name + " " + c.overdue_behavior; },
          [](const OpenBatch& c) { return "open batch of " + c.runbook_name + " T " + when(c.batch_start_time); },
          [](const AddMembers& c) {
            return "add " + number(static_cast<std::int64_t>(c.members.size())) + " members to " + number(c.batch_id);
          },
          [](const StartBatch& c) { return "start batch " + number(c.batch_id); },
          [](const RemoveMembers& c) { return "remove members of " + number(c.batch_id); },
          [](const RetryMembers& c) { return "retry members of " + number(c.batch_id); },
          [](const ChangeBatch& c) {
            return "change batch " + number(c.batch_id) + " what " + number(static_cast<int>(c.what));
          },
          [](const AnswerHold& c) { return "answer hold " + number(c.hold_id) + " " + c.answer; },
          [](const ChangeStep& c) {
            return "change " + std::string(name(c.ref.type)) + " " + number(c.ref.id) + " what " +
                   number(static_cast<int>(c.what));
          },
          [](const RunbookEvent& c) { return "event" + describe(c.message); },
          [](const ReportResult& c) {
            return "result of " + c.task_id + " lease " + c.lease.value_or("-") + " " +
                   (c.completed ? c.output.value_or(Json{}).text : c.error.value_or(""));
          },
          [](const SendMessages& c) {
            std::string text = "send to " + c.to.path + " of " + c.to.tenant.value + ":";
            for (const auto& transfer : c.transfers)
              for (const NewMessage& each : transfer) text += " " + each.content.value + "/" + each.message_id;
            return text;
          },
          [](const SettleMessages& c) {
            const Settlement& first = c.settlements.front();
            return "settle " + message::task_id(first.lock.message) + "/" + number(first.lock.number) + " how " + number(static_cast<int>(first.how));
          },
          [](const RenewLocks& c) { return "renew " + message::task_id(c.locks.front().message) + "/" + number(c.locks.front().number); },
          [](const ReceiveDeferred& c) { return "receive deferred " + number(c.sequence_numbers.front()) + " of " + c.from.path; },
          [](const CancelScheduled& c) { return "cancel " + number(c.sequence_numbers.front()) + " of " + c.from.path; },
          [](const ReplayDeadLetters& c) { return "replay dead letters of " + c.from.path; },
          [](const PeekMessages& c) { return "peek at " + c.from.path; },
          [](const ChangeEntity& c) { return "change " + c.key.path + " of " + c.key.tenant.value + " what " + number(static_cast<int>(c.what)); },
          [](const ChangeRule& c) { return "change rule " + c.rule.name + " of " + c.subscription.path; },
          [](const Poll& c) { return "poll " + c.queue + " by " + c.worker + " until " + to_iso(c.wait_until); },
          [](const Heartbeat& c) { return "heartbeat by " + c.worker; },
          [](const ReturnTasks& c) { return "return " + (c.tasks.empty() ? "" : c.tasks.front().task_id); },
          [](const auto&) { return std::string("something else"); },
      },
      command);
}

std::string describe(const Reply& reply) {
  return std::visit(overloaded{
                        [](const Refused& r) { return "refused: " + r.message; },
                        [](const PollReply& r) {
                          std::string text = "jobs:";
                          for (const Handout& job : r.jobs) text += " " + job.task_id + "/" + job.lease;
                          return text;
                        },
                        [](const ResultReply& r) { return r.ignored.empty() ? "accepted" : "ignored: " + r.ignored; },
                        [](const EventReply& r) { return std::string(r.changed ? "changed " : "unchanged ") + r.note; },
                        [](const auto&) { return std::string("done"); },
                    },
                    reply);
}

std::string describe(const message::Writes& w) {
  std::string out;
  const auto state = [](const message::Message& row) {
    return message::task_id(row.key()) + " delivery " + number(row.delivery_count) + " lock " + number(row.locks) + " until " + when(row.locked_until);
  };
  for (const auto* rows : {&w.entities_new, &w.entities_changed})
    for (const message::Entity& row : *rows) out += "    entity " + number(row.entity_id) + " " + row.tenant_id.value + " '" + row.path + "' " + row.settings.text + "\n";
  for (const std::int64_t id : w.entities_gone) out += "    entity " + number(id) + " gone\n";
  for (const auto* rows : {&w.counters_new, &w.counters_changed})
    for (const message::Counters& row : *rows) out += "    counters of " + number(row.entity_id) + " wake " + when(row.wake_at) + "\n";
  for (const message::MessageKey& key : w.messages_gone) out += "    gone " + message::task_id(key) + "\n";
  for (const message::Message& row : w.messages_new) out += "    new " + state(row) + " due " + when(row.due_at) + " " + row.content.value + "\n";
  for (const message::Message& row : w.messages_changed) out += "    " + state(row) + "\n";
  return out;
}

std::string describe(const Writes& writes, const store::memory::RunbookTables& before) {
  std::string out;
  lines(out, "runbook", writes.runbooks_new, writes.runbooks_changed, before.runbooks);
  lines(out, "batch", writes.batches_new, writes.batches_changed, before.batches);
  lines(out, "phase", writes.phases_new, writes.phases_changed, before.phases);
  lines(out, "member", writes.members_new, writes.members_changed, before.members);
  lines(out, "init", writes.inits_new, writes.inits_changed, before.inits);
  lines(out, "step", writes.steps_new, writes.steps_changed, before.steps);
  lines(out, "cleanup", writes.cleanups_new, writes.cleanups_changed, before.cleanups);
  for (const BatchEvent& event : writes.events_new)
    out += "    event of batch " + number(event.batch_id) + ": " + event.message + "\n";
  return out;
}

}  // namespace baton::simulation
