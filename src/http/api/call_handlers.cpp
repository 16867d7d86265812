// Service calls: submit, list, show, cancel, reschedule, repeat.
#include <algorithm>

#include "base/ids.hpp"
#include "http/api/call_body.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"
#include "http/wire/subscriptions.hpp"

namespace baton::http {
namespace {

// The path names the tenant, or "-" for the one that the request acts for; a token of one never reaches
// another's.
std::optional<Response> wrong_tenant(Request& request) {
  std::string& named = request.captures[0];
  if (named == "-") named = request.tenant.value;
  if (!is_name(named, 100))
    return problem(422, "invalid_tenant", "a tenant must match [A-Za-z0-9_.-]{1,100}");
  if (request.scope && request.scope->value != named)
    return problem(403, "forbidden", "the request acts for another tenant");
  return std::nullopt;
}

call::CallKey key_of(const Request& request) {
  return {Tenant{request.captures[0]}, call::CallId{request.captures[1]}};
}

Response no_such_call() { return problem(404, "call_not_found", "there is no such service call"); }

// The tenant is another's, or what is named cannot be a call.
std::optional<Response> wrong_call(Request& request) {
  if (auto wrong = wrong_tenant(request)) return wrong;
  if (!is_uuid(request.captures[1])) return no_such_call();
  return std::nullopt;
}

// --- showing

void append_call(std::string& out, const call::Call& call, ObjectEnd ending = ObjectEnd::closed) {
  out += '{';
  append_member(out, "tenantId", call.tenant_id.value);
  append_member(out, "serviceCallId", call.service_call_id.value);
  append_member(out, "name", call.name);
  append_member(out, "status", name(call.status));
  append_member(out, "dueAt", call.due_at);
  append_member(out, "submittedAt", call.submitted_at);
  append_member(out, "startedAt", call.started_at);
  append_member(out, "finishedAt", call.finished_at);
  append_member(out, "requestSpec", OptionalJson{call.request_spec});
  append_member(out, "responseMeta", call.response_meta);
  append_member(out, "errorMeta", call.error_meta);
  append_member(out, "tags", OptionalJson{Json{call.tags}});
  append_member(out, "correlationId", call.correlation_id);
  append_member(out, "repeatOf", call.repeat_of);
  if (ending == ObjectEnd::closed) out += '}';
}

void append_call_event(std::string& out, const call::EventRow& event) {
  out += '{';
  append_member(out, "version", event.version);
  append_member(out, "type", name(event.event_type));
  append_member(out, "occurredAt", event.occurred_at);
  append_member(out, "correlationId", event.correlation_id);
  append_member(out, "causationId", event.causation_id);
  append_member(out, "data", OptionalJson{event.data});
  out += '}';
}

std::string location(const call::Call& call) {
  return "/api/v1/tenants/" + percent_encode(call.tenant_id.value) + "/service-calls/" +
         call.service_call_id.value;
}

// The answer about one call.
Response answer_one(const std::expected<CallsReply, Refused>& reply, int status) {
  if (!reply) return problem(reply.error());
  const auto& first = reply->calls.front();
  if (!first) return problem(first.error());
  auto response = json_response(status, {});
  append_call(response.body, first->call, ObjectEnd::open);
  append_member(response.body, status == 202 ? "created" : "changed", first->changed);
  response.body += '}';
  response.headers.emplace_back("Location", location(first->call));
  return response;
}

// What the next page begins after: "instant id", in base64.
std::string cursor_of(const call::Call& call) {
  return base64url(std::to_string(to_millis(call.due_at)) + " " + call.service_call_id.value);
}

std::optional<call::Due> read_call_cursor(const std::string& text) {
  const auto decoded = from_base64url(text);
  const auto blank = decoded ? decoded->find(' ') : std::string::npos;
  if (blank == std::string::npos) return std::nullopt;
  const auto millis = to_integer(decoded->substr(0, blank));
  call::CallId id{decoded->substr(blank + 1)};
  constexpr std::int64_t millis_max = 253'402'300'799'999;  // the end of the year 9999
  if (!millis || *millis < 0 || *millis > millis_max || !is_uuid(id.value)) return std::nullopt;
  return call::Due{from_millis(*millis), std::move(id)};
}

}  // namespace

Task<Response> submit_call(Context& context) {
  if (auto wrong = wrong_tenant(context.request)) co_return *std::move(wrong);
  auto command = read_submission(context);
  if (!command) co_return std::move(command.error());
  context.request.body = {};
  const auto reply = co_await tell<CallsReply>(context, *std::move(command));
  co_return answer_one(reply, 202);
}

Task<Response> submit_calls(Context& context) {
  if (auto wrong = wrong_tenant(context.request)) co_return *std::move(wrong);
  auto command = read_batch(context);
  if (!command) co_return std::move(command.error());
  context.request.body = {};
  auto reply = co_await tell<CallsReply>(context, *std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(202, "{");
  append_list(response.body, "calls", reply->calls, [](std::string& to, const auto& each) {
    if (each) {
      append_call(to, each->call, ObjectEnd::open);
      append_member(to, "created", each->changed);
    } else {
      to += '{';
      append_member(to, "code", name(each.error().refusal));
      append_member(to, "error", each.error().message);
    }
    to += '}';
  });
  response.body += '}';
  co_return response;
}

Task<Response> list_calls(Context& context) {
  if (auto wrong = wrong_tenant(context.request)) co_return *std::move(wrong);
  const auto& request = context.request;
  std::vector<FieldError> errors;
  CallFilter filter;
  filter.tenant = Tenant{request.captures[0]};
  if (const auto* status = request.argument("status")) {
    filter.status = call::status(*status);
    if (!filter.status) errors.push_back({"status", "must be Scheduled, Running, Succeeded or Failed"});
  }
  if (const auto* wanted = request.argument("name")) filter.name = *wanted;
  if (filter.name && !is_printable(*filter.name, 200))
    errors.push_back({"name", "must have 1 to 200 bytes and no control characters"});
  for (const auto& [key, value] : request.arguments)
    if (key == "tag") filter.tags.push_back(value);
  if (!std::ranges::all_of(filter.tags, [](const std::string& tag) { return is_printable(tag, 100); }))
    errors.push_back({"tag", "must have 1 to 100 bytes and no control characters"});
  if (filter.tags.size() > 5) errors.push_back({"tag", "at most 5"});
  filter.due_from = query_time(request, "dueFrom", errors);
  filter.due_until = query_time(request, "dueUntil", errors);
  const auto limit = static_cast<std::size_t>(query_integer(request, "limit", 50, {1, 200}, errors));
  std::optional<call::Due> last;
  if (const auto* cursor = request.argument("cursor")) {
    last = read_call_cursor(*cursor);
    if (!last) errors.push_back({"cursor", "must be a nextCursor of an earlier page"});
  }
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [filter, last, limit](Reads& reads) { return reads.calls(filter, last, limit + 1); };
  auto page = co_await context.read(std::move(query));
  if (!page) co_return problem(page.error());
  std::optional<std::string> cursor;
  if (page->size() > limit) {
    page->resize(limit);
    cursor = cursor_of(page->back());
  }
  auto response = json_response(200, "{");
  append_list(response.body, "serviceCalls", *page,
              [](std::string& to, const call::Call& each) { append_call(to, each); });
  append_member(response.body, "nextCursor", cursor);
  response.body += '}';
  co_return response;
}

namespace {

using CallView = std::pair<call::Call, std::vector<call::EventRow>>;

Task<Result<std::optional<CallView>>> read_call(Context& context) {
  auto query = [key = key_of(context.request)](Reads& reads) -> Result<std::optional<CallView>> {
    TRY_ASSIGN(auto found, reads.service_call(key));
    if (!found) return std::nullopt;
    TRY_ASSIGN(auto events, reads.call_events(key));
    return CallView{*std::move(found), std::move(events)};
  };
  auto view = co_await context.read(std::move(query));
  co_return view;
}

}  // namespace

Task<Response> show_call(Context& context) {
  if (auto wrong = wrong_call(context.request)) co_return *std::move(wrong);
  std::vector<FieldError> errors;
  const auto wait_ms = query_integer(context.request, "wait_ms", 0, {0, 60'000}, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  LongWait wait(context, wait_ms,
                subject_topic(Subject::Type::call, context.request.captures[0], context.request.captures[1]));
  while (true) {
    auto view = co_await read_call(context);
    if (!view) {
      const bool look_again = co_await wait.wait_after(view.error());
      if (look_again) continue;
      co_return problem(view.error());
    }
    if (!*view) co_return no_such_call();
    if (!is_terminal((*view)->first.status)) {
      const bool look_again = co_await wait.wait();
      if (look_again) continue;
    }
    auto response = json_response(200, {});
    append_call(response.body, (*view)->first, ObjectEnd::open);
    append_list(response.body, "timeline", (*view)->second,
                append_call_event);
    response.body += '}';
    co_return response;
  }
}

Task<Response> cancel_call(Context& context) {
  if (auto wrong = wrong_call(context.request)) co_return *std::move(wrong);
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  refuse_others(document->root(), {"by", "reason"}, fields);
  Attribution change = read_attribution(fields);
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  ChangeCall command{.key = key_of(context.request),
                     .what = ChangeCall::What::cancel,
                     .by = std::move(change.by),
                     .reason = std::move(change.reason),
                     .causation_id = context.request.request_id};
  const auto reply = co_await tell<CallsReply>(context, std::move(command));
  co_return answer_one(reply, 200);
}

Task<Response> reschedule_call(Context& context) {
  if (auto wrong = wrong_call(context.request)) co_return *std::move(wrong);
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  refuse_others(document->root(), {"dueAt", "delaySeconds", "by", "reason"}, fields);
  Attribution change = read_attribution(fields);
  const auto due_at = read_when(context, document->root(), fields).due_at;
  if (!due_at && errors.empty()) errors.push_back({"dueAt", "is required, or delaySeconds"});
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  ChangeCall command{.key = key_of(context.request),
                     .what = ChangeCall::What::reschedule,
                     .due_at = *due_at,
                     .by = std::move(change.by),
                     .reason = std::move(change.reason),
                     .causation_id = context.request.request_id};
  const auto reply = co_await tell<CallsReply>(context, std::move(command));
  co_return answer_one(reply, 200);
}

Task<Response> repeat_call(Context& context) {
  if (auto wrong = wrong_call(context.request)) co_return *std::move(wrong);
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  refuse_others(document->root(), {"dueAt", "delaySeconds", "idempotencyKey"}, fields);
  const When when = read_when(context, document->root(), fields);
  RepeatCall command{
      .origin = key_of(context.request),
      .new_id = call::CallId{context.new_id()},
      .due_at = when.due_at,
      .idempotency_key = use_header(context.request, fields.text("idempotencyKey", 200), errors),
      .request_hash = {},
      .causation_id = context.request.request_id};
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  command.request_hash = sha256_hex("repeat " + command.origin.id.value + " " + when.told);
  const auto reply = co_await tell<CallsReply>(context, std::move(command));
  co_return answer_one(reply, 202);
}

}  // namespace baton::http
