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
  {
    const std::scoped_lock lock(mutex_);
    if (doubted_ || commit_number <= followed_) return;  // two tell it
    followed_ = commit_number;
  }
  tell();
}

void Followed::opened(std::int64_t last_commit) {
  {
    const std::scoped_lock lock(mutex_);
    committed_ = followed_ = last_commit;
    doubted_ = false;
  }
  tell();
}

void Followed::doubt(std::int64_t commit_number) {
  const std::scoped_lock lock(mutex_);
  if (doubted_ || commit_number >= followed_) return;
  followed_ = commit_number;
  doubted_ = true;
  if (wake_ && !away_) wake_();
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
