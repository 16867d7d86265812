// The bytes below a connection of AMQP: a TCP socket, or a websocket. Reading and writing take what goes at once; if nothing does, the error
// is would_block, and whoever waits is called once when it is worth another try. At most one waits to read, and one to write.
//
// Owned by the thread of its connection.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>

namespace baton::bus {

class ByteStream {
 public:
  using Ready = std::function<void(const boost::system::error_code&)>;

  virtual ~ByteStream() = default;
  virtual std::size_t read_some(boost::asio::mutable_buffer room, boost::system::error_code& error) = 0;
  virtual std::size_t write_some(boost::asio::const_buffer bytes, boost::system::error_code& error) = 0;
  virtual void when_readable(Ready ready) = 0;
  virtual void when_writable(Ready ready) = 0;
  virtual void end_writing() = 0;  // the other side sees the end, after what was written
  virtual void close() = 0;        // whoever waits is called with an error
};

[[nodiscard]] std::shared_ptr<ByteStream> make_tcp_stream(boost::asio::ip::tcp::socket socket);

}  // namespace baton::bus
