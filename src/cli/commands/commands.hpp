// The commands of the one binary. Each add_… declares its command on the parser and, when that command is the
// one given, leaves in `chosen` what is to be done; app.cpp does it after the whole line has been understood.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/commands/parser.hpp"

namespace baton::cli {

// What the process answers to its shell.
enum Exit : int {
  exit_ok = 0,
  exit_failed = 1,     // the work failed, or the server refused
  exit_usage = 2,      // wrong arguments, or a definition with errors
  exit_fenced = 3,     // serve: another server took the store over
  exit_corrupt = 5,    // serve: what is stored does not fit together
  exit_with_failures = 5,  // batch watch: the batch has completed, and members of it failed
  exit_no_worker = 4,  // run: a task waits on a queue that nobody serves
  exit_unreachable = 6,  // the server could not be reached, or could not serve: nothing is known of the work
  exit_interrupted = 130,
};

using Action = std::function<int()>;

void add_serve(Parser app, Action& chosen);
void add_run(Parser app, Action& chosen);
void add_validate(Parser app, Action& chosen);
void add_workflow(Parser app, Action& chosen);
void add_job(Parser app, Action& chosen);
void add_job_operations(Parser job, Action& chosen);  // those of `baton job` that change or explain one
void add_runbook(Parser app, Action& chosen);
void add_batch(Parser app, Action& chosen);
void add_member(Parser app, Action& chosen);
void add_step(Parser app, Action& chosen);
void add_call(Parser app, Action& chosen);
void add_bus(Parser app, Action& chosen);
void add_check(Parser app, Action& chosen);
void add_needs_you(Parser app, Action& chosen);
void add_lists(Parser app, Action& chosen);  // workers, approvals, dead letters
void add_worker(Parser app, Action& chosen);
void add_token(Parser app, Action& chosen);
void add_bench(Parser app, Action& chosen);
void add_bench_fan_out(Parser bench, Action& chosen);
void add_bench_polls(Parser bench, Action& chosen);
void add_bench_runbook(Parser bench, Action& chosen);
void add_bench_calls(Parser bench, Action& chosen);

// The whole program; arguments without the program's name.
[[nodiscard]] int run(std::vector<std::string> arguments);

}  // namespace baton::cli
