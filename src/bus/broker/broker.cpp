#include "bus/broker/broker.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "bus/broker/connection_to_broker.hpp"

namespace baton::bus {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds connect_time{10'000};
constexpr milliseconds broker_tick{1'000}, leaving_tick{50}, leaving_time{2'000};

}  // namespace

struct Broker::State {
  State(BrokerOptions chosen, Inbox& inbox, metrics::Registry& metrics, const Clock& clock)
      : options(std::move(chosen)),
        services{.options = options,
                 .inbox = inbox,
                 .clock = clock,
                 .published = metrics.counter("baton_broker_published_total", "Jobs that the external broker has confirmed."),
                 .consumed = metrics.counter("baton_broker_consumed_total", "Messages from the external broker that were accepted."),
                 .rejected = metrics.counter("baton_broker_rejected_total", "Messages that the external broker, or baton, rejected."),
                 .mailbox = nullptr,
                 .unsaid = {}},
        connected(metrics.gauge("baton_broker_connected", "1 while baton is connected to the external broker.")) {
    services.mailbox = std::make_shared<Mailbox>([this] { asio::post(io, [this] { services.mailbox->drain(); }); });
  }

  void connect();
  void on_connected(const error_code& error, tcp::socket& socket);
  void on_ended(const std::string& why);
  void tick();
  void begin_stop();

  const BrokerOptions options;
  BrokerServices services;
  asio::io_context io{1};
  metrics::Gauge& connected;
  tcp::resolver resolver{io};
  tcp::socket connecting{io};
  asio::steady_timer connect_limit{io}, again{io}, ticker{io};
  std::shared_ptr<ConnectionToBroker> connection;
  Backoff backoff{milliseconds{500}, milliseconds{30'000}};
  std::string told;  // why there is no connection, if that is logged
  bool is_stopping = false, is_too_late = false;
  std::chrono::steady_clock::time_point stop_by;
};

void Broker::State::connect() {
  connecting = tcp::socket(io);
  connect_limit.expires_after(connect_time);
  is_too_late = false;
  connect_limit.async_wait([this](const error_code& cancelled) {
    error_code ignored;
    if (cancelled) return;
    is_too_late = true;
    resolver.cancel();
    connecting.close(ignored);
  });
  resolver.async_resolve(options.address.host, std::to_string(options.address.port), [this](const error_code& error, const tcp::resolver::results_type& found) {
    if (error || is_too_late || is_stopping) return on_connected(error ? error : asio::error::operation_aborted, connecting);
    asio::async_connect(connecting, found, [this](const error_code& failed, const tcp::endpoint&) { on_connected(failed, connecting); });
  });
}

void Broker::State::on_connected(const error_code& error, tcp::socket& socket) {
  connect_limit.cancel();
  if (is_stopping) return;
  if (error) return on_ended(error == asio::error::operation_aborted ? "it does not answer" : error.message());
  connection = std::make_shared<ConnectionToBroker>(std::move(socket), services, [this](const std::string& why) { on_ended(why); });
  connection->start();
}

// The same trouble is told once.
void Broker::State::on_ended(const std::string& why) {
  if (connection) asio::post(io, [gone = std::move(connection)] {});  // it is ending yet
  connection.reset();
  connected.set(0);
  if (is_stopping) return;
  if (std::exchange(told, why) != why) spdlog::warn("no connection to the broker {}: {}; trying again", options.address.shown(), why);
  again.expires_after(backoff.next());
  again.async_wait([this](const error_code& cancelled) {
    if (!cancelled && !is_stopping) connect();
  });
}

void Broker::State::tick() {
  if (const auto held = connection) held->on_tick();
  const bool is_up = connection && connection->is_open();
  connected.set(is_up ? 1 : 0);
  if (is_up) {
    backoff.succeeded();
    told.clear();
  }
  services.say_unsaid();
  const bool is_settled = services.unsaid.empty() && services.settling == 0;
  if (is_stopping && connection && connection->is_idle() && is_settled) connection->say_goodbye();
  if (is_stopping && ((!connection && is_settled) || std::chrono::steady_clock::now() > stop_by)) {
    if (const auto held = connection) held->terminate();
    return io.stop();
  }
  ticker.expires_after(is_stopping ? leaving_tick : broker_tick);
  ticker.async_wait([this](const error_code& cancelled) {
    if (!cancelled) tick();
  });
}

void Broker::State::begin_stop() {
  if (std::exchange(is_stopping, true)) return;
  stop_by = std::chrono::steady_clock::now() + leaving_time;
  again.cancel();
  connect_limit.cancel();
  resolver.cancel();
  error_code ignored;
  connecting.close(ignored);
  if (connection) connection->begin_goodbye();
  ticker.cancel();
  tick();
}

Broker::Broker(BrokerOptions options, Inbox& inbox, metrics::Registry& metrics, const Clock& clock)
    : state_(std::make_unique<State>(std::move(options), inbox, metrics, clock)) {}

Broker::~Broker() { state_->services.mailbox->close(); }

void Broker::run() {
  state_->connect();
  state_->tick();
  const auto work = asio::make_work_guard(state_->io);
  for (bool is_over = false; !is_over;) try {
      state_->io.run();
      is_over = true;
    } catch (const std::exception& error) {
      spdlog::error("the connection to the broker is given up: {}", error.what());
      if (state_->connection) state_->connection->give_up(error.what());
    }
  state_->services.mailbox->close();
}

void Broker::stop() {
  asio::post(state_->io, [this] { state_->begin_stop(); });
}

}  // namespace baton::bus
