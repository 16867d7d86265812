// `baton call …`: service calls, that is one HTTP request each, made once at its time.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <memory>

#include "base/base64.hpp"
#include "base/json_document.hpp"
#include "base/json_write.hpp"
#include "base/text.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/reconnect.hpp"
#include "cli/request.hpp"
#include "cli/terminal/output.hpp"
#include "core/workflow/definition/span.hpp"
#include "http/wire/text.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::optional<std::string> body;
  std::string id, url, name, method, in, due_at, due_from, due_until, probe, key, by, reason, status, cursor,
      file, reconnect;
  std::vector<std::string> headers, tags;
  int timeout_ms = 0, redirects = 0, limit = 50;
};
using Shared = std::shared_ptr<Options>;

std::string calls_target(const Options& options) {
  const std::string tenant = server_access(options.remote).tenant.value_or("-");
  return "/api/v1/tenants/" + percent_encode(tenant) + "/service-calls";
}
std::string call_target(const Options& options) {
  return calls_target(options) + "/" + percent_encode(options.id);
}

// "dueAt":… or "delaySeconds":…; a delay is not made a time here, because a repeated request must say the
// same.
void append_when(std::string& body, const Options& options) {
  append_given(body, "dueAt", options.due_at);
  if (const auto delay = workflow::read_span(options.in); delay && options.due_at.empty())
    append_member(body, "delaySeconds", static_cast<double>(delay->count()) / 1000);
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
    fmt::print("  {} {:<22} {}\n", event.text("occurredAt"), event.text("type"),
               printable(event.document("data")));
}

// What is sent, as it is or, like with curl, from @FILE.
Result<std::string> body_of(const Options& options) {
  const std::string text = options.body.value_or("");
  if (text.starts_with('@')) return read_file(text.substr(1));
  if (!is_utf8(text))
    return fail(Code::invalid, "the body is not UTF-8; put it into a file and say -d @FILE");
  return text;
}

// {"A":"1","B":"2, 3"}: one that comes twice is one, with a comma between.
Result<std::map<std::string, std::string>> headers_of(const Options& options) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const std::string& header : options.headers) {
    const auto colon = header.find(':');
    if (colon == std::string::npos || colon == 0) return fail(Code::invalid, "a header is NAME:VALUE");
    const std::string name = header.substr(0, colon),
                      value(trimmed(std::string_view(header).substr(colon + 1)));
    const auto same =
        std::ranges::find_if(headers, [&](const auto& each) { return lower(each.first) == lower(name); });
    if (same == headers.end())
      headers.emplace_back(name, value);
    else
      same->second += ", " + value;
  }
  return std::map<std::string, std::string>(headers.begin(), headers.end());
}

// What to submit; what is wrong with it otherwise.
Result<std::string> submission(const Options& options) {
  TRY_ASSIGN(const std::string content, body_of(options));
  TRY_ASSIGN(const auto headers, headers_of(options));
  std::string method = options.method.empty() ? (options.body ? "POST" : "GET") : options.method;
  std::ranges::transform(method, method.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  const bool is_text = is_utf8(content) && !content.contains('\0');
  Json spec{"{"};
  append_members(spec.text, "method", method, "url", options.url, "headers", headers);
  append_given(spec.text, is_text ? "body" : "bodyBase64", is_text ? content : base64(content), "timeoutMs",
               options.timeout_ms, "redirects", options.redirects);
  if (!options.probe.empty()) append_member(spec.text, "probe", json_object("url", options.probe));
  spec.text += '}';
  std::string body = "{";
  append_members(body, "name", options.name.empty() ? "call" : options.name, "requestSpec", spec);
  append_when(body, options);
  append_given(body, "tags", options.tags, "idempotencyKey", options.key);
  return body + "}";
}

Options with_key(Options options) {
  if (options.key.empty()) options.key = new_key();
  return options;
}

int submit(const Options& options) {
  const auto body = submission(with_key(options));
  if (!body) {
    complain(body.error().message);
    return exit_usage;
  }
  Reconnecting remote(options.remote, options.reconnect);
  return tell(options.remote, remote.post(calls_target(options), *body, {}), [](const Fields& call) {
    fmt::print("{} {}, due {}\n", call.text("serviceCallId"), call.text("status"), call.text("dueAt"));
  });
}

// --- many, from a file: {"calls": […]}, […], or a call on each line

std::vector<std::string> calls_in(const std::string& text) {
  std::vector<std::string> calls;
  if (const auto whole = JsonDocument::parse(text)) {
    const JsonView root = whole->root();
    const JsonView list = root.kind() == JsonKind::object ? root.find("calls") : root;
    if (!list || list.kind() != JsonKind::array) return {text};
    for (const JsonView& each : list.items()) calls.push_back(each.json().text);
    return calls;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    if (const auto line = trimmed(rest.substr(0, end)); !line.empty()) calls.emplace_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return calls;
}

// What has no key is given one, so that it can be sent again.
std::string keyed(std::string call) {
  const auto document = JsonDocument::parse(call);
  if (!document || document->root().kind() != JsonKind::object) return call;
  if (const JsonView key = document->root().find("idempotencyKey"); key && !key.is_null()) return call;
  if (document->root().find("idempotencyKey")) {  // null is none, and a key is there once only
    auto with_key = boost::json::parse(call);
    with_key.as_object()["idempotencyKey"] = new_key();
    return json_text(with_key);
  }
  const std::size_t begin = call.find('{') + 1;
  const bool is_empty = call[call.find_first_not_of(" \t\r\n", begin)] == '}';
  return call.insert(begin, "\"idempotencyKey\":" + baton::quoted(new_key()) + (is_empty ? "" : ","));
}

struct Count {
  std::size_t made = 0, known = 0, refused = 0;
};

int submit_some(Reconnecting& remote, const Options& options, const std::string& calls, Count& count) {
  RemoteOptions in_words = options.remote;  // answers are counted, not shown
  in_words.as_json = false;
  const auto answered = remote.post(calls_target(options) + ":batch", "[" + calls + "]", {});
  return tell(in_words, answered, [&](const Fields& answer) {
    for (const Fields& call : answer.items("calls")) {
      if (call.has("error")) {
        ++count.refused;
        complain(call.text("error"));
      } else {
        ++(call.flag("created") ? count.made : count.known);
      }
    }
  });
}

int submit_all(const Options& options) {
  const auto text = read_file(options.file);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  constexpr std::size_t at_once = 1'000, bytes_at_once = 3 << 20;  // what the server takes
  const auto calls = calls_in(*text);
  Reconnecting remote(options.remote, options.reconnect);
  Count count;
  std::size_t begin = 0;
  while (begin < calls.size()) {
    std::string some = keyed(calls[begin]);
    std::size_t end = begin + 1;
    for (; end < calls.size() && end - begin < at_once && some.size() + calls[end].size() < bytes_at_once;
         ++end)
      some += "," + keyed(calls[end]);
    if (const int code = submit_some(remote, options, some, count); code != exit_ok) {
      complain(fmt::format("calls {} to {} of the file were not submitted, nor those behind them", begin + 1,
                           end));
      return code;
    }
    begin = end;
  }
  if (options.remote.as_json)
    print_json(json_object("submitted", count.made, "known", count.known, "refused", count.refused).text);
  else
    fmt::print("{} submitted, {} known already, {} refused\n", count.made, count.known, count.refused);
  return count.refused > 0 ? exit_failed : exit_ok;
}

int list(const Options& options) {
  Target target(calls_target(options));
  target.with("status", options.status)
      .with("name", options.name)
      .with("limit", options.limit)
      .with("cursor", options.cursor);
  target.with("dueFrom", options.due_from).with("dueUntil", options.due_until);
  for (const std::string& tag : options.tags) target.with("tag", tag);
  const Listing listing{.target = target.text(),
                        .key = "serviceCalls",
                        .heading = {"CALL", "STATUS", "DUE", "NAME", "TAGS", "OUTCOME"}};
  return list_page(options.remote, listing, [](const Fields& call) {
    const std::string tags = call.document("tags");
    return Row{call.text("serviceCallId"),   call.text("status"),      call.text("dueAt"),
               printable(call.text("name")), tags == "[]" ? "" : tags, one_line(reason_of(call))};
  });
}

int show(const Options& options) { return get(options.remote, call_target(options), print_call); }

// Through restarts of the server too: that is when people watch. The server holds each request until the call
// has ended.
int watch(const Options& options) {
  Reconnecting remote(options.remote, options.reconnect);
  std::string last;
  while (true) {
    const auto answer = remote.get(call_target(options) + "?wait_ms=" + (last.empty() ? "0" : "20000"));
    if (!answer || !answer->ok()) return tell(options.remote, answer, print_call);
    const std::string status = Fields(answer->body).text("status");
    if (status == "Succeeded" || status == "Failed") {
      const int code = tell(options.remote, answer, print_call);
      return code != exit_ok ? code : status == "Failed" ? exit_failed : exit_ok;
    }
    if (status != last) fmt::print(stderr, "{} {}\n", options.id, status);
    last = status;
  }
}

void print_short(const Fields& call) {
  fmt::print("{} {}, due {}{}\n", call.text("serviceCallId"), call.text("status"), call.text("dueAt"),
             call.has("errorMeta") ? "; " + one_line(reason_of(call)) : "");
}

int cancel(const Options& options) {
  return post(options.remote, call_target(options) + "/cancel",
              json_object_of_given("by", options.by, "reason", options.reason).text, print_short);
}

int reschedule(const Options& options) {
  std::string body = "{";
  append_when(body, options);
  if (body == "{") {
    complain("say when: --due TIME or --in SPAN");
    return exit_usage;
  }
  append_given(body, "by", options.by, "reason", options.reason);
  return post(options.remote, call_target(options) + "/reschedule", body + '}', print_short);
}
int repeat(const Options& options) {
  std::string body = "{";
  append_given(body, "idempotencyKey", with_key(options).key);
  append_when(body, options);
  Reconnecting remote(options.remote, options.reconnect);
  return tell(options.remote, remote.post(call_target(options) + "/repeat", body + '}', {}), print_short);
}

void add_due(Parser command, Options& options, const std::string& otherwise) {
  const Option due = command.add_option("--due", options.due_at, "when, as 2026-03-01T20:00:00Z" + otherwise);
  command.add_option("--in", options.in, "instead: so long from now, seconds or as 1h30m")
      .type_name("SPAN")
      .excludes(due)
      .check(check_span);
}

void add_submit(Parser call, Action& chosen, const Shared& options) {
  Parser command =
      add_command(call, chosen, options, "submit", "Have a request made, once, at its time", submit);
  command.add_option("URL", options->url, "http or https").required();
  command.add_option("--name", options->name, "what it is called; default call");
  command.add_option("-X,--method", options->method, "default GET, with a body POST");
  command.add_option("-H,--header", options->headers, "NAME:VALUE; more than one is fine");
  command.add_option("-d,--body", options->body, "what is sent; @FILE: what the file holds");
  command.add_option("--timeout-ms", options->timeout_ms, "default 30000").range(1, 600'000);
  command.add_option("--redirects", options->redirects, "how many are followed; default 0").range(0, 10);
  command.add_option("--probe", options->probe,
                     "URL that tells after a crash whether the call was received: 2xx or 404");
  command.add_option("--tag", options->tags, "more than one is fine");
  command.add_option("--key", options->key,
                     "idempotency key: a repeated submit is the same call; default a new one");
  add_reconnect_option(command, options->reconnect);
  add_due(command, *options, "; default at once");
}

Parser add_one(Parser call, Action& chosen, const Shared& options, const std::string& name,
               const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(call, chosen, options, name, help, act);
  command.add_option("ID", options->id, "of the call").required();
  return command;
}

}  // namespace

void add_call(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser call = app.add_subcommand("call", "Submit service calls, look at them, cancel and reschedule them");
  call.require_subcommand(1);
  add_submit(call, chosen, options);
  Parser many = add_command(call, chosen, options, "submit-all", "Submit the calls of a file", submit_all);
  many.add_option("FILE", options->file,
                  "a call as JSON on each line, or an array of calls; - for standard input")
      .required();
  add_reconnect_option(many, options->reconnect);
  Parser all = add_command(call, chosen, options, "list", "List calls, newest first", list);
  all.add_option("--status", options->status, "Scheduled, Running, Succeeded or Failed");
  all.add_option("--name", options->name, "only of this name");
  all.add_option("--tag", options->tags, "only with this tag; more than one: with all of them");
  all.add_option("--due-from", options->due_from, "only due then or later; the earliest first");
  all.add_option("--due-until", options->due_until, "only due before");
  all.add_option("--limit", options->limit, "calls on one page; default 50").range(1, 200);
  all.add_option("--cursor", options->cursor, "of the page before");
  (void)add_one(call, chosen, options, "show", "Print a call, its outcome and its events", show);
  Parser follows = add_one(call, chosen, options, "watch", "Wait for the end of a call and print it", watch);
  add_reconnect_option(follows, options->reconnect);
  follows.footer("Exit codes: 0 succeeded, 1 failed, 6 the server could not be reached or could\nnot serve.");
  Parser gone = add_one(call, chosen, options, "cancel", "Cancel a call that is Scheduled", cancel);
  gone.add_option("--by", options->by, "who does it; kept with the call");
  gone.add_option("--reason", options->reason, "why");
  Parser later =
      add_one(call, chosen, options, "reschedule", "Give a call that is Scheduled another time", reschedule);
  later.add_option("--by", options->by, "who does it; kept with the call");
  later.add_option("--reason", options->reason, "why");
  add_due(later, *options, "");
  Parser again = add_one(call, chosen, options, "repeat",
                         "Make the same request once more, as a call of its own", repeat);
  again.add_option("--key", options->key, "idempotency key: repeated once more with it, it is the same call");
  add_reconnect_option(again, options->reconnect);
  add_due(again, *options, "; default at once");
}

}  // namespace baton::cli
