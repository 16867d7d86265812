#include "caller/outcome.hpp"

#include <map>

#include "base/base64.hpp"
#include "base/json_document.hpp"
#include "base/json_write.hpp"
#include "base/text.hpp"

namespace baton::caller {
namespace {

constexpr Duration probe_timeout_max{30'000};

std::string_view word(OutgoingKind kind) {
  switch (kind) {
    case OutgoingKind::answered: return "Succeeded";
    case OutgoingKind::http_error: return "HttpError";
    case OutgoingKind::timeout: return "Timeout";
    case OutgoingKind::network_error: return "NetworkError";
    case OutgoingKind::tls_error: return "TlsError";
    case OutgoingKind::egress_denied: return "EgressDenied";
    case OutgoingKind::invalid_request: return "InvalidRequest";
    case OutgoingKind::stopped: return "NetworkError";
  }
  return "NetworkError";
}

using Headers = std::vector<std::pair<std::string, std::string>>;

Headers read_headers(JsonView list) {
  Headers headers;
  if (!list || list.kind() != JsonKind::array) return headers;
  for (const JsonView& each : list.items()) {
    if (each.kind() != JsonKind::array) continue;
    const auto pair = each.items();
    if (pair.size() == 2 && pair[0].kind() == JsonKind::string && pair[1].kind() == JsonKind::string)
      headers.emplace_back(pair[0].string(), pair[1].string());
  }
  return headers;
}

// The members of an answer. A header that comes more than once is one, with commas between.
void append_answer(std::string& out, const OutgoingResult& r) {
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : r.headers) {
    const auto [it, is_new] = headers.try_emplace(lower(name), value);
    if (!is_new) it->second += ", " + value;
  }
  append_members(out, "status", r.status, "headers", headers, "bodySnippet", r.snippet, "bodyBytes",
                 r.body_bytes, "truncated", r.truncated);
}

void append_timing(std::string& out, const OutgoingResult& r) {
  append_member(out, "durationMs", r.total.count());
  if (r.status != 0) append_member(out, "firstByteMs", r.first_byte.count());
  append_given(out, "address", r.address, "redirectedTo", r.redirected_to);
}

}  // namespace

OutgoingRequest outgoing(const call::Request& request) {
  OutgoingRequest out{.method = request.method,
                      .url = request.url,
                      .body = request.body,
                      .timeout = Duration{request.timeout_ms},
                      .redirects_max = request.redirects_max};
  const std::string text = "{\"headers\":" + request.headers + "}";
  if (request.body_is_base64 != 0) out.body = from_base64(request.body).value_or("");
  if (const auto document = JsonDocument::parse(text))
    out.headers = read_headers(document->root().find("headers"));
  return out;
}

std::optional<OutgoingRequest> probe_of(const call::Request& request) {
  if (!request.probe) return std::nullopt;
  const auto document = JsonDocument::parse(request.probe->text);
  if (!document || document->root().kind() != JsonKind::object) return std::nullopt;
  const JsonView method = document->root().find("method"), url = document->root().find("url");
  if (!url || url.kind() != JsonKind::string) return std::nullopt;
  return OutgoingRequest{
      .method = method && method.kind() == JsonKind::string ? std::string(method.string()) : "GET",
      .url = std::string(url.string()),
      .headers = read_headers(document->root().find("headers")),
      .body = {},
      .timeout = std::min(Duration{request.timeout_ms}, probe_timeout_max),
      .redirects_max = 0};
}

Outcome outcome_of(const OutgoingResult& result) {
  std::string members;
  const bool succeeded = result.kind == OutgoingKind::answered;
  if (!succeeded) append_member(members, "requestMayHaveLeft", result.may_have_left);
  if (succeeded || result.status != 0) append_answer(members, result);
  append_timing(members, result);
  if (succeeded) return {true, word(result.kind), {"{" + members + "}"}};
  return {false, word(result.kind), call::error_meta(word(result.kind), result.message, members)};
}

Outcome in_doubt(const std::string& why) {
  std::string members;
  append_member(members, "requestMayHaveLeft", true);
  return {false, call::outcome_unknown, call::error_meta(call::outcome_unknown, why, members)};
}

Outcome settled_by(const OutgoingResult& probe) {
  constexpr int not_found = 404, gone = 410;
  Outcome outcome = outcome_of(probe);
  if (outcome.succeeded) {
    outcome.meta.text.pop_back();
    append_member(outcome.meta.text, "settledBy", "probe");
    outcome.meta.text += '}';
    return outcome;
  }
  const bool was_not_received = probe.status == not_found || probe.status == gone;
  const std::string_view kind = was_not_received ? word(OutgoingKind::network_error) : call::outcome_unknown;
  std::string why = "the server stopped while the call was under way, and its probe ";
  why += was_not_received ? "says that it was not received" : "could not tell";
  if (!was_not_received && !probe.message.empty()) why += ": " + probe.message;
  std::string members;
  append_members(members, "requestMayHaveLeft", true, "settledBy", "probe");
  append_given(members, "probeStatus", probe.status);
  return {false, kind, call::error_meta(kind, why, members)};
}

}  // namespace baton::caller
