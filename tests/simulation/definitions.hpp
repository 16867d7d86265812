// The workflows that the simulated clients run: each shape that the engine must get right at least once.
#pragma once

#include <array>
#include <string_view>

namespace baton::simulation {

inline constexpr std::array<std::string_view, 17> definitions{
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
    R"(
workflow_id: branches
nodes:
  start: {type: start, next: [a, side]}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: check}
  check:
    type: conditional
    condition: "{{ inputs.n % 2 == 0 }}"
    branches: {true: [b, c], false: d}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: join}
  c: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: which}
  which:
    type: conditional
    condition_field: inputs.n
    branches:
      - {name: large, condition: ">= 6", next: e}
      - {name: other, default: true, next: [join, f]}
  d: {type: task, handler: work, queue: q2, timeout_seconds: 3600, params: {was: "{{ nodes.a.output.attempt }}"}, next: join}
  e: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: join}
  f: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  side: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: join}
  join: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: fan
nodes:
  start: {type: start, next: split}
  split:
    type: fan_out
    source: "{{ inputs.items }}"
    task: {handler: work, queue: q1, timeout_seconds: 3600, params: {item: "{{ item }}", n: "{{ index }}", who: "{{ inputs.who }}"}}
    next: merge
  merge: {type: fan_in, next: last}
  last: {type: task, handler: work, queue: q2, timeout_seconds: 3600, params: {count: "{{ nodes.merge.output.results | length }}"}, next: end}
  end: {type: end}
)",
    R"(
workflow_id: fan_limited
nodes:
  start: {type: start, next: [split, other]}
  split:
    type: fan_out
    source: "{{ inputs.items }}"
    max_parallel: 2
    on_item_failure: continue
    task: {handler: flaky, queue: q2, timeout_seconds: 3600, params: {item: "{{ item }}"}}
    next: merge
  other: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: end}
  merge: {type: fan_in, next: end}
  end: {type: end}
)",
    R"(
workflow_id: fan_fails
on_failure: finish_running
nodes:
  start: {type: start, next: [split, side]}
  split:
    type: fan_out
    source: "{{ inputs.items }}"
    task: {handler: flaky, queue: q1, timeout_seconds: 3600, retry: {max_attempts: 2, initial_delay_seconds: 1}, params: {item: "{{ item }}"}}
    next: merge
  side: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  merge: {type: fan_in, aggregation: last, next: end}
  end: {type: end}
)",
    R"(
workflow_id: fan_fails_fast
nodes:
  start: {type: start, next: [split, side]}
  split:
    type: fan_out
    source: "{{ inputs.items }}"
    max_parallel: 4
    task: {handler: flaky, queue: q2, timeout_seconds: 3600, params: {item: "{{ item }}"}}
    next: end
  side: {type: task, handler: flaky, queue: q1, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: waits
nodes:
  start: {type: start, next: [nap, a]}
  nap: {type: wait, duration: "{{ inputs.n }}s", next: b}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: b}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: approvals
nodes:
  start: {type: start, next: a}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: [ask, maybe]}
  ask: {type: approval, message: "go on with {{ inputs.who }}?", timeout_seconds: 40, on_timeout: approve, next: b}
  maybe: {type: approval, timeout_seconds: 30, on_reject: continue, next: check}
  check: {type: conditional, condition: "{{ nodes.maybe.output.approved }}", branches: {true: b, false: end}}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  end: {type: end}
)",
    R"(
workflow_id: saga
nodes:
  start: {type: start, next: book}
  book: {type: task, handler: flaky, queue: q1, timeout_seconds: 3600, on_failure: continue, next: check}
  check: {type: conditional, condition: "{{ nodes.book.status == 'COMPLETED' }}", branches: {true: pay, false: undo}}
  pay: {type: task, handler: flaky, queue: q2, timeout_seconds: 3600, on_failure: continue, next: undo}
  undo: {type: task, handler: work, queue: q1, timeout_seconds: 3600, params: {paid: "{{ nodes.pay.status }}", why: "{{ nodes.pay.error | default('none') }}"}, next: end}
  end: {type: end}
)",
    R"(
workflow_id: undefined
nodes:
  start: {type: start, next: [a, b]}
  a: {type: task, handler: work, queue: q1, timeout_seconds: 3600, next: c}
  b: {type: task, handler: work, queue: q2, timeout_seconds: 3600, next: end}
  c: {type: task, handler: work, queue: q1, timeout_seconds: 3600, params: {x: "{{ nodes.a.output.nothing }}"}, next: end}
  end: {type: end}
)",
};

}  // namespace baton::simulation
