#include "caller/caller.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "base/tls.hpp"
#include "caller/sending.hpp"

namespace baton::caller {

Loop::Loop(Common& shared) : common(shared), pool(shared.options.idle_connections_max) {
  thread_ = std::thread([this] { io.run(); });
}

void Loop::send(std::shared_ptr<Sending> sending) {
  asio::post(io, [this, sending = std::move(sending)] {
    under_way.insert(sending.get());
    if (stopping_) sending->stop();
    asio::co_spawn(io, Sending::run(sending), asio::detached);
  });
}

void Loop::stop() {
  asio::post(io, [this] {
    stopping_ = true;
    pool.clear();
    pruning_.cancel();
    for (auto* each : under_way) each->stop();
    work_.reset();
  });
}

void Loop::join() { thread_.join(); }

void Loop::keep(const std::string& origin, std::unique_ptr<Connection> connection) {
  if (stopping_) return;
  pool.put(origin, std::move(connection));
  if (!prunes_) prune_later();
}

void Loop::prune_later() {
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
  std::vector<std::unique_ptr<Loop>> loops;
  std::mutex mutex;  // a send must not come after the loops have ended
  bool stopped = false;

  State(Options options, asio::ssl::context tls)
      : common{.options = std::move(options), .tls = std::move(tls)} {
    for (std::size_t i = 0; i < std::max<std::size_t>(common.options.threads, 1); ++i)
      loops.push_back(std::make_unique<Loop>(common));
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
    auto& loop = *state_->loops[std::hash<std::string>{}(origin) % state_->loops.size()];
    loop.send(std::make_shared<Sending>(loop, for_whom, std::move(request), std::move(done)));
    return;
  }
  lock.unlock();
  OutgoingResult result;
  result.kind = OutgoingKind::stopped;
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
  for (auto& loop : state_->loops) loop->stop();
  for (auto& loop : state_->loops) loop->join();
}

Stats HttpCaller::stats() const {
  const auto& common = state_->common;
  return {common.under_way, common.connections_open, common.connections_opened, common.connections_reused};
}

}  // namespace baton::caller
