// Baton's own endpoint for AMQP 1.0, in the shape of Azure Service Bus: workers and schedulers that were written for that
// connect to it with its SDKs, and nobody needs a broker. What they send becomes commands, what they receive is what
// workers get over HTTP: the lock of a message is the lease of its job, and it is settled in the engine.
//
// Owned by whoever wires the server; run() is the I/O thread of the bus, and owns all its connections. stop() may be called
// from any thread. What is handed in must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/metrics.hpp"
#include "base/result.hpp"
#include "bus/job_lock.hpp"
#include "bus/names.hpp"
#include "ports/access.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"

namespace baton::bus {

// Who holds a key or a token: asked on the bus's thread, answered once, on any thread.
using FoundToken = std::function<void(Result<std::optional<Token>>)>;
struct Tokens {
  std::function<void(std::string hash, FoundToken)> by_hash;
  std::function<void(std::string token_id, FoundToken)> by_id;
};

// Whether tasks of the tenant's workflows wait in a queue of that name: asked and answered likewise.
using IsTaskQueue = std::function<void(Tenant, std::string queue, std::function<void(Result<bool>)>)>;

struct EndpointOptions {
  Names names;
  Access access = Access::required;
  Tokens tokens;
  IsTaskQueue is_task_queue;  // none: there are none
  FindJob find_job;           // none: what is not remembered is lost
  bool auto_pools = true;     // who receives from worker-{id}, a subscription of the topic of jobs that is not there, makes it
  std::size_t connections_max = 16'000;
  std::size_t message_bytes_max = 1 << 20;
  std::chrono::seconds lock_time{60};
  std::chrono::seconds login_time{30};  // until whoever connects has shown who it is
};

class Endpoint {
 public:
  Endpoint(EndpointOptions options, Inbox& inbox, metrics::Registry& metrics, const Clock& clock);
  ~Endpoint();

  // Port 0 lets the system choose; answers the real one. Before run().
  [[nodiscard]] Result<std::uint16_t> listen(const std::string& host, std::uint16_t port);
  void run();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::bus
