// `baton run FILE`: the real engine on a store that lives as long as the command, with the built-in handlers
// and no port.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <random>
#include <set>

#include "base/ids.hpp"
#include "base/json_write.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/input.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/service.hpp"
#include "ports/ask.hpp"
#include "server/definition_files.hpp"
#include "server/partition.hpp"
#include "server/system_clock.hpp"
#include "store/memory/reads.hpp"
#include "store/memory/store.hpp"
#include "worker/builtin.hpp"

namespace baton::cli {
namespace {

using namespace std::chrono_literals;
using workflow::Job;
using workflow::JobId;

constexpr auto look_every = 20ms;  // only the progress lines wait for this; the result is told at once
constexpr std::size_t events_per_look = 500;
constexpr std::size_t nodes_max = 10'000;

struct Options {
  std::string file;
  std::string input = "{}";
  bool as_json = false;
  bool quiet = false;
};

std::atomic<int> interrupted{0};

// A second signal ends the process on the spot.
void on_signal(int) {
  if (interrupted.exchange(1) != 0) _exit(exit_interrupted);
}

void watch_signals() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// One job from submission to its end. Members are destroyed in the reverse order: the worker first, the
// database last.
class Session {
 public:
  explicit Session(const Options& options) : options_(options), progress_(stderr) {}

  Result<> open();
  Result<> submit(const server::DefinitionFile& file, Json input);
  Result<int> follow();

 private:
  Result<> show_new_events();
  Result<std::optional<std::string>> stuck_node();
  Result<int> finish(const Reply& reply);
  int interrupt();

  store::MemoryDatabase database_;
  store::MemoryReads reads_{database_};
  const Options& options_;
  Progress progress_;
  const workflow::Tenant tenant_{"default"};
  server::SystemClock clock_;
  metrics::Registry metrics_;
  std::unique_ptr<engine::Service> engine_;
  std::unique_ptr<worker::Builtin> builtin_;
  JobId job_id_;
  std::int64_t last_event_ = 0;
  bool check_queues_ = false;
};

Result<> Session::open() {
  engine_ = std::make_unique<engine::Service>(std::make_unique<store::MemoryStore>(database_), clock_,
                                              engine::make_kinds(), engine::Options{.partition = server::only_partition},
                                              metrics_);
  TRY(engine_->start());
  builtin_ = std::make_unique<worker::Builtin>(*engine_, clock_);
  builtin_->start();
  return {};
}

Result<> Session::submit(const server::DefinitionFile& file, Json input) {
  TRY_ASSIGN(const auto published, server::publish(*engine_, tenant_, {file}));
  std::random_device random;
  const auto bits = [&] { return (std::uint64_t{random()} << 32) | random(); };
  job_id_ = JobId{uuid7(clock_.now(), bits(), bits())};
  const Reply reply = ask(*engine_, SubmitJob{.job_id = job_id_,
                                              .tenant = tenant_,
                                              .workflow_id = published.front().workflow_id,
                                              .version = published.front().version,
                                              .input_data = std::move(input),
                                              .idempotency_key = {},
                                              .request_hash = {},
                                              .traceparent = {},
                                              .wait_until = {}})
                          .get();
  if (const auto* refused = std::get_if<Refused>(&reply)) {
    std::string message = refused->message;
    for (const std::string& detail : refused->details) message += "\n  " + detail;
    return fail(refused->refusal == Refusal::invalid_input ? Code::invalid : Code::unavailable,
                std::move(message));
  }
  return {};
}

Result<int> Session::follow() {
  const auto wait = [this] {
    return ask(*engine_, AwaitJob{.tenant = tenant_, .job_id = job_id_, .wait_until = clock_.now() + 1h});
  };
  auto answer = wait();
  while (true) {
    const bool answered = answer.wait_for(look_every) == std::future_status::ready;
    if (interrupted != 0) return interrupt();
    TRY(show_new_events());
    if (answered) {
      const Reply reply = answer.get();
      const auto* job = std::get_if<JobReply>(&reply);
      if (job == nullptr || is_terminal(job->job.status)) return finish(reply);
      answer = wait();
    }
    TRY_ASSIGN(const auto stuck, stuck_node());
    if (stuck) {
      complain(*stuck);
      return exit_no_worker;
    }
  }
}

Result<> Session::show_new_events() {
  while (true) {
    TRY_ASSIGN(const auto events, reads_.timeline(job_id_, last_event_, events_per_look));
    for (const workflow::Event& event : events) {
      last_event_ = event.event_id;
      check_queues_ = check_queues_ || event.event_type == workflow::EventType::node_dispatched;
      if (options_.quiet || options_.as_json) continue;
      progress_.show({.type = std::string{name(event.event_type)},
                      .node_id = event.node_id.value_or(""),
                      .data = event.event_data ? event.event_data->text : "",
                      .at = event.created_at});
    }
    if (events.size() < events_per_look) return {};
  }
}

// Nobody but the built-in handlers will ever ask for work here, so a task elsewhere would wait for ever.
Result<std::optional<std::string>> Session::stuck_node() {
  if (!std::exchange(check_queues_, false)) return std::nullopt;
  TRY_ASSIGN(const auto nodes, reads_.nodes(job_id_, nodes_max));
  for (workflow::NodeState node : nodes) {
    if (node.items_created > node.items_done) {  // a fan-out's children all go to one queue
      TRY_ASSIGN(auto items, reads_.items(job_id_, node.node_id, node.items_done - 1, 1));
      if (!items.empty()) node = std::move(items.front());
    }
    if (node.status != workflow::NodeStatus::dispatched || node.queue.value_or("builtin") == "builtin")
      continue;
    if (node.queue == workflow::approval_queue)
      return fmt::format(
          "node '{}' waits for a person's approval. Use `baton serve`, and `baton job approve`.",
          node.node_id);
    return fmt::format(
        "node '{}' waits for a worker on queue '{}'; `baton run` has only the built-in handlers (echo, "
        "sleep, fail, "
        "flaky). Use `baton serve` and a worker for it.",
        node.node_id, *node.queue);
  }
  return std::nullopt;
}

Result<int> Session::finish(const Reply& reply) {
  TRY(show_new_events());
  if (const auto* refused = std::get_if<Refused>(&reply)) return fail(Code::unavailable, refused->message);
  const Job& job = std::get<JobReply>(reply).job;
  const bool completed = job.status == workflow::JobStatus::completed;
  if (options_.as_json)
    print_json(json_object("job_id", job.job_id.value, "workflow_id", job.workflow_id, "status",
                           name(job.status), "result_data", job.result_data, "error", job.error)
                   .text);
  else if (completed)
    print_json(job.result_data ? job.result_data->text : "null");
  else
    complain(fmt::format("the job has {}{}",
                         job.status == workflow::JobStatus::failed ? "failed" : "been cancelled",
                         job.error ? ": " + *job.error : ""));
  return completed ? exit_ok : exit_failed;
}

int Session::interrupt() {
  complain("interrupted");
  return exit_interrupted;
}

// Wrong input is the caller's mistake; everything else is a failure of ours.
int give_up(const Error& error) {
  complain(error.message);
  return error.code == Code::invalid ? exit_usage : exit_failed;
}

int run_file(const Options& options) {
  const auto file = server::read_definition(options.file);
  fmt::print(stderr, "{}", server::render({file}));
  if (!file.definition) return exit_usage;
  auto input = read_input(options.input);
  if (!input) return give_up(input.error());
  watch_signals();
  Session session(options);
  if (const auto opened = session.open(); !opened) return give_up(opened.error());
  if (const auto submitted = session.submit(file, *std::move(input)); !submitted)
    return give_up(submitted.error());
  const auto outcome = session.follow();
  return outcome ? *outcome : give_up(outcome.error());
}

}  // namespace

void add_run(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser command = app.add_subcommand("run", "Run a workflow here and now, without a server");
  command.add_option("FILE", options->file, "the workflow's definition").required();
  command.add_option("-i,--input", options->input, input_help);
  command.add_flag("--json", options->as_json, "print the whole outcome as one JSON object, and no progress");
  command.add_flag("-q,--quiet", options->quiet, "no progress lines");
  command.footer(
      "Examples:\n"
      "  baton run examples/workflows/echo_test.yaml --input '{\"message\":\"hello\"}'\n"
      "  baton run flow.yaml --input @input.json --json\n"
      "Progress goes to standard error, the result to standard output.\n"
      "Exit codes: 0 completed, 1 failed, 2 wrong usage, definition or input,\n"
      "4 a task needs a worker that is not here, 130 interrupted.");
  command.callback([options, &chosen] { chosen = [options] { return run_file(*options); }; });
}

}  // namespace baton::cli
