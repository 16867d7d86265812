// `baton workflow …`: definitions on a server.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/commands/publish.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/request.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::vector<std::string> files;
  std::string workflow_id;
  int version = 0;
};

int publish(const Options& options) {
  return publish_files(options.remote, options.files, "/api/v1/workflows", "workflow_id");
}

int list(const Options& options) {
  return list_all(options.remote,
                  {.target = "/api/v1/workflows?limit=200",
                   .key = "workflows",
                   .heading = {"WORKFLOW", "VERSION", "PUBLISHED"},
                   .none = "No workflow is published yet; see `baton workflow publish --help`."},
                  [](const Fields& each) -> Row {
                    return {each.text("workflow_id"), std::to_string(each.number("version")),
                            each.text("published_at")};
                  });
}

int show(const Options& options) {
  Remote remote(options.remote);
  const std::string target =
      Target("/api/v1/workflows/" + escaped(options.workflow_id)).with("version", options.version).text();
  const auto answer = remote.get(target);
  const int code = tell(options.remote, answer, [](const Fields& body) {
    fmt::print(stderr, "# {} version {}, published {}\n", body.text("workflow_id"), body.number("version"),
               body.text("published_at"));
    print_text(body.text("definition"));
  });
  if (answer && answer->status == 404 && !options.remote.as_json)
    suggest(remote, workflow_names, options.workflow_id);
  return code;
}

}  // namespace

void add_workflow(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser workflow = app.add_subcommand("workflow", "Publish and look at workflow definitions");
  workflow.require_subcommand(1);
  Parser put = add_command(workflow, chosen, options, "publish", "Publish definitions", publish);
  put.add_option("FILE", options->files, "definitions; - is standard input").required();
  put.footer("Example:\n  baton workflow publish examples/workflows/*.yaml");
  add_command(workflow, chosen, options, "list", "List the latest versions", list);
  Parser get = add_command(workflow, chosen, options, "show", "Print a definition as it was published", show);
  get.add_option("ID", options->workflow_id, "the workflow's id").required();
  get.add_option("--version", options->version, "default the latest").range(1, 1'000'000'000);
}

}  // namespace baton::cli
