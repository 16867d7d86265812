// `baton job …`: jobs on a server.
#include <fmt/format.h>

#include <memory>

#include "base/json.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/reconnect.hpp"
#include "cli/request.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "core/workflow/definition/span.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string workflow_id;
  std::string input = "{}";
  int version = 0;
  std::string idempotency_key;
  bool wait = false;
  std::string status;
  int limit = 0;
  std::string cursor;
  std::string job_id;
  std::vector<std::string> tags;
  std::string tag;
  int priority = 0;
  std::string due_at;
  std::string delay;
  std::string reconnect;
};
using Shared = std::shared_ptr<Options>;

bool has_ended(const std::string& status) {
  return status == "COMPLETED" || status == "FAILED" || status == "CANCELLED";
}

std::string job_target(const std::string& job_id) { return "/api/v1/jobs/" + escaped(job_id); }

// The outcome of a job that has ended: the result for programs, the reason for people.
int tell_outcome(const Options& options, const std::string& text) {
  const Fields job(text);
  const std::string status = job.text("status");
  if (options.remote.as_json)
    print_json(text);
  else if (status == "COMPLETED")
    print_json(job.has("result_data") ? job.document("result_data") : "null");
  else
    complain(fmt::format("job {} is {}{}", job.text("job_id"), status,
                         job.has("error") ? ": " + one_line(job.text("error")) : ""));
  return status == "COMPLETED" ? exit_ok : exit_failed;
}

// Shows what is on one page of the timeline and answers the last event's id.
std::int64_t show_events(const Fields& page, std::int64_t last, Progress* progress) {
  for (const Fields& event : page.items("events")) {
    last = event.number("event_id");
    if (progress == nullptr) continue;
    progress->show({.type = event.text("event_type"),
                    .node_id = event.text("node_id"),
                    .data = event.document("event_data"),
                    .at = from_iso(event.text("created_at")).value_or(Time{})});
  }
  return last;
}

// Follows a job to its end, through restarts of the server. The server holds each request until there is
// something new.
int follow(Reconnecting& remote, const Options& options, const std::string& job_id) {
  Progress lines(stderr);
  std::int64_t last = 0;
  while (true) {
    const auto answer =
        remote.get(fmt::format("{}/timeline?after={}&wait_ms=20000", job_target(job_id), last));
    if (!answer) return refuse(options.remote, answer.error());
    if (!answer->ok()) return refuse(options.remote, *answer);
    const Fields page(answer->body);
    const std::int64_t shown = show_events(page, last, options.remote.as_json ? nullptr : &lines);
    // A page of an ended job may still have another one behind it.
    if (has_ended(page.text("status")) && shown == last) break;
    last = shown;
  }
  const auto job = remote.get(job_target(job_id) + "?full=true");
  if (!job) return refuse(options.remote, job.error());
  if (!job->ok()) return refuse(options.remote, *job);
  return tell_outcome(options, job->body);
}

int submit(const Options& options) {
  const auto input = read_input(options.input);
  if (!input) {
    complain(input.error().message);
    return exit_usage;
  }
  std::string body = "{";
  append_members(body, "workflow_id", options.workflow_id, "input_data", *input);
  append_given(body, "version", options.version, "priority", options.priority, "due_at", options.due_at,
               "tags", options.tags);
  if (const auto delay = workflow::read_span(options.delay))
    append_member(body, "delay_seconds", static_cast<double>(delay->count()) / 1000);
  body += '}';
  const Headers headers{
      {"Idempotency-Key", options.idempotency_key.empty() ? new_key() : options.idempotency_key}};
  Reconnecting remote(options.remote, options.reconnect);
  const auto answer = remote.post("/api/v1/jobs", body, headers);
  if (!answer) return refuse(options.remote, answer.error());
  if (!answer->ok()) {
    const int code = refuse(options.remote, *answer);
    if (!options.remote.as_json && Fields(answer->body).text("code") == "workflow_not_found")
      suggest(remote.remote(), workflow_names, options.workflow_id);
    return code;
  }
  const std::string job_id = Fields(answer->body).text("job_id");
  if (options.wait) {
    fmt::print(stderr, "job {}\n", job_id);  // whatever comes between, the id is known
    return follow(remote, options, job_id);
  }
  if (options.remote.as_json)
    print_json(answer->body);
  else
    fmt::print("{}\n", job_id);
  return exit_ok;
}

int list(const Options& options) {
  const Listing listing{.target = Target("/api/v1/jobs")
                                      .with("status", options.status)
                                      .with("workflow_id", options.workflow_id)
                                      .with("tag", options.tag)
                                      .with("limit", options.limit)
                                      .with("cursor", options.cursor)
                                      .text(),
                        .key = "jobs",
                        .heading = {"JOB", "WORKFLOW", "VERSION", "STATUS", "CREATED", "ENDED"},
                        .none = "No jobs."};
  return list_page(options.remote, listing, [](const Fields& job) -> Row {
    return {job.text("job_id"), job.text("workflow_id"), std::to_string(job.number("workflow_version")),
            job.text("status"), job.text("created_at"),  job.text("completed_at")};
  });
}

// "40/100, 2 failed" of a fan-out.
std::string items_of(const Fields& node) {
  if (!node.has("items")) return "";
  const Fields items(node.document("items"));
  std::string text = fmt::format("{}/{}", items.number("done"), items.number("total"));
  if (items.number("failed") > 0) text += fmt::format(", {} failed", items.number("failed"));
  return text;
}

void print_job(const Fields& job) {
  const bool colour = has_colour(stdout);
  const std::string status = job.text("status");
  print_field("job", job.text("job_id"));
  print_field("workflow",
              fmt::format("{} version {}", job.text("workflow_id"), job.number("workflow_version")));
  print_field("status", paint(status, colour_of_status(status), colour));
  print_field("error", one_line(job.text("error")));
  if (job.number("priority") != 0) print_field("priority", std::to_string(job.number("priority")));
  if (job.document("tags") != "[]") print_field("tags", job.document("tags"));
  print_field("rerun of", job.text("rerun_of"));
  print_field("created", job.text("created_at"));
  print_field("due", job.text("due_at"));
  print_field("paused", at_and_by(job.text("paused_at"), job.text("paused_by")));
  print_field("started", job.text("started_at"));
  print_field("ended", job.text("completed_at"));
  if (job.has("input_data_bytes"))
    print_field("input", fmt::format("{} bytes, too many to show", job.number("input_data_bytes")));
  else
    print_field("input", job.document("input_data"));
  if (job.has("result_data")) print_field("result", job.document("result_data"));
  if (job.has("result_data_bytes"))
    print_field("result", fmt::format("{} bytes, see 'baton job result {}'", job.number("result_data_bytes"),
                                      job.text("job_id")));
  std::vector<std::vector<std::string>> rows{
      {"NODE", "STATUS", "ATTEMPT", "ITEMS", "QUEUE", "WORKER", "ERROR"}};
  for (const auto& [node_id, node] : job.members("nodes"))
    rows.push_back({node_id, node.text("status"), std::to_string(node.number("retry_count") + 1),
                    items_of(node), node.text("queue"), node.text("worker_id"),
                    one_line(node.text("error"))});
  if (rows.size() > 1) fmt::print("\n{}", table(rows));
}

int show(const Options& options) { return get(options.remote, job_target(options.job_id), print_job); }

int watch(const Options& options) {
  Reconnecting remote(options.remote, options.reconnect);
  return follow(remote, options, options.job_id);
}

void add_submit(Parser job, Action& chosen, const Shared& options) {
  Parser command = add_command(job, chosen, options, "submit", "Start a job and print its id", submit);
  command.add_option("WORKFLOW", options->workflow_id, "the workflow's id").required();
  command.add_option("-i,--input", options->input, input_help);
  command.add_option("--version", options->version, "of the workflow; default the latest")
      .range(1, 1'000'000'000);
  command.add_option("--idempotency-key", options->idempotency_key,
                     "the same key again gives the same job; default a new one");
  command.add_option("--priority", options->priority, "of its tasks in their queues, higher first")
      .range(-100, 100);
  command.add_option("--tag", options->tags, "a tag to find it by; may be repeated");
  const Option due =
      command.add_option("--due", options->due_at, "not before this instant, as 2026-01-31T08:00:00Z");
  command.add_option("--delay", options->delay, "not before so long from now: seconds, or as 1h30m")
      .type_name("SPAN")
      .check(check_span)
      .excludes(due);
  command.add_flag("--wait", options->wait, "follow the job to its end; the exit code is its outcome");
  add_reconnect_option(command, options->reconnect);
  command.footer(
      "Examples:\n"
      "  baton job submit echo_test --input '{\"message\":\"hello\"}' --wait\n"
      "  baton job submit echo_test --input @input.json --idempotency-key order-17");
}

void add_list(Parser job, Action& chosen, const Shared& options) {
  Parser command = add_command(job, chosen, options, "list", "List jobs, newest first", list);
  command.add_option("--status", options->status, "PENDING, RUNNING, COMPLETED, FAILED or CANCELLED")
      .one_of_any_case({"PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"});
  command.add_option("--workflow", options->workflow_id, "only of this workflow");
  command.add_option("--tag", options->tag, "only with this tag");
  command.add_option("--limit", options->limit, "jobs on one page").range(1, 200);
  command.add_option("--cursor", options->cursor, "where the page before ended");
  command.footer("Example:\n  baton job list --status FAILED --limit 20");
}

}  // namespace

void add_job(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser job = app.add_subcommand("job", "Submit, watch, steer and explain jobs");
  job.require_subcommand(1);
  add_submit(job, chosen, options);
  add_list(job, chosen, options);
  Parser one = add_command(job, chosen, options, "show", "Print a job and its nodes", show);
  one.add_option("ID", options->job_id, "the job's id").required();
  Parser follows = add_command(job, chosen, options, "watch", "Follow a job to its end", watch);
  follows.add_option("ID", options->job_id, "the job's id").required();
  add_reconnect_option(follows, options->reconnect);
  follows.footer(
      "Progress goes to standard error, the result to standard output.\nExit codes: 0 completed, 1 failed or "
      "cancelled, 6 the server could not be reached or could not\nserve.");
  add_job_operations(job, chosen);
}

}  // namespace baton::cli
