// Whatever a client sends or a called server answers: what we read of it beyond the HTTP library must not
// crash, reports what is wrong as printable fields, and keeps only text that every store takes.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "caller/answer.hpp"
#include "caller/redirect.hpp"
#include "http/admin/entity_xml.hpp"
#include "http/admin/rule_xml.hpp"
#include "http/admin/target.hpp"
#include "http/api/routes.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/wire/request_reader.hpp"
#include "http/wire/text.hpp"

namespace {

namespace http = baton::http;
namespace caller = baton::caller;

void check_text(std::string_view text) {
  ENSURE(baton::percent_decode(baton::percent_encode(text)) == text);
  (void)baton::percent_decode(text, true);
  if (const auto number = http::to_integer(text)) ENSURE(http::to_integer(std::to_string(*number)) == *number);
  if (http::is_traceparent(text)) ENSURE(baton::is_printable(text, 55));
  const auto query = http::parse_query(text);
  if (!query) return;
  std::string again;
  for (const auto& [key, value] : *query)
    again += (again.empty() ? "" : "&") + baton::percent_encode(key) + '=' + baton::percent_encode(value);
  ENSURE(again.empty() || http::parse_query(again) == query);
}

void check_fields(std::string_view text) {
  http::Request request;
  request.body = text;
  const auto document = http::parse_object(request, true);
  if (!document) {
    const int status = document.error().status;
    ENSURE(status == 400 || status == 422);
    ENSURE(baton::JsonDocument::parse(document.error().body));
    return;
  }
  std::vector<baton::FieldError> errors;
  baton::Fields fields(document->root(), "", errors);
  if (const auto value = fields.text("text", 20)) ENSURE(baton::is_printable(*value, 20));
  if (const auto value = fields.prose("prose")) ENSURE(value->find('\0') == value->npos);
  if (const auto value = fields.integer("integer", {-5, 5})) ENSURE(*value >= -5 && *value <= 5);
  if (const auto value = fields.number("number", -1, 1)) ENSURE(*value >= -1 && *value <= 1);
  (void)fields.time("time");
  (void)fields.boolean("boolean");
  ENSURE(fields.texts("texts", 3, 5).size() <= 3);
  for (const auto id : fields.ids("ids", 3)) ENSURE(id > 0);
  (void)fields.object("object");
  (void)fields.any("any");
  ENSURE(fields.required_array("array", 3).size() <= 3);
  for (const auto& error : errors) ENSURE(!error.message.empty());
}

void check_admin(std::string_view text) {
  namespace admin = http::admin;
  (void)admin::parse_target(text);
  const auto entry = admin::parse_entry(text);
  if (!entry) return;
  (void)admin::read_description(entry->described, {});
  (void)admin::read_rule(entry->described);
}

void check_answer(std::string_view text) {
  caller::Parser parser;
  caller::prepare(parser, false);
  boost::system::error_code error;
  const auto used = parser.put(boost::asio::const_buffer(text.data(), text.size()), error);
  ENSURE(used <= text.size());
  if (error) ENSURE(!caller::answer_problem(error).empty());
  if (!parser.is_header_done()) return;
  baton::OutgoingResult result;
  caller::tell(parser.get(), result);
  ENSURE(result.snippet.size() <= caller::snippet_bytes_max && baton::is_utf8(result.snippet));
  for (const auto& [name, value] : result.headers) ENSURE(baton::is_utf8(value));
  (void)caller::keep_alive_of(parser.get());
  const auto location = parser.get()[boost::beast::http::field::location];
  baton::OutgoingRequest request{.method = "POST",
                                 .url = "https://a.example/b",
                                 .headers = {{"Authorization", "Bearer x"}, {"Cookie", "y"}},
                                 .body = "body"};
  const auto from = baton::parse_url(request.url);
  if (!caller::is_redirect(result.status)) return;
  const auto to = caller::redirect(request, *from, result.status, {location.data(), location.size()});
  if (!to) return;
  ENSURE(to->secure);
  if (to->origin() == from->origin()) return;
  for (const auto& [name, value] : request.headers) ENSURE(value != "Bearer x" && value != "y");
}

// What a connection says, request after request, as long as the server would go on reading.
struct Conversation {
  std::vector<http::Request> requests;
  std::vector<std::string_view> texts;  // of each request, its bytes
  int refused_with = 0;
};

Conversation converse(std::string_view text, std::size_t part_bytes) {
  Conversation said;
  boost::beast::flat_buffer buffer;
  std::size_t arrived = 0;
  std::size_t begin = 0;
  while (true) {
    http::RequestReader reader(1000, 2000);
    while (!reader.is_done()) {
      auto step = http::RequestReader::Step::needs_more;
      if (buffer.size() > 0) step = reader.read(buffer);
      if (step == http::RequestReader::Step::refused) {
        said.refused_with = reader.refused_with();
        return said;
      }
      if (step != http::RequestReader::Step::needs_more) continue;
      if (arrived == text.size()) return said;
      const auto part = text.substr(arrived, part_bytes);
      std::ranges::copy(part, static_cast<char*>(buffer.prepare(part.size()).data()));
      buffer.commit(part.size());
      arrived += part.size();
    }
    const auto end = arrived - buffer.size();
    said.texts.push_back(text.substr(begin, end - begin));
    begin = end;
    const bool keep_alive = reader.keep_alive();
    (void)reader.expects_continue();
    said.requests.push_back(reader.take());
    if (!keep_alive) return said;
  }
}

// The values of a header, read without the library: a second opinion, as a proxy may have it.
std::vector<std::string> values_of(std::string_view header, std::string_view name) {
  std::vector<std::string> values;
  while (!header.empty()) {
    const auto line = header.substr(0, header.find("\r\n"));
    header.remove_prefix(std::min(header.size(), line.size() + 2));
    const auto colon = line.find(':');
    if (colon == line.npos || !baton::equal_ignoring_case(line.substr(0, colon), name)) continue;
    auto value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
    values.emplace_back(value);
  }
  return values;
}

// Folded lines are one opinion in the RFC and several in the world; the library unfolds them.
bool has_folded_lines(std::string_view header) {
  return header.find("\r\n ") != header.npos || header.find("\r\n\t") != header.npos;
}

void check_framing(const http::Request& request, std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  ENSURE(end != text.npos);
  const auto header = text.substr(0, end);
  if (has_folded_lines(header)) return;
  const auto hosts = values_of(header, "Host");
  ENSURE(hosts.size() <= 1 && request.host == (hosts.empty() ? "" : hosts[0]));
  const auto lengths = values_of(header, "Content-Length");
  const auto encodings = values_of(header, "Transfer-Encoding");
  ENSURE(lengths.empty() || encodings.empty());
  ENSURE(encodings.empty() || (encodings.size() == 1 && baton::equal_ignoring_case(encodings[0], "chunked")));
  const auto body = text.substr(end + 4);
  if (encodings.empty()) ENSURE(body == request.body);
  if (lengths.size() == 1) {
    if (const auto length = http::to_integer(lengths[0]))
      ENSURE(request.body.size() == static_cast<std::size_t>(*length));
  }
  if (lengths.empty() && encodings.empty()) ENSURE(body.empty());
  const auto tokens = values_of(header, "Authorization");
  ENSURE(request.authorization.has_value() == !tokens.empty());
  ENSURE(request.tenant_header.has_value() == !values_of(header, "Baton-Tenant").empty());
}

void check_json(const http::Response& response) { ENSURE(baton::JsonDocument::parse(response.body)); }

// An open server on this machine is used under its own names, and not by pages of others.
void check_stranger(const http::Request& request) {
  http::Options options;
  options.access = baton::Access::open;
  options.loopback = true;
  if (const auto refused = http::refuse_stranger(request, options)) {
    ENSURE(refused->status == 403);
    return check_json(*refused);
  }
  const std::string host = request.host;
  static const std::regex own(R"((localhost|127\.[0-9.]*|\[::1\])(:[0-9]*)?)", std::regex::icase);
  ENSURE(host.empty() || std::regex_match(host, own));
  ENSURE(request.origin.empty() || request.origin.size() > request.host.size());
  options.access = baton::Access::required;
  ENSURE(http::refuse_stranger(request, options)->status == 401);
}

void check_request(const http::Request& request) {
  constexpr std::string_view ends_of_line("\r\n\0", 3);
  ENSURE(!request.method.empty() && request.path.find('?') == request.path.npos);
  for (const auto& text : {request.method, request.path, request.query, request.host, request.origin,
                           request.accept, request.content_type, request.authorization.value_or(""),
                           request.tenant_header.value_or(""), request.idempotency_key.value_or(""),
                           request.traceparent.value_or(""), request.last_event_id.value_or("")})
    ENSURE(text.find_first_of(ends_of_line) == text.npos);
  ENSURE(request.request_id.empty() || http::is_name(request.request_id, 64));
  std::vector<std::string> captures;
  std::string allowed;
  const auto route = http::find_route(request.method, request.path, captures, allowed);
  if (route >= 0) {
    ENSURE(http::routes()[static_cast<std::size_t>(route)].method == request.method);
    for (const auto& capture : captures) ENSURE(!capture.empty());
  }
  check_json(http::problem(404, "not_found", "no such path: " + request.path));
  check_json(http::problem(405, "method_not_allowed", request.method + " is not possible here"));
  (void)http::parse_query(request.query);
  check_stranger(request);
}

void check_requests(std::string_view text) {
  const auto whole = converse(text, std::max<std::size_t>(text.size(), 1));
  for (std::size_t i = 0; i < whole.requests.size(); ++i) {
    check_framing(whole.requests[i], whole.texts[i]);
    check_request(whole.requests[i]);
  }
  ENSURE(whole.refused_with == 0 || whole.refused_with == 400 || whole.refused_with == 413 ||
         whole.refused_with == 431);
  // How the bytes are cut on their way makes no difference to what is read. What is wrong in a header may be seen
  // before its end, or only there.
  const auto parts = converse(text, 1 + text.size() % 61);
  ENSURE(parts.texts == whole.texts);
  for (std::size_t i = 0; i < whole.requests.size(); ++i)
    ENSURE(parts.requests[i].path == whole.requests[i].path &&
           parts.requests[i].body == whole.requests[i].body &&
           parts.requests[i].host == whole.requests[i].host);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_text(text);
  check_fields(text);
  check_admin(text);
  check_answer(text);
  check_requests(text);
  return 0;
}
