// Makes the HTTP requests of service calls. Loops, each with a thread of its own, share the work: all
// requests to one origin are on one loop, so that its idle connections need no lock.
//
// A request is sent once. A kept connection is looked at before it is used, and replaced only as long as not
// a byte was handed to it; after that, whatever goes wrong is told as it is. A name is looked up once for a
// connection, the addresses are judged by the egress policy, and the connection goes to one of those, never
// to a name.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "caller/egress.hpp"
#include "base/lookups.hpp"
#include "ports/caller.hpp"

namespace baton::caller {

struct Options {
  Egress egress;
  std::size_t threads = 1;
  Duration connect_timeout = std::chrono::seconds{10};  // for name, connection and TLS; at most the whole
  std::optional<Duration> first_byte_timeout;           // none: only the whole has a limit
  // Servers often close after five seconds, and a request that crosses with that is in doubt: be earlier.
  Duration idle_max = std::chrono::seconds{4};
  // For requests that do something each time that they come, a connection must be fresher.
  Duration idle_max_unsafe = std::chrono::seconds{1};
  Duration age_max = std::chrono::minutes{5};  // then the name is looked up again
  std::size_t idle_connections_max = 256;
  std::size_t lookup_threads = 32;  // started when needed
  std::string ca_file;              // trusted in addition to the system's; PEM
  std::string user_agent = "baton";
  Resolve resolve = resolve_by_system;
};

struct Stats {
  std::size_t under_way = 0;
  std::size_t connections_open = 0;
  std::uint64_t connections_opened = 0;  // ever
  std::uint64_t connections_reused = 0;  // ever
};

class HttpCaller final : public Caller {
 public:
  // Fails when the certificates cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<HttpCaller>> start(Options options);
  ~HttpCaller() override;  // stops
  HttpCaller(const HttpCaller&) = delete;
  HttpCaller& operator=(const HttpCaller&) = delete;

  void send(const std::string& for_whom, const std::string& origin, OutgoingRequest request,
            std::function<void(OutgoingResult)> done) override;

  void stop() override;

  [[nodiscard]] Stats stats() const;  // any thread

 private:
  struct State;
  explicit HttpCaller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace baton::caller
