// Whatever a client sends or a called server answers: what we read of it beyond the HTTP library must not
// crash, reports what is wrong as printable fields, and keeps only text that every store takes.
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"
#include "caller/answer.hpp"
#include "caller/redirect.hpp"
#include "http/json/fields.hpp"
#include "http/wire/text.hpp"

namespace {

namespace http = baton::http;
namespace caller = baton::caller;

void check_text(std::string_view text) {
  ENSURE(http::percent_decode(http::percent_encode(text)) == text);
  (void)http::percent_decode(text, true);
  if (const auto number = http::to_integer(text)) ENSURE(http::to_integer(std::to_string(*number)) == *number);
  if (http::is_traceparent(text)) ENSURE(http::is_printable(text, 55));
  const auto query = http::parse_query(text);
  if (!query) return;
  std::string again;
  for (const auto& [key, value] : *query)
    again += (again.empty() ? "" : "&") + http::percent_encode(key) + '=' + http::percent_encode(value);
  ENSURE(again.empty() || http::parse_query(again) == query);
}

void check_fields(std::string_view text) {
  http::Request request;
  request.body = text;
  const auto document = http::parse_object(request, true);
  if (!document) {
    ENSURE(document.error().status == 400 && http::JsonDocument::parse(document.error().body));
    return;
  }
  std::vector<http::FieldError> errors;
  http::Fields fields(document->root(), "", errors);
  if (const auto value = fields.text("text", 20)) ENSURE(http::is_printable(*value, 20));
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_text(text);
  check_fields(text);
  check_answer(text);
  return 0;
}
