// Whether the server can do work, for those who probe it.
#pragma once

#include <chrono>

namespace baton {

struct Readiness {
  enum class State { ready, slow, stalled, store_away };  // slow: still ready, and worth a look
  State state = State::ready;
  std::chrono::milliseconds turn{};  // how long the turn of the engine takes that is under way
};

}  // namespace baton
