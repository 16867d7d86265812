#include "cli/app.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/diagnostic.hpp"
#include "cli/version.hpp"

namespace baton::cli {
namespace {

constexpr const char* examples = R"(Examples:
  baton serve --data ./baton-data                       start the server
  baton run examples/workflows/echo_test.yaml --input '{"message":"hello"}'
  baton workflow publish examples/workflows/echo_test.yaml
  baton job submit echo_test --input '{"message":"hello"}' --wait
  baton runbook plan contoso.yaml                       what would happen, and when
  baton batch watch 42                                  follow a batch to its end

Settings of `serve` may also come from the environment (BATON_LISTEN, ...) or a
file (--config). Client commands use BATON_SERVER, BATON_TOKEN, BATON_TENANT.
Exit codes: 0 done, 1 failed, 2 wrong usage or definition, 3 another server took the
store over, 4 no worker serves the queue of a task, 6 the server could not be reached
or could not serve, 130 interrupted.)";

// The innermost command on the line.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* current = &app;
  for (auto next = current->get_subcommands(); !next.empty(); next = current->get_subcommands())
    current = next.back();
  return *current;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + ' ' + app.get_name();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, {names.begin(), names.end()});
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

}  // namespace

std::unique_ptr<CLI::App> make_app(Action& chosen) {
  auto app = std::make_unique<CLI::App>(
      "Durable orchestration: workflows and runbooks from YAML to a finished job.", "baton");
  app->set_version_flag("--version", fmt::format("baton {}", version));
  app->require_subcommand(1);
  app->get_formatter()->column_width(38);
  const Parser parser(*app);
  add_serve(parser, chosen);
  add_run(parser, chosen);
  add_validate(parser, chosen);
  add_workflow(parser, chosen);
  add_job(parser, chosen);
  add_runbook(parser, chosen);
  add_batch(parser, chosen);
  add_member(parser, chosen);
  add_step(parser, chosen);
  add_call(parser, chosen);
  add_bus(parser, chosen);
  add_check(parser, chosen);
  add_needs_you(parser, chosen);
  add_lists(parser, chosen);
  add_worker(parser, chosen);
  add_token(parser, chosen);
  add_bench(parser, chosen);
  app->footer(examples);  // last: a command begins with the footer that its parent has
  return app;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  std::string text;
  const auto extras = command.remaining();
  if (extras.empty()) {
    text = error.what();
  } else if (std::string word = extras.front(); word.starts_with('-')) {
    word = word.substr(0, word.find('='));
    text = fmt::format("{} has no option '{}'{}", path_of(command), word,
                       did_you_mean(word, option_names(command)));
  } else if (const auto commands = command_names(command); !commands.empty()) {
    text = fmt::format("{} has no command '{}'{}", path_of(command), word, did_you_mean(word, commands));
  } else {
    text = fmt::format("{} does not expect '{}'", path_of(command), word);
  }
  return fmt::format("{}\nTry '{} --help'.", text, path_of(command));
}

int run(std::vector<std::string> arguments) try {
  Action chosen;
  const auto app = make_app(chosen);
  std::ranges::reverse(arguments);  // the parser takes them from the back
  try {
    app->parse(std::move(arguments));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app->exit(asked);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "baton: {}\n", explain(*app, error));
    return exit_usage;
  }
  return chosen ? chosen() : exit_usage;
} catch (const std::exception& error) {
  fmt::print(stderr, "baton: {}\n", error.what());
  return exit_failed;
}

}  // namespace baton::cli
