// The queues whose tasks a commit changed, each of which is told once.
#pragma once

#include <set>
#include <string_view>
#include <utility>

#include "ports/feed.hpp"

namespace baton::engine {

class ChangedQueues {
 public:
  // Both must live until they are told.
  void note(std::string_view tenant, std::string_view queue) {
    const std::pair key(tenant, queue);
    if (key == last_ || tenant.empty() || queue.empty()) return;
    last_ = key;
    queues_.insert(key);
  }
  void tell(Changes& out) const {
    for (const auto& [tenant, queue] : queues_)
      out.add({.subject = Subject::Type::queue, .tenant = tenant, .id = queue, .what = "changed"});
  }

 private:
  std::pair<std::string_view, std::string_view> last_;
  std::set<std::pair<std::string_view, std::string_view>> queues_;
};

}  // namespace baton::engine
