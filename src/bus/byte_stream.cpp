#include "bus/byte_stream.hpp"

#include <netinet/tcp.h>

namespace baton::bus {
namespace {

class TcpStream final : public ByteStream {
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::system::error_code;

 public:
  explicit TcpStream(tcp::socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
  }

  std::size_t read_some(boost::asio::mutable_buffer room, error_code& error) override {
    const std::size_t n = socket_.read_some(boost::asio::buffer(room), error);
    if (!error) acknowledge_at_once();
    return n;
  }
  std::size_t write_some(boost::asio::const_buffer bytes, error_code& error) override { return socket_.write_some(boost::asio::buffer(bytes), error); }
  void when_readable(Ready ready) override { socket_.async_wait(tcp::socket::wait_read, std::move(ready)); }
  void when_writable(Ready ready) override { socket_.async_wait(tcp::socket::wait_write, std::move(ready)); }
  void end_writing() override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  // Some clients leave Nagle's algorithm on, and wait for our acknowledgement before they send the rest.
  void acknowledge_at_once() {
    const int on = 1;
    (void)::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }

  tcp::socket socket_;
};

}  // namespace

std::shared_ptr<ByteStream> make_tcp_stream(boost::asio::ip::tcp::socket socket) { return std::make_shared<TcpStream>(std::move(socket)); }

}  // namespace baton::bus
