#include "bus/broker/broker.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "bus/broker/connection_to_broker.hpp"
#include "bus/broker/token_source.hpp"
#include "bus/broker/websocket.hpp"
#include "ports/shared_access.hpp"

namespace baton::bus {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds connect_time{10'000};
constexpr milliseconds broker_tick{1'000}, leaving_tick{50}, leaving_time{2'000};
constexpr std::chrono::minutes signature_time{60}, signed_again_after{40};

}  // namespace

struct Broker::State {
  State(BrokerOptions chosen, Inbox& inbox, metrics::Registry& metrics, const Clock& clock, BrokerState& told_to)
      : options(std::move(chosen)),
        services{.options = options,
                 .inbox = inbox,
                 .clock = clock,
                 .state = told_to,
                 .published = metrics.counter("baton_broker_published_total", "Jobs that the external broker has confirmed."),
                 .consumed = metrics.counter("baton_broker_consumed_total", "Messages from the external broker that were accepted."),
                 .rejected = metrics.counter("baton_broker_rejected_total", "Messages that the external broker, or baton, rejected."),
                 .mailbox = nullptr,
                 .token_for = nullptr,
                 .on_tokens_refused = nullptr,
                 .unsaid = {}},
        connected(metrics.gauge("baton_broker_connected", "1 while baton is connected to the external broker.")) {
    services.mailbox = std::make_shared<Mailbox>([this] { asio::post(io, [this] { services.mailbox->drain(); }); });
    choose_tokens();
  }

  void choose_tokens();
  void connect();
  asio::awaitable<void> open_connection();
  asio::awaitable<Result<std::shared_ptr<ByteStream>>> open_stream();
  void on_ended(const Trouble& why);
  void on_thrown(const std::string& why);
  void tick();
  void begin_stop();

  const BrokerOptions options;
  BrokerServices services;
  asio::io_context io{1};
  metrics::Gauge& connected;
  Dialer dialer{io, options.trusted};
  std::optional<TokenSource> tokens;  // of an identity
  asio::steady_timer again{io}, ticker{io};
  std::shared_ptr<ConnectionToBroker> connection;
  Backoff backoff{milliseconds{500}, milliseconds{30'000}};
  std::string told;  // the name of why there is no connection, if that is logged
  bool is_stopping = false;
  std::chrono::steady_clock::time_point stop_by;
};

void Broker::State::choose_tokens() {
  const BrokerAddress& address = options.address;
  services.on_tokens_refused = [this] {
    if (tokens) tokens->forget();
  };
  if (address.identity) {
    tokens.emplace(io, dialer, *address.identity, services.clock, [this] {
      if (const auto held = connection) held->put_tokens();
    });
    services.token_for = [this](const std::string&, Time) { return TokenToPut{.type = "jwt", .text = tokens->text()}; };
  } else if (!address.key_name.empty()) {
    services.token_for = [&address](const std::string& resource, Time now) {
      return TokenToPut{.type = "servicebus.windows.net:sastoken",
                        .text = sign_shared_access(resource, address.key_name, address.key, now + signature_time),
                        .renew_at = now + signed_again_after};
    };
  }
}

void Broker::State::connect() {
  asio::co_spawn(io, open_connection(), [this](const std::exception_ptr& thrown) {
    if (thrown) try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& error) {
        if (connection) on_thrown(error.what());
        else on_ended(std::string(error.what()));
      }
  });
}

// The token first: without one the broker ends the connection soon.
asio::awaitable<void> Broker::State::open_connection() {
  if (tokens) {
    const auto prepared = co_await tokens->prepare();
    if (!prepared) co_return on_ended(prepared.error());
  }
  auto stream = co_await open_stream();
  if (is_stopping) co_return;
  if (!stream) co_return on_ended(stream.error().message);
  connection = std::make_shared<ConnectionToBroker>(*std::move(stream), services, [this](const Trouble& why) { on_ended(why); });
  connection->start();
}

asio::awaitable<Result<std::shared_ptr<ByteStream>>> Broker::State::open_stream() {
  const BrokerAddress& address = options.address;
  const auto until = std::chrono::steady_clock::now() + connect_time;
  if (address.is_websocket) {
    const auto url = address.websocket_url();
    if (!url) co_return std::unexpected(url.error());
    co_return co_await open_websocket(dialer, *url, options.trusted.empty() ? Trust::system_and_file : Trust::file_alone, until);
  }
  auto stream = co_await dialer.connect(address.host, address.port, until);
  if (!stream) co_return std::unexpected(std::move(stream).error());
  co_return make_tcp_stream(stream->release_socket());
}

// The same trouble is told once.
void Broker::State::on_ended(const Trouble& why) {
  if (connection) asio::post(io, [gone = std::move(connection)] {});  // it is ending yet
  connection.reset();
  connected.set(0);
  services.state.disconnected(why.text, services.clock.now());
  if (is_stopping) return;
  if (std::exchange(told, why.name) != why.name) spdlog::warn("no connection to the broker {}: {}; trying again", options.address.shown(), why.text);
  again.expires_after(backoff.next());
  again.async_wait([this](const error_code& cancelled) {
    if (!cancelled && !is_stopping) connect();
  });
}

// Nobody knows what the connection was at: it ends, and another one is opened.
void Broker::State::on_thrown(const std::string& why) {
  spdlog::error("the connection to the broker is given up: {}", why);
  const auto held = connection;
  if (!held) return;  // it is being opened, or will be
  held->give_up(why);
  try {
    held->drop();
  } catch (const std::exception& error) {
    spdlog::error("the connection to the broker did not end in order: {}", error.what());
  }
  if (connection == held) on_ended(why);
}

void Broker::State::tick() {
  // The next one first: it comes whatever this one throws.
  ticker.expires_after(is_stopping ? leaving_tick : broker_tick);
  ticker.async_wait([this](const error_code& cancelled) {
    if (!cancelled) tick();
  });
  if (tokens && connection) tokens->on_tick();
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
    io.stop();
  }
}

void Broker::State::begin_stop() {
  if (std::exchange(is_stopping, true)) return;
  stop_by = std::chrono::steady_clock::now() + leaving_time;
  again.cancel();
  if (connection) connection->begin_goodbye();
  ticker.cancel();
  tick();
}

Broker::Broker(BrokerOptions options, Inbox& inbox, metrics::Registry& metrics, const Clock& clock, BrokerState& state)
    : state_(std::make_unique<State>(std::move(options), inbox, metrics, clock, state)) {}

Broker::~Broker() { state_->services.mailbox->close(); }

void Broker::run() {
  asio::post(state_->io, [this] {
    state_->connect();
    state_->tick();
  });
  const auto work = asio::make_work_guard(state_->io);
  for (bool is_over = false; !is_over;) try {
      state_->io.run();
      is_over = true;
    } catch (const std::exception& error) {
      state_->on_thrown(error.what());
    }
  state_->dialer.close();
  state_->services.mailbox->close();
}

void Broker::stop() {
  asio::post(state_->io, [this] { state_->begin_stop(); });
}

}  // namespace baton::bus
