// Whether the server can do work, for those who probe it.
#pragma once

#include <chrono>

namespace baton {

struct Readiness {
  // slow: still ready, and worth a look; tables_behind: reads are refused.
  enum class State { ready, slow, stalled, tables_behind, store_away };
  State state = State::ready;
  std::chrono::milliseconds turn{};  // how long the turn of the engine takes that is under way
};

}  // namespace baton
