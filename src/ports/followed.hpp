// How far the tables are. The engine commits to a journal and lets the tables follow a moment later; whoever reads
// for somebody who was answered before waits here until the tables show that answer.
//
// Thread-safe. The engine tells, readers wait; nobody looks on a clock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/result.hpp"

namespace baton {

class Followed {
 public:
  // ---- the engine
  // Called, by any thread, when somebody begins to wait.
  void on_wanted(std::function<void()> wake);
  // This commit is durable, and answers that rest on it may leave.
  void committed(std::int64_t commit_number) { committed_ = commit_number; }
  // The tables show it.
  void followed(std::int64_t commit_number);
  [[nodiscard]] bool is_wanted() const { return wanted_ > followed_; }
  // The store is away, and nothing follows until it is back: nobody waits for that.
  void set_away(bool away);
  // Nothing will follow any more.
  void close();

  // ---- readers
  // Returns when the tables show all that was committed before the call. Code::unavailable: they do not in time.
  [[nodiscard]] Result<> wait();

 private:
  std::atomic<std::int64_t> committed_ = 0, followed_ = 0, wanted_ = 0;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::function<void()> wake_;  // under the mutex
  bool away_ = false;           // under the mutex
};

}  // namespace baton
