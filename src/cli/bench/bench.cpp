// `baton bench echo`: the speed of the whole, over HTTP and on disk, beside the most that the store itself
// can do.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <fstream>
#include <memory>

#include "cli/bench/figures.hpp"
#include "cli/bench/process.hpp"
#include "cli/bench/worker.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/output.hpp"
#include "http/wire/client.hpp"
#include "server/config.hpp"

namespace baton::cli {
namespace {

using namespace bench;
using namespace std::chrono_literals;

constexpr auto warm_up = 500ms;
constexpr auto ceiling_time = 2s;
constexpr const char* workflow_id = "bench_echo";

// A chain of so many tasks, each of which echoes what the job was given.
std::string definition_of(std::size_t tasks) {
  std::string text = "workflow_id: bench_echo\nnodes:\n  start: {type: start, next: [echo_1]}\n";
  for (std::size_t i = 1; i <= tasks; ++i)
    text += fmt::format("  echo_{}: {{type: task, handler: echo, queue: bench, next: [{}]}}\n", i,
                        i == tasks ? "end" : fmt::format("echo_{}", i + 1));
  return text + "  end: {type: end}\n";
}

struct Options {
  std::string store;
  std::vector<std::size_t> clients{1, 8, 64, 256};
  double seconds = 5;
  std::uint64_t jobs = 0;
  std::size_t workers = 1;
  std::size_t tasks = 1;
  double rate = -1;  // half of the best closed loop
  std::uint64_t soak = 0;
  bool as_json = false;
};

// The value of a metric without labels in Prometheus' text. One that is not there is an error: as zero it would be
// reported as a figure.
Result<double> metric(std::string_view text, const std::string& name) {
  const auto at = text.find('\n' + name + ' ');
  if (at == std::string_view::npos) return fail(Code::not_found, fmt::format("the server has no metric {}", name));
  double value = 0;
  const auto read = std::from_chars(text.data() + at + name.size() + 2, text.data() + text.size(), value);
  if (read.ec != std::errc{}) return fail(Code::invalid, fmt::format("the metric {} is no number", name));
  return value;
}

class Echo {
 public:
  explicit Echo(const Options& options) : options_(options) {}
  Result<> run();

 private:
  Result<> start();
  Result<> measure(Level level, std::uint64_t jobs, std::function<void(std::uint64_t)> on_done = {});
  Result<> levels();
  Result<> soak();
  Result<> ceilings();
  Result<Usage> usage();
  void say(const std::string& text) const {
    if (!options_.as_json) fmt::print("{}", text), std::fflush(stdout);
  }

  const Options& options_;
  TemporaryDirectory directory_;
  std::string store_;
  Instance server_;
  std::vector<Instance> workers_;
  std::string url_;
  std::unique_ptr<http::Client> client_;
  Findings findings_;
};

Result<> Echo::start() {
  TRY(directory_.make());
  const auto definitions = directory_.path() / "definitions";
  std::filesystem::create_directory(definitions);
  std::ofstream(definitions / "bench_echo.yaml") << definition_of(options_.tasks);
  store_ = options_.store.empty() ? server::sqlite_url(directory_.path()) : options_.store;
  if (options_.store.empty() && directory_.is_in_memory())
    complain(fmt::format(
        "{} is in memory: nothing here is durable, and the figures are too good. Set TMPDIR or --store.",
        directory_.path().string()));
  TRY(server_.start({"serve", "--store", store_, "--listen", "127.0.0.1:0", "--definitions",
                     definitions.string(), "--log-level", "warn"}));
  TRY_ASSIGN(url_, server_.read_line());
  client_ = std::make_unique<http::Client>(url_);
  workers_.reserve(options_.workers);
  for (std::size_t i = 0; i < options_.workers; ++i)
    TRY(workers_.emplace_back().start(
        {"bench", "worker", "--server", url_, "--name", fmt::format("bench-{}", i)}));
  findings_.store = options_.store.empty() ? "sqlite" : server::without_password(store_);
  findings_.workers = options_.workers;
  return {};
}

Result<Usage> Echo::usage() {
  TRY_ASSIGN(const auto answer, client_->request("GET", "/metrics"));
  Usage now{.server_cpu = server_.cpu_seconds()};
  TRY_ASSIGN(now.commits, metric(answer.body, "baton_store_commit_seconds_count"));
  TRY_ASSIGN(now.commit_seconds, metric(answer.body, "baton_store_commit_seconds_sum"));
  for (const Instance& worker : workers_) now.worker_cpu += worker.cpu_seconds();
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  now.client_cpu = seconds(own.ru_utime) + seconds(own.ru_stime);
  return now;
}

Result<> Echo::measure(Level level, std::uint64_t jobs, std::function<void(std::uint64_t)> on_done) {
  Usage before;
  const auto note_begin = [&]() -> Result<> {
    TRY_ASSIGN(before, usage());
    return {};
  };
  const auto note_end = [&]() -> Result<> {
    TRY_ASSIGN(const Usage after, usage());
    level.usage = {after.commits - before.commits, after.commit_seconds - before.commit_seconds,
                   after.server_cpu - before.server_cpu, after.worker_cpu - before.worker_cpu,
                   after.client_cpu - before.client_cpu};
    return {};
  };
  const std::chrono::milliseconds duration{static_cast<std::int64_t>(options_.seconds * 1000)};
  TRY_ASSIGN(level.measured, run_load(url_, workflow_id,
                                      {.clients = level.clients,
                                       .rate = level.rate,
                                       .warm_up = warm_up,
                                       .duration = duration,
                                       .jobs = jobs,
                                       .on_begin = note_begin,
                                       .on_end = note_end,
                                       .on_done = std::move(on_done)}));
  say(line(level));
  findings_.levels.push_back(std::move(level));
  return {};
}

Result<> Echo::levels() {
  double best = 0;
  for (const std::size_t clients : options_.clients) {
    TRY(measure({.clients = clients}, options_.jobs));
    best = std::max(best, findings_.levels.back().measured.rate());
  }
  const double rate = options_.rate < 0 ? std::max(1.0, std::round(best / 2)) : options_.rate;
  if (rate > 0) TRY(measure({.rate = rate}, options_.jobs));
  return {};
}

Result<> Echo::soak() {
  const std::uint64_t tenth = std::max<std::uint64_t>(options_.soak / 10, 1);
  TRY(measure({.clients = 256}, options_.soak, [&](std::uint64_t done) {
    if (done % tenth != 0) return;
    findings_.resident.push_back({done, static_cast<double>(server_.resident_bytes()) / (1 << 20)});
  }));
  say(soak_lines(findings_));
  return {};
}

// The server has gone, and its database is as large as it has made it. A batch is so large that a job has its
// share of as many transactions as the server has given it.
Result<> Echo::ceilings() {
  for (Level& level : findings_.levels) {
    if (level.rate > 0) continue;
    const auto commits_per_job = static_cast<double>(options_.tasks + 1);
    const auto batch = static_cast<std::size_t>(std::lround(commits_per_job * level.per_commit()));
    TRY_ASSIGN(level.ceiling, measure_ceiling(store_, definition_of(options_.tasks), batch, ceiling_time));
  }
  say(ceiling_lines(findings_));
  return {};
}

Result<> Echo::run() {
  TRY(start());
  say(fmt::format("store {}, {} worker process{}\n\n{}", findings_.store, options_.workers,
                  options_.workers == 1 ? "" : "es", heading()));
  TRY(options_.soak > 0 ? soak() : levels());
  workers_.clear();
  server_.stop(SIGTERM);
  if (options_.soak == 0) TRY(ceilings());
  if (options_.as_json) print_json(to_json(findings_));
  for (const Level& level : findings_.levels)
    if (level.measured.failed > 0) return fail(Code::conflict, "some jobs did not complete");
  return {};
}

int run_echo(const Options& options) {
  watch_signals();
  const auto done = Echo(options).run();
  if (done) return exit_ok;
  complain(done.error().message);
  return was_interrupted() ? exit_interrupted : exit_failed;
}

void add_echo(Parser parent, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser command = parent.add_subcommand(
      "echo", "Jobs of one task or a chain of them, from submission to the answer that it has completed");
  command.add_option("--store", options->store,
                     "sqlite:PATH or postgres://…, which keeps the jobs; default a temporary SQLite file");
  command
      .add_option("--clients", options->clients, "closed loops of so many clients each; default 1,8,64,256")
      .delimiter(',')
      .range(1, 4000);
  command.add_option("--seconds", options->seconds, "of each level; default 5").range(0.1, 86'400.0);
  command.add_option("--jobs", options->jobs, "of each level, instead of seconds").range(1, 1'000'000'000);
  command.add_option("--tasks", options->tasks, "tasks of a job, one after the other; default 1")
      .range(1, 100);
  command.add_option("--workers", options->workers, "worker processes; default 1").range(1, 64);
  command
      .add_option("--rate", options->rate,
                  "jobs/s of the open loop, 0 leaves it out; default half of the best closed loop")
      .range(0.0, 1'000'000.0);
  command
      .add_option("--soak", options->soak,
                  "only this: so many jobs with 256 clients, and the server's memory meanwhile")
      .range(1, 1'000'000'000);
  command.add_flag("--json", options->as_json, "print everything as one JSON object at the end");
  command.footer(
      "Server and workers are processes of their own. Open loop: jobs start at random times whatever the\n"
      "server does, and their time counts from when they were meant to start. The ceiling is the same rows\n"
      "written straight into the same store, without engine and HTTP.\n"
      "Examples:\n"
      "  baton bench echo\n"
      "  baton bench echo --tasks 3 --clients 256\n"
      "  baton bench echo --clients 256 --store postgres://postgres@127.0.0.1/bench --json\n"
      "  baton bench echo --soak 1000000");
  command.callback([options, &chosen] { chosen = [options] { return run_echo(*options); }; });
}

void add_bench_worker(Parser parent, Action& chosen) {
  auto options = std::make_shared<WorkerOptions>();
  Parser command = parent.add_subcommand("worker", "The worker that `bench echo` starts").group("");
  command.add_option("--server", options->server).required();
  command.add_option("--queue", options->queue);
  command.add_option("--name", options->name);
  command.add_option("--polls", options->polls).range(1, 1000);
  command.add_option("--max", options->max).range(1, 1000);
  command.callback([options, &chosen] {
    chosen = [options] {
      complain(run_worker(*options).message);
      return exit_failed;
    };
  });
}

}  // namespace

void add_bench(Parser app, Action& chosen) {
  Parser command = app.add_subcommand("bench", "Measure speed");
  command.require_subcommand(1);
  add_echo(command, chosen);
  add_bench_fan_out(command, chosen);
  add_bench_polls(command, chosen);
  add_bench_runbook(command, chosen);
  add_bench_calls(command, chosen);
  add_bench_worker(command, chosen);
}

}  // namespace baton::cli
