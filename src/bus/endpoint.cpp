#include "bus/endpoint.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "bus/client.hpp"
#include "bus/own_topics.hpp"

namespace baton::bus {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds tick_time{1'000}, stop_time{2'000};

void Services::forget_expired_locks() {
  // Some time longer than the lease lasts: until somebody else has the job its lease still counts.
  const Time long_ago = clock.now() - std::chrono::minutes{5};
  std::erase_if(locks, [&](const auto& entry) { return entry.second.until < long_ago; });
}

struct Endpoint::State {
  State(EndpointOptions chosen, Inbox& inbox, metrics::Registry& metrics, const Clock& clock)
      : options(std::move(chosen)),
        services{.options = options,
                 .inbox = inbox,
                 .clock = clock,
                 .received = metrics.counter("baton_bus_messages_received_total", "Messages that clients of the AMQP endpoint sent."),
                 .sent = metrics.counter("baton_bus_messages_sent_total", "Messages that went to clients of the AMQP endpoint."),
                 .mailbox = nullptr,
                 .clients = {},
                 .locks = {},
                 .own_topics = nullptr,
                 .random = std::mt19937_64{std::random_device{}()}},
        connections(metrics.gauge("baton_bus_connections", "Open connections of the AMQP endpoint.")) {
    services.mailbox = std::make_shared<Mailbox>([this] { asio::post(io, [this] { services.mailbox->drain(); }); });
    services.own_topics = &own_topics;
  }

  void accept();
  void tick();
  void look_for_revoked();
  void begin_stop();
  void end_stop();
  template <class Fn>
  void for_each_client(Fn fn);

  const EndpointOptions options;
  Services services;  // goes after what the clients wait for
  OwnTopics own_topics{services};
  asio::io_context io{1};
  metrics::Gauge& connections;
  tcp::acceptor acceptor{io};
  asio::steady_timer ticker{io}, reopen{io}, goodbye{io};
  bool is_stopping = false;
  std::uint64_t ticks = 0;
};

void Endpoint::State::accept() {
  acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (error) {  // out of file descriptors, mostly: some will be free again
      reopen.expires_after(milliseconds{100});
      return reopen.async_wait([this](const error_code& cancelled) {
        if (!cancelled && acceptor.is_open()) accept();
      });
    }
    // One more is closed at once: it costs nothing, and its client tries again.
    if (services.clients.size() < options.connections_max) std::make_shared<Client>(std::move(socket), services)->start();
    connections.set(static_cast<std::int64_t>(services.clients.size()));
    accept();
  });
}

// Sessions end while they are visited, so each is held for the visit.
template <class Fn>
void Endpoint::State::for_each_client(Fn fn) {
  std::vector<std::shared_ptr<Client>> visited;
  for (Client* client : services.clients) visited.push_back(std::static_pointer_cast<Client>(client->shared_from_this()));
  for (const auto& client : visited) fn(*client);
}

void Endpoint::State::tick() {
  for_each_client([](Client& client) { client.on_tick(); });
  if (!is_stopping) own_topics.on_tick();
  if (!is_stopping) services.forget_expired_locks();
  if (!is_stopping && ++ticks % 2 == 0) look_for_revoked();
  connections.set(static_cast<std::int64_t>(services.clients.size()));
  if (is_stopping && services.clients.empty()) return end_stop();
  ticker.expires_after(is_stopping ? milliseconds{50} : tick_time);
  ticker.async_wait([this](const error_code& cancelled) {
    if (!cancelled) tick();
  });
}

// Each token once, however many connections were let in with it.
void Endpoint::State::look_for_revoked() {
  using Found = Result<std::optional<Token>>;
  std::set<std::string> in_use;
  for (Client* client : services.clients) in_use.insert(client->token_id());
  in_use.erase("");
  for (const std::string& id : in_use)
    options.tokens.by_id(id, arriving<Found>(services.mailbox, [this, id](Found found) {
      if (!found || (*found && !(*found)->revoked_at)) return;
      for_each_client([&](Client& client) {
        if (client.token_id() == id) client.say_goodbye("amqp:unauthorized-access", "the key was revoked");
      });
    }));
}

void Endpoint::State::begin_stop() {
  if (std::exchange(is_stopping, true)) return;
  error_code ignored;
  acceptor.close(ignored);
  own_topics.stop();
  for_each_client([](Client& client) { client.say_goodbye("amqp:connection:forced", "the server is stopping"); });
  goodbye.expires_after(stop_time);
  goodbye.async_wait([this](const error_code& cancelled) {
    if (!cancelled) end_stop();
  });
  ticker.cancel();
  tick();
}

void Endpoint::State::end_stop() {
  for_each_client([](Client& client) { client.terminate(); });
  ticker.cancel();
  goodbye.cancel();
  io.stop();
}

Endpoint::Endpoint(EndpointOptions options, Inbox& inbox, metrics::Registry& metrics, const Clock& clock)
    : state_(std::make_unique<State>(std::move(options), inbox, metrics, clock)) {}

Endpoint::~Endpoint() {
  state_->end_stop();
  state_->services.mailbox->close();
}

Result<std::uint16_t> Endpoint::listen(const std::string& host, std::uint16_t port) {
  error_code error;
  const auto fail_with = [&] { return fail(Code::unavailable, fmt::format("cannot listen for AMQP on {}:{}: {}", host, port, error.message())); };
  tcp::resolver resolver(state_->io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) return fail_with();
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error) return fail_with();
  const auto real = acceptor.local_endpoint(error);
  if (error) return fail_with();
  state_->accept();
  return real.port();
}

void Endpoint::run() {
  state_->tick();
  const auto work = asio::make_work_guard(state_->io);
  state_->io.run();
  state_->services.mailbox->close();
}

void Endpoint::stop() {
  asio::post(state_->io, [this] { state_->begin_stop(); });
}

}  // namespace baton::bus
