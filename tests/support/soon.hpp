// For tests with real threads, where nothing tells that a state has been reached.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace baton::support {

// Looks again and again whether it is true, for ten seconds at most.
inline bool soon(const std::function<bool()>& is_true) {
  for (int i = 0; i < 10'000; ++i) {
    if (is_true()) return true;  // it may not be when it is asked once more
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

}  // namespace baton::support
