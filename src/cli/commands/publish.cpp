#include "cli/commands/publish.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/commands/input.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

int publish_one(Remote& remote, const RemoteOptions& options, const std::string& file,
                const std::string& target, std::string_view name_key, const Afterwards& afterwards,
                const WhenRefused& when_refused) {
  auto text = read_file(file);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  const auto answer = remote.post(target, *std::move(text), "application/yaml");
  if (!answer) return refuse(options, answer.error());
  const Fields body(answer->body);
  const bool is_invalid = is_invalid_definition(body);
  if (options.as_json) {
    print_json(answer->body);
  } else if (answer->ok()) {
    fmt::print("{}: {} version {} {}\n", file, body.text(name_key), body.number("version"),
               answer->status == 201 ? "is published" : "was published before");
    if (afterwards) afterwards(remote, body, answer->status == 201);
    print_diagnostics(file, body, Diagnostic::Level::warning);
  } else if (is_invalid) {
    print_diagnostics(file, body, Diagnostic::Level::error);
  } else {
    if (when_refused) when_refused(file, body);
    return refuse(options, *answer);
  }
  if (answer->ok()) return exit_ok;
  return is_invalid ? exit_usage : exit_failed;
}

}  // namespace

int publish_files(const RemoteOptions& options, const std::vector<std::string>& files,
                  const std::string& target, std::string_view name_key, const Afterwards& afterwards,
                  const WhenRefused& when_refused) {
  Remote remote(options);
  int worst = exit_ok;
  for (const std::string& file : files)
    worst = std::max(worst, publish_one(remote, options, file, target, name_key, afterwards, when_refused));
  return worst;
}

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

bool is_invalid_definition(const Fields& body) { return body.text("code") == "invalid_definition"; }

}  // namespace baton::cli
