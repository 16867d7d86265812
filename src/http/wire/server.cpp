#include "http/wire/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <ctime>
#include <deque>

#include "http/api/routes.hpp"
#include "http/wire/api.hpp"
#include "http/wire/session.hpp"

namespace baton::http {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t turned_away_max = 100;  // connections beyond the limit that are told so, at a time

std::string http_date(Time time) {
  const auto seconds = static_cast<std::time_t>(to_millis(time) / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[parts.tm_wday], parts.tm_mday,
                     months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Options with_api(Options options) {
  if (!options.api) options.api = &rest_api();
  return options;
}

// Often enough to keep every limit to about a quarter of itself.
milliseconds tick_of(const Options& options) {
  const auto shortest =
      std::min({options.header_time, options.body_time, options.write_time, options.idle_time});
  return std::clamp(shortest / 4, milliseconds{5}, milliseconds{250});
}

}  // namespace

struct Server::State {
  State(Options chosen, Inbox& inbox, ReadPool& reads, metrics::Registry& metrics, const Clock& clock,
        std::function<Readiness()> readiness);

  void accept(tcp::acceptor& acceptor);
  void admit(tcp::socket socket);
  void tick();
  void begin_stop();
  void terminate();
  template <class Fn>
  void for_each_session(Fn fn);

  const Options options;
  Feed silence;  // for a server without a feed
  asio::io_context io{1};
  Services services;
  SessionGroup group;
  std::deque<tcp::acceptor> acceptors;
  asio::steady_timer ticker{io};
  asio::steady_timer waits{io};
  asio::steady_timer reopen{io};
  asio::steady_timer stop_timer{io};
  SteadyTime complained{};
};

Server::State::State(Options chosen, Inbox& inbox, ReadPool& reads, metrics::Registry& metrics,
                     const Clock& clock, std::function<Readiness()> readiness)
    : options(with_api(chosen)),
      services{options, inbox,
               reads,   metrics,
               clock,   std::move(readiness),
               nullptr, TokenCache(options.token_cache_time),
               nullptr},
      group{services,
            {},
            false,
            http_date(clock.now()),
            [this] { io.stop(); },
            metrics.gauge("baton_http_connections", "Open connections.", std::string(options.api->labels)),
            {}} {
  services.mailbox =
      std::make_shared<Mailbox>([this] { asio::post(io, [this] { services.mailbox->drain(); }); });
  services.subscriptions = std::make_shared<Subscriptions>(
      options.feed ? *options.feed : silence,
      [this] { asio::post(io, [this] { services.subscriptions->read(); }); },
      [this](SteadyTime when) {
        waits.expires_at(when);
        waits.async_wait([this](const error_code& cancelled) {
          if (!cancelled) services.subscriptions->expire(steady_clock::now());
        });
      });
}

void Server::State::accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](const error_code& error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!error) {
      admit(std::move(socket));
      accept(acceptor);
      return;
    }
    // Out of file descriptors, mostly: some will be free again.
    if (const auto now = steady_clock::now(); now - complained > std::chrono::seconds{10}) {
      complained = now;
      spdlog::warn("cannot accept a connection: {}", error.message());
    }
    reopen.expires_after(milliseconds{100});
    reopen.async_wait([this, &acceptor](const error_code& cancelled) {
      if (!cancelled && acceptor.is_open()) accept(acceptor);
    });
  });
}

void Server::State::admit(tcp::socket socket) {
  const auto open = group.sessions.size();
  if (open >= options.connections_max + turned_away_max) return;
  std::make_shared<Session>(std::move(socket), group)->start(open < options.connections_max);
}

// Sessions end while they are visited, so each is held for the visit.
template <class Fn>
void Server::State::for_each_session(Fn fn) {
  std::vector<std::shared_ptr<Session>> visited;
  visited.reserve(group.sessions.size());
  for (auto* session : group.sessions) visited.push_back(session->shared_from_this());
  for (auto& session : visited) {
    fn(*session);
    session.reset();
  }
}

void Server::State::tick() {
  const auto now = steady_clock::now();
  for_each_session([now](Session& session) { session.check_time(now); });
  group.date = http_date(services.clock.now());
  ticker.expires_after(tick_of(options));
  ticker.async_wait([this](const error_code& cancelled) {
    if (!cancelled) tick();
  });
}

void Server::State::begin_stop() {
  if (group.stopping) return;
  group.stopping = true;
  for (auto& acceptor : acceptors) {
    error_code ignored;
    acceptor.close(ignored);
  }
  stop_timer.expires_after(options.stop_time);
  stop_timer.async_wait([this](const error_code& cancelled) {
    if (!cancelled) terminate();
  });
  if (group.sessions.empty()) {
    io.stop();
  } else {
    for_each_session([](Session& session) { session.stop(); });
  }
}

void Server::State::terminate() {
  for_each_session([](Session& session) { session.terminate(); });
}

Server::Server(Options options, Inbox& inbox, ReadPool& reads, metrics::Registry& metrics, const Clock& clock,
               std::function<Readiness()> readiness)
    : state_(std::make_unique<State>(options, inbox, reads, metrics, clock, std::move(readiness))) {}

Server::~Server() {
  // Whoever waits still is let go, so that no coroutine outlives what it stands on.
  state_->group.stopping = true;
  state_->terminate();
  state_->acceptors.clear();
  state_->ticker.cancel();
  state_->stop_timer.cancel();
  while (!state_->group.sessions.empty()) {
    state_->io.restart();
    if (state_->io.run_one_for(std::chrono::seconds{1}) == 0) break;
  }
  state_->services.mailbox->close();
}

Result<std::uint16_t> Server::listen(const std::string& host, std::uint16_t port) {
  const auto fail_with = [&](const error_code& error) {
    return fail(Code::unavailable, fmt::format("cannot listen on {}:{}: {}", host, port, error.message()));
  };
  error_code error;
  tcp::resolver resolver(state_->io);
  const auto bare = host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
  const auto found = resolver.resolve(bare, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) return fail_with(error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(state_->io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error) return fail_with(error);
  const auto real = acceptor.local_endpoint(error);
  if (error) return fail_with(error);
  state_->acceptors.push_back(std::move(acceptor));
  state_->accept(state_->acceptors.back());
  return real.port();
}

void Server::run() {
  state_->tick();
  const auto work = asio::make_work_guard(state_->io);
  state_->io.run();
  state_->services.mailbox->close();
}

void Server::stop() {
  asio::post(state_->io, [this] { state_->begin_stop(); });
}

}  // namespace baton::http
