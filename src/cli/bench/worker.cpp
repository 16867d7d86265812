#include "cli/bench/worker.hpp"

#include <fmt/format.h>

#include <vector>

#include "cli/bench/wire.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli::bench {
namespace {

using namespace std::chrono_literals;

// The end of the JSON value that begins at `from`.
std::size_t end_of_value(std::string_view json, std::size_t from) {
  std::size_t depth = 0;
  for (std::size_t i = from; i < json.size();) {
    const char c = json[i];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return i;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    i = c == '"' ? end_of_string(json, i) : i + 1;
    if (depth == 0 && (c == '"' || c == '}' || c == ']')) return i;
  }
  return json.size();
}

// Goes through the tasks of a poll's answer in the order in which the server writes their fields. A client
// for the public would parse.
class Tasks {
 public:
  explicit Tasks(std::string_view json) : json_(json) {}
  // The value of the next field of that name; empty: there is none.
  std::string_view next(std::string_view name) {
    const auto at = json_.find(name, at_);
    if (at == std::string_view::npos) return {};
    const std::size_t from = at + name.size();
    at_ = end_of_value(json_, from);
    return json_.substr(from, at_ - from);
  }

 private:
  std::string_view json_;
  std::size_t at_ = 0;
};

// Empty: there was no task.
std::string results_of(std::string_view polled, const std::string& worker) {
  std::string body;
  Tasks tasks(polled);
  // A queue has either tasks of workflows or jobs of runbooks here.
  const bool runbook = polled.starts_with(R"({"jobs":[{"jobId":)");
  while (true) {
    const auto task_id = tasks.next(runbook ? R"("jobId":)" : R"("task_id":)");
    if (task_id.empty()) break;
    const auto params = tasks.next(runbook ? R"("parameters":)" : R"("params":)");
    const auto lease = tasks.next(R"("lease":)");
    body += body.empty() ? R"({"results":[)" : ",";
    fmt::format_to(std::back_inserter(body),
                   R"({{"task_id":{},"lease":{},"status":"completed","output":{},"worker_id":"{}"}})",
                   task_id, lease, params, worker);
  }
  if (!body.empty()) body += "]}";
  return body;
}

}  // namespace

Error run_worker(const WorkerOptions& options) {
  watch_signals();
  Wire wire(options.server);
  const std::string poll =
      post(fmt::format("/api/v1/workers/{}/jobs:poll", options.queue),
           fmt::format(R"({{"max":{},"wait_ms":30000,"worker":"{}"}})", options.max, options.name));
  std::vector<bool> polling(options.polls, true);
  for (std::size_t i = 0; i < options.polls; ++i) {
    const auto connection = wire.open();
    if (!connection) return connection.error();
    if (const auto sent = wire.send(*connection, poll); !sent) return sent.error();
  }
  const auto answer = [&](std::size_t connection, int status, std::string_view body) -> Result<> {
    if (status != 200)
      return fail(Code::unavailable, fmt::format("the server answered {}: {}", status, body));
    const std::string results = polling[connection] ? results_of(body, options.name) : "";
    polling[connection] = results.empty();
    if (results.empty()) return wire.send(connection, poll);
    return wire.send(connection, post("/api/v1/callbacks/task-results", results));
  };
  while (true)
    if (const auto waited = wire.wait(10s, answer); !waited) return waited.error();
}

}  // namespace baton::cli::bench
