#include "cli/commands/checked_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/json_write.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/output.hpp"
#include "server/definition_files.hpp"

namespace baton::cli {
namespace {

Json to_json(const Diagnostic& each) {
  return json_object("level", each.level == Diagnostic::Level::error ? "error" : "warning", "line",
                     each.at.line, "column", each.at.column, "code", each.code, "message", each.message,
                     "hint", each.hint);
}

Json to_json(const CheckedFile& file) {
  std::vector<Json> diagnostics;
  for (const Diagnostic& each : file.diagnostics) diagnostics.push_back(to_json(each));
  return json_object("file", file.path, "valid", file.valid, file.is_runbook ? "runbook" : "workflow_id",
                     file.valid ? std::optional(file.name) : std::nullopt, "diagnostics", diagnostics);
}

std::string count(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string name_of(const workflow::Definition& definition) { return definition.workflow_id; }
std::string name_of(const runbook::Definition& definition) { return definition.name; }

std::string summary_of(const workflow::Definition& definition) {
  return fmt::format("{} nodes", definition.nodes.size());
}
std::string summary_of(const runbook::Definition& definition) {
  std::size_t steps = definition.init.size();
  for (const auto& phase : definition.phases) steps += phase.steps.size();
  return count(definition.phases.size(), "phase") + ", " + count(steps, "step");
}

// `parsed` is that of either kind.
template <class Parsed>
void take(CheckedFile& file, Parsed parsed) {
  file.diagnostics = std::move(parsed.diagnostics);
  file.valid = parsed.definition != nullptr;
  if (!file.valid) return;
  file.name = name_of(*parsed.definition);
  file.summary = summary_of(*parsed.definition);
}

CheckedFile check(const std::string& path, bool must_be_runbook) {
  CheckedFile file;
  file.path = path;
  auto text = server::read_text(path);  // once: it may be a pipe
  file.is_runbook = must_be_runbook || (text && server::is_runbook(*text));
  if (!text)
    file.diagnostics.push_back(std::move(text).error());
  else if (file.is_runbook)
    take(file, runbook::parse(*text));
  else
    take(file, workflow::parse(*text));
  return file;
}

}  // namespace

CheckedFile check_file(const std::string& path) { return check(path, false); }
CheckedFile check_runbook(const std::string& path) { return check(path, true); }

int print_checked(const std::vector<CheckedFile>& files, bool as_json) {
  const bool valid = std::ranges::all_of(files, &CheckedFile::valid);
  if (as_json) {
    std::vector<Json> all;
    for (const auto& file : files) all.push_back(to_json(file));
    print_json(json_object("valid", valid, "files", all).text);
    return valid ? exit_ok : exit_usage;
  }
  for (const auto& file : files)
    for (const Diagnostic& each : file.diagnostics) fmt::print(stderr, "{}\n", render(file.path, each));
  for (const auto& file : files)
    if (file.valid) fmt::print("{}: {} is valid ({})\n", file.path, file.name, file.summary);
  return valid ? exit_ok : exit_usage;
}

}  // namespace baton::cli
