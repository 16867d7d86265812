// The HTTP/1.1 edge: one I/O thread that reads requests, hands commands to the engine and reads to a pool,
// and writes the answers.
//
// Owned by whoever wires the server; run() is the I/O thread. stop() may be called from any thread and more
// than once: the server stops accepting, closes idle connections, answers whoever long-polls, lets the
// requests in flight finish (after stop_time they are told that they get no answer), and run() returns. What is handed in (inbox, pool, registry,
// clock) must outlive the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/metrics.hpp"
#include "base/result.hpp"
#include "http/api/auth.hpp"
#include "http/wire/read_pool.hpp"
#include "ports/broker_state.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/data_source.hpp"
#include "ports/feed.hpp"
#include "ports/readiness.hpp"

namespace baton::http {

struct Api;  // api.hpp

struct Options {
  const Api* api = nullptr;  // none: that of api/routes.hpp
  Access access = Access::required;
  bool loopback = true;  // only this machine reaches it: who calls it by another name was tricked into it
  std::size_t header_bytes_max = 16 * 1024;      // more is 431
  std::size_t body_bytes_max = 4 * 1024 * 1024;  // more is 413
  std::size_t connections_max = 20'000;          // more get 503
  std::chrono::milliseconds header_time{
      10'000};  // from the first byte of a request to the end of its header, else 408
  std::chrono::milliseconds body_time{30'000};   // from there to the end of its body, else 408
  std::chrono::milliseconds write_time{30'000};  // for a client to take an answer
  std::chrono::milliseconds idle_time{75'000};   // between requests on one connection
  std::chrono::milliseconds stop_time{10'000};   // for requests in flight when the server stops
  std::chrono::milliseconds token_cache_time{2'000};
  std::chrono::milliseconds heartbeat_time{15'000};  // of streams
  Feed* feed = nullptr;                 // what streams and waits hear; none: nothing ever changes
  DataSources* data_sources = nullptr;  // for previews and plans; must outlive the read pool
  const BrokerState* broker = nullptr;  // the external one; none: there is none
};

class Server {
 public:
  Server(Options options, Inbox& inbox, ReadPool& reads, metrics::Registry& metrics, const Clock& clock,
         std::function<Readiness()> readiness);
  ~Server();

  // Port 0 lets the system choose; answers the real one. May be called for several addresses, before run().
  [[nodiscard]] Result<std::uint16_t> listen(const std::string& host, std::uint16_t port);
  void run();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::http
