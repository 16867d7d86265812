#include "caller/caller.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "base/tls.hpp"
#include "caller/exchange.hpp"

namespace baton::caller {

Lane::Lane(Common& shared) : common(shared), pool(shared.options.idle_connections_max) {
  thread_ = std::thread([this] { io.run(); });
}

void Lane::send(std::shared_ptr<Exchange> exchange) {
  asio::post(io, [this, exchange = std::move(exchange)] {
    under_way.insert(exchange.get());
    if (stopping_) exchange->stop();
    asio::co_spawn(io, Exchange::run(exchange), asio::detached);
  });
}

void Lane::stop() {
  asio::post(io, [this] {
    stopping_ = true;
    pool.clear();
    pruning_.cancel();
    for (auto* each : under_way) each->stop();
    work_.reset();
  });
}

void Lane::join() { thread_.join(); }

void Lane::keep(const std::string& origin, std::unique_ptr<Connection> connection) {
  if (stopping_) return;
  pool.put(origin, std::move(connection));
  if (!prunes_) prune_later();
}

void Lane::prune_later() {
  prunes_ = true;
  pruning_.expires_after(std::chrono::seconds{1});
  pruning_.async_wait([this](const error_code& error) {
    prunes_ = false;
    if (error || stopping_) return;
    pool.prune(Steady::now());
    if (!pool.empty()) prune_later();
  });
}

struct HttpCaller::State {
  Common common;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::mutex mutex;  // a send must not come after the lanes have ended
  bool stopped = false;

  State(Options options, asio::ssl::context tls)
      : common{.options = std::move(options), .tls = std::move(tls)} {
    for (std::size_t i = 0; i < std::max<std::size_t>(common.options.threads, 1); ++i)
      lanes.push_back(std::make_unique<Lane>(common));
  }
};

Result<std::unique_ptr<HttpCaller>> HttpCaller::start(Options options) {
  asio::ssl::context tls(asio::ssl::context::tls_client);
  TRY(set_up_tls(tls.native_handle(), options.ca_file));
  auto state = std::make_unique<State>(std::move(options), std::move(tls));
  return std::unique_ptr<HttpCaller>(new HttpCaller(std::move(state)));
}

HttpCaller::HttpCaller(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpCaller::~HttpCaller() { stop(); }

void HttpCaller::send(const std::string& for_whom, const std::string& origin, OutgoingRequest request,
                      std::function<void(OutgoingResult)> done) {
  std::unique_lock lock(state_->mutex);
  if (!state_->stopped) {
    auto& lane = *state_->lanes[std::hash<std::string>{}(origin) % state_->lanes.size()];
    lane.send(std::make_shared<Exchange>(lane, for_whom, std::move(request), std::move(done)));
    return;
  }
  lock.unlock();
  OutgoingResult result;
  result.kind = OutgoingResult::Kind::stopped;
  result.message = "the server is stopping";
  done(std::move(result));
}

void HttpCaller::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopped) return;
    state_->stopped = true;
  }
  state_->common.lookups.close();
  for (auto& lane : state_->lanes) lane->stop();
  for (auto& lane : state_->lanes) lane->join();
}

Stats HttpCaller::stats() const {
  const auto& common = state_->common;
  return {common.under_way, common.connections_open, common.connections_opened, common.connections_reused};
}

}  // namespace baton::caller
