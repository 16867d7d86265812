// Pauses between tries, each twice as long as the one before.
#pragma once

#include <algorithm>
#include <chrono>

namespace baton::bus {

class Backoff {
 public:
  using Pause = std::chrono::milliseconds;

  constexpr Backoff(Pause least, Pause most) : least_(least), most_(most) {}
  Pause next() { return pause_ = std::clamp(pause_ * 2, least_, most_); }
  void succeeded() { pause_ = {}; }
  [[nodiscard]] bool has_failed() const { return pause_ != Pause{}; }

 private:
  Pause least_, most_, pause_{};
};

}  // namespace baton::bus
