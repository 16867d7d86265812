// What each built-in handler does with one task: answer at once, or answer after a while. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "ports/commands.hpp"

namespace baton::worker {

struct HandlerResult {
  std::chrono::milliseconds after{0};  // zero: now
  bool completed = false;
  OptionalJson output;
  std::optional<std::string> error;
};

[[nodiscard]] HandlerResult run_builtin(const Handout& task);

}  // namespace baton::worker
