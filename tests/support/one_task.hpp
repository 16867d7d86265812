// A workflow of one task, which waits in the queue q for a worker.
#pragma once

#include <string_view>

namespace baton::support {

inline constexpr std::string_view one_task_yaml = R"(
workflow_id: w
nodes:
  start: {type: start, next: a}
  a: {type: task, handler: work, queue: q, next: end}
  end: {type: end}
)";

}  // namespace baton::support
