// The wall clock of the running server.
#pragma once

#include "ports/clock.hpp"

namespace baton::server {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override {
    return std::chrono::floor<Duration>(std::chrono::system_clock::now());
  }
};

}  // namespace baton::server
