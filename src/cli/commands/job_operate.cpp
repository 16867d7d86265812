// `baton job pause|resume|retry|rerun|cancel|approve|reject|why|logs|items|result`: what is done to one job,
// and what it has to say.
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
  std::string job_id, node_id;
  std::string by, reason;
};
using Shared = std::shared_ptr<Options>;

std::string job_target(const Options& options) { return "/api/v1/jobs/" + escaped(options.job_id); }
std::string node_target(const Options& options) {
  return job_target(options) + "/nodes/" + escaped(options.node_id);
}

int change(const Options& options, const std::string& target, std::string_view reason_key,
           std::string_view done) {
  const std::string body = json_object_of_given("by", options.by, reason_key, options.reason).text;
  return post(options.remote, target, body, [done](const Fields& job) {
    fmt::print("{} {}; it is {}{}.\n", done, job.text("job_id"), job.text("status"),
               job.has("paused_at") ? " and paused" : "");
  });
}

int cancel(const Options& o) { return change(o, job_target(o) + "/cancel", "reason", "Cancelled job"); }
int pause(const Options& o) { return change(o, job_target(o) + "/pause", "reason", "Paused job"); }
int resume(const Options& o) { return change(o, job_target(o) + "/resume", "reason", "Resumed job"); }
int retry(const Options& o) { return change(o, job_target(o) + "/retry", "reason", "Retried job"); }
int approve(const Options& o) {
  return change(o, node_target(o) + "/approve", "comment", "Approved for job");
}
int reject(const Options& o) { return change(o, node_target(o) + "/reject", "comment", "Rejected for job"); }

int rerun(const Options& options) {
  return post(options.remote, job_target(options) + "/rerun", "{}",
              [](const Fields& job) { fmt::print("{}\n", job.text("job_id")); });
}

int why(const Options& options) {
  return get(options.remote, job_target(options) + "/why", [](const Fields& body) {
    fmt::print("job {} is {}: {}\n", body.text("job_id"), body.text("status"),
               printable(body.text("summary")));
    std::vector<std::vector<std::string>> rows{{"NODE", "STATUS", "REASON", "WHY"}};
    for (const Fields& node : body.items("waiting"))
      rows.push_back({node.text("node_id"), node.text("status"), node.text("reason"), node.text("message")});
    if (rows.size() > 1) fmt::print("\n{}", table(rows));
  });
}

int result(const Options& options) {
  Remote remote(options.remote);
  const auto answer = remote.get(job_target(options) + "?full=true");
  if (!answer) return refuse(options.remote, answer.error());
  if (!answer->ok()) return refuse(options.remote, *answer);
  const Fields job(answer->body);
  const std::string status = job.text("status");
  if (status == "COMPLETED") {
    print_json(job.has("result_data") ? job.document("result_data") : "null");
    return exit_ok;
  }
  const bool has_ended = status == "FAILED" || status == "CANCELLED";
  const std::string why = job.has("error") ? ": " + one_line(job.text("error")) : "";
  complain(
      fmt::format("job {} is {}{}", job.text("job_id"), status, has_ended ? why : " and has no result yet"));
  return exit_failed;
}

int items(const Options& options) {
  std::vector<std::vector<std::string>> rows{{"ITEM", "STATUS", "ATTEMPT", "WORKER", "ERROR"}};
  const int code = each_page(options.remote, node_target(options) + "/items", -1, [&](const Fields& page) {
    for (const Fields& node : page.items("items"))
      rows.push_back({node.text("node_id"), node.text("status"),
                      std::to_string(node.number("retry_count") + 1), node.text("worker_id"),
                      one_line(node.text("error"))});
  });
  if (code == exit_ok && !options.remote.as_json) fmt::print("{}", table(rows));
  return code;
}

int logs(const Options& options) {
  return each_page(options.remote, node_target(options) + "/logs", 0, [](const Fields& page) {
    for (const Fields& line : page.items("lines"))
      fmt::print("{} #{} {} {}\n", line.text("at"), line.number("retry_count") + 1, line.text("stream"),
                 printable(line.text("text")));
  });
}

Parser add(Parser job, Action& chosen, const Shared& options, const std::string& name,
           const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(job, chosen, options, name, help, act);
  command.add_option("ID", options->job_id, "the job's id").required();
  return command;
}

void add_node(Parser command, const Shared& options) {
  command.add_option("NODE", options->node_id, "the node's name").required();
}

}  // namespace

void add_job_operations(Parser job, Action& chosen) {
  auto options = std::make_shared<Options>();
  const auto changes = [&](const std::string& name, const std::string& help, int (*act)(const Options&)) {
    Parser command = add(job, chosen, options, name, help, act);
    command.add_option("--by", options->by, "who does it; kept with the job");
    command.add_option("--reason", options->reason, "kept with the job");
  };
  changes("cancel", "Cancel a job", cancel);
  changes("pause", "Pause a job: what runs goes on, nothing new is handed out", pause);
  changes("resume", "Let a paused job go on", resume);
  changes("retry", "Let a FAILED job go on from the nodes that failed", retry);
  (void)add(job, chosen, options, "rerun", "Start a new job with the same version and input; prints its id",
            rerun);
  const auto decisions = [&](const std::string& name, const std::string& help, int (*act)(const Options&)) {
    Parser command = add(job, chosen, options, name, help, act);
    add_node(command, options);
    command.add_option("--by", options->by, "who decides").required();
    command.add_option("--comment", options->reason, "kept with the job");
  };
  decisions("approve", "Approve an approval node", approve);
  decisions("reject", "Reject an approval node", reject);
  add(job, chosen, options, "why", "Say why a job, and each node that waits, is not running", why)
      .footer("Example:\n  baton job why 01a3185c-8f0a-7b0c-a1b0-83be19ecabac");
  Parser said = add(job, chosen, options, "logs", "Print what the tasks of a node said", logs);
  add_node(said, options);
  said.footer("Each line has its time, #ATTEMPT, the stream and the text.");
  add_node(add(job, chosen, options, "items", "List the children of a fan-out", items), options);
  (void)add(job, chosen, options, "result", "Print the result of a job, however large", result);
}

}  // namespace baton::cli
