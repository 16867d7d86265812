// What all connections of the endpoint share. Owned by the bus's I/O thread, but for the mailbox.
#pragma once

#include <map>
#include <random>
#include <set>

#include "bus/endpoint.hpp"
#include "bus/message.hpp"
#include "ports/mailbox.hpp"

namespace baton::bus {

class Client;
class OwnTopics;

// A job that a client has under a lock. It is found by the token, also over another connection than that on which it came; and by the store, if it came
// before a restart (job_lock.hpp).
struct Lock {
  std::optional<Tenant> tenant;
  std::string queue;
  TaskLease task;
  Time until{};
  bool is_kept = false;
};

struct Services {
  const EndpointOptions& options;
  Inbox& inbox;
  const Clock& clock;
  metrics::Counter& received;
  metrics::Counter& sent;
  std::shared_ptr<Mailbox> mailbox;
  std::set<Client*> clients;
  std::map<LockToken, Lock> locks;

  OwnTopics* own_topics = nullptr;  // lives as long
  std::mt19937_64 random;

  [[nodiscard]] std::string new_id() { return uuid7(clock.now(), random(), random()); }
  void forget_expired_locks();
};

}  // namespace baton::bus
