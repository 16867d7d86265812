// The only source of time. The engine reads it once per batch; tests own it.
#pragma once

#include "base/time.hpp"

namespace baton {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

}  // namespace baton
