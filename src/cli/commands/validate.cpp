// `baton validate FILE…`: every problem of every file, as compilers print them. Needs no server.
#include <memory>

#include "cli/commands/checked_file.hpp"
#include "cli/commands/commands.hpp"

namespace baton::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool as_json = false;
};

int validate(const Options& options) {
  std::vector<CheckedFile> files;
  for (const std::string& path : options.files) files.push_back(check_file(path));
  return print_checked(files, options.as_json);
}

}  // namespace

void add_validate(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser command = app.add_subcommand("validate", "Check workflows and runbooks without a server");
  command.add_option("FILE", options->files, "definitions to check").required();
  command.add_flag("--json", options->as_json, "print JSON");
  command.footer(
      "Example:\n  baton validate examples/workflows/*.yaml\nExit codes: 0 all valid, 2 there are errors.");
  command.callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

}  // namespace baton::cli
