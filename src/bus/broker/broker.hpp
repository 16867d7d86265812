// Baton as a client of a broker elsewhere: Azure Service Bus, RabbitMQ, or whatever else speaks AMQP 1.0.
//
// Jobs of the pools and queues that are named go out, results and the messages of a scheduler come in. A job that waits is the row of an
// outbox already: it is leased as by any worker, published, and kept once the broker has confirmed it. A crash in between, or a confirmation
// that is lost, publishes it again, with the same message id. What comes in is accepted when it is durable, and what comes twice changes
// nothing.
//
// Owned by whoever wires the server; run() is its I/O thread. stop() may be called from any thread. What is handed in must outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "bus/broker/broker_address.hpp"
#include "bus/names.hpp"
#include "ports/broker_state.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"

namespace baton::bus {

struct BrokerOptions {
  BrokerAddress address;
  Names names;
  std::string events_subscription = "orchestrator", results_subscription = "orchestrator";
  std::vector<std::string> pools;   // their jobs go to the topic of jobs
  std::vector<std::string> queues;  // their tasks go to the queue of that name
  std::string trusted;              // a file of certificates (PEM); empty: the system's
  std::size_t message_bytes_max = 1 << 20;
  std::chrono::seconds lock_time{60};  // of a job until the broker has confirmed it
};

class Broker {
 public:
  // The state is told what becomes of the connection.
  Broker(BrokerOptions options, Inbox& inbox, metrics::Registry& metrics, const Clock& clock, BrokerState& state);
  ~Broker();
  void run();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::bus
