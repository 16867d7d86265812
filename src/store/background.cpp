#include "store/background.hpp"

namespace baton::store {

Background::~Background() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    on_end_ = nullptr;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Background::on_end(std::function<void()> on_end) {
  const std::scoped_lock lock(mutex_);
  on_end_ = std::move(on_end);
}

void Background::begin(Work work) {
  {
    const std::scoped_lock lock(mutex_);
    ENSURE(!is_busy_ && !ended_);
    work_ = std::move(work);
    is_busy_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

std::optional<Result<>> Background::end() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(ended_, std::nullopt);
}

void Background::discard(std::shared_ptr<const void> spent) {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    spent_.push_back(std::move(spent));
  }
  changed_.notify_all();
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_busy_; });
}

void Background::wait(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return !is_busy_; });
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return work_ || stopping_ || !spent_.empty(); });
    if (!work_ && !spent_.empty()) {
      auto spent = std::exchange(spent_, {});
      lock.unlock();
      spent.clear();
      lock.lock();
      continue;
    }
    if (!work_) return;
    Work work = std::exchange(work_, nullptr);
    lock.unlock();
    Result<> ended = work();
    work = nullptr;
    lock.lock();
    ended_ = std::move(ended);
    is_busy_ = false;
    changed_.notify_all();
    const auto tell = on_end_;
    lock.unlock();
    if (tell) tell();
    lock.lock();
  }
}

}  // namespace baton::store
