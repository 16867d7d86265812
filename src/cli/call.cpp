// `baton call …`: service calls, that is one HTTP request each, made once at its time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/exchange.hpp"
#include "cli/output.hpp"
#include "cli/subcommand.hpp"
#include "http/text.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string id, url, name, method = "GET", body, due_at, key, by, reason, status, cursor;
  std::vector<std::string> headers, tags;
  double in_seconds = 0;
  int timeout_ms = 0, limit = 50;
};
using Shared = std::shared_ptr<Options>;

std::string calls_target(const Options& options) {
  const std::string tenant = destination(options.remote).tenant.value_or("default");
  return "/api/v1/tenants/" + http::percent_encode(tenant) + "/service-calls";
}
std::string call_target(const Options& options) { return calls_target(options) + "/" + http::percent_encode(options.id); }

std::string due_of(const Options& options) {
  if (options.in_seconds <= 0) return options.due_at;
  const auto delay = Duration{static_cast<std::int64_t>(options.in_seconds * 1000)};
  return to_iso(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) + delay);
}

std::string reason_of(const Fields& call) {
  if (call.has("errorMeta")) {
    const Fields error(call.document("errorMeta"));
    return error.text("kind") + ": " + error.text("message");
  }
  if (!call.has("responseMeta")) return "";
  return fmt::format("{}", Fields(call.document("responseMeta")).number("status"));
}

void print_call(const Fields& call) {
  const std::string status = call.text("status");
  print_field("call", call.text("serviceCallId"));
  print_field("tenant", call.text("tenantId"));
  print_field("name", printable(call.text("name")));
  print_field("status", paint(status, colour_of_status(status), has_colour(stdout)));
  print_field("outcome", one_line(reason_of(call)));
  print_field("due", call.text("dueAt"));
  print_field("submitted", call.text("submittedAt"));
  print_field("started", call.text("startedAt"));
  print_field("finished", call.text("finishedAt"));
  print_field("repeats", call.text("repeatOf"));
  print_field("request", printable(call.document("requestSpec")));
  if (call.has("responseMeta")) print_field("response", printable(call.document("responseMeta")));
  if (call.has("errorMeta")) print_field("error", printable(call.document("errorMeta")));
  for (const Fields& event : call.items("timeline"))
    fmt::print("  {} {:<22} {}\n", event.text("occurredAt"), event.text("type"), printable(event.document("data")));
}

// The body of a submission. False: a header is not NAME:VALUE.
bool submission(const Options& options, std::string& body) {
  std::string headers;
  for (const std::string& header : options.headers) {
    const auto colon = header.find(':');
    if (colon == std::string::npos || colon == 0) return false;
    const auto value = header.find_first_not_of(' ', colon + 1);
    headers += (headers.empty() ? "" : ",") + baton::quoted(header.substr(0, colon)) + ":" +
               baton::quoted(value == std::string::npos ? "" : header.substr(value));
  }
  const std::string due = due_of(options);
  body = "{\"name\":" + baton::quoted(options.name.empty() ? "call" : options.name) + ",\"requestSpec\":{\"method\":" +
         baton::quoted(options.method) + ",\"url\":" + baton::quoted(options.url) + ",\"headers\":{" + headers + "}";
  if (!options.body.empty()) body += ",\"body\":" + baton::quoted(options.body);
  if (options.timeout_ms > 0) body += ",\"timeoutMs\":" + std::to_string(options.timeout_ms);
  body += "}";
  if (!due.empty()) body += ",\"dueAt\":" + baton::quoted(due);
  if (!options.tags.empty()) body += ",\"tags\":" + json_array(options.tags);
  if (!options.key.empty()) body += ",\"idempotencyKey\":" + baton::quoted(options.key);
  body += "}";
  return true;
}

int submit(const Options& options) {
  std::string body;
  if (!submission(options, body)) {
    complain("a header is NAME:VALUE");
    return exit_usage;
  }
  return post(options.remote, calls_target(options), std::move(body), [](const Fields& call) {
    fmt::print("{} {}, due {}\n", call.text("serviceCallId"), call.text("status"), call.text("dueAt"));
  });
}

int list(const Options& options) {
  Target target(calls_target(options));
  target.with("status", options.status).with("name", options.name).with("limit", options.limit).with("cursor", options.cursor);
  for (const std::string& tag : options.tags) target.with("tag", tag);
  return get(options.remote, target.text(), [](const Fields& page) {
    const auto calls = page.items("serviceCalls");
    if (calls.empty()) fmt::print("None.\n");
    for (const Fields& call : calls)
      fmt::print("{}  {:<9}  {}  {}  {}\n", call.text("serviceCallId"), call.text("status"), call.text("dueAt"),
                 printable(call.text("name")), one_line(reason_of(call)));
    if (page.has("nextCursor")) fmt::print("More: --cursor {}\n", page.text("nextCursor"));
  });
}

int show(const Options& options) { return get(options.remote, call_target(options), print_call); }

int watch(const Options& options) {
  std::string last;
  while (true) {
    bool over = false;
    const int code = get(options.remote, call_target(options), [&](const Fields& call) {
      const std::string status = call.text("status");
      over = status == "Succeeded" || status == "Failed";
      if (over) return print_call(call);
      if (status != last) fmt::print("{} {}, due {}\n", call.text("serviceCallId"), status, call.text("dueAt"));
      std::fflush(stdout);
      last = status;
    });
    if (code != 0 || over) return code;
    std::this_thread::sleep_for(std::chrono::milliseconds{500});  // the API has nothing to wait on for a call yet
  }
}

void print_short(const Fields& call) {
  fmt::print("{} {}, due {}{}\n", call.text("serviceCallId"), call.text("status"), call.text("dueAt"),
             call.has("errorMeta") ? "; " + one_line(reason_of(call)) : "");
}

int cancel(const Options& options) {
  return post(options.remote, call_target(options) + "/cancel",
              json_object({{"by", options.by}, {"reason", options.reason}}), print_short);
}
int reschedule(const Options& options) {
  const std::string due = due_of(options);
  if (due.empty()) {
    complain("say when: --due TIME or --in SECONDS");
    return exit_usage;
  }
  return post(options.remote, call_target(options) + "/reschedule", json_object({{"dueAt", due}, {"by", options.by}}),
              print_short);
}
int repeat(const Options& options) {
  return post(options.remote, call_target(options) + "/repeat", json_object({{"dueAt", due_of(options)}}), print_short);
}

void add_due(CLI::App& command, Options& options) {
  auto* due = command.add_option("--due", options.due_at, "when, as 2026-03-01T20:00:00Z; default at once");
  command.add_option("--in", options.in_seconds, "instead: seconds from now")->excludes(due);
}

void add_submit(CLI::App& call, Action& chosen, const Shared& options) {
  CLI::App* command = add_command(call, chosen, options, "submit", "Have a request made, once, at its time", submit);
  command->add_option("URL", options->url, "http or https")->required();
  command->add_option("--name", options->name, "what it is called; default call");
  command->add_option("-X,--method", options->method, "default GET");
  command->add_option("-H,--header", options->headers, "NAME:VALUE; more than one is fine");
  command->add_option("-d,--body", options->body, "what is sent");
  command->add_option("--timeout-ms", options->timeout_ms, "default 30000");
  command->add_option("--tag", options->tags, "more than one is fine");
  command->add_option("--key", options->key, "idempotency key: a repeated submit is the same call");
  add_due(*command, *options);
}

CLI::App* add_one(CLI::App& call, Action& chosen, const Shared& options, const std::string& name,
                  const std::string& help, int (*act)(const Options&)) {
  CLI::App* command = add_command(call, chosen, options, name, help, act);
  command->add_option("ID", options->id, "of the call")->required();
  return command;
}

}  // namespace

void add_call(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* call = app.add_subcommand("call", "Submit service calls, look at them, cancel and reschedule them");
  call->require_subcommand(1);
  add_submit(*call, chosen, options);
  CLI::App* all = add_command(*call, chosen, options, "list", "List calls, newest first", list);
  all->add_option("--status", options->status, "Scheduled, Running, Succeeded or Failed");
  all->add_option("--name", options->name, "only of this name");
  all->add_option("--tag", options->tags, "only with this tag; more than one: with all of them");
  all->add_option("--limit", options->limit, "calls on one page; default 50")->check(CLI::Range(1, 200));
  all->add_option("--cursor", options->cursor, "of the page before");
  (void)add_one(*call, chosen, options, "show", "Print a call, its outcome and its events", show);
  (void)add_one(*call, chosen, options, "watch", "Wait for the end of a call and print it", watch);
  CLI::App* gone = add_one(*call, chosen, options, "cancel", "Cancel a call that is Scheduled", cancel);
  gone->add_option("--by", options->by, "who does it; kept with the call");
  gone->add_option("--reason", options->reason, "why");
  CLI::App* later = add_one(*call, chosen, options, "reschedule", "Give a call that is Scheduled another time", reschedule);
  later->add_option("--by", options->by, "who does it; kept with the call");
  add_due(*later, *options);
  add_due(*add_one(*call, chosen, options, "repeat", "Make the same request once more, as a call of its own", repeat), *options);
}

}  // namespace baton::cli
