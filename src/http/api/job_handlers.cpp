// Jobs: submit, list, show, follow.
#include <algorithm>

#include "base/ids.hpp"
#include "http/api/routes.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"
#include "http/wire/subscriptions.hpp"

namespace baton::http {

namespace {

constexpr Range wait_range{0, 60'000};
constexpr std::size_t nodes_max = 1000;

Response job_response(const JobReply& reply) {
  auto response = json_response(reply.created ? 201 : 200, {});
  response.body.reserve(512 + reply.job.input_data.text.size());
  append_job(response.body, reply.job, Documents::all);
  response.headers.emplace_back("Location", "/api/v1/jobs/" + percent_encode(reply.job.job_id.value));
  return response;
}

// The key may come in the body or as a header; both must agree.
std::optional<std::string> idempotency_key(const Request& request, Fields& fields) {
  auto key = fields.text("idempotency_key", 200);
  if (!request.idempotency_key) return key;
  if (!is_printable(*request.idempotency_key, 200)) {
    fields.wrong("Idempotency-Key", "must have 1 to 200 bytes and no control characters");
  } else if (key && *key != *request.idempotency_key) {
    fields.wrong("idempotency_key", "differs from the header Idempotency-Key");
  }
  return request.idempotency_key;
}

// Lengths keep the parts apart, so that two different requests never hash the same text.
std::string request_hash(const SubmitJob& command) {
  std::string text = std::to_string(command.workflow_id.size()) + ':' + command.workflow_id + ':' +
                     std::to_string(command.version) + ':' + command.input_data.text;
  // What was not there in the beginning is hashed only where it is used, so that keys of before still fit.
  if (command.priority != 0) text += "\npriority:" + std::to_string(command.priority);
  for (const std::string& tag : command.tags) text += "\ntag:" + std::to_string(tag.size()) + ':' + tag;
  return sha256_hex(text);
}

// Each once, in order.
std::vector<std::string> read_tags(Fields& fields) {
  std::vector<std::string> tags = fields.texts("tags", 20, 100);
  std::ranges::sort(tags);
  const auto rest = std::ranges::unique(tags);
  tags.erase(rest.begin(), rest.end());
  return tags;
}

// An instant, or seconds from now.
void read_due(Fields& fields, SubmitJob& command) {
  command.due_at = fields.time("due_at");
  const auto delay = fields.number("delay_seconds", 0, 10 * 366.0 * 24 * 3600);
  if (command.due_at && delay) fields.wrong("delay_seconds", "cannot be given together with due_at");
  if (delay) command.delay = Duration{static_cast<std::int64_t>(*delay * 1000)};
}

std::expected<SubmitJob, Response> read_job(Context& context) {
  auto document = parse_object(context.request);
  if (!document) return std::unexpected(std::move(document.error()));
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  SubmitJob command;
  command.workflow_id = fields.required_text("workflow_id", 200);
  command.version = static_cast<std::int32_t>(fields.integer("version", {1, 2'147'483'647}).value_or(0));
  command.input_data = fields.object("input_data").value_or(Json{"{}"});
  command.priority = static_cast<std::int32_t>(fields.integer("priority", {-100, 100}).value_or(0));
  command.tags = read_tags(fields);
  read_due(fields, command);
  command.idempotency_key = idempotency_key(context.request, fields);
  refuse_others(document->root(),
                {"workflow_id", "version", "input_data", "priority", "tags", "due_at", "delay_seconds", "idempotency_key"}, fields);
  const auto wait_ms = query_integer(context.request, "wait_ms", 0, wait_range, errors);
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  command.job_id.value = context.new_id();
  command.tenant = context.request.tenant;
  if (command.idempotency_key) command.request_hash = request_hash(command);
  if (context.request.traceparent && is_traceparent(*context.request.traceparent)) {
    command.traceparent = context.request.traceparent;
  }
  if (wait_ms > 0) command.wait_until = context.wait_until(wait_ms);
  return command;
}

}  // namespace

Task<Response> submit_job(Context& context) {
  auto command = read_job(context);
  if (!command) co_return std::move(command.error());
  context.request.body = {};
  const bool waits = command->wait_until != Time{};
  AwaitJob look{context.request.tenant, command->job_id, Time{}};
  auto reply =
      co_await context.ask(std::move(*command), waits ? Interruptible::when_stopping : Interruptible::no);
  if (!reply && !context.wait_state.over) {
    // The server is stopping while the caller waits for the end: tell it what the job is now.
    reply = co_await context.ask(std::move(look));
    if (reply) {
      if (auto* job = std::get_if<JobReply>(&*reply))
        job->created = true;
      else
        reply.reset();
    }
  }
  if (!reply) co_return problem(503, "stopping", "the server is stopping");
  if (const auto* refused = std::get_if<Refused>(&*reply)) co_return problem(*refused);
  co_return job_response(std::get<JobReply>(*reply));
}

Task<Response> list_jobs(Context& context) {
  const auto& request = context.request;
  std::vector<FieldError> errors;
  JobFilter filter;
  filter.tenant = request.tenant;
  if (const auto* status = request.argument("status")) {
    std::string upper = *status;
    std::ranges::transform(upper, upper.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    filter.status = workflow::job_status(upper);
    if (!filter.status)
      errors.push_back({"status", "must be PENDING, RUNNING, COMPLETED, FAILED or CANCELLED"});
  }
  if (const auto* workflow_id = request.argument("workflow_id")) filter.workflow_id = *workflow_id;
  if (filter.workflow_id && !is_printable(*filter.workflow_id, 200))
    errors.push_back({"workflow_id", "is not an id"});
  if (const auto* tag = request.argument("tag")) filter.tag = *tag;
  if (filter.tag && !is_printable(*filter.tag, 100)) errors.push_back({"tag", "is not a tag"});
  filter.created_from = query_time(request, "created_from", errors);
  filter.created_until = query_time(request, "created_until", errors);
  const auto limit = static_cast<std::size_t>(query_integer(request, "limit", 50, {1, 200}, errors));
  std::optional<workflow::JobId> before;
  if (const auto* cursor = request.argument("cursor")) {
    auto id = from_base64url(*cursor);
    if (id && is_uuid(*id)) {
      before = workflow::JobId{*std::move(id)};
    } else {
      errors.push_back({"cursor", "must be a next_cursor of an earlier page"});
    }
  }
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [filter, before, limit](Reads& reads) { return reads.jobs(filter, before, limit); };
  auto page = co_await context.read(std::move(query));
  if (!page) co_return problem(page.error());
  auto response = json_response(200, "{");
  append_list(response.body, "jobs", page->jobs,
              [](std::string& out, const workflow::Job& job) { append_job(out, job, Documents::none); });
  std::optional<std::string> cursor;
  if (page->next_before) cursor = base64url(page->next_before->value);
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_job(Context& context) {
  const workflow::JobId id{context.request.captures[0]};
  const auto tenant = context.request.tenant;
  std::vector<FieldError> errors;
  const auto wait_ms = query_integer(context.request, "wait_ms", 0, wait_range, errors);
  const bool full = query_boolean(context.request, "full", errors).value_or(false);
  const Documents documents = full ? Documents::all : Documents::brief;
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  if (!is_printable(id.value, 200)) co_return no_such_job(id.value);
  if (wait_ms > 0) {
    AwaitJob wait{tenant, id, context.wait_until(wait_ms)};
    auto reply = co_await context.ask(std::move(wait), Interruptible::when_stopping);
    if (reply) {
      if (const auto* refused = std::get_if<Refused>(&*reply)) co_return problem(*refused);
    }
  }
  using View = Result<std::optional<JobView>>;
  auto query = [id, tenant](Reads& reads) -> View {
    TRY_ASSIGN(auto job, reads.job(tenant, id));
    if (!job) return std::nullopt;
    TRY_ASSIGN(auto nodes, reads.nodes(id, nodes_max + 1));
    return JobView{*std::move(job), std::move(nodes)};
  };
  auto view = co_await context.read(std::move(query));
  if (!view) co_return problem(view.error());
  if (!*view) co_return no_such_job(id.value);
  auto response = json_response(200, {});
  append_job(response.body, (*view)->job, documents, ObjectEnd::open);
  append_nodes(response.body, (*view)->nodes, nodes_max, documents);
  response.body += '}';
  co_return response;
}

namespace {

struct Timeline {
  workflow::JobStatus status{};
  std::vector<workflow::Event> events;
};

Task<Result<std::optional<Timeline>>> read_timeline(Context& context, std::int64_t after, std::size_t limit) {
  using Answer = Result<std::optional<Timeline>>;
  const workflow::JobId id{context.request.captures[0]};
  const auto tenant = context.request.tenant;
  auto query = [id, tenant, after, limit](Reads& reads) -> Answer {
    // The status is read first: events of an ended job are then complete.
    TRY_ASSIGN(const auto job, reads.job(tenant, id));
    if (!job) return std::nullopt;
    TRY_ASSIGN(auto events, reads.timeline(id, after, limit));
    return Timeline{job->status, std::move(events)};
  };
  auto answer = co_await context.read(std::move(query));
  co_return answer;
}

}  // namespace

Task<Response> show_timeline(Context& context) {
  const workflow::JobId id{context.request.captures[0]};
  std::vector<FieldError> errors;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto after = query_integer(context.request, "after", 0, {0, largest}, errors);
  const auto limit =
      static_cast<std::size_t>(query_integer(context.request, "limit", 200, {1, 1000}, errors));
  const auto wait_ms = query_integer(context.request, "wait_ms", 0, wait_range, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  if (!is_printable(id.value, 200)) co_return no_such_job(id.value);
  LongWait wait(context, wait_ms, subject_topic(Subject::Type::job, context.request.tenant.value, id.value));
  while (true) {
    auto timeline = co_await read_timeline(context, after, limit);
    if (!timeline) {
      const bool look_again = co_await wait.wait_after(timeline.error());
      if (look_again) continue;
      co_return problem(timeline.error());
    }
    if (!*timeline) co_return no_such_job(id.value);
    const auto& found = **timeline;
    if (found.events.empty() && !is_terminal(found.status)) {
      const bool look_again = co_await wait.wait();
      if (look_again) continue;
    }
    auto response = json_response(200, "{");
    append_list(response.body, "events", found.events, append_event);
    append_member(response.body, "next_after", found.events.empty() ? after : found.events.back().event_id);
    append_member(response.body, "status", name(found.status));
    response.body += '}';
    co_return response;
  }
}

}  // namespace baton::http
