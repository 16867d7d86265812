#include "http/wire/request_reader.hpp"

namespace baton::http {

namespace {

namespace beast = boost::beast;
using beast::http::field;

int status_of(const boost::system::error_code& error) {
  if (error == beast::http::error::header_limit || error == beast::http::error::buffer_overflow) return 431;
  if (error == beast::http::error::body_limit) return 413;
  return 400;
}

template <class Message>
bool is_unambiguous(const Message& message) {
  // The library refuses a second encoding after "chunked", and a length beside it.
  const auto encoding = message.find(field::transfer_encoding);
  if (encoding != message.end() && !beast::iequals(encoding->value(), "chunked")) return false;
  // Whoever checks or sets these on the way may have looked at another one than we do.
  if (message.count(field::authorization) > 1) return false;
  for (const char* name : {"Baton-Tenant", "Idempotency-Key"})
    if (message.count(name) > 1) return false;
  const auto hosts = message.count(field::host);
  return hosts == 1 || (hosts == 0 && message.version() < 11);
}

std::string to_text(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

RequestReader::RequestReader(std::size_t header_bytes_max, std::size_t body_bytes_max) {
  parser_.header_limit(static_cast<std::uint32_t>(header_bytes_max));
  parser_.body_limit(body_bytes_max);
  parser_.eager(false);
}

RequestReader::Step RequestReader::refuse(int status) {
  refused_with_ = status;
  return Step::refused;
}

RequestReader::Step RequestReader::read(beast::flat_buffer& buffer) {
  const bool had_header = has_header();
  boost::system::error_code error;
  buffer.consume(parser_.put(buffer.data(), error));
  if (error == beast::http::error::need_more) return Step::needs_more;
  if (error) return refuse(status_of(error));
  if (had_header || !has_header()) return Step::body;
  if (!is_unambiguous(parser_.get())) return refuse(400);
  take_header();
  return Step::header;
}

bool RequestReader::expects_continue() const {
  return beast::iequals(parser_.get()[field::expect], "100-continue");
}

bool RequestReader::keep_alive() const { return parser_.keep_alive() && parser_.get().version() == 11; }

void RequestReader::take_header() {
  const auto& message = parser_.get();
  request_.method = to_text(message.method_string());
  const auto target = message.target();
  const auto question = target.find('?');
  request_.path = to_text(target.substr(0, question));
  if (question != beast::string_view::npos) request_.query = to_text(target.substr(question + 1));
  for (const auto& each : message) {
    switch (each.name()) {
      case field::authorization: request_.authorization = to_text(each.value()); break;
      case field::accept: request_.accept = to_text(each.value()); break;
      case field::content_type: request_.content_type = to_text(each.value()); break;
      case field::origin: request_.origin = to_text(each.value()), request_.from_browser = true; break;
      case field::sec_fetch_site: request_.from_browser = true; break;
      case field::if_match: request_.if_match = to_text(each.value()); break;
      case field::host: request_.host = to_text(each.value()); break;
      case field::unknown: {
        const auto name = each.name_string();
        if (beast::iequals(name, "Baton-Tenant")) request_.tenant_header = to_text(each.value());
        if (beast::iequals(name, "Idempotency-Key")) request_.idempotency_key = to_text(each.value());
        if (beast::iequals(name, "Last-Event-ID")) request_.last_event_id = to_text(each.value());
        if (beast::iequals(name, "traceparent")) request_.traceparent = to_text(each.value());
        if (beast::iequals(name, "X-Request-Id")) request_.request_id = to_text(each.value());
        break;
      }
      default: break;
    }
  }
  if (!is_name(request_.request_id, 64)) request_.request_id.clear();
}

Request RequestReader::take() {
  request_.body = std::move(parser_.get().body());
  return std::move(request_);
}

}  // namespace baton::http
