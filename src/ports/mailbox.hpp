// Answers that arrive on other threads, the engine's in bursts, for the one thread that owns who waits for them. They are
// taken under a short lock, and the owner is woken once for a burst.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace baton {

class Arrival {
 public:
  virtual ~Arrival() = default;
  virtual void arrive() = 0;  // on the owner's thread
  virtual void drop() = 0;    // it came when there was nobody left at all; any thread
};

class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}
  void put(std::shared_ptr<Arrival> arrival);  // any thread
  void drain();                                // the owner's thread; what one throws is thrown, and the others arrive the next time
  void close();  // after the owner: what is here, and what still comes, is dropped

 private:
  void wake();

  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<std::shared_ptr<Arrival>> arrived_;
  bool awake_ = false;  // drain() was called for, and comes
  bool closed_ = false;
};

}  // namespace baton
