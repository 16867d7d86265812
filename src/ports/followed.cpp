#include "ports/followed.hpp"

#include <algorithm>
#include <chrono>

namespace baton {

void Followed::on_wanted(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  wake_ = std::move(wake);
}

void Followed::followed(std::int64_t commit_number) {
  {
    const std::scoped_lock lock(mutex_);
    followed_ = commit_number;
  }
  moved_.notify_all();
}

void Followed::set_away(bool away) {
  {
    const std::scoped_lock lock(mutex_);
    away_ = away;
  }
  moved_.notify_all();
}

void Followed::close() {
  on_wanted(nullptr);
  set_away(true);
}

Result<> Followed::wait() {
  constexpr std::chrono::seconds patience{5};
  const std::int64_t all = committed_;
  if (followed_ >= all) return {};
  std::unique_lock lock(mutex_);
  wanted_ = std::max<std::int64_t>(wanted_, all);
  if (wake_ && !away_) wake_();
  if (moved_.wait_for(lock, patience, [&] { return followed_ >= all || away_; }) && followed_ >= all) return {};
  return fail(Code::unavailable, "the store is behind with its tables; try again");
}

}  // namespace baton
