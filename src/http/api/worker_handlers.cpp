// Workers: ask for tasks, report results, renew leases, say how it goes; and who they are.
#include <fmt/format.h>

#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"

namespace baton::http {

namespace {

constexpr std::size_t batch_max = 1000;

ReportResult read_result(JsonView body, std::string prefix, const Request& request, std::vector<FieldError>& errors) {
  ReportResult result = read_task_result(body, std::move(prefix), errors);
  result.tenant = request.scope;
  return result;
}

Poll read_poll(Context& context, const JsonDocument& document, std::vector<FieldError>& errors) {
  Fields fields(document.root(), "", errors);
  Poll poll;
  poll.tenant = context.request.tenant;
  poll.queue = context.request.captures[0];
  if (!is_printable(poll.queue, 200)) fields.wrong("queue", "is not the name of a queue");
  if (workflow::is_reserved_queue(poll.queue))
    fields.wrong("queue", "is reserved: no worker can ask for its tasks");
  poll.worker = fields.text("worker", 200).value_or("");
  poll.max = static_cast<std::uint32_t>(fields.integer("max", {1, batch_max}).value_or(1));
  poll.heartbeats = fields.boolean("heartbeat").value_or(false);
  if (const auto wait_ms = fields.integer("wait_ms", {0, 60'000}).value_or(0); wait_ms > 0) {
    poll.wait_until = context.wait_until(wait_ms);
  }
  return poll;
}

}  // namespace

Task<Response> poll_tasks(Context& context) {
  std::vector<FieldError> errors;
  Poll poll;
  {
    auto document = parse_object(context.request, true);
    if (!document) co_return std::move(document.error());
    poll = read_poll(context, *document, errors);
  }
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  context.request.body = {};  // ten thousand of these may wait
  const bool waits = poll.wait_until != Time{};
  auto reply = co_await context.ask(std::move(poll), waits ? Interruptible::watching : Interruptible::no);
  if (!reply) reply = PollReply{};  // the wait was interrupted
  if (const auto* refused = std::get_if<Refused>(&*reply)) co_return problem(*refused);
  auto& jobs = std::get<PollReply>(*reply).jobs;
  auto response = json_response(200, "{");
  append_list(response.body, "jobs", jobs, append_handout);
  response.body += '}';
  for (auto& job : jobs) response.handed_out.push_back({std::move(job.task_id), std::move(job.lease)});
  co_return response;
}

Task<Response> report_result(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  auto result = read_result(document->root(), "", context.request, errors);
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  auto reply = co_await tell<ResultReply>(context, std::move(result));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, "{");
  append_outcome(response.body, *reply);
  response.body += '}';
  co_return response;
}

Task<Response> report_results(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  std::vector<std::string> task_ids;
  std::vector<Command> results;
  {
    Fields fields(document->root(), "", errors);
    for (const auto& item : fields.required_array("results", batch_max)) {
      auto result = read_result(item, fmt::format("results[{}]", results.size()), context.request, errors);
      task_ids.push_back(result.task_id);
      results.emplace_back(std::move(result));
    }
  }
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  auto replies = co_await context.ask_all(std::move(results));
  auto response = json_response(200, "{");
  append_outcomes(response.body, "task_id", task_ids, replies);
  response.body += '}';
  co_return response;
}

Task<Response> heartbeat(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Heartbeat command;
  {
    Fields fields(document->root(), "", errors);
    command.tenant = context.request.scope;
    command.worker = fields.required_text("worker", 200);
    std::size_t index = 0;
    for (const auto& item : fields.required_array("tasks", batch_max)) {
      Fields task(item, fmt::format("tasks[{}]", index++), errors);
      command.tasks.push_back({task.required_text("task_id", 600), task.required_text("lease", 200)});
    }
  }
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  auto reply = co_await tell<HeartbeatReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  co_return json_response(200,
                          json_object("lease_until", reply->lease_until, "cancelled", reply->cancelled).text);
}

namespace {

// What every note of a worker begins with.
TaskNote read_note(Fields& fields, const Request& request) {
  TaskNote note{.tenant = request.scope, .task_id = fields.required_text("task_id", 600)};
  note.lease = fields.text("lease", 200);
  return note;
}

Task<Response> tell_note(Context& context, TaskNote note, std::optional<std::size_t> lines) {
  auto reply = co_await tell<NoteReply>(context, std::move(note));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, "{");
  append_member(response.body, "accepted", true);
  if (lines) append_members(response.body, "stored", reply->stored, "truncated", reply->stored < *lines);
  response.body += '}';
  co_return response;
}

}  // namespace

Task<Response> report_progress(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  TaskNote note = read_note(fields, context.request);
  std::string text = "{";
  if (fields.number("progress", 0, 100)) append_member(text, "progress", fields.any("progress"));
  const auto message = fields.prose("message");
  if (message) append_member(text, "message", clean_text(*message, 2000));
  if (text.size() == 1 && errors.empty()) fields.wrong("progress", "is required, or 'message'");
  append_member(text, "at", context.services.clock.now());
  note.note = TaskProgress{Json{text + "}"}};
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  co_return co_await tell_note(context, std::move(note), std::nullopt);
}

Task<Response> report_checkpoint(Context& context) {
  constexpr std::size_t checkpoint_bytes_max = 1 << 20;
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  TaskNote note = read_note(fields, context.request);
  auto data = fields.any("checkpoint");
  if (!data) fields.wrong("checkpoint", "is required");
  if (data && data->text.size() > checkpoint_bytes_max) fields.wrong("checkpoint", "must have at most 1 MiB");
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  note.note = TaskCheckpoint{*std::move(data)};
  co_return co_await tell_note(context, std::move(note), std::nullopt);
}

Task<Response> report_log(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  TaskNote note = read_note(fields, context.request);
  TaskLog log;
  for (const auto& item : fields.required_array("lines", batch_max)) {
    Fields line(item, fmt::format("lines[{}]", log.lines.size()), errors);
    delivery::LogText text{.stream = line.text("stream", 20).value_or("log"),
                           .at = line.time("at").value_or(context.services.clock.now()),
                           .text = clean_text(line.prose("text").value_or(""), 16 << 10)};
    log.lines.push_back(std::move(text));
  }
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  const std::size_t lines = log.lines.size();
  note.note = std::move(log);
  co_return co_await tell_note(context, std::move(note), lines);
}

Task<Response> list_workers(Context& context) {
  ListWorkers question{context.request.tenant};
  auto reply = co_await tell<WorkersReply>(context, std::move(question));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, "{");
  append_list(response.body, "workers", reply->workers, append_worker);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
