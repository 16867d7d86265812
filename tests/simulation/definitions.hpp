// The workflows that the simulated clients run: each shape that the engine must get right at least once.
#pragma once

#include <array>
#include <string_view>

namespace baton::simulation {

inline constexpr std::array<std::string_view, 8> definitions{
    R"(
workflow_id: echo_test
nodes:
  start: {type: start, next: [echo_handler]}
  echo_handler: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: [end]}
  end: {type: end}
)",
    R"(
workflow_id: diamond
nodes:
  start: {type: start, next: [a, b, c]}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: join}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: join}
  c: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: [join, end]}
  join: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: chain
nodes:
  start: {type: start, next: a}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: b}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: c}
  c: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: any
nodes:
  start: {type: start, next: [a, b]}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600}
  first: {type: task, handler: work, queue: q1, timeout_seconds: 3600, depends_on: {any_of: [a, b]}, next: end}
  end: {type: end}
)",
    R"(
workflow_id: retries
nodes:
  start: {type: start, next: a}
  a:
    type: task
    handler: flaky
    queue: q1
    timeout_seconds: 3600
    retry: {max_attempts: 4, backoff: exponential, initial_delay_seconds: 2, max_delay_seconds: 5}
    next: b
  b: {type: task, handler: flaky, queue: q2, timeout_seconds: 3600, retry: {max_attempts: 3, initial_delay_seconds: 0}, next: end}
  end: {type: end}
)",
    R"(
workflow_id: finish_running
on_failure: finish_running
nodes:
  start: {type: start, next: [a, b, c]}
  a: {type: task, handler: flaky, queue: q1, timeout_seconds: 20, next: d}
  b: {type: task, handler: flaky, queue: q2, timeout_seconds: 20, retry: {max_attempts: 2, initial_delay_seconds: 1}, next: d}
  c: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: d}
  d: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: builtin
nodes:
  start: {type: start, next: a}
  a: {type: task, handler: echo, timeout_seconds: 3600, next: b}
  b: {type: task, handler: echo, timeout_seconds: 3600, retry: {max_attempts: 2, initial_delay_seconds: 1}, next: end}
  end: {type: end}
)",
    R"(
workflow_id: poison
nodes:
  start: {type: start, next: [a, b]}
  a: {type: task, handler: poison, queue: q1, timeout_seconds: 3600, next: end}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: c}
  c: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
};

}  // namespace baton::simulation
