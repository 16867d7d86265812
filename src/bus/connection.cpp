#include "bus/connection.hpp"

#include <chrono>
#include <new>

namespace baton::bus {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
namespace asio = boost::asio;

constexpr std::size_t read_max = 256 << 10;

std::int64_t steady_millis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Set until the scope is left, also if that is by an exception.
class SetFlag {
 public:
  explicit SetFlag(bool& flag) : flag_(flag) { flag_ = true; }
  ~SetFlag() { flag_ = false; }
  SetFlag(const SetFlag&) = delete;
  SetFlag& operator=(const SetFlag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

Connection::Connection(tcp::socket socket) : Connection(make_tcp_stream(std::move(socket))) {}

Connection::Connection(std::shared_ptr<ByteStream> stream) : stream_(std::move(stream)) {
  if (pn_connection_driver_init(&driver_, nullptr, nullptr) != 0) throw std::bad_alloc();
}

Connection::~Connection() { pn_connection_driver_destroy(&driver_); }

void Connection::pump() {
  if (is_pumping_ || has_ended_) return;
  const auto self = shared_from_this();
  {
    const SetFlag pumping(is_pumping_);
    do {
      while (pn_event_t* event = pn_connection_driver_next_event(&driver_)) handle(event);
      handled();
      write();
    } while (pn_connection_driver_has_event(&driver_));
  }
  if (pn_connection_driver_finished(&driver_)) return end();
  read();
}

void Connection::read() {
  if (awaits_reading_ || pn_connection_driver_read_closed(&driver_)) return;
  awaits_reading_ = true;
  stream_->when_readable([this, self = shared_from_this()](const error_code& error) {
    awaits_reading_ = false;
    if (has_ended_) return;
    if (error) pn_connection_driver_read_close(&driver_);
    else on_readable();
    pump();
  });
}

// What has come is taken together, up to a limit that keeps others from waiting long: what it brings is committed together.
void Connection::on_readable() {
  for (std::size_t taken = 0; taken < read_max;) {
    const pn_rwbytes_t room = pn_connection_driver_read_buffer(&driver_);
    if (room.size == 0) return;
    error_code error;
    const std::size_t n = stream_->read_some(asio::buffer(room.start, room.size), error);
    if (error == asio::error::would_block) return;
    if (error) return pn_connection_driver_read_close(&driver_);
    pn_connection_driver_read_done(&driver_, n);
    if (n < room.size) return;
    taken += n;
  }
}

void Connection::write() {
  if (awaits_writing_) return;
  for (;;) {
    const pn_bytes_t out = pn_connection_driver_write_buffer(&driver_);
    if (out.size == 0) break;
    error_code error;
    const std::size_t n = stream_->write_some(asio::buffer(out.start, out.size), error);
    if (error == asio::error::would_block) {
      awaits_writing_ = true;
      return stream_->when_writable([this, self = shared_from_this()](const error_code& failed) {
        awaits_writing_ = false;
        if (failed && !has_ended_) pn_connection_driver_write_close(&driver_);
        pump();
      });
    }
    if (error) return pn_connection_driver_write_close(&driver_);
    pn_connection_driver_write_done(&driver_, n);
  }
  if (pn_connection_driver_write_closed(&driver_)) stream_->end_writing();
}

void Connection::tick() {
  if (has_ended_) return;
  (void)pn_transport_tick(transport(), steady_millis());
  pump();
}

void Connection::close(const char* condition, std::string_view description) {
  if (has_ended_) return;
  pn_condition_t* why = pn_connection_condition(amqp());
  pn_condition_set_name(why, condition);
  pn_condition_set_description(why, std::string(description).c_str());
  pn_connection_open(amqp());
  pn_connection_close(amqp());
  pump();
}

void Connection::terminate() {
  if (has_ended_) return;
  pn_connection_driver_close(&driver_);
  pump();
}

void Connection::drop() { end(); }

void Connection::end() {
  if (has_ended_) return;
  has_ended_ = true;
  stream_->close();
  ended();
}

}  // namespace baton::bus
