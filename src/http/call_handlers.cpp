// Service calls: submit, list, show, cancel, reschedule, repeat.
#include <algorithm>

#include "base/ids.hpp"
#include "http/answer.hpp"
#include "http/fields.hpp"
#include "http/problem.hpp"
#include "http/render.hpp"
#include "http/routes.hpp"
#include "ports/caller.hpp"

namespace baton::http {
namespace {

constexpr std::size_t batch_max = 1'000;  // calls in one request
constexpr std::size_t body_bytes_max = 1 << 20;
constexpr Range timeout_range{1, 600'000};

// The path names the tenant; a token of one never reaches another's.
std::optional<Response> wrong_tenant(const Request& request) {
  const std::string& named = request.captures[0];
  if (!is_name(named, 100)) return problem(422, "invalid_tenant", "a tenant must match [A-Za-z0-9_.-]{1,100}");
  if (request.scope && request.scope->value != named)
    return problem(403, "forbidden", "the request acts for another tenant");
  return std::nullopt;
}

call::CallKey key_of(const Request& request) {
  return {Tenant{request.captures[0]}, call::CallId{request.captures[1]}};
}

Response no_such_call() { return problem(404, "call_not_found", "there is no such service call"); }

// --- showing

void append_call(std::string& out, const call::Call& call, Ending ending = Ending::closed) {
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
  append_member(out, "repeatOf", call.repeat_of);
  if (ending == Ending::closed) out += '}';
}

void append_event(std::string& out, const call::EventRow& event) {
  out += '{';
  append_member(out, "version", event.version);
  append_member(out, "type", name(event.event_type));
  append_member(out, "occurredAt", event.occurred_at);
  append_member(out, "correlationId", event.correlation_id);
  append_member(out, "causationId", event.causation_id);
  append_member(out, "data", OptionalJson{event.data});
  out += '}';
}

// --- reading a submission

std::vector<std::pair<std::string, std::string>> read_headers(JsonView headers, Fields& fields) {
  std::vector<std::pair<std::string, std::string>> read;
  if (!headers || headers.is_null()) return read;
  if (headers.kind() != JsonKind::object) {
    fields.wrong("headers", "must be an object of texts");
    return read;
  }
  for (const auto& [key, value] : headers.members()) {
    if (value.kind() != JsonKind::string) {
      fields.wrong("headers", "must be an object of texts");
      return read;
    }
    read.emplace_back(key, value.string());
  }
  return read;
}

std::string as_json(const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string out = "[";
  for (const auto& [key, value] : headers)
    out += (out.size() > 1 ? ",[" : "[") + quoted(key) + "," + quoted(value) + "]";
  return out + "]";
}

// Credentials are for the one who is called, and for nobody who looks.
bool is_secret(std::string_view header) {
  std::string small(header);
  std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view words[] = {"authorization", "cookie", "token", "secret", "key", "password", "credential"};
  return std::ranges::any_of(words, [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

// What everybody may read of a request.
Json shown(const OutgoingRequest& request) {
  std::string out = "{\"method\":" + quoted(request.method) + ",\"url\":" + quoted(request.url) + ",\"headers\":{";
  bool first = true;
  for (const auto& [key, value] : request.headers) {
    out += (first ? "" : ",") + quoted(key) + ":" + (is_secret(key) ? "\"[redacted]\"" : quoted(value));
    first = false;
  }
  return {out + "},\"bodyBytes\":" + std::to_string(request.body.size()) +
          ",\"timeoutMs\":" + std::to_string(request.timeout.count()) + "}"};
}

std::string read_body(JsonView body, Fields& fields) {
  if (!body || body.is_null()) return {};
  std::string text = body.kind() == JsonKind::string ? std::string(body.string()) : body.json().text;
  if (text.size() > body_bytes_max) fields.wrong("body", "is larger than 1 MiB");
  if (text.find('\0') != std::string::npos) fields.wrong("body", "holds a NUL character");
  return text;
}

OutgoingRequest read_request(JsonView spec, Fields& fields) {
  OutgoingRequest request;
  request.method = fields.text("method", 32).value_or("GET");
  request.url = fields.required_text("url", 8'000);
  request.headers = read_headers(spec.find("headers"), fields);
  request.body = read_body(spec.find("body"), fields);
  request.timeout = Duration{fields.integer("timeoutMs", timeout_range).value_or(30'000)};
  request.redirects_max = static_cast<int>(fields.integer("redirects", {0, 10}).value_or(0));
  return request;
}

// A JSON body says what it is when the caller does not.
void add_content_type(OutgoingRequest& request, JsonView body) {
  const bool is_document = body && (body.kind() == JsonKind::object || body.kind() == JsonKind::array);
  const bool has = std::ranges::any_of(
      request.headers, [](const auto& header) { return equal_ignoring_case(header.first, "content-type"); });
  if (is_document && !has) request.headers.emplace_back("Content-Type", "application/json");
}

OptionalJson read_probe(JsonView spec, const std::string& prefix, std::vector<FieldError>& errors) {
  const JsonView probe = spec.find("probe");
  if (!probe || probe.is_null()) return std::nullopt;
  if (probe.kind() != JsonKind::object) {
    errors.push_back({prefix + "probe", "must be an object"});
    return std::nullopt;
  }
  const auto document = JsonDocument::parse(probe.json().text);  // deeper than the whole is looked into
  Fields fields(document->root(), prefix + "probe.", errors);
  const OutgoingRequest request = read_request(document->root(), fields);
  if (const auto good = check(request); !good) fields.wrong("url", good.error().message);
  return Json{"{\"method\":" + quoted(request.method) + ",\"url\":" + quoted(request.url) +
              ",\"headers\":" + as_json(request.headers) + "}"};
}

void read_spec(JsonView spec, const std::string& prefix, std::vector<FieldError>& errors, NewCall& wanted) {
  Fields fields(spec, prefix, errors);
  OutgoingRequest request = read_request(spec, fields);
  add_content_type(request, spec.find("body"));
  const auto good = check(request);
  if (!good && errors.empty()) fields.wrong("", good.error().message);
  if (const auto origin = origin_of(request.url)) wanted.origin = *origin;
  wanted.request_spec = shown(request);
  wanted.request.method = request.method;
  wanted.request.url = request.url;
  wanted.request.headers = as_json(request.headers);
  wanted.request.body = request.body;
  wanted.request.timeout_ms = request.timeout.count();
  wanted.request.redirects_max = request.redirects_max;
  wanted.request.probe = read_probe(spec, prefix, errors);
}

std::string hash_of(const NewCall& wanted) {
  std::string text;
  const auto add = [&](std::string_view part) { text += std::to_string(part.size()) + ":" + std::string(part); };
  add(wanted.name);
  add(wanted.due_at ? to_iso(*wanted.due_at) : "");
  add(wanted.request.method);
  add(wanted.request.url);
  add(wanted.request.headers);
  add(wanted.request.body);
  add(wanted.request.probe ? wanted.request.probe->text : "");
  for (const std::string& tag : wanted.tags) add(tag);
  return sha256_hex(text);
}

NewCall read_call(Call& call, JsonView object, const std::string& prefix, std::vector<FieldError>& errors) {
  Fields fields(object, prefix, errors);
  NewCall wanted;
  wanted.name = fields.required_text("name", 200);
  wanted.due_at = fields.time("dueAt");
  wanted.tags = fields.texts("tags", 20, 100);
  std::ranges::sort(wanted.tags);
  const auto rest = std::ranges::unique(wanted.tags);
  wanted.tags.erase(rest.begin(), rest.end());
  wanted.idempotency_key = fields.text("idempotencyKey", 200);
  const JsonView spec = object.find("requestSpec");
  if (!spec || spec.kind() != JsonKind::object)
    fields.wrong("requestSpec", "is required, an object with method and url");
  else
    read_spec(spec, prefix + "requestSpec.", errors, wanted);
  wanted.key = {Tenant{call.request.captures[0]}, call::CallId{call.new_id()}};
  wanted.causation_id = call.request.request_id;
  if (wanted.idempotency_key) wanted.request_hash = hash_of(wanted);
  return wanted;
}

void use_header(Call& call, NewCall& wanted, std::vector<FieldError>& errors) {
  const auto& header = call.request.idempotency_key;
  if (!header) return;
  if (!is_printable(*header, 200))
    errors.push_back({"Idempotency-Key", "must have 1 to 200 bytes and no control characters"});
  else if (wanted.idempotency_key && *wanted.idempotency_key != *header)
    errors.push_back({"idempotencyKey", "differs from the header Idempotency-Key"});
  wanted.idempotency_key = header;
  wanted.request_hash = hash_of(wanted);
}

std::string location(const call::Call& call) {
  return "/api/v1/tenants/" + percent_encode(call.tenant_id.value) + "/service-calls/" + call.service_call_id.value;
}

Response problem_of(const CallsReply::Problem& wrong) {
  if (wrong.why.empty()) return no_such_call();
  return problem(409, wrong.why.find("idempotency") != std::string::npos ? "idempotency_key_reused" : "not_possible",
                 wrong.why);
}

// The answer about one call.
Response answer_one(const std::expected<CallsReply, Refused>& reply, int status) {
  if (!reply) return problem(reply.error());
  const auto& first = reply->calls.front();
  if (const auto* wrong = std::get_if<CallsReply::Problem>(&first)) return problem_of(*wrong);
  const auto& made = std::get<CallReply>(first);
  auto response = json_response(status, {});
  append_call(response.body, made.call);
  response.headers.emplace_back("Location", location(made.call));
  return response;
}

}  // namespace

Task<Response> submit_call(Call& call) {
  if (auto wrong = wrong_tenant(call.request)) co_return *std::move(wrong);
  auto document = parse_object(call.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  SubmitCalls command;
  command.calls.push_back(read_call(call, document->root(), "", errors));
  use_header(call, command.calls.front(), errors);
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  call.request.body = {};
  const auto reply = co_await tell<CallsReply>(call, std::move(command));
  co_return answer_one(reply, 202);
}

Task<Response> submit_calls(Call& call) {
  if (auto wrong = wrong_tenant(call.request)) co_return *std::move(wrong);
  auto document = parse_object(call.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  SubmitCalls command;
  std::size_t index = 0;
  for (const JsonView& each : fields.required_array("calls", batch_max)) {
    const std::string prefix = "calls[" + std::to_string(index++) + "]";
    if (each.kind() != JsonKind::object) {
      errors.push_back({prefix, "must be an object"});
      continue;
    }
    const auto one = JsonDocument::parse(each.json().text);  // deeper than the whole is looked into
    command.calls.push_back(read_call(call, one->root(), prefix + ".", errors));
  }
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  call.request.body = {};
  auto reply = co_await tell<CallsReply>(call, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(202, "{");
  append_list(response.body, "calls", reply->calls, [](std::string& to, const auto& each) {
    if (const auto* made = std::get_if<CallReply>(&each)) {
      append_call(to, made->call, Ending::open);
      append_flag(to, "created", made->changed);
    } else {
      to += '{';
      append_member(to, "error", std::get<CallsReply::Problem>(each).why);
    }
    to += '}';
  });
  response.body += '}';
  co_return response;
}

Task<Response> list_calls(Call& call) {
  const auto& request = call.request;
  if (auto wrong = wrong_tenant(request)) co_return *std::move(wrong);
  std::vector<FieldError> errors;
  CallFilter filter;
  filter.tenant = Tenant{request.captures[0]};
  if (const auto* status = request.argument("status")) {
    filter.status = call::status(*status);
    if (!filter.status) errors.push_back({"status", "must be Scheduled, Running, Succeeded or Failed"});
  }
  if (const auto* wanted = request.argument("name")) filter.name = *wanted;
  for (const auto& [key, value] : request.arguments)
    if (key == "tag") filter.tags.push_back(value);
  if (filter.tags.size() > 5) errors.push_back({"tag", "at most 5"});
  filter.due_from = query_time(request, "dueFrom", errors);
  filter.due_until = query_time(request, "dueUntil", errors);
  const auto limit = static_cast<std::size_t>(query_integer(request, "limit", 50, {1, 200}, errors));
  std::string before;
  if (const auto* cursor = request.argument("cursor")) {
    const auto id = from_base64url(*cursor);
    if (id && is_uuid(*id))
      before = *id;
    else
      errors.push_back({"cursor", "must be a nextCursor of an earlier page"});
  }
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [filter, before, limit](Reads& reads) { return reads.calls(filter, before, limit + 1); };
  auto page = co_await call.read(std::move(query));
  if (!page) co_return problem(page.error());
  std::optional<std::string> cursor;
  if (page->size() > limit) {
    page->resize(limit);
    cursor = base64url(page->back().service_call_id.value);
  }
  auto response = json_response(200, "{");
  append_list(response.body, "serviceCalls", *page, [](std::string& to, const call::Call& each) { append_call(to, each); });
  append_member(response.body, "nextCursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_call(Call& call) {
  if (auto wrong = wrong_tenant(call.request)) co_return *std::move(wrong);
  using View = std::pair<call::Call, std::vector<call::EventRow>>;
  auto query = [key = key_of(call.request)](Reads& reads) -> Result<std::optional<View>> {
    TRY_ASSIGN(auto found, reads.service_call(key));
    if (!found) return std::nullopt;
    TRY_ASSIGN(auto events, reads.call_events(key));
    return View{*std::move(found), std::move(events)};
  };
  auto view = co_await call.read(std::move(query));
  if (!view) co_return problem(view.error());
  if (!*view) co_return no_such_call();
  auto response = json_response(200, {});
  append_call(response.body, (*view)->first, Ending::open);
  append_list(response.body, "timeline", (*view)->second,
              [](std::string& to, const call::EventRow& event) { append_event(to, event); });
  response.body += '}';
  co_return response;
}

Task<Response> cancel_call(Call& call) {
  if (auto wrong = wrong_tenant(call.request)) co_return *std::move(wrong);
  auto change = read_change(call.request);
  if (!change) co_return std::move(change.error());
  ChangeCall command{.key = key_of(call.request),
                     .what = ChangeCall::What::cancel,
                     .by = std::move(change->by),
                     .reason = std::move(change->reason)};
  const auto reply = co_await tell<CallsReply>(call, std::move(command));
  co_return answer_one(reply, 200);
}

Task<Response> reschedule_call(Call& call) {
  if (auto wrong = wrong_tenant(call.request)) co_return *std::move(wrong);
  auto document = parse_object(call.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  const Change change = read_change(fields);
  const auto due_at = fields.time("dueAt");
  if (!due_at && errors.empty()) errors.push_back({"dueAt", "is required"});
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  ChangeCall command{
      .key = key_of(call.request), .what = ChangeCall::What::reschedule, .due_at = *due_at, .by = change.by, .reason = {}};
  const auto reply = co_await tell<CallsReply>(call, std::move(command));
  co_return answer_one(reply, 200);
}

Task<Response> repeat_call(Call& call) {
  if (auto wrong = wrong_tenant(call.request)) co_return *std::move(wrong);
  auto document = parse_object(call.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  RepeatCall command{.origin = key_of(call.request),
                     .new_id = call::CallId{call.new_id()},
                     .due_at = fields.time("dueAt"),
                     .causation_id = call.request.request_id};
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  const auto reply = co_await tell<CallsReply>(call, std::move(command));
  co_return answer_one(reply, 202);
}

}  // namespace baton::http
