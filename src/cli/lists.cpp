// `baton workers`, `baton approvals`, `baton dead-letter list|replay`: what is going on, what waits for a
// person, and what was given up.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/fields.hpp"
#include "cli/output.hpp"
#include "cli/remote.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string task_id, by, cursor;
};
using Shared = std::shared_ptr<Options>;
using Rows = std::vector<std::vector<std::string>>;

template <class Fill>
int list(const Options& options, const std::string& target, const std::string& key, Rows rows, Fill&& fill) {
  Remote remote(options.remote);
  const auto answer = remote.get(target);
  if (!answer) return refuse(options.remote, answer.error());
  if (!answer->ok()) return refuse(options.remote, *answer);
  if (options.remote.as_json) {
    print_json(answer->body);
    return exit_ok;
  }
  const Fields body(answer->body);
  for (const Fields& item : body.items(key)) rows.push_back(fill(item));
  if (rows.size() == 1)
    fmt::print(stderr, "None.\n");
  else
    fmt::print("{}", table(rows));
  if (body.has("next_cursor")) fmt::print(stderr, "More: add --cursor {}\n", body.text("next_cursor"));
  return exit_ok;
}

int workers(const Options& options) {
  return list(options, "/api/v1/workers", "workers",
              {{"WORKER", "QUEUES", "LAST SEEN", "RUNNING", "COMPLETED", "FAILED", "LAST MINUTE"}},
              [](const Fields& worker) -> std::vector<std::string> {
                std::string queues;
                for (const Fields& queue : worker.items("queues"))
                  queues += (queues.empty() ? "" : ",") + queue.whole();
                return {worker.text("worker"),
                        queues,
                        worker.text("last_seen_at"),
                        std::to_string(worker.number("running_count")),
                        std::to_string(worker.number("completed")),
                        std::to_string(worker.number("failed")),
                        std::to_string(worker.number("results_last_minute"))};
              });
}

int approvals(const Options& options) {
  return list(options, "/api/v1/approvals", "approvals", {{"JOB", "NODE", "SINCE", "TIMES OUT", "MESSAGE"}},
              [](const Fields& node) -> std::vector<std::string> {
                return {node.text("job_id"), node.text("node_id"), node.text("since"),
                        node.text("timeout_at"), one_line(node.text("message"))};
              });
}

int dead_letters(const Options& options) {
  const std::string page = options.cursor.empty() ? "" : "?cursor=" + escaped(options.cursor);
  return list(options, "/api/v1/dead-letters" + page, "dead_letters",
              {{"TASK", "QUEUE", "LAST WORKER", "DELIVERIES", "DEAD SINCE"}},
              [](const Fields& task) -> std::vector<std::string> {
                return {task.text("task_id"), task.text("queue"), task.text("worker_id"),
                        std::to_string(task.number("deliveries")), task.text("dead_at")};
              });
}

int replay(const Options& options) {
  Remote remote(options.remote);
  const std::string body = options.by.empty() ? "{}" : "{\"by\":" + baton::quoted(options.by) + "}";
  const auto answer =
      remote.post("/api/v1/dead-letters/" + escaped(options.task_id) + "/replay", body, "application/json");
  if (!answer) return refuse(options.remote, answer.error());
  if (!answer->ok()) return refuse(options.remote, *answer);
  if (options.remote.as_json)
    print_json(answer->body);
  else
    fmt::print("Job {} goes on; it is {}.\n", Fields(answer->body).text("job_id"),
               Fields(answer->body).text("status"));
  return exit_ok;
}

CLI::App* add(CLI::App& parent, Action& chosen, const Shared& options, const std::string& name,
              const std::string& help, int (*act)(const Options&)) {
  CLI::App* command = parent.add_subcommand(name, help);
  add_remote_options(*command, options->remote);
  command->callback([options, &chosen, act] { chosen = [options, act] { return act(*options); }; });
  return command;
}

}  // namespace

void add_lists(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  (void)add(app, chosen, options, "workers", "List the workers that a server has seen", workers);
  (void)add(app, chosen, options, "approvals", "List the approvals that wait for a person", approvals);
  CLI::App* dead = app.add_subcommand("dead-letter", "Tasks that were given up after too many deliveries");
  dead->require_subcommand(1);
  add(*dead, chosen, options, "list", "List them, oldest first", dead_letters)
      ->add_option("--cursor", options->cursor, "where the page before ended");
  CLI::App* again = add(*dead, chosen, options, "replay", "Let the job of one go on from it", replay);
  again->add_option("TASK", options->task_id, "the task's id")->required();
  again->add_option("--by", options->by, "who does it; kept with the job");
}

}  // namespace baton::cli
