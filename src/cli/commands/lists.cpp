// `baton workers`, `baton approvals`, `baton dead-letter list|replay`: what is going on, what waits for a
// person, and what was given up.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/request.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string task_id, by, cursor;
};

int workers(const Options& options) {
  return list_page(
      options.remote,
      {.target = "/api/v1/workers",
       .key = "workers",
       .heading = {"WORKER", "QUEUES", "LAST SEEN", "RUNNING", "COMPLETED", "FAILED", "LAST MINUTE"}},
      [](const Fields& worker) -> Row {
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
  return list_page(options.remote,
                   {.target = "/api/v1/approvals",
                    .key = "approvals",
                    .heading = {"JOB", "NODE", "SINCE", "TIMES OUT", "MESSAGE"}},
                   [](const Fields& node) -> Row {
                     return {node.text("job_id"), node.text("node_id"), node.text("since"),
                             node.text("timeout_at"), one_line(node.text("message"))};
                   });
}

int dead_letters(const Options& options) {
  return list_page(options.remote,
                   {.target = Target("/api/v1/dead-letters").with("cursor", options.cursor).text(),
                    .key = "dead_letters",
                    .heading = {"TASK", "QUEUE", "LAST WORKER", "DELIVERIES", "DEAD SINCE"}},
                   [](const Fields& task) -> Row {
                     return {task.text("task_id"), task.text("queue"), task.text("worker_id"),
                             std::to_string(task.number("deliveries")), task.text("dead_at")};
                   });
}

int replay(const Options& options) {
  return post(options.remote, "/api/v1/dead-letters/" + escaped(options.task_id) + "/replay",
              json_object_of_given("by", options.by).text, [&](const Fields& job) {
                if (job.text("job_id").empty())  // of a runbook
                  fmt::print("Step {} of its batch is {} again.\n", options.task_id, job.text("status"));
                else
                  fmt::print("Job {} goes on; it is {}.\n", job.text("job_id"), job.text("status"));
              });
}

}  // namespace

void add_lists(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  (void)add_command(app, chosen, options, "workers", "List the workers that a server has seen", workers);
  (void)add_command(app, chosen, options, "approvals", "List the approvals that wait for a person",
                    approvals);
  Parser dead = app.add_subcommand("dead-letter",
                                   "Tasks and jobs of runbooks that were given up after too many deliveries");
  dead.require_subcommand(1);
  add_command(dead, chosen, options, "list", "List them, oldest first", dead_letters)
      .add_option("--cursor", options->cursor, "where the page before ended");
  Parser again =
      add_command(dead, chosen, options, "replay", "Let the job or the batch of one go on from it", replay);
  again.add_option("TASK", options->task_id, "the task's id").required();
  again.add_option("--by", options->by, "who does it; kept with the job");
}

}  // namespace baton::cli
