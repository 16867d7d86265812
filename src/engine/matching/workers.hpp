// Who works: every worker that has asked, beaten or reported since the server came up. In memory only, and
// bounded; the leases themselves are rows. Owned by the writer.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/delivery/delivery.hpp"
#include "ports/commands.hpp"
#include "ports/store.hpp"

namespace baton::engine {

class Workers {
 public:
  void polled(const Poll& poll, Time now);
  // A heartbeat names all that the worker is running.
  void beat(const Tenant& tenant, const std::string& worker, const std::vector<std::string>& task_ids,
            Time lease_until, Time now);
  void took(const Tenant& tenant, const std::string& worker, const std::string& task_id, Time lease_until);
  void reported(const Tenant& tenant, const std::string& worker, const std::string& task_id,
                bool completed, Time now);

  [[nodiscard]] std::vector<WorkerInfo> list(const std::optional<Tenant>& tenant, Time now) const;

  [[nodiscard]] delivery::QueueWorkers on_queue(const QueueKey& queue, Time now) const;

 private:
  struct Worker {
    std::set<std::string> queues;
    Time first_seen{}, last_seen{};
    std::map<std::string, Time> running;  // with when its lease ends, after which it is somebody else's
    std::uint64_t completed = 0, failed = 0;
    std::int64_t minute = 0;  // since the epoch, of `in_minute`
    std::uint64_t in_minute = 0, in_minute_before = 0;
  };
  static constexpr std::size_t workers_max = 10'000;
  static constexpr std::size_t running_max = 1'000;
  static constexpr std::size_t queues_max = 100;

  [[nodiscard]] static std::size_t running_count(const Worker& worker, Time now);
  [[nodiscard]] Worker* seen(const Tenant& tenant, const std::string& worker, Time now);

  std::map<std::pair<Tenant, std::string>, Worker> workers_;
  std::map<QueueKey, Time> last_polls_;
};

}  // namespace baton::engine
