#include "bus/broker/broker.hpp"

#include <gtest/gtest.h>
#include <proton/sasl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>
#include <thread>

#include "bus/connection.hpp"

namespace baton::bus {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A broker's side of a connection, which takes whatever is opened.
class Peer final : public Connection {
 public:
  explicit Peer(tcp::socket socket) : Connection(std::move(socket)) {}
  void start() {
    pn_transport_set_server(transport());
    pn_sasl_allowed_mechs(pn_sasl(transport()), "ANONYMOUS");
    bind();
    pump();
  }

 private:
  void handle(pn_event_t* event) override {
    switch (pn_event_type(event)) {
      case PN_CONNECTION_REMOTE_OPEN: return pn_connection_open(amqp());
      case PN_CONNECTION_REMOTE_CLOSE: return pn_connection_close(amqp());
      case PN_SESSION_REMOTE_OPEN: return pn_session_open(pn_event_session(event));
      case PN_LINK_REMOTE_OPEN: return attach(pn_event_link(event));
      default: return;
    }
  }
  void ended() override {}

  static void attach(pn_link_t* link) {
    pn_terminus_copy(pn_link_source(link), pn_link_remote_source(link));
    pn_terminus_copy(pn_link_target(link), pn_link_remote_target(link));
    pn_link_open(link);
    if (pn_link_is_receiver(link)) pn_link_flow(link, 10);
  }
};

class Peers {
 public:
  Peers() {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Peers() {
    io_.stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      ++accepted_;
      std::make_shared<Peer>(std::move(socket))->start();
      accept();
    });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  const std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
};

// Has no time, so that it is polled again at each tick, and throws the nth time.
class Throwing final : public Inbox {
 public:
  explicit Throwing(int at) : at_(at) {}
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    if (!std::holds_alternative<Poll>(command)) return;
    if (++polls_ == at_) throw std::runtime_error("out of luck");
    waiter->deliver(Refused{Refusal::overloaded, "busy"});
  }
  [[nodiscard]] int polls() const { return polls_; }

 private:
  const int at_;
  std::atomic<int> polls_ = 0;
};

class FixedClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return from_millis(1'700'000'000'000); }
};

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{20});
  return condition();
}

// The first poll is made while an event of the connection is handled, a later one in a tick.
TEST(Broker, ConnectsAgainWhateverIsThrown) {
  for (const int at : {1, 2}) {
    Peers peers;
    Throwing inbox(at);
    metrics::Registry metrics;
    const FixedClock clock;
    Broker broker({.address = {.host = "127.0.0.1", .port = peers.port()}, .queues = {"tasks"}}, inbox, metrics, clock);
    std::thread thread([&] { broker.run(); });
    EXPECT_TRUE(comes_true([&] { return peers.accepted() == 2; })) << at;
    EXPECT_TRUE(comes_true([&] { return inbox.polls() > at && metrics.render().contains("baton_broker_connected 1"); })) << at;
    broker.stop();
    thread.join();
  }
}

}  // namespace
}  // namespace baton::bus
