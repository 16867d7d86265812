#include "caller/outcome.hpp"

#include <map>

#include "base/base64.hpp"
#include "base/json_document.hpp"
#include "base/text.hpp"

namespace baton::caller {
namespace {

using Kind = OutgoingResult::Kind;

constexpr Duration probe_timeout_max{30'000};

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::answered: return "Succeeded";
    case Kind::http_error: return "HttpError";
    case Kind::timeout: return "Timeout";
    case Kind::network_error: return "NetworkError";
    case Kind::tls_error: return "TlsError";
    case Kind::egress_denied: return "EgressDenied";
    case Kind::invalid_request: return "InvalidRequest";
    case Kind::stopped: return "NetworkError";
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

// The fields of an answer, without braces. A header that comes more than once is one, with commas between.
std::string answer_fields(const OutgoingResult& r) {
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : r.headers) {
    const auto [it, is_new] = headers.try_emplace(lower(name), value);
    if (!is_new) it->second += ", " + value;
  }
  std::string out = "\"status\":" + std::to_string(r.status) + ",\"headers\":{";
  bool first = true;
  for (const auto& [name, value] : headers) {
    out += (first ? "" : ",") + quoted(name) + ":" + quoted(value);
    first = false;
  }
  out += "},\"bodySnippet\":" + quoted(r.snippet) + ",\"bodyBytes\":" + std::to_string(r.body_bytes) +
         ",\"truncated\":" + (r.truncated ? "true" : "false");
  return out;
}

std::string timing_fields(const OutgoingResult& r) {
  std::string out = "\"durationMs\":" + std::to_string(r.total.count());
  if (r.status != 0) out += ",\"firstByteMs\":" + std::to_string(r.first_byte.count());
  if (!r.address.empty()) out += ",\"address\":" + quoted(r.address);
  if (!r.redirected_to.empty()) out += ",\"redirectedTo\":" + quoted(r.redirected_to);
  return out;
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
  if (result.kind == Kind::answered)
    return {true, word(result.kind), {"{" + answer_fields(result) + "," + timing_fields(result) + "}"}};
  std::string more = std::string("\"requestMayHaveLeft\":") + (result.may_have_left ? "true" : "false");
  if (result.status != 0) more += "," + answer_fields(result);
  more += "," + timing_fields(result);
  return {false, word(result.kind), call::error_meta(word(result.kind), result.message, more)};
}

Outcome in_doubt(const std::string& why) {
  return {false, call::outcome_unknown,
          call::error_meta(call::outcome_unknown, why, "\"requestMayHaveLeft\":true")};
}

Outcome settled_by(const OutgoingResult& probe) {
  constexpr int not_found = 404, gone = 410;
  Outcome outcome = outcome_of(probe);
  if (outcome.succeeded) {
    outcome.meta.text.insert(outcome.meta.text.size() - 1, ",\"settledBy\":\"probe\"");
    return outcome;
  }
  const bool was_not_received = probe.status == not_found || probe.status == gone;
  const std::string_view kind = was_not_received ? word(Kind::network_error) : call::outcome_unknown;
  std::string why = "the server stopped while the call was under way, and its probe ";
  why += was_not_received ? "says that it was not received" : "could not tell";
  if (!was_not_received && !probe.message.empty()) why += ": " + probe.message;
  std::string more = "\"requestMayHaveLeft\":true,\"settledBy\":\"probe\"";
  if (probe.status != 0) more += ",\"probeStatus\":" + std::to_string(probe.status);
  return {false, kind, call::error_meta(kind, why, more)};
}

}  // namespace baton::caller
