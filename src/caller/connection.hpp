// One connection to an origin, plain or TLS, and the pool of those that are idle. Both live on the thread of
// one loop.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/url.hpp"
#include "base/ip_address.hpp"
#include "caller/egress.hpp"

namespace baton::caller {

namespace asio = boost::asio;
using boost::system::error_code;
using Steady = std::chrono::steady_clock;

struct IoResult {
  error_code error;
  std::size_t bytes = 0;
};

class Connection {
 public:
  Connection(asio::io_context& io, std::atomic<std::size_t>& open);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  asio::awaitable<error_code> connect(const IpAddress& address, std::uint16_t port);
  // Certificate and name are checked; an error is explained by tls_problem().
  asio::awaitable<error_code> shake_hands(asio::ssl::context& context, const Url& url);
  [[nodiscard]] std::string tls_problem(const error_code& error);
  [[nodiscard]] bool is_secure() const { return tls_.has_value(); }

  asio::awaitable<IoResult> write(std::string_view head, std::string_view body);
  // What the other side has not acknowledged by then is thrown away, also when this process is gone.
  void limit_delivery(Duration time);
  asio::awaitable<IoResult> read_some();  // into the buffer
  // What is under way ends with an error.
  void close();
  // Open, and nothing has come that nobody asked for.
  [[nodiscard]] bool is_quiet();

  // Bounded, so that a header or a chunk without an end is not read for ever.
  boost::beast::flat_buffer buffer;
  IpAddress address;
  Steady::time_point opened = Steady::now();
  Steady::time_point idle_since, idle_end;  // while it is in the pool

 private:
  asio::ip::tcp::socket socket_;
  std::optional<asio::ssl::stream<asio::ip::tcp::socket&>> tls_;
  std::atomic<std::size_t>& open_;
};

class Pool {
 public:
  explicit Pool(std::size_t connections_max) : connections_max_(connections_max) {}

  // The one that was used last and still is good; none: there is none.
  // `idle_max`: how long it may have been idle.
  [[nodiscard]] std::unique_ptr<Connection> take(const std::string& origin, std::string_view host,
                                                 const Egress& egress, Duration idle_max);
  void put(const std::string& origin, std::unique_ptr<Connection> connection);
  // Closes those that are too old, and those that the other side has closed.
  void prune(Steady::time_point now);
  [[nodiscard]] bool empty() const { return idle_.empty(); }
  void clear() { idle_.clear(), by_origin_.clear(); }

 private:
  struct Idle {
    std::string origin;
    std::unique_ptr<Connection> connection;
  };
  using Place = std::list<Idle>::iterator;
  void erase(Place place);

  const std::size_t connections_max_;
  std::list<Idle> idle_;                                           // the oldest first
  std::unordered_map<std::string, std::vector<Place>> by_origin_;  // the oldest first
};

}  // namespace baton::caller
