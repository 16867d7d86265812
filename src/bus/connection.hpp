// One AMQP 1.0 connection: proton's engine, which is a state machine without I/O, between a stream of bytes and whoever
// handles its events.
//
// Owned by the bus's I/O thread, and kept alive by what it waits for. Bytes are read into and written from proton's own
// buffers, so that an idle connection has none of ours.
#pragma once

#include <proton/connection_driver.h>
#include <proton/engine.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string_view>

#include "bus/byte_stream.hpp"

namespace baton::bus {

[[nodiscard]] inline pn_bytes_t bytes_of(std::string_view text) { return pn_bytes(text.size(), text.data()); }
[[nodiscard]] inline std::string_view text_of(pn_bytes_t bytes) { return {bytes.start, bytes.size}; }
[[nodiscard]] inline std::string_view text_of(const char* text) { return text ? text : ""; }

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(boost::asio::ip::tcp::socket socket);
  explicit Connection(std::shared_ptr<ByteStream> stream);
  virtual ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Handles the events that are there, and sends what there is to send. After anything was asked of proton.
  void pump();
  // For heartbeats, and to notice that the other side has none.
  void tick();
  // Says goodbye with a reason; the connection ends when the other side has answered, or with terminate().
  void close(const char* condition, std::string_view description);
  void terminate();
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  // Ends at once, without handling what there is: for when a handler has thrown.
  void drop();

 protected:
  [[nodiscard]] pn_transport_t* transport() const { return driver_.transport; }
  [[nodiscard]] pn_connection_t* amqp() const { return driver_.connection; }
  void bind() { pn_connection_driver_bind(&driver_); }  // when the transport has its options

  virtual void handle(pn_event_t* event) = 0;
  virtual void handled() {}  // all that there were, for now
  virtual void ended() = 0;  // once; nothing is handled any more

 private:
  void read();
  void on_readable();
  void write();
  void end();

  const std::shared_ptr<ByteStream> stream_;
  pn_connection_driver_t driver_{};
  bool is_pumping_ = false;
  bool awaits_reading_ = false, awaits_writing_ = false;
  bool has_ended_ = false;
};

}  // namespace baton::bus
