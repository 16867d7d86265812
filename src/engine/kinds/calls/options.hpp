// Who is told of service calls.
#pragma once

#include <functional>
#include <vector>

#include "ports/call_commands.hpp"

namespace baton::engine {

struct CallsOptions {
  std::function<void(std::vector<DueCall>)> scheduled;  // after the commit, on the engine's thread: they have a time now
};

}  // namespace baton::engine
