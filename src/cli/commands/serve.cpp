// `baton serve`: the server itself. Its options are the settings of server/config.hpp, one for one.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/terminal/output.hpp"
#include "server/config.hpp"
#include "server/server.hpp"

namespace baton::cli {
namespace {

int serve(const server::Values& values) {
  const auto config = server::load_config(values, server::process_environment());
  if (!config) {
    for (const std::string& error : config.error()) complain(error);
    return exit_usage;
  }
  return server::serve(*config);
}

}  // namespace

void add_serve(Parser app, Action& chosen) {
  auto values = std::make_shared<server::Values>();
  Parser command = app.add_subcommand("serve", "Run the server");
  command
      .add_option(
          "--config", [values](const std::string& value) { (*values)["config"] = value; },
          "YAML file with any of these settings (body_max: 1m)")
      .type_name("FILE");
  for (const server::Setting& setting : server::settings()) {
    if (setting.is_secret) continue;  // whoever lists the processes would see it
    const std::string key{setting.key};
    const std::string option = server::option_name(key);
    if (setting.argument.empty()) {
      command.add_flag(option, [values, key] { (*values)[key] = "on"; }, std::string{setting.help});
      continue;
    }
    command
        .add_option(
            option, [values, key](const std::string& value) { (*values)[key] = value; },
            std::string{setting.help})
        .type_name(std::string{setting.argument});
  }
  command.footer(
      "Examples:\n"
      "  baton serve --data ./baton-data --definitions examples/workflows\n"
      "  baton serve --store postgres://baton@db.example.org/baton --listen 0.0.0.0:8080\n"
      "Every setting may also be given as BATON_LISTEN, BATON_BODY_MAX, ...; the command\n"
      "line wins over the environment, the environment over the file.\n"
      "SIGTERM or SIGINT ends the server after what was accepted is answered; a second\n"
      "one ends it at once. Exit codes: 0 ended as asked, 1 cannot start, 2 wrong\n"
      "settings or a database that it cannot read, 3 another server has taken over,\n"
      "5 what is stored does not fit together, or the log of the database is missing or damaged.");
  command.callback([values, &chosen] { chosen = [values] { return serve(*values); }; });
}

}  // namespace baton::cli
