#include "base/result.hpp"
#include "ports/commands.hpp"

namespace baton {
namespace {

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

}  // namespace

std::size_t size_of(const Command& command) {
  constexpr std::size_t names = 256;
  return names + std::visit(overloaded{
                                [](const SubmitJob& c) { return c.input_data.text.size(); },
                                [](const PublishWorkflow& c) { return c.text.size(); },
                                [](const ReportResult& c) {
                                  return (c.output ? c.output->text.size() : 0) +
                                         (c.error ? c.error->size() : 0);
                                },
                                [](const Heartbeat& c) { return c.tasks.size() * names; },
                                [](const TaskNote& c) { return size_of(c.note); },
                                [](const ReturnTasks& c) { return c.tasks.size() * names; },
                                [](const PublishRunbook& c) { return c.text.size(); },
                                [](const AddMembers& c) {
                                  std::size_t bytes = 0;
                                  for (const auto& row : c.members) bytes += row.data.text.size() + names;
                                  return bytes;
                                },
                                [](const SyncData& c) {
                                  std::size_t bytes = 0;
                                  for (const auto& row : c.rows) bytes += row.data.text.size() + names;
                                  return bytes;
                                },
                                [](const RefreshMembers& c) {
                                  std::size_t bytes = 0;
                                  for (const auto& one : c.members) bytes += one.row.data.text.size() + names;
                                  return bytes;
                                },
                                [](const SubmitCalls& c) {
                                  std::size_t bytes = 0;
                                  for (const NewCall& each : c.calls)
                                    bytes += each.request.body.size() + each.request.url.size() +
                                             each.request.headers.size() + each.request_spec.text.size() +
                                             (each.request.probe ? each.request.probe->text.size() : 0) +
                                             each.tags.size() * names + names;
                                  return bytes;
                                },
                                [](const StartCalls& c) { return c.keys.size() * names; },
                                [](const RebuildCalls& c) { return c.keys.size() * names; },
                                [](const EndCalls& c) { return c.outcomes.size() * 4 * names; },
                                [](const RunbookEvent& c) {
                                  const auto* due = std::get_if<runbook::PhaseDue>(&c.message.what);
                                  return due ? due->member_ids.size() * sizeof(std::int64_t) : std::size_t{0};
                                },
                                [](const auto&) { return std::size_t{0}; },
                            },
                            command);
}

}  // namespace baton
