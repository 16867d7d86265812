// `baton validate FILE…`: every problem of every file, as compilers print them. Needs no server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "server/definition_files.hpp"

namespace baton::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool as_json = false;
};

std::string to_json(const Diagnostic& each) {
  return fmt::format(R"({{"level":"{}","line":{},"column":{},"code":{},"message":{},"hint":{}}})",
                     each.level == Diagnostic::Level::error ? "error" : "warning", each.at.line,
                     each.at.column, baton::quoted(each.code), baton::quoted(each.message),
                     baton::quoted(each.hint));
}

std::string to_json(const server::DefinitionFile& file) {
  std::vector<std::string> diagnostics;
  for (const Diagnostic& each : file.diagnostics) diagnostics.push_back(to_json(each));
  const std::string id = file.definition ? baton::quoted(file.definition->workflow_id) : "null";
  return fmt::format(R"({{"file":{},"valid":{},"workflow_id":{},"diagnostics":[{}]}})",
                     baton::quoted(file.path), file.definition != nullptr, id, fmt::join(diagnostics, ","));
}

int validate(const Options& options) {
  bool valid = true;
  std::vector<server::DefinitionFile> files;
  for (const std::string& path : options.files) {
    files.push_back(server::read_definition(path));
    valid = valid && files.back().definition != nullptr;
  }
  if (options.as_json) {
    std::vector<std::string> all;
    for (const auto& file : files) all.push_back(to_json(file));
    print_json(fmt::format(R"({{"valid":{},"files":[{}]}})", valid, fmt::join(all, ",")));
    return valid ? exit_ok : exit_usage;
  }
  fmt::print(stderr, "{}", server::render(files));
  for (const auto& file : files)
    if (file.definition)
      fmt::print("{}: {} is valid ({} nodes)\n", file.path, file.definition->workflow_id,
                 file.definition->nodes.size());
  return valid ? exit_ok : exit_usage;
}

}  // namespace

void add_validate(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("validate", "Check workflow definitions without a server");
  command->add_option("FILE", options->files, "definitions to check")->required();
  command->add_flag("--json", options->as_json, "print JSON");
  command->footer(
      "Example:\n  baton validate examples/workflows/*.yaml\nExit codes: 0 all valid, 2 there are errors.");
  command->callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

}  // namespace baton::cli
