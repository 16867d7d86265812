// Opens connections: finds the name, connects, and encrypts if that is asked for. Names are looked up on threads of their own, so that a name
// server that is away does not hold up the end of a stop.
//
// Owned by the broker's I/O thread. Errors are for people; a stop of the event loop ends whatever is under way.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <string>

#include "base/lookups.hpp"
#include "base/tls.hpp"

namespace baton::bus {

class Dialer {
 public:
  using Plain = boost::beast::tcp_stream;
  using Secure = boost::beast::ssl_stream<Plain>;
  using Deadline = std::chrono::steady_clock::time_point;

  // trusted: a file of certificates (PEM); empty: none.
  Dialer(boost::asio::io_context& io, std::string trusted, Resolve resolve = resolve_by_system)
      : io_(io), trusted_(std::move(trusted)), lookups_(std::move(resolve), 2) {}  // the broker's name, and that of the token endpoint
  ~Dialer() { close(); }
  void close() { lookups_.close(); }

  // What is done with the stream afterwards has the same deadline, until that is changed.
  [[nodiscard]] boost::asio::awaitable<Result<Plain>> connect(std::string host, std::uint16_t port, Deadline until);
  [[nodiscard]] boost::asio::awaitable<Result<Secure>> connect_secure(Url url, Trust trust, Deadline until);

 private:
  [[nodiscard]] boost::asio::awaitable<Lookups::Found> find(std::string host, Deadline until);

  boost::asio::io_context& io_;
  const std::string trusted_;
  Lookups lookups_;
};

// What an error of a stream means, for people.
[[nodiscard]] std::string stream_problem(const boost::system::error_code& error);

}  // namespace baton::bus
