#include "caller/outcome.hpp"

#include "base/json_document.hpp"

namespace baton::caller {
namespace {

using Kind = OutgoingResult::Kind;

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::answered: return "Answered";
    case Kind::http_error: return "HttpError";
    case Kind::timeout: return "Timeout";
    case Kind::network_error: return "NetworkError";
    case Kind::tls_error: return "TlsError";
    case Kind::egress_denied: return "EgressDenied";
    case Kind::invalid_request: return "InvalidRequest";
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

// The fields of an answer, without braces.
std::string answer_fields(const OutgoingResult& r) {
  std::string out = "\"status\":" + std::to_string(r.status) + ",\"headers\":{";
  bool first = true;
  for (const auto& [name, value] : r.headers) {
    out += (first ? "" : ",") + quoted(name) + ":" + quoted(value);
    first = false;
  }
  out += "},\"bodySnippet\":" + quoted(r.snippet) + ",\"bodyBytes\":" + std::to_string(r.body_bytes) +
         ",\"truncated\":" + (r.truncated ? "true" : "false");
  return out;
}

std::string timing_fields(const OutgoingResult& r) {
  return "\"address\":" + quoted(r.address) + ",\"firstByteMs\":" + std::to_string(r.first_byte.count()) +
         ",\"durationMs\":" + std::to_string(r.total.count());
}

}  // namespace

OutgoingRequest outgoing(const call::Request& request) {
  OutgoingRequest out{.method = request.method,
                      .url = request.url,
                      .body = request.body,
                      .timeout = Duration{request.timeout_ms},
                      .redirects_max = request.redirects_max};
  const std::string text = "{\"headers\":" + request.headers + "}";
  if (const auto document = JsonDocument::parse(text)) out.headers = read_headers(document->root().find("headers"));
  return out;
}

std::optional<OutgoingRequest> probe_of(const call::Request& request) {
  if (!request.probe) return std::nullopt;
  const auto document = JsonDocument::parse(request.probe->text);
  if (!document || document->root().kind() != JsonKind::object) return std::nullopt;
  const JsonView method = document->root().find("method"), url = document->root().find("url");
  if (!url || url.kind() != JsonKind::string) return std::nullopt;
  return OutgoingRequest{.method = method && method.kind() == JsonKind::string ? std::string(method.string()) : "GET",
                         .url = std::string(url.string()),
                         .headers = read_headers(document->root().find("headers")),
                         .body = {},
                         .timeout = Duration{request.timeout_ms},
                         .redirects_max = 0};
}

bool succeeded(const OutgoingResult& result) { return result.kind == Kind::answered; }

Json meta_of(const OutgoingResult& result) {
  if (succeeded(result)) return {"{" + answer_fields(result) + "," + timing_fields(result) + "}"};
  std::string more = std::string("\"requestMayHaveLeft\":") + (result.may_have_left ? "true" : "false");
  if (result.status != 0) more += "," + answer_fields(result);
  return call::error_meta(word(result.kind), result.message, more + "," + timing_fields(result));
}

Json in_doubt(const std::string& why) {
  return call::error_meta(call::outcome_unknown, why, "\"requestMayHaveLeft\":true");
}

Settled settle(const OutgoingResult& probe) {
  constexpr int not_found = 404, gone = 410;
  const std::string told = ",\"settledBy\":\"probe\"";
  if (succeeded(probe)) return {true, {"{" + answer_fields(probe) + "," + timing_fields(probe) + told + "}"}};
  const std::string more =
      "\"requestMayHaveLeft\":true,\"settledBy\":\"probe\",\"probeStatus\":" + std::to_string(probe.status);
  if (probe.status == not_found || probe.status == gone)
    return {false, call::error_meta("NetworkError",
                                    "the server stopped while the call was under way, and its probe says that it was "
                                    "not received",
                                    more)};
  return {false, call::error_meta(call::outcome_unknown,
                                  "the server stopped while the call was under way, and its probe could not tell" +
                                      (probe.message.empty() ? "" : ": " + probe.message),
                                  more)};
}

}  // namespace baton::caller
