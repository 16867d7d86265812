// Runs one piece of work at a time on a thread of its own, which is started by the first.
//
// The owner begins and ends, from one thread; `on_end` is called by the other one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace baton::store {

class Background {
 public:
  using Work = std::move_only_function<Result<>()>;

  Background() = default;
  ~Background();  // after what is under way
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void on_end(std::function<void()> on_end);
  // None is under way, and how the last one ended was taken.
  void begin(Work work);
  // How it ended, once; none: it is under way, or there was none.
  [[nodiscard]] std::optional<Result<>> end();
  void wait();
  void wait(std::chrono::milliseconds at_most);
  // Lets the thread take it apart, when it has nothing else to do.
  void discard(std::shared_ptr<const void> spent);
  [[nodiscard]] bool is_busy() const {
    const std::scoped_lock lock(mutex_);
    return is_busy_;
  }

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Work work_;  // under the mutex, as are the others
  bool is_busy_ = false, stopping_ = false;
  std::optional<Result<>> ended_;
  std::vector<std::shared_ptr<const void>> spent_;
  std::function<void()> on_end_;
  std::thread thread_;
};

}  // namespace baton::store
