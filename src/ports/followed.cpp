#include "ports/followed.hpp"

#include <algorithm>

namespace baton {

void Followed::on_wanted(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  wake_ = std::move(wake);
}

void Followed::on_moved(std::function<void()> moved) {
  const std::scoped_lock lock(moved_mutex_);
  moved_ = std::move(moved);
}

void Followed::tell() {
  const std::scoped_lock lock(moved_mutex_);
  if (moved_) moved_();
}

void Followed::followed(std::int64_t commit_number) {
  followed_ = commit_number;
  tell();
}

void Followed::set_away(bool away) {
  if (away_.exchange(away) != away) tell();
}

void Followed::close() {
  on_wanted(nullptr);
  set_away(true);
}

std::optional<std::int64_t> Followed::want() {
  const std::int64_t all = committed_;
  if (followed_ >= all) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  wanted_ = std::max<std::int64_t>(wanted_, all);
  if (wake_ && !away_) wake_();
  return all;
}

}  // namespace baton
