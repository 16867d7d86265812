#include "http/api/call_body.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/base64.hpp"
#include "base/json_write.hpp"
#include "base/text.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "ports/caller.hpp"

namespace baton::http {
namespace {

constexpr std::size_t calls_max = 1'000;  // calls in one request
constexpr std::size_t body_bytes_max = 1 << 20;
constexpr Range timeout_range{1, 600'000};

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
  // Their order means nothing, and whoever submits again may have another one.
  std::ranges::stable_sort(read, {}, [](const auto& header) { return lower(header.first); });
  return read;
}

Json as_json(const std::vector<std::pair<std::string, std::string>>& headers) {
  Json list;
  append_list(list.text, headers, [](std::string& out, const auto& header) {
    append_value(out, std::array{header.first, header.second});
  });
  return list;
}

std::map<std::string, std::string> shown_headers(const OutgoingRequest& request) {
  std::map<std::string, std::string> headers;  // of those that come twice, in whatever case, both
  for (const auto& [key, value] : request.headers) {
    const std::string seen = is_sensitive(key) ? std::string(redacted) : without_secrets(value);
    const auto [it, is_new] = headers.try_emplace(key, seen);
    if (!is_new) it->second.append(", ").append(seen);
  }
  return headers;
}

// What everybody may read of a request.
Json shown(const OutgoingRequest& request, const std::optional<OutgoingRequest>& probe) {
  const auto begin = [](const OutgoingRequest& of) {
    Json json{"{"};
    append_members(json.text, "method", of.method, "url", without_secrets(of.url), "headers",
                   shown_headers(of));
    return json;
  };
  Json all = begin(request);
  append_members(all.text, "bodyBytes", request.body.size(), "timeoutMs", request.timeout.count(),
                 "redirects", request.redirects_max);
  if (probe) append_member(all.text, "probe", Json{begin(*probe).text + '}'});
  all.text += '}';
  return all;
}

std::string read_body(JsonView spec, Fields& fields) {
  const JsonView body = spec.find("body");
  const auto encoded = fields.text("bodyBase64", body_bytes_max * 4 / 3 + 4);
  if (encoded && body && !body.is_null()) fields.wrong("bodyBase64", "is instead of body: one of them");
  if (encoded) {
    auto bytes = from_base64(*encoded);
    if (!bytes) fields.wrong("bodyBase64", "is not base64 with padding");
    if (bytes && bytes->size() > body_bytes_max) fields.wrong("bodyBase64", "is larger than 1 MiB");
    return std::move(bytes).value_or("");
  }
  if (!body || body.is_null()) return {};
  std::string text = body.kind() == JsonKind::string ? std::string(body.string()) : body.json().text;
  if (text.size() > body_bytes_max) fields.wrong("body", "is larger than 1 MiB");
  if (text.find('\0') != std::string::npos) fields.wrong("body", "holds a NUL character; use bodyBase64");
  return text;
}

OutgoingRequest read_request(JsonView spec, Fields& fields) {
  OutgoingRequest request;
  request.method = fields.text("method", 32).value_or("GET");
  request.url = fields.required_text("url", 8'000);
  request.headers = read_headers(spec.find("headers"), fields);
  return request;
}

// A JSON body says what it is when the caller does not.
void add_content_type(OutgoingRequest& request, JsonView body) {
  const bool is_document = body && (body.kind() == JsonKind::object || body.kind() == JsonKind::array);
  const bool has = std::ranges::any_of(
      request.headers, [](const auto& header) { return equal_ignoring_case(header.first, "content-type"); });
  if (is_document && !has) request.headers.emplace_back("Content-Type", "application/json");
}

void check_request(const OutgoingRequest& request, const std::string& name, std::size_t errors_before,
                   std::vector<FieldError>& errors) {
  if (errors.size() != errors_before) return;
  if (const auto good = check(request); !good) errors.push_back({name, good.error().message});
}

// It asks, and changes nothing: it may be sent more than once.
std::optional<OutgoingRequest> read_probe(JsonView spec, const std::string& name,
                                          std::vector<FieldError>& errors) {
  const JsonView probe = spec.find("probe");
  if (!probe || probe.is_null()) return std::nullopt;
  const auto document = JsonDocument::parse(probe.json().text);  // deeper than the whole is looked into
  const std::size_t errors_before = errors.size();
  Fields fields(document->root(), name, errors);
  if (errors.size() != errors_before) return std::nullopt;
  OutgoingRequest request = read_request(document->root(), fields);
  if (request.method != "GET" && request.method != "HEAD") fields.wrong("method", "must be GET or HEAD");
  refuse_others(document->root(), {"method", "url", "headers"}, fields);
  check_request(request, name, errors_before, errors);
  return request;
}

void read_spec(JsonView spec, const std::string& name, std::vector<FieldError>& errors, NewCall& wanted) {
  const std::size_t errors_before = errors.size();
  Fields fields(spec, name, errors);
  refuse_others(spec, {"method", "url", "headers", "body", "bodyBase64", "timeoutMs", "redirects", "probe"},
                fields);
  OutgoingRequest request = read_request(spec, fields);
  request.body = read_body(spec, fields);
  request.timeout = Duration{fields.integer("timeoutMs", timeout_range).value_or(30'000)};
  request.redirects_max = static_cast<int>(fields.integer("redirects", {0, 10}).value_or(0));
  add_content_type(request, spec.find("body"));
  check_request(request, name, errors_before, errors);
  const auto probe = read_probe(spec, name + ".probe", errors);
  if (const auto origin = origin_of(request.url)) wanted.origin = *origin;
  wanted.request_spec = shown(request, probe);
  wanted.request.method = request.method;
  wanted.request.url = request.url;
  wanted.request.headers = as_json(request.headers).text;
  const auto encoded = fields.text("bodyBase64", body_bytes_max * 4 / 3 + 4);
  wanted.request.body_is_base64 = encoded ? 1 : 0;
  wanted.request.body = encoded ? *encoded : request.body;
  wanted.request.timeout_ms = request.timeout.count();
  wanted.request.redirects_max = request.redirects_max;
  if (probe)
    wanted.request.probe =
        json_object("method", probe->method, "url", probe->url, "headers", as_json(probe->headers));
}

// Of what was asked for. `when` is the time as it was told: a delay is the same an hour later.
std::string hash_of(const NewCall& wanted, std::string_view when) {
  std::string text;
  const auto add = [&](std::string_view part) {
    text += std::to_string(part.size()) + ":" + std::string(part);
  };
  add(wanted.name);
  add(when);
  add(wanted.request.method);
  add(wanted.request.url);
  add(wanted.request.headers);
  add(wanted.request.body);
  add(std::to_string(wanted.request.body_is_base64));
  add(std::to_string(wanted.request.timeout_ms));
  add(std::to_string(wanted.request.redirects_max));
  add(wanted.request.probe ? wanted.request.probe->text : "");
  for (const std::string& tag : wanted.tags) add(tag);
  add(wanted.correlation_id);
  return sha256_hex(text);
}

// name: of the call among others; empty: it is the only one.
NewCall read_call(Context& context, JsonView object, const std::string& name,
                  std::vector<FieldError>& errors) {
  Fields fields(object, name, errors);
  refuse_others(
      object,
      {"tenantId", "name", "dueAt", "delaySeconds", "requestSpec", "tags", "idempotencyKey", "correlationId"},
      fields);
  // Whoever has the command as a document may send it as it is. The path decides.
  if (const auto tenant = fields.text("tenantId", 100); tenant && *tenant != context.request.captures[0])
    fields.wrong("tenantId",
                 "is '" + *tenant + "', but the path is for '" + context.request.captures[0] + "'");
  NewCall wanted;
  wanted.name = fields.required_text("name", 200);
  const When when = read_when(context, object, fields);
  wanted.due_at = when.due_at;
  wanted.tags = fields.texts("tags", 20, 100);
  std::ranges::sort(wanted.tags);
  const auto rest = std::ranges::unique(wanted.tags);
  wanted.tags.erase(rest.begin(), rest.end());
  wanted.idempotency_key = fields.text("idempotencyKey", 200);
  wanted.correlation_id = fields.text("correlationId", 200).value_or("");
  const JsonView spec = object.find("requestSpec");
  if (!spec || spec.kind() != JsonKind::object)
    fields.wrong("requestSpec", "is required, an object with method and url");
  else
    read_spec(spec, name.empty() ? "requestSpec" : name + ".requestSpec", errors, wanted);
  wanted.key = {Tenant{context.request.captures[0]}, call::CallId{context.new_id()}};
  wanted.causation_id = context.request.request_id;
  if (wanted.idempotency_key || context.request.idempotency_key)
    wanted.request_hash = hash_of(wanted, when.told);
  return wanted;
}

// --- many at once: {"calls": […]}, […], or a call on each line

bool is_ndjson(std::string_view content_type) {
  constexpr std::string_view types[] = {"application/x-ndjson", "application/ndjson", "application/jsonl"};
  return std::ranges::any_of(types, [&](std::string_view type) { return content_type.starts_with(type); });
}

struct Item {
  std::string name;  // for errors
  Json call;
};

std::vector<Item> read_lines(std::string_view body) {
  std::vector<Item> items;
  std::size_t number = 0;
  while (!body.empty()) {
    const auto end = std::min(body.find('\n'), body.size());
    const std::string_view line = trimmed(body.substr(0, end));
    body.remove_prefix(std::min(end + 1, body.size()));
    ++number;
    if (!line.empty()) items.push_back({"line " + std::to_string(number), Json{std::string(line)}});
  }
  return items;
}

std::expected<std::vector<Item>, Response> read_items(const Request& request) {
  if (is_ndjson(request.content_type)) return read_lines(request.body);
  auto document = parse_json(request);
  if (!document) return std::unexpected(std::move(document.error()));
  const JsonView root = document->root();
  std::vector<FieldError> errors;
  if (root.kind() == JsonKind::object) {
    Fields fields(root, "", errors);
    refuse_others(root, {"calls"}, fields);
  }
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  const JsonView list = root.kind() == JsonKind::object ? root.find("calls") : root;
  if (!list || list.kind() != JsonKind::array)
    return std::unexpected(
        problem("the request has invalid fields", {{"calls", "is required, an array of calls"}}));
  std::vector<Item> items;
  for (const JsonView& each : list.items())
    items.push_back({"calls[" + std::to_string(items.size()) + "]", each.json()});
  return items;
}

}  // namespace

std::optional<std::string> use_header(const Request& request, std::optional<std::string> key,
                                      std::vector<FieldError>& errors) {
  const auto& header = request.idempotency_key;
  if (!header) return key;
  if (!is_printable(*header, 200))
    errors.push_back({"Idempotency-Key", "must have 1 to 200 bytes and no control characters"});
  if (key && *key != *header) errors.push_back({"idempotencyKey", "differs from the header Idempotency-Key"});
  return header;
}

// Instants have milliseconds. What is finer is rounded up: a call is not made before its time.
std::optional<Time> read_due(JsonView object, Fields& fields) {
  const auto due = fields.time("dueAt");
  if (!due) return due;
  const std::string_view text = object.find("dueAt").string();
  const auto dot = text.find('.');
  if (dot == text.npos) return due;
  const auto fraction = text.substr(dot + 1, text.find_first_not_of("0123456789", dot + 1) - dot - 1);
  const bool is_finer = fraction.size() > 3 && fraction.find_first_not_of('0', 3) != fraction.npos;
  if (!is_finer) return due;
  const Time up = *due + Duration{1};
  if (!from_iso(to_iso(up))) fields.wrong("dueAt", "must be in the year 9999 or before");
  return up;
}

When read_when(const Context& context, JsonView object, Fields& fields) {
  for (const char* key : {"dueAt", "delaySeconds"})
    if (const auto value = object.find(key); value && value.is_null())
      fields.wrong(key, "is null; leave it out for a call that is made at once");
  When when{.due_at = read_due(object, fields), .told = {}};
  if (when.due_at) when.told = to_iso(*when.due_at);
  constexpr double ten_years = 10 * 366.0 * 24 * 3600;
  if (const auto delay = fields.number("delaySeconds", 0, ten_years)) {
    if (when.due_at) fields.wrong("delaySeconds", "cannot be given together with dueAt");
    when.due_at =
        context.services.clock.now() + Duration{static_cast<std::int64_t>(std::ceil(*delay * 1000))};
    when.told = "in " + std::to_string(*delay);
  }
  return when;
}

std::expected<SubmitCalls, Response> read_submission(Context& context) {
  auto document = parse_object(context.request);
  if (!document) return std::unexpected(std::move(document.error()));
  std::vector<FieldError> errors;
  SubmitCalls command;
  command.calls.push_back(read_call(context, document->root(), "", errors));
  NewCall& wanted = command.calls.front();
  wanted.idempotency_key = use_header(context.request, std::move(wanted.idempotency_key), errors);
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  return command;
}

std::expected<SubmitCalls, Response> read_batch(Context& context) {
  auto items = read_items(context.request);
  if (!items) return std::unexpected(std::move(items.error()));
  std::vector<FieldError> errors;
  if (context.request.idempotency_key)
    errors.push_back(
        {"Idempotency-Key", "is for one call; in a batch each has an idempotencyKey of its own"});
  if (items->empty() || items->size() > calls_max)
    errors.push_back(
        {"calls", "must be 1 to " + std::to_string(calls_max) + ", are " + std::to_string(items->size())});
  SubmitCalls command;
  for (const Item& item : *items) {
    constexpr std::size_t errors_max = 20;  // whoever has more has made the same one again and again
    if (errors.size() >= errors_max) break;
    const auto document = JsonDocument::parse(item.call.text);
    if (!document)
      errors.push_back({item.name, document.error().message});
    else if (document->root().kind() != JsonKind::object)
      errors.push_back({item.name, "must be an object"});
    else
      command.calls.push_back(read_call(context, document->root(), item.name, errors));
  }
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  return command;
}

}  // namespace baton::http
