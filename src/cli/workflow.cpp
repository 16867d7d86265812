// `baton workflow …`: definitions on a server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/diagnostic.hpp"
#include "cli/commands.hpp"
#include "cli/fields.hpp"
#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/remote.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::vector<std::string> files;
  std::string workflow_id;
  int version = 0;
};
using Shared = std::shared_ptr<Options>;

// The server's answer to a wrong definition knows lines and columns: print them as compilers do.
void print_diagnostics(const std::string& file, const Fields& body, Diagnostic::Level level) {
  for (const Fields& each : body.items(level == Diagnostic::Level::error ? "errors" : "warnings")) {
    if (each.number("line") == 0) {
      fmt::print(stderr, "{}: error: {}\n", file, each.text("message"));
      continue;
    }
    fmt::print(
        stderr, "{}\n",
        render(file, {.level = level,
                      .at = {static_cast<int>(each.number("line")), static_cast<int>(each.number("column"))},
                      .code = each.text("code"),
                      .message = each.text("message"),
                      .hint = each.text("hint")}));
  }
}

int publish_one(Remote& remote, const Options& options, const std::string& file) {
  auto text = read_file(file);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  const auto answer = remote.post("/api/v1/workflows", *std::move(text), "application/yaml");
  if (!answer) return refuse(options.remote, answer.error());
  const Fields body(answer->body);
  if (options.remote.as_json) {
    print_json(answer->body);
  } else if (answer->ok()) {
    fmt::print("{}: {} version {} {}\n", file, body.text("workflow_id"), body.number("version"),
               answer->status == 201 ? "is published" : "was published before");
    print_diagnostics(file, body, Diagnostic::Level::warning);
  } else if (body.text("code") == "invalid_definition") {
    print_diagnostics(file, body, Diagnostic::Level::error);
  } else {
    return refuse(options.remote, *answer);
  }
  if (answer->ok()) return exit_ok;
  return body.text("code") == "invalid_definition" ? exit_usage : exit_failed;
}

int publish(const Options& options) {
  Remote remote(options.remote);
  int worst = exit_ok;
  for (const std::string& file : options.files) worst = std::max(worst, publish_one(remote, options, file));
  return worst;
}

int list(const Options& options) {
  Remote remote(options.remote);
  std::vector<std::vector<std::string>> rows{{"WORKFLOW", "VERSION", "PUBLISHED"}};
  std::vector<std::string> documents;
  std::string cursor;
  do {
    const auto answer =
        remote.get("/api/v1/workflows?limit=200" + (cursor.empty() ? "" : "&cursor=" + escaped(cursor)));
    if (!answer) return refuse(options.remote, answer.error());
    if (!answer->ok()) return refuse(options.remote, *answer);
    const Fields page(answer->body);
    for (const Fields& each : page.items("workflows")) {
      documents.push_back(each.whole());
      rows.push_back(
          {each.text("workflow_id"), std::to_string(each.number("version")), each.text("published_at")});
    }
    cursor = page.text("next_cursor");
  } while (!cursor.empty());
  if (options.remote.as_json)
    print_json(fmt::format(R"({{"workflows":[{}]}})", fmt::join(documents, ",")));
  else if (documents.empty())
    fmt::print(stderr, "No workflow is published yet; see `baton workflow publish --help`.\n");
  else
    fmt::print("{}", table(rows));
  return exit_ok;
}

int show(const Options& options) {
  Remote remote(options.remote);
  std::string target = "/api/v1/workflows/" + escaped(options.workflow_id);
  if (options.version > 0) target += fmt::format("?version={}", options.version);
  auto answer = remote.get(target);
  if (!answer) return refuse(options.remote, answer.error());
  if (!answer->ok()) {
    const int code = refuse(options.remote, *answer);
    const std::string hint = answer->status == 404 ? nearest_workflow(remote, options.workflow_id) : "";
    if (!hint.empty() && !options.remote.as_json) complain(hint);
    return code;
  }
  if (options.remote.as_json) {
    print_json(answer->body);
    return exit_ok;
  }
  const Fields body(answer->body);
  fmt::print(stderr, "# {} version {}, published {}\n", body.text("workflow_id"), body.number("version"),
             body.text("published_at"));
  const std::string text = body.text("definition");
  fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  return exit_ok;
}

CLI::App* add_command(CLI::App& parent, Action& chosen, const Shared& options, const std::string& name,
                      const std::string& help, int (*act)(const Options&)) {
  CLI::App* command = parent.add_subcommand(name, help);
  add_remote_options(*command, options->remote);
  command->callback([options, &chosen, act] { chosen = [options, act] { return act(*options); }; });
  return command;
}

}  // namespace

void add_workflow(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* workflow = app.add_subcommand("workflow", "Publish and look at workflow definitions");
  workflow->require_subcommand(1);
  CLI::App* put = add_command(*workflow, chosen, options, "publish", "Publish definitions", publish);
  put->add_option("FILE", options->files, "definitions; - is standard input")->required();
  put->footer("Example:\n  baton workflow publish examples/workflows/*.yaml");
  add_command(*workflow, chosen, options, "list", "List the latest versions", list);
  CLI::App* get =
      add_command(*workflow, chosen, options, "show", "Print a definition as it was published", show);
  get->add_option("ID", options->workflow_id, "the workflow's id")->required();
  get->add_option("--version", options->version, "default the latest")->check(CLI::Range(1, 1'000'000'000));
}

}  // namespace baton::cli
