// What systems beside baton say of runbooks: messages of a scheduler, results of workers that know only the
// contract. One, or an array of up to a thousand; all are read before the first is handed in.
#include <fmt/format.h>

#include "core/runbook/machine/messages.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"

namespace baton::http {

namespace {

constexpr std::size_t many_max = 1000;

template <class T>
struct Read {
  std::vector<T> items;
  bool many = false;
};

// parse: the text of one -> std::expected<T, std::string>
template <class T, class Parse>
std::expected<Read<T>, Response> read_body(const Request& request, Parse parse) {
  auto document = JsonDocument::parse(request.body);
  if (!document) return std::unexpected(problem(400, "malformed_json", document.error().message));
  Read<T> read{.items = {}, .many = document->root().kind() == JsonKind::array};
  auto items = read.many ? document->root().items() : std::vector{document->root()};
  if (items.size() > many_max)
    return std::unexpected(
        problem("too many at once",
                {{"", fmt::format("has {} items; at most {} are allowed", items.size(), many_max)}}));
  std::vector<FieldError> errors;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto item = parse(items[i].json().text);
    if (item) {
      read.items.push_back(*std::move(item));
    } else {
      errors.push_back({read.many ? fmt::format("[{}]", i) : "", std::move(item.error())});
    }
  }
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  return read;
}

void append_event_reply(std::string& out, const EventReply& reply) {
  append_member(out, "accepted", true);
  append_member(out, "changed", reply.changed);
  append_member(out, "note", reply.note);
}

}  // namespace

Task<Response> accept_events(Context& context) {
  auto read = read_body<runbook::SchedulerMessage>(context.request, runbook::parse_message);
  if (!read) co_return std::move(read.error());
  auto response = json_response(200, "{");
  if (!read->many) {
    RunbookEvent event{std::move(read->items.front())};
    auto reply = co_await tell<EventReply>(context, std::move(event));
    if (!reply) co_return problem(reply.error());
    append_event_reply(response.body, *reply);
    response.body += '}';
    co_return response;
  }
  std::vector<Command> events;
  for (auto& message : read->items) events.emplace_back(RunbookEvent{std::move(message)});
  auto replies = co_await context.ask_all(std::move(events));
  append_list(response.body, "results", replies, [](std::string& out, const std::optional<Reply>& reply) {
    out += '{';
    const auto* event = reply ? std::get_if<EventReply>(&*reply) : nullptr;
    if (event != nullptr) {
      append_event_reply(out, *event);
    } else {
      append_member(out, "accepted", false);
      append_refusal(out, reply ? std::get_if<Refused>(&*reply) : nullptr);
    }
    out += '}';
  });
  response.body += '}';
  co_return response;
}

Task<Response> report_worker_result(Context& context) {
  auto read = read_body<ReportResult>(context.request, parse_runbook_result);
  if (!read) co_return std::move(read.error());
  for (ReportResult& result : read->items) result.tenant = context.request.scope;
  auto response = json_response(200, "{");
  if (!read->many) {
    auto reply = co_await tell<ResultReply>(context, std::move(read->items.front()));
    if (!reply) co_return problem(reply.error());
    append_outcome(response.body, *reply);
    response.body += '}';
    co_return response;
  }
  std::vector<std::string> job_ids;
  std::vector<Command> results;
  for (auto& result : read->items) {
    job_ids.push_back(result.task_id);
    results.emplace_back(std::move(result));
  }
  auto replies = co_await context.ask_all(std::move(results));
  append_outcomes(response.body, "jobId", job_ids, replies);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
