#include "bus/broker/broker.hpp"

#include <gtest/gtest.h>
#include <proton/sasl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "bus/connection.hpp"
#include "bus/message.hpp"

namespace baton::bus {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

const std::string results = "worker-results/Subscriptions/orchestrator";

// What the broker sends over the link for results, and what it hears of it.
struct Exchange {
  std::atomic<int> to_send = 0;
  std::atomic<int> accepted = 0, released = 0;
};

// A broker's side of a connection, which takes whatever is opened.
class Peer final : public Connection {
 public:
  Peer(tcp::socket socket, Exchange& exchange) : Connection(std::move(socket)), exchange_(exchange) {}
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
      case PN_LINK_FLOW: return send(pn_event_link(event));
      case PN_DELIVERY: return on_delivery(pn_event_delivery(event));
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

  void send(pn_link_t* link) {
    if (!pn_link_is_sender(link) || text_of(pn_terminus_get_address(pn_link_source(link))) != results) return;
    for (; exchange_.to_send > 0; --exchange_.to_send) {
      MessageWriter message;
      message.data(R"({"task_id":"01a1efc6-b7ce-7dab-8402-b1cd68de4b86_t_0","status":"completed"})");
      const std::string bytes = message.take();
      const std::string tag = std::to_string(exchange_.to_send);
      (void)pn_delivery(link, pn_dtag(tag.data(), tag.size()));
      pn_link_send(link, bytes.data(), bytes.size());
      pn_link_advance(link);
    }
  }

  void on_delivery(pn_delivery_t* delivery) {
    if (pn_delivery_remote_state(delivery) == PN_ACCEPTED) ++exchange_.accepted;
    if (pn_delivery_remote_state(delivery) == PN_RELEASED) ++exchange_.released;
    pn_delivery_settle(delivery);
  }

  Exchange& exchange_;
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
  [[nodiscard]] Exchange& exchange() { return exchange_; }

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      ++accepted_;
      std::make_shared<Peer>(std::move(socket), exchange_)->start();
      accept();
    });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  const std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::atomic<int> accepted_ = 0;
  Exchange exchange_;
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

// Answers when it is told to.
class Waiting final : public Inbox {
 public:
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    const std::lock_guard lock(mutex_);
    if (std::holds_alternative<ReportResult>(command)) waiters_.push_back(std::move(waiter));
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiters_.size();
  }
  void answer(std::size_t i, Reply reply) const {
    const std::lock_guard lock(mutex_);
    waiters_.at(i)->deliver(std::move(reply));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Waiter>> waiters_;
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
    BrokerState state{"", {}, Time{}};
    Broker broker({.address = {.host = "127.0.0.1", .port = peers.port()}, .queues = {"tasks"}}, inbox, metrics, clock, state);
    std::thread thread([&] { broker.run(); });
    EXPECT_TRUE(comes_true([&] { return peers.accepted() == 2; })) << at;
    EXPECT_TRUE(comes_true([&] { return inbox.polls() > at && metrics.render().contains("baton_broker_connected 1"); })) << at;
    broker.stop();
    thread.join();
  }
}

TEST(Broker, AStopWaitsForWhatIsDecidedAndReleasesTheRest) {
  Peers peers;
  peers.exchange().to_send = 3;
  Waiting inbox;
  metrics::Registry metrics;
  const FixedClock clock;
  BrokerState state{"", {}, Time{}};
  Broker broker({.address = {.host = "127.0.0.1", .port = peers.port()}}, inbox, metrics, clock, state);
  std::thread thread([&] { broker.run(); });
  ASSERT_TRUE(comes_true([&] { return inbox.size() == 3; }));
  inbox.answer(0, Refused{Refusal::overloaded, "busy"});
  broker.stop();
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  inbox.answer(1, ResultReply{});
  inbox.answer(2, Refused{Refusal::stopping, "the server is stopping"});
  thread.join();
  EXPECT_TRUE(comes_true([&] { return peers.exchange().accepted == 1 && peers.exchange().released == 2; }))
      << peers.exchange().accepted << " accepted, " << peers.exchange().released << " released";
}

}  // namespace
}  // namespace baton::bus
