// `baton step …`: one job of a batch, be it a step of a member, an init step, or one of a rollback or a
// removal.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/subcommand.hpp"
#include "cli/commands/targets.hpp"
#include "cli/request.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string job_id, by, reason;
};
using Shared = std::shared_ptr<Options>;

std::string policy_of(const Fields& step) {
  std::string text = fmt::format("{}", step.number("retry_count") + 1);
  if (step.has("max_retries")) text += fmt::format(" of {}", step.number("max_retries") + 1);
  if (step.has("retry_after")) text += ", again at " + step.text("retry_after");
  return text;
}

void print_times(const Fields& step) {
  print_field("queued", step.text("queued_at"));
  print_field("dispatched", step.text("dispatched_at"));
  if (step.flag("is_poll_step"))
    print_field("polls",
                fmt::format("{}, every {} s for at most {} s{}", step.number("poll_count"),
                            step.number("poll_interval_sec"), step.number("poll_timeout_sec"),
                            step.has("last_polled_at") ? ", last at " + step.text("last_polled_at") : ""));
  print_field("lease ends", step.text("lease_until"));
  print_field("given up", step.text("dead_at"));
  print_field("ended", step.text("completed_at"));
}

// "skipped by ada; stored as succeeded"
std::string status_text(const Fields& step) {
  const std::string status = step.text("status");
  if (!step.flag("skipped")) return status;
  const std::string by = Fields(step.document("result_json")).text("skipped_by");
  return fmt::format("skipped{}; stored as {}", by.empty() ? "" : " by " + printable(by), status);
}

void print_step(const Fields& step) {
  const bool colour = has_colour(stdout);
  const std::string status = step.text("status");
  const std::string state = step.text("job_state");
  print_field("job", job_of(step));
  print_field("step", printable(step.text("step_name")));
  print_field("part of", printable(step.text("sequence")));
  print_field("status", paint(status_text(step), colour_of_status(step.flag("skipped") ? "skipped" : status), colour) +
                            (state.empty() || state == "none" ? "" : ", its job is " + state));
  print_field("waits", one_line(step.text("trouble")));
  print_field("error", one_line(step.text("error_message")));
  print_field("batch", std::to_string(step.number("batch_id")));
  if (step.has("batch_member_id")) print_field("member", std::to_string(step.number("batch_member_id")));
  print_field("function", printable(step.text("function_name")));
  print_field("queue", printable(step.text("worker_id")));
  print_field("worker", printable(step.text("leased_by")));
  print_field("attempt", policy_of(step));
  print_times(step);
  if (step.has("params_json")) print_field("params", printable(step.document("params_json")));
  if (step.has("result_json")) print_field("result", printable(step.document("result_json")));
}

int show(const Options& options) { return get(options.remote, job_target(options.job_id), print_step); }

int logs(const Options& options) {
  return each_page(options.remote, job_target(options.job_id) + "/logs", 0, [](const Fields& page) {
    for (const Fields& line : page.items("lines"))
      fmt::print("{} #{} {} {}\n", line.text("at"), line.number("retry_count") + 1, line.text("stream"),
                 printable(line.text("text")));
  });
}

int change(const Options& options, const std::string& verb, std::string_view done) {
  return post(options.remote, job_target(options.job_id) + "/" + verb,
              json_object_of_given("by", options.by, "reason", options.reason).text, [&](const Fields& step) {
                fmt::print("{} {}; it {} {}.\n", done, options.job_id, verb == "skip" ? "counts as" : "is",
                           step.text("status"));
              });
}

int why(const Options& options) {
  return get(options.remote, job_target(options.job_id) + "/why",
             [&](const Fields& body) { print_why("step " + options.job_id, body); });
}

int retry(const Options& o) { return change(o, "retry", "Retried"); }
int skip(const Options& o) { return change(o, "skip", "Skipped"); }
int cancel(const Options& o) { return change(o, "cancel", "Cancelled"); }

Parser add_one(Parser step, Action& chosen, const Shared& options, const std::string& name,
               const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(step, chosen, options, name, help, act);
  add_job_id(command, options->job_id);
  return command;
}

}  // namespace

void add_step(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser step =
      app.add_subcommand("step", "Look at one step of a batch and its logs, try it again, skip or cancel it");
  step.require_subcommand(1);
  (void)add_one(step, chosen, options, "show", "Print a step, what it was given and what came of it", show);
  (void)add_one(step, chosen, options, "why", "Say in a sentence why a step does not go on", why);
  add_one(step, chosen, options, "logs", "Print what the jobs of a step said", logs)
      .footer("Each line has its time, #ATTEMPT, the stream and the text.");
  const auto changes = [&](const std::string& name, const std::string& help, int (*act)(const Options&)) {
    Parser command = add_one(step, chosen, options, name, help, act);
    command.add_option("--by", options->by, "who does it; kept with the batch");
    command.add_option("--reason", options->reason, "kept with the batch");
  };
  changes("retry", "Try a step that failed again", retry);
  changes("skip", "Take a step as done, and go on with the next; it is shown as skipped", skip);
  changes("cancel", "Give a step up", cancel);
  step.footer("A job is such as step-12, init-3, rollback-4 or removal-5; `baton member show` has them.");
}

}  // namespace baton::cli
