#include "caller/places.hpp"

#include "base/result.hpp"

namespace baton::caller {

bool Places::take(const std::string& origin) {
  const std::lock_guard lock(mutex_);
  if (closed_ || taken_ >= all_max_) return false;
  const auto it = by_origin_.try_emplace(origin, 0).first;
  if (it->second >= origin_max_) return false;
  ++it->second;
  ++taken_;
  return true;
}

void Places::give_back(const std::string& origin) {
  const std::lock_guard lock(mutex_);
  const auto it = by_origin_.find(origin);
  ENSURE(it != by_origin_.end());
  if (--it->second == 0) by_origin_.erase(it);
  --taken_;
}

std::size_t Places::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

void Places::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace baton::caller
