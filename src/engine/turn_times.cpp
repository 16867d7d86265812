#include "engine/turn_times.hpp"

#include <array>

namespace baton::engine {
namespace {

std::string in_ms(TurnTimes::Clock::duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count()) + " ms";
}

}  // namespace

std::string TurnTimes::described(const Item& item) {
  static constexpr std::array<std::string_view, std::variant_size_v<Command>> names{
      "SubmitJob",    "AwaitJob",        "ChangeJob",     "DecideApproval", "ReplayTask",   "ExplainJob",
      "ListWorkers",  "PublishWorkflow", "Poll",          "ReportResult",   "Heartbeat",    "TaskNote",
      "ReturnTasks",  "PublishRunbook",  "ChangeRunbook", "NoteSync",       "OpenBatch",    "AddMembers",
      "StartBatch",   "RefreshMembers",  "RemoveMembers", "SyncData",       "RetryMembers", "ChangeBatch",
      "ChangeStep",   "RunbookEvent",    "AdoptPhases",   "AdoptJobs",      "SubmitCalls",  "RepeatCall",
      "ChangeCall",   "StartCalls",      "EndCalls",      "RebuildCalls"};
  static_assert(!names.back().empty());
  std::string text(names[item.command.index()]);
  std::visit(
      [&](const auto& c) {
        if constexpr (requires { c.tenant.value; })
          text += " of tenant '" + c.tenant.value + "'";
        else if constexpr (requires { c.tenant->value; })
          text += c.tenant ? " of tenant '" + c.tenant->value + "'" : "";
      },
      item.command);
  return text + ", " + described(subject_of(item.command));
}

std::string TurnTimes::described(const Timer& timer) {
  std::string text = "timer of " + described(timer.subject);
  if (!timer.what.empty()) text += ", '" + timer.what + "'";
  return text;
}

std::string TurnTimes::described(const Subject& subject) {
  return std::string(name(subject.type)) + " " + subject.id;
}

std::string TurnTimes::text() const {
  std::string text = std::to_string(messages) + " messages, " + std::to_string(timers) + " timers; load " +
                     in_ms(load) + ", decide " + in_ms(decide) + ", commit " + in_ms(commit);
  if (!about_.empty()) text += "; longest decision " + in_ms(longest_) + ": " + about_;
  return text;
}

}  // namespace baton::engine
