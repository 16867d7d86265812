#include "caller/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>

#include "base/tls.hpp"

namespace baton::caller {
namespace {

using asio::ip::tcp;

constexpr std::size_t buffer_bytes_max = 32 * 1024;
constexpr std::size_t read_bytes = 8 * 1024;

asio::ip::address to_asio(const IpAddress& address) {
  if (address.v4) {
    asio::ip::address_v4::bytes_type bytes;
    std::copy_n(address.bytes.begin(), bytes.size(), bytes.begin());
    return asio::ip::address_v4(bytes);
  }
  asio::ip::address_v6::bytes_type bytes;
  std::copy_n(address.bytes.begin(), bytes.size(), bytes.begin());
  return asio::ip::address_v6(bytes);
}

}  // namespace

Connection::Connection(asio::io_context& io, std::atomic<std::size_t>& open)
    : buffer(buffer_bytes_max), socket_(io), open_(open) {
  ++open_;
}

Connection::~Connection() { --open_; }

asio::awaitable<error_code> Connection::connect(const IpAddress& to, std::uint16_t port) {
  error_code error;
  socket_.close(error);
  address = to;
  const tcp::endpoint endpoint(to_asio(to), port);
  co_await socket_.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error;
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  co_return error;
}

asio::awaitable<error_code> Connection::shake_hands(asio::ssl::context& context, const Url& url) {
  tls_.emplace(socket_, context);
  error_code error = asio::error::invalid_argument;
  if (!expect_host(tls_->native_handle(), url)) co_return error;
  co_await tls_->async_handshake(asio::ssl::stream_base::client,
                                 asio::redirect_error(asio::use_awaitable, error));
  co_return error;
}

std::string Connection::tls_problem(const error_code& error) {
  return baton::tls_problem(tls_->native_handle(), error.message());
}

asio::awaitable<IoResult> Connection::write(std::string_view head, std::string_view body) {
  IoResult done;
  const std::array<asio::const_buffer, 2> parts{asio::buffer(head.data(), head.size()),
                                                asio::buffer(body.data(), body.size())};
  auto token = asio::redirect_error(asio::use_awaitable, done.error);
  if (tls_) {
    done.bytes = co_await asio::async_write(*tls_, parts, token);
  } else {
    done.bytes = co_await asio::async_write(socket_, parts, token);
  }
  co_return done;
}

asio::awaitable<IoResult> Connection::read_some() {
  IoResult done;
  if (buffer.size() == buffer.max_size()) {
    done.error = asio::error::no_buffer_space;
    co_return done;
  }
  const asio::mutable_buffer room = buffer.prepare(std::min(read_bytes, buffer.max_size() - buffer.size()));
  auto token = asio::redirect_error(asio::use_awaitable, done.error);
  if (tls_) {
    done.bytes = co_await tls_->async_read_some(room, token);
  } else {
    done.bytes = co_await socket_.async_read_some(room, token);
  }
  buffer.commit(done.bytes);
  co_return done;
}

void Connection::limit_delivery(Duration time) {
  const auto millis = static_cast<unsigned>(std::clamp<std::int64_t>(time.count(), 1, 24 * 3'600'000));
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, sizeof millis);
}

void Connection::close() {
  error_code ignored;
  socket_.close(ignored);
}

bool Connection::is_quiet() {
  // Of TLS more may have been read than was asked for.
  if (tls_ &&
      (SSL_pending(tls_->native_handle()) > 0 || BIO_ctrl_pending(SSL_get_rbio(tls_->native_handle())) > 0))
    return false;
  char byte = 0;
  const auto seen = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::unique_ptr<Connection> Pool::take(const std::string& origin, std::string_view host, const Egress& egress,
                                       Duration idle_max) {
  const auto now = Steady::now();
  for (auto found = by_origin_.find(origin); found != by_origin_.end(); found = by_origin_.find(origin)) {
    const Place place = found->second.back();
    auto connection = std::move(place->connection);
    erase(place);
    if (connection->idle_end > now && connection->idle_since + idle_max > now && connection->is_quiet() &&
        egress.allows(host, connection->address))
      return connection;
  }
  return nullptr;
}

void Pool::put(const std::string& origin, std::unique_ptr<Connection> connection) {
  if (connections_max_ == 0) return;
  connection->idle_since = Steady::now();
  if (idle_.size() >= connections_max_) erase(idle_.begin());
  idle_.push_back({origin, std::move(connection)});
  by_origin_[origin].push_back(std::prev(idle_.end()));
}

void Pool::prune(Steady::time_point now) {
  for (auto place = idle_.begin(); place != idle_.end();) {
    const auto next = std::next(place);
    if (place->connection->idle_end <= now || !place->connection->is_quiet()) erase(place);
    place = next;
  }
}

void Pool::erase(Place place) {
  const auto found = by_origin_.find(place->origin);
  ENSURE(found != by_origin_.end());
  std::erase(found->second, place);
  if (found->second.empty()) by_origin_.erase(found);
  idle_.erase(place);
}

}  // namespace baton::caller
