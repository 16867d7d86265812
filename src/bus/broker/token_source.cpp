#include "bus/broker/token_source.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace baton::bus {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr std::chrono::seconds token_answer_time{10};
constexpr std::size_t token_answer_bytes_max = 256 << 10;

using HttpRequest = http::request<http::string_body>;
using HttpAnswer = http::response<http::string_body>;

HttpRequest http_request_of(const TokenRequest& wanted) {
  HttpRequest request(wanted.form.empty() ? http::verb::get : http::verb::post, wanted.url.target, 11);
  request.set(http::field::host, wanted.url.authority());
  request.set(http::field::user_agent, "baton");
  request.set(http::field::accept, "application/json");
  for (const auto& [name, value] : wanted.headers) request.set(name, value);
  request.body() = wanted.form;
  request.keep_alive(false);
  if (!wanted.form.empty()) request.prepare_payload();
  return request;
}

template <class Stream>
asio::awaitable<Result<HttpAnswer>> exchange(Stream stream, HttpRequest request) {
  boost::system::error_code error;
  co_await http::async_write(stream, request, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(Code::unavailable, "the token endpoint: " + stream_problem(error));
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(token_answer_bytes_max);
  co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(Code::unavailable, "the token endpoint: " + stream_problem(error));
  co_return parser.release();
}

}  // namespace

TokenSource::TokenSource(asio::io_context& io, Dialer& dialer, Identity identity, const Clock& clock, std::function<void()> renewed)
    : io_(io), dialer_(dialer), identity_(std::move(identity)), clock_(clock), renewed_(std::move(renewed)) {}

asio::awaitable<std::expected<IdentityToken, Trouble>> TokenSource::ask() {
  const auto wanted = token_request(identity_);
  if (!wanted) co_return std::unexpected(wanted.error().message);
  const auto until = steady::now() + token_answer_time;
  const auto unreachable = [](const Error& error) { return std::unexpected("the token endpoint: " + error.message); };
  Result<HttpAnswer> answer;
  if (wanted->url.secure) {
    auto stream = co_await dialer_.connect_secure(wanted->url, Trust::system_and_file, until);
    if (!stream) co_return unreachable(stream.error());
    answer = co_await exchange(*std::move(stream), http_request_of(*wanted));
  } else {
    auto stream = co_await dialer_.connect(wanted->url.host, wanted->url.port, until);
    if (!stream) co_return unreachable(stream.error());
    answer = co_await exchange(*std::move(stream), http_request_of(*wanted));
  }
  if (!answer) co_return std::unexpected(answer.error().message);
  auto token = read_token(identity_, answer->result_int(), answer->body(), clock_.now());
  if (!token) co_return std::unexpected(Trouble(fmt::format("token endpoint {}", answer->result_int()), token.error().message));
  co_return *std::move(token);
}

asio::awaitable<std::expected<void, Trouble>> TokenSource::prepare() {
  if (token_ && clock_.now() < token_->renew_at) co_return std::expected<void, Trouble>{};
  auto token = co_await ask();
  const bool is_good_still = token_ && clock_.now() < token_->expires;
  if (!token && !is_good_still) co_return std::unexpected(std::move(token).error());
  if (token) token_ = *std::move(token);
  co_return std::expected<void, Trouble>{};
}

void TokenSource::on_tick() {
  if (!token_ || is_renewing_ || clock_.now() < token_->renew_at || steady::now() < retry_at_) return;
  is_renewing_ = true;
  asio::co_spawn(io_, renew(), [this](const std::exception_ptr&) { is_renewing_ = false; });
}

// The token that is there is good for a while yet; when it ends, the broker ends the connection.
asio::awaitable<void> TokenSource::renew() {
  retry_at_ = steady::now() + std::chrono::seconds{1};
  auto token = co_await ask();
  if (!token) {
    const Trouble& why = token.error();
    if (std::exchange(told_, why.name) != why.name) spdlog::warn("the token for the broker is not renewed: {}; trying again", why.text);
    retry_at_ = steady::now() + backoff_.next();
    co_return;
  }
  if (!std::exchange(told_, "").empty()) spdlog::info("the token for the broker is renewed again");
  backoff_.succeeded();
  const bool is_another = !token_ || token_->text != token->text;
  token_ = *std::move(token);
  if (is_another) renewed_();
}

}  // namespace baton::bus
