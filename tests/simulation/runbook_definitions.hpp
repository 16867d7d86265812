// The runbooks that the simulated batches follow: each shape that the machine must get right at least once.
// Of each there are two texts, which are published in turn, so that open batches have to change over.
//
// What a function does with its job: Work succeeds, Flaky often fails, Doomed always does, Wait has to be
// asked again, Never is never done, Poison kills the worker.
#pragma once

#include <array>
#include <string_view>

namespace baton::simulation {

using RunbookTexts = std::array<std::string_view, 2>;

inline constexpr std::array<RunbookTexts, 8> runbook_texts{
    // Everything at once, per member.
    RunbookTexts{R"(
name: moves
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
retry: {max_retries: 2, interval: 1m}
init:
  - {name: make-group, worker_id: pool-1, function: Flaky, params: {Name: "wave-{{_batch_id}}"}, on_failure: drop-group}
  - {name: wait-group, worker_id: pool-2, function: Wait, poll: {interval: 5m, timeout: 2h}, retry: {max_retries: 5, interval: 30s}}
phases:
  - name: prepare
    offset: T-1d
    steps:
      - {name: create, worker_id: pool-1, function: "{{Kind}}", params: {Key: "{{Key}}", Aliases: "{{Aliases}}"},
         output_params: {TargetId: id}, on_failure: undo}
      - {name: check, worker_id: pool-2, function: Flaky, params: {Key: "{{Key}}", Target: "{{TargetId}}"}, timeout: 10m}
  - name: copy
    offset: T-2h
    steps:
      - {name: start, worker_id: pool-1, function: Wait, params: {Key: "{{Key}}", Target: "{{TargetId}}"},
         poll: {interval: 5m, timeout: 40m}, on_failure: undo, retry: {max_retries: 0}}
  - name: cut-over
    offset: T-0
    steps:
      - {name: finish, worker_id: pool-1, function: Work, params: {Key: "{{Key}}", Nested: {Target: "{{TargetId}}"}}}
      - {name: tell, worker_id: pool-2, function: Flaky, params: {Text: "{{Key}} is {{TargetId}}"}, on_failure: untell}
rollbacks:
  undo:
    - {name: remove, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}
    - {name: forget, worker_id: pool-2, function: Wait, params: {Key: "{{Key}}"}}
  untell: [{name: excuse, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}]
  drop-group: [{name: drop, worker_id: pool-1, function: Flaky, params: {Name: "wave-{{_batch_id}}"}}]
on_member_removed:
  - {name: disable, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}
  - {name: archive, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}
)",
                 R"(
name: moves
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
retry: {max_retries: 1, interval: 2m}
init:
  - {name: make-group, worker_id: pool-1, function: Work, params: {Name: "wave-{{_batch_id}}"}, on_failure: drop-group}
phases:
  - name: announce
    offset: T-6h
    steps: [{name: mail, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}]
  - name: prepare
    offset: T-1d
    steps:
      - {name: create, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}, output_params: {TargetId: id}}
      - {name: check, worker_id: pool-2, function: Flaky, params: {Target: "{{TargetId}}"}, on_failure: undo}
      - {name: check-again, worker_id: pool-2, function: Work, params: {Target: "{{TargetId}}"}}
  - name: cut-over
    offset: T-0
    steps:
      - {name: finish, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}", Target: "{{TargetId}}"}, on_failure: undo}
  - name: look-back
    offset: T+2h
    steps: [{name: ask, worker_id: pool-2, function: Wait, params: {Key: "{{Key}}"}, poll: {interval: 10m, timeout: 3h}}]
rollbacks:
  undo: [{name: remove, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}]
  drop-group: [{name: drop, worker_id: pool-1, function: Work}]
on_member_removed: [{name: disable, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
)"},
    // All members together, step by step.
    RunbookTexts{R"(
name: waves
progression: lockstep
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
retry: {max_retries: 3, interval: 1m, backoff: exponential, max_interval: 5m}
phases:
  - name: stage
    offset: T-3h
    steps:
      - {name: one, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}, output_params: {TargetId: id}}
      - {name: two, worker_id: pool-2, function: Work, params: {Target: "{{TargetId}}"}}
      - {name: three, worker_id: pool-1, function: Flaky, params: {Target: "{{TargetId}}"}, on_failure: undo}
  - name: switch
    offset: T-0
    steps:
      - {name: pull, worker_id: pool-1, function: "{{Kind}}", params: {Key: "{{Key}}"}, retry: {max_retries: 0}, on_failure: undo}
      - {name: watch, worker_id: pool-2, function: Wait, params: {Key: "{{Key}}"}, poll: {interval: 5m, timeout: 2h}}
rollbacks:
  undo:
    - {name: back-one, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
    - {name: back-two, worker_id: pool-2, function: Doomed, params: {Key: "{{Key}}"}}
on_member_removed: [{name: disable, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}]
)",
                 R"(
name: waves
progression: lockstep
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
retry: {max_retries: 2, interval: 1m}
init:
  - {name: open, worker_id: pool-1, function: Work}
phases:
  - name: stage
    offset: T-3h
    steps:
      - {name: one, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}, output_params: {TargetId: id}}
      - {name: two, worker_id: pool-2, function: Flaky, params: {Target: "{{TargetId}}"}}
  - name: switch
    offset: T-0
    steps: [{name: pull, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}]
  - name: close
    offset: T+1h
    steps: [{name: shut, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
)"},
    // As small as can be; some members lack the variable.
    RunbookTexts{R"(
name: plain
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
phases:
  - name: only
    offset: T-0
    steps: [{name: do, worker_id: pool-1, function: Work, params: {Maybe: "{{Maybe}}"}}]
)",
                 R"(
name: plain
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
phases:
  - name: only
    offset: T-1h
    steps:
      - {name: do, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
      - {name: do-more, worker_id: pool-1, function: Flaky, params: {Maybe: "{{Maybe}}"}}
)"},
    // Workers die of it, polls never end, and what is rolled back fails too.
    RunbookTexts{R"(
name: hopeless
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
phases:
  - name: first
    offset: T-2h
    steps:
      - {name: risk, worker_id: pool-2, function: "{{Kind}}", params: {Key: "{{Key}}"}, timeout: 5m, on_failure: undo,
         retry: {max_retries: 1, interval: 1m}}
      - {name: linger, worker_id: pool-1, function: Never, params: {Key: "{{Key}}"}, poll: {interval: 10m, timeout: 35m}, on_failure: undo,
         retry: {max_retries: 3, interval: 1m}}
      - {name: after, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
  - name: second
    offset: T-1h
    steps: [{name: rest, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
rollbacks:
  undo:
    - {name: back-one, worker_id: pool-1, function: Doomed, params: {Key: "{{Key}}"}, retry: {max_retries: 1, interval: 1m}}
    - {name: back-two, worker_id: pool-2, function: Never, params: {Key: "{{Key}}"}}
    - {name: back-three, worker_id: pool-1, function: Work, params: {Unknown: "{{Maybe}}"}}
)",
                 R"(
name: hopeless
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
init: [{name: gate, worker_id: pool-1, function: Flaky, on_failure: close}]
phases:
  - name: first
    offset: T-2h
    steps: [{name: risk, worker_id: pool-2, function: Poison, params: {Key: "{{Key}}"}, timeout: 5m}]
  - name: second
    offset: T-1h
    steps: [{name: rest, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
rollbacks:
  close: [{name: shut, worker_id: pool-1, function: Flaky}]
)"},
    // Init takes long enough for phases to become due.
    RunbookTexts{R"(
name: slow-start
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
init:
  - {name: build, worker_id: pool-1, function: Wait, poll: {interval: 30m, timeout: 1d}}
  - {name: test, worker_id: pool-2, function: Flaky, retry: {max_retries: 9, interval: 10m}}
  - {name: open, worker_id: pool-1, function: Work}
phases:
  - name: early
    offset: T-8h
    steps:
      - {name: a, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
      - {name: b, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}
  - name: late
    offset: T-0
    steps: [{name: c, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
)",
                 R"(
name: slow-start
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
init:
  - {name: build, worker_id: pool-1, function: Wait, poll: {interval: 20m, timeout: 1d}}
phases:
  - name: early
    offset: T-8h
    steps: [{name: a, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
  - name: late
    offset: T-0
    steps:
      - {name: c, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}, retry: {max_retries: 4, interval: 5m}}
      - {name: d, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}
)"},
    // Lockstep behind init steps, with a poll in the middle.
    RunbookTexts{R"(
name: parade
progression: lockstep
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
init: [{name: rope, worker_id: pool-2, function: Flaky, retry: {max_retries: 6, interval: 5m}, on_failure: unrope}]
phases:
  - name: march
    offset: T-4h
    steps:
      - {name: step-out, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
      - {name: wheel, worker_id: pool-2, function: Wait, params: {Key: "{{Key}}"}, poll: {interval: 5m, timeout: 6h}}
      - {name: halt, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
  - name: salute
    offset: T-0
    steps: [{name: wave, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
rollbacks:
  unrope: [{name: cut, worker_id: pool-1, function: Work}]
on_member_removed:
  - {name: fall-out, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}
  - {name: fold, worker_id: pool-1, function: Doomed, params: {Key: "{{Key}}"}}
)",
                 R"(
name: parade
progression: lockstep
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
init: [{name: rope, worker_id: pool-2, function: Work}]
phases:
  - name: march
    offset: T-4h
    steps:
      - {name: step-out, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}
      - {name: halt, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}, retry: {max_retries: 5, interval: 1m}}
  - name: salute
    offset: T-30m
    steps: [{name: wave, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
)"},
    // What waits for people: gates, a requirement, a threshold.
    RunbookTexts{R"(
name: guarded
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
max_failed_percent: 40
min_failed: 2
phases:
  - name: prepare
    offset: T-6h
    steps:
      - {name: a, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}
      - {name: b, worker_id: pool-2, function: Flaky, params: {Key: "{{Key}}"}, retry: {max_retries: 2, interval: 1m}}
  - name: copy
    offset: T-5h
    requires: {phase: prepare, succeeded_percent: 60}
    steps: [{name: c, worker_id: pool-1, function: Wait, params: {Key: "{{Key}}"}, poll: {interval: 20m, timeout: 6h}}]
  - name: cut-over
    offset: T-0
    gate: {type: approval, timeout: 3h, on_timeout: go}
    steps: [{name: d, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}]
)",
                 R"(
name: guarded
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
late_after: 3h
max_failed_percent: 40
min_failed: 2
phases:
  - name: prepare
    offset: T-6h
    steps: [{name: a, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}]
  - name: cut-over
    offset: T-0
    gate: approval
    requires: {phase: prepare}
    steps:
      - {name: d, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}
      - {name: e, worker_id: pool-1, function: "{{Kind}}", params: {Key: "{{Key}}"}, retry: {max_retries: 1, interval: 1m}}
)"},
    // Two phases that run at the same time, and long chains of steps.
    RunbookTexts{R"(
name: braid
phase_overlap: allow
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
retry: {max_retries: 5, interval: 30s}
phases:
  - name: left
    offset: T-1h
    steps:
      - {name: l1, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}, output_params: {TargetId: id}}
      - {name: l2, worker_id: pool-2, function: Work, params: {Target: "{{TargetId}}"}}
      - {name: l3, worker_id: pool-1, function: Work, params: {Target: "{{TargetId}}"}}
  - name: right
    offset: T-59m
    steps:
      - {name: r1, worker_id: pool-2, function: Flaky, params: {Key: "{{Key}}"}}
      - {name: r2, worker_id: pool-1, function: Doomed, params: {Key: "{{Key}}"}, retry: {max_retries: 1, interval: 5m}, on_failure: undo}
      - {name: r3, worker_id: pool-2, function: Work, params: {Key: "{{Key}}"}}
rollbacks:
  undo: [{name: back, worker_id: pool-1, function: Flaky, params: {Key: "{{Key}}"}}]
on_member_removed: [{name: bye, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}}]
)",
                 R"(
name: braid
data_source: {type: csv, connection: WAVES, primary_key: Key, batch_time_column: When}
retry: {max_retries: 5, interval: 30s}
phases:
  - name: left
    offset: T-1h
    steps: [{name: l1, worker_id: pool-1, function: Work, params: {Key: "{{Key}}"}, output_params: {TargetId: id}}]
  - name: right
    offset: T-50m
    steps:
      - {name: r1, worker_id: pool-2, function: Flaky, params: {Key: "{{Key}}"}}
      - {name: r2, worker_id: pool-2, function: Work, params: {Target: "{{TargetId}}"}}
)"},
};

}  // namespace baton::simulation
