#include "bus/broker/websocket.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>

namespace baton::bus {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

namespace {

constexpr const char* subprotocol = "AMQPWSB10";
constexpr std::size_t read_bytes = 64 << 10;

// What was read waits in a buffer until it is asked for; what is written is a copy, one message at a time. An operation that is under way keeps the
// object alive.
template <class Next>
class WebsocketStream final : public ByteStream, public std::enable_shared_from_this<WebsocketStream<Next>> {
 public:
  using Socket = websocket::stream<Next, false>;  // not compressed
  explicit WebsocketStream(std::unique_ptr<Socket> socket) : socket_(std::move(socket)) {}

  std::size_t read_some(asio::mutable_buffer room, error_code& error) override {
    error = {};
    if (in_.size() == 0) error = asio::error::would_block;
    const std::size_t n = asio::buffer_copy(room, in_.data());
    in_.consume(n);
    return n;
  }

  void when_readable(Ready ready) override {
    if (in_.size() > 0) return asio::post(socket_->get_executor(), [ready = std::move(ready)] { ready({}); });
    socket_->async_read_some(in_, read_bytes, [self = this->shared_from_this(), ready = std::move(ready)](const error_code& error, std::size_t) { ready(error); });
  }

  std::size_t write_some(asio::const_buffer bytes, error_code& error) override {
    error = {};
    if (has_closed_) error = asio::error::not_connected;
    else if (is_writing_) error = asio::error::would_block;
    if (error) return 0;
    out_.assign(static_cast<const char*>(bytes.data()), bytes.size());
    is_writing_ = true;
    socket_->async_write(asio::buffer(out_), [self = this->shared_from_this()](const error_code& failed, std::size_t) { self->on_written(failed); });
    return bytes.size();
  }

  void when_writable(Ready ready) override {
    if (!is_writing_) return asio::post(socket_->get_executor(), [ready = std::move(ready)] { ready({}); });
    writable_ = std::move(ready);
  }

  void end_writing() override {
    if (is_ending_) return;
    is_ending_ = true;
    if (!is_writing_) say_end();
  }

  void close() override {
    has_closed_ = true;
    boost::beast::get_lowest_layer(*socket_).close();
  }

 private:
  void on_written(const error_code& error) {
    is_writing_ = false;
    if (const Ready ready = std::exchange(writable_, nullptr)) ready(error);
    if (error && !has_closed_) close();  // whoever reads hears of it
    if (is_ending_ && !is_writing_) say_end();
  }

  void say_end() {
    if (has_closed_) return;
    is_writing_ = true;
    socket_->async_close(websocket::close_code::normal, [self = this->shared_from_this()](const error_code&) { self->has_closed_ = true; });
  }

  const std::unique_ptr<Socket> socket_;
  boost::beast::flat_buffer in_;
  std::string out_;
  Ready writable_;
  bool is_writing_ = false, is_ending_ = false, has_closed_ = false;
};

// Whoever speaks another protocol there does not name ours.
template <class Next>
asio::awaitable<Result<std::shared_ptr<ByteStream>>> shake_hands(Next next, Url url) {
  using Stream = WebsocketStream<Next>;
  auto socket = std::make_unique<typename Stream::Socket>(std::move(next));
  socket->binary(true);
  socket->set_option(websocket::stream_base::decorator([](websocket::request_type& request) {
    request.set(boost::beast::http::field::sec_websocket_protocol, subprotocol);
  }));
  websocket::response_type answer;
  error_code error;
  co_await socket->async_handshake(answer, url.authority(), url.target, asio::redirect_error(asio::use_awaitable, error));
  if (error == websocket::error::upgrade_declined)
    co_return fail(Code::unavailable, fmt::format("it opens no websocket: HTTP {}", answer.result_int()));
  if (error) co_return fail(Code::unavailable, "it opens no websocket: " + stream_problem(error));
  if (answer[boost::beast::http::field::sec_websocket_protocol] != subprotocol)
    co_return fail(Code::unavailable, fmt::format("its websocket does not speak {}", subprotocol));
  boost::beast::get_lowest_layer(*socket).expires_never();  // AMQP has heartbeats of its own
  co_return std::make_shared<Stream>(std::move(socket));
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<ByteStream>>> open_websocket(Dialer& dialer, Url url, Trust trust, Dialer::Deadline until) {
  if (!url.secure) {
    auto plain = co_await dialer.connect(url.host, url.port, until);
    if (!plain) co_return std::unexpected(std::move(plain).error());
    co_return co_await shake_hands(*std::move(plain), std::move(url));
  }
  auto secure = co_await dialer.connect_secure(url, trust, until);
  if (!secure) co_return std::unexpected(std::move(secure).error());
  co_return co_await shake_hands(*std::move(secure), std::move(url));
}

}  // namespace baton::bus
