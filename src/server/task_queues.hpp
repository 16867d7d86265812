// Which queues tasks of workflows wait in: those that published workflows name, and the one of those that name none.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ports/clock.hpp"
#include "ports/reads.hpp"

namespace baton {

// Which of the names are such queues. Looks through the tenant's workflows, the older versions of each too: jobs of theirs may
// still run.
[[nodiscard]] Result<std::set<std::string>> task_queues_among(Reads& reads, const Tenant& tenant, const std::set<std::string>& names);

// The same for whoever attaches to a name, which may be anything, and may be tried again and again. An answer is remembered for a
// moment, and of a tenant there is one look at a time: names that are asked for meanwhile have the next one together.
//
// Any thread may ask, and is answered on any.
class TaskQueues {
 public:
  static constexpr Duration remembered{2'000};  // a workflow that is published is seen that much later

  using Found = std::function<void(Result<bool>)>;
  using Names = std::set<std::string>;
  using Look = std::function<void(Tenant, Names, std::function<void(Result<Names>)>)>;

  TaskQueues(Look look, const Clock& clock) : look_(std::move(look)), clock_(clock) {}
  void ask(const Tenant& tenant, const std::string& queue, Found found);

 private:
  struct Answer {
    bool is_queue = false;
    Time at{};
  };
  struct OfTenant {
    std::map<std::string, Answer> known;
    std::map<std::string, std::vector<Found>> waiting;
    bool is_looking = false;
  };
  [[nodiscard]] bool is_fresh(const Answer& answer) const;
  void look(const Tenant& tenant);
  void looked(const Tenant& tenant, const Names& names, const Result<Names>& found);

  const Look look_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<Tenant, OfTenant> tenants_;  // under the mutex
};

}  // namespace baton
