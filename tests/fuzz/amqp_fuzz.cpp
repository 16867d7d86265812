// Whatever comes in on the AMQP port, before anybody has shown who it is and after, must neither crash the endpoint nor keep it
// from serving the next one. A real endpoint on a loopback port; an engine that knows one queue, one topic and one subscription
// with a message in each, and refuses the rest, or hands out one job.
#include <poll.h>
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

#include "base/json_document.hpp"
#include "base/result.hpp"
#include "bus/endpoint.hpp"
#include "bus/message.hpp"
#include "bus/messages/message_encoding.hpp"
#include "bus/messages/rule_encoding.hpp"
#include "core/message/content.hpp"
#include "ports/shared_access.hpp"

namespace {

using namespace baton;
using boost::asio::ip::tcp;

struct FuzzClock final : Clock {
  [[nodiscard]] Time now() const override { return from_millis(1'800'000'000'000); }
};

struct FuzzEngine final : Inbox {
  static std::shared_ptr<const message::Message> one_message() {
    message::Message message;
    message.entity_id = message.sequence_number = message.delivery_count = 1;
    message.changes = Json{R"({"set":{"k":1}})"};
    message.content.value = std::string("\0\x53\x75\xa0\1x", 6);
    return std::make_shared<message::Message>(message);
  }

  static Reply find(const EntityKey& key) {
    EntityInfo info;
    info.entity.entity_id = 1;
    info.entity.path = key.path;
    info.entity.entity_type = key.path == "t" ? message::EntityType::topic
                              : key.path.starts_with("t/") ? message::EntityType::subscription : message::EntityType::queue;
    if (key.path != "q" && !key.path.starts_with("t")) return Refused{Refusal::entity_not_found, "there is no such entity", {}};
    info.rules.push_back({.name = "r", .filter = message::SqlText{"a = 1", {}}, .action = {}, .created_at = {}});
    return EntitiesReply{{info}};
  }

  static Reply answer(const Command& command) {
    if (const auto* asked = std::get_if<FindEntity>(&command)) return find(asked->key);
    if (const auto* poll = std::get_if<Poll>(&command)) {
      Handout handout{.task_id = "job_task_0", .handler = "h", .params = Json{"{}"}, .queue = poll->queue, .lease = "0.1"};
      if (poll->queue.starts_with(message::queue_prefix)) handout.message = one_message();
      return PollReply{{handout}};
    }
    if (const auto* sent = std::get_if<SendMessages>(&command)) {
      SentReply reply;
      for (const auto& transfer : sent->transfers) reply.transfers.emplace_back(std::vector<std::int64_t>(transfer.size(), 1));
      return reply;
    }
    if (const auto* settled = std::get_if<SettleMessages>(&command)) {
      SettledReply reply;
      reply.settled.resize(settled->settlements.size());
      return reply;
    }
    if (std::holds_alternative<PeekMessages>(command) || std::holds_alternative<ReceiveDeferred>(command)) return MessagesReply{{one_message()}};
    return Refused{Refusal::task_not_found, "there is no such task", {}};
  }

  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    if (!std::holds_alternative<Poll>(command) || !waiter->gone()) waiter->deliver(answer(command));
    else waiter->deliver(Refused{Refusal::stopping, "nobody waits", {}});
  }
};

// What is read from a client and written to another one, without a connection.
void read_and_write(std::string_view bytes) {
  (void)bus::read_messages(bytes);
  const bus::Reading reading{.has_rules = true, .new_id = [] { return std::string("id"); }};
  const auto parts = bus::split_transfer(bytes);
  if (parts)
    for (const bus::Sections& part : *parts) {
      const auto sent = bus::read_message(part, reading);
      if (!sent) continue;
      message::Message message;
      message.annotations = sent->annotations;
      message.content = sent->content;
      message.changes = Json{R"({"set":{"k":1},"removed":["x"],"system":{"Label":"l"}})"};
      if (!bus::split(bus::write_message(message))) __builtin_trap();
    }
  const auto item = bus::wire::take(bytes);
  if (item && bus::wire::is_well_formed(*item)) (void)bus::read_rule("r", *item);
}

bus::EndpointOptions options(Access access) {
  bus::EndpointOptions options;
  options.access = access;
  options.is_task_queue = [](const Tenant&, const std::string& queue, const std::function<void(Result<bool>)>& found) { found(queue == "tasks"); };
  options.tokens.by_hash = options.tokens.by_id = [](const std::string&, const bus::FoundToken& found) { found(std::optional<Token>{}); };
  return options;
}

// How much of it is said before a client waits: the frames to the first attach or transfer.
std::size_t until_answer(std::string_view bytes) {
  std::size_t at = 0;
  while (bytes.size() - at >= 8) {
    const std::string_view frame = bytes.substr(at);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(frame[i]); };
    if (frame.starts_with("AMQP")) {
      at += 8;
      continue;
    }
    const std::size_t size = std::size_t{byte(0)} << 24 | std::size_t{byte(1)} << 16 | std::size_t{byte(2)} << 8 | byte(3);
    if (size < 8 || size > frame.size()) break;
    at += size;
    const bool is_awaited = size > 10 && byte(5) == 0 && byte(8) == 0 && (byte(10) == 0x12 || byte(10) == 0x14);
    if (is_awaited) return at;
  }
  return bytes.size();
}

class Server {
 public:
  explicit Server(Access access) : endpoint_(options(access), engine_, metrics_, clock_), port_(endpoint_.listen("127.0.0.1", 0).value()) {
    std::thread([this] { endpoint_.run(); }).detach();
  }
  // All of it, then the end; what is answered does not matter. As any client does, it first waits for the answer to what it said, or
  // most of what follows would come without credit: for a moment, and not too often.
  void feed(std::string_view bytes) {
    boost::asio::io_context io;
    boost::system::error_code ignored;
    tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port_}, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    std::string answer(1 << 20, '\0');
    for (int waits = 0; waits < 20 && !bytes.empty(); ++waits) {
      const std::string_view said = bytes.substr(0, until_answer(bytes));
      bytes.remove_prefix(said.size());
      boost::asio::write(socket, boost::asio::buffer(said), ignored);
      pollfd answered{.fd = socket.native_handle(), .events = POLLIN, .revents = 0};
      if (!bytes.empty() && poll(&answered, 1, 2) > 0) (void)socket.read_some(boost::asio::buffer(answer), ignored);
    }
    boost::asio::write(socket, boost::asio::buffer(bytes), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
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
  read_and_write(bytes);
  (void)parse_shared_access(bytes);
  if (const auto shown = message::show_content(bytes))
    for (const Json& json : {shown->properties, shown->application_properties, shown->body}) ENSURE(JsonDocument::parse(json.text));
  const bool is_greeted = (data[0] & 2) != 0;
  Server& server = (data[0] & 1) != 0 ? *open : *closed;
  server.feed(is_greeted ? greeting + std::string(bytes) : std::string(bytes));
  return 0;
}
