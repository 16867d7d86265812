// Clocks for tests.
#pragma once

#include <chrono>

#include "ports/clock.hpp"

namespace baton::support {

// Stands still until the test moves it.
struct ManualClock final : Clock {
  Time time = from_millis(1'800'000'000'000);
  [[nodiscard]] Time now() const override { return time; }
};

// For tests with real threads.
struct WallClock final : Clock {
  [[nodiscard]] Time now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }
};

}  // namespace baton::support
