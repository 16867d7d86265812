// Whatever comes in on the AMQP port, before anybody has shown who it is and after, must neither crash the endpoint nor keep it
// from serving the next one. A real endpoint on a loopback port; an engine that refuses everything, or hands out one job.
#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "bus/endpoint.hpp"
#include "bus/message.hpp"
#include "bus/shared_access.hpp"

namespace {

using namespace baton;
using boost::asio::ip::tcp;

struct FuzzClock final : Clock {
  [[nodiscard]] Time now() const override { return from_millis(1'800'000'000'000); }
};

struct FuzzEngine final : Inbox {
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    if (const auto* poll = std::get_if<Poll>(&command); poll && !waiter->gone())
      return waiter->deliver(PollReply{{Handout{.task_id = "job_task_0", .handler = "h", .params = Json{"{}"}, .queue = poll->queue, .lease = "0.1"}}});
    waiter->deliver(Refused{Refusal::task_not_found, "there is no such task", {}});
  }
};

bus::EndpointOptions options(Access access) {
  bus::EndpointOptions options;
  options.access = access;
  options.tokens.by_hash = options.tokens.by_id = [](const std::string&, const bus::FoundToken& found) { found(std::optional<Token>{}); };
  return options;
}

class Server {
 public:
  explicit Server(Access access) : endpoint_(options(access), engine_, metrics_, clock_), port_(endpoint_.listen("127.0.0.1", 0).value()) {
    std::thread([this] { endpoint_.run(); }).detach();
  }
  // All of it, then the end; what is answered does not matter.
  void feed(std::string_view bytes) {
    boost::asio::io_context io;
    boost::system::error_code ignored;
    tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port_}, ignored);
    boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    std::string answer(1 << 20, '\0');
    (void)boost::asio::read(socket, boost::asio::buffer(answer), ignored);  // until the server closes too
  }

 private:
  FuzzClock clock_;
  FuzzEngine engine_;
  metrics::Registry metrics_;
  bus::Endpoint endpoint_;
  const std::uint16_t port_;
};

std::string frame(char type, std::string_view body) {
  const std::size_t size = body.size() + 8;
  std::string out{static_cast<char>(size >> 24), static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size)};
  out += {2, type, 0, 0};
  return out.append(body);
}

using namespace std::string_view_literals;

// What any client says first; the input goes on from there.
const std::string greeting = std::string("AMQP\3\1\0\0"sv) + frame(1, "\0\x53\x41\xc0\x0c\x01\xa3\x09"
                                                                       "ANONYMOUS"sv) +
                             std::string("AMQP\0\1\0\0"sv) + frame(0, "\0\x53\x10\xc0\x04\x01\xa1\x01x"sv) +
                             frame(0, "\0\x53\x11\xc0\x07\x04\x40\x43\x52\x64\x52\x64"sv);

}  // namespace

// The first byte says which of the two servers, and whether the greeting was said.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const open = new Server(Access::open);
  static auto* const closed = new Server(Access::required);
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)bus::read_messages(bytes);
  (void)bus::parse_shared_access(bytes);
  const bool is_greeted = (data[0] & 2) != 0;
  Server& server = (data[0] & 1) != 0 ? *open : *closed;
  server.feed(is_greeted ? greeting + std::string(bytes) : std::string(bytes));
  return 0;
}
