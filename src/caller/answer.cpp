#include "caller/answer.hpp"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>

#include "caller/text.hpp"

namespace baton::caller {

namespace http = boost::beast::http;

namespace {

constexpr std::size_t headers_max = 32;

template <class View>
std::string_view view_of(const View& view) {
  return {view.data(), view.size()};
}

}  // namespace

void prepare(Parser& parser, bool without_body) {
  parser.eager(true);
  parser.header_limit(head_bytes_max);
  parser.body_limit(boost::none);  // SnippetBody has its own, which keeps what was read
  parser.skip(without_body);
}

void tell(const Parser::value_type& answer, OutgoingResult& result) {
  result.status = static_cast<int>(answer.result_int());
  result.headers.clear();
  for (const auto& field : answer) {
    if (result.headers.size() == headers_max) break;
    const auto name = view_of(field.name_string());
    std::string value(redacted);
    if (!is_sensitive(name)) value = without_secrets(to_text(view_of(field.value()), snippet_bytes_max));
    result.headers.emplace_back(name, std::move(value));
  }
  const auto& body = answer.body();
  result.snippet = to_text(body.begin, snippet_bytes_max);
  result.body_bytes = body.bytes;
  result.truncated = body.bytes > snippet_bytes_max ||
                     to_text(body.begin, 3 * body.begin.size()).size() > result.snippet.size();
}

std::optional<std::chrono::seconds> keep_alive_of(const Parser::value_type& answer) {
  const auto text = view_of(answer[http::field::keep_alive]);
  static constexpr std::string_view word = "timeout=";
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  int seconds = 0;
  const auto* from = text.data() + at + word.size();
  if (std::from_chars(from, text.data() + text.size(), seconds).ec != std::errc{}) return std::nullopt;
  return std::chrono::seconds{seconds};
}

std::string answer_problem(const boost::system::error_code& error) {
  if (error == boost::asio::error::no_buffer_space) return "a line of the answer is too long";
  if (error == http::error::header_limit)
    return fmt::format("the headers of the answer are longer than {} KiB", head_bytes_max / 1024);
  if (error == http::error::end_of_stream || error == boost::asio::error::eof)
    return "the server closed the connection without an answer";
  if (error == http::error::partial_message)
    return "the server closed the connection in the middle of its answer";
  if (error.category() == http::make_error_code(http::error::bad_version).category())
    return fmt::format("the answer is not HTTP/1.1: {}", error.message());
  return fmt::format("the connection broke: {}", error.message());
}

}  // namespace baton::caller
