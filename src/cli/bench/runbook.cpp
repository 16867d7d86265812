// `baton bench runbook`: batches of several sizes through HTTP workers: what a step costs, how fast the pages
// of a batch are while it runs, and how late the timer of another batch is meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "cli/bench/bench_server.hpp"
#include "cli/bench/wire.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {
namespace {

using namespace bench;
using namespace std::chrono_literals;

struct RunbookBenchOptions {
  std::string store;
  std::vector<std::size_t> sizes{1'000, 10'000, 100'000};
  std::size_t steps = 5;
  std::size_t workers = 1;
};

std::string runbook_of(std::string_view name, std::string_view worker_id, std::size_t steps,
                       std::string_view retry) {
  std::string text = fmt::format(
      "name: {}\ndata_source: {{type: csv, connection: BENCH_CSV, interval: 7d, primary_key: Key, "
      "batch_time_column: T}}\n"
      "{}phases:\n  - name: work\n    offset: T-0\n    steps:\n",
      name, retry);
  for (std::size_t i = 0; i < steps; ++i)
    text += fmt::format(
        "      - {{name: step-{}, worker_id: {}, function: Echo, params: {{Key: \"{{{{Key}}}}\", n: {}}}}}\n",
        i, worker_id, i);
  return text;
}

Result<std::string> post_body(http::Client& client, const std::string& target, const std::string& body,
                         const std::string& type) {
  TRY_ASSIGN(const auto answer, client.request("POST", target, body, type, {}, 120s));
  if (answer.status >= 300)
    return fail(Code::invalid, fmt::format("{}: {} {}", target, answer.status, answer.body));
  return answer.body;
}

// A batch of so many members that waits to be advanced.
Result<std::string> make_batch(http::Client& client, const std::string& runbook, std::size_t members) {
  std::string csv = "Key,Name\n";
  for (std::size_t i = 0; i < members; ++i)
    csv += fmt::format("user{0}@contoso.example,User number {0}\n", i);
  TRY_ASSIGN(const auto made, post_body(client, "/api/v1/runbooks/" + runbook + "/batches", csv, "text/csv"));
  const Fields answer(made);
  return std::to_string(answer.has("batch") ? Fields(answer.document("batch")).number("id")
                                            : answer.number("id"));
}

// The lateness of another batch's timer: a step that fails is tried again after a second, and somebody waits
// for it.
class Probe {
 public:
  explicit Probe(const std::string& url) : client_(url) {}
  ~Probe() { stop(); }
  Result<> start() {
    TRY(post_body(client_, "/api/v1/runbooks",
             runbook_of("probe", "probe", 1, "retry: {max_retries: 100, interval: 1s}\n"),
             "application/yaml"));
    TRY_ASSIGN(const auto batch, make_batch(client_, "probe", 1));
    TRY(post_body(client_, "/api/v1/batches/" + batch + "/advance", "", "application/json"));
    thread_ = std::thread([this] { run(); });
    return {};
  }
  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] double worst_millis() const { return worst_.load(); }
  void forget() { worst_ = 0; }

 private:
  void run() {
    std::optional<Steady::time_point> due;
    while (!over_) {
      const auto polled = post_body(client_, "/api/v1/workers/probe/jobs:poll",
                               R"({"max":1,"wait_ms":3000,"worker":"probe"})", "application/json");
      if (!polled) return;
      const auto at = polled->find("\"jobId\":\"");
      if (at == std::string::npos) continue;
      const std::string job = polled->substr(at + 9, polled->find('"', at + 9) - at - 9);
      if (due)
        worst_ =
            std::max(worst_.load(), std::chrono::duration<double, std::milli>(Steady::now() - *due).count());
      const auto told = post_body(client_, "/api/v1/callbacks/worker-result",
                             fmt::format(R"({{"jobId":"{}","status":"Failure","error":"again"}})", job),
                             "application/json");
      if (!told) return;
      due = Steady::now() + 1s;
    }
  }
  http::Client client_;
  std::thread thread_;
  std::atomic<bool> over_ = false;
  std::atomic<double> worst_ = 0;
};

struct Found {
  double seconds = 0, start_seconds = 0, page_millis = 0, matrix_millis = 0, resident = 0, late_millis = 0;
};

Result<double> timed_get(http::Client& client, const std::string& target, std::string& body) {
  const auto asked = Steady::now();
  TRY_ASSIGN(const auto view, client.request("GET", target));
  if (view.status != 200) return fail(Code::invalid, view.body);
  body = view.body;
  return std::chrono::duration<double, std::milli>(Steady::now() - asked).count();
}

Result<Found> run_batch(BenchServer& server, Probe& probe, std::size_t members) {
  Found found;
  TRY_ASSIGN(const auto batch, make_batch(*server.client, "bench", members));
  const std::string target = "/api/v1/batches/" + batch;
  probe.forget();
  const auto began = Steady::now();
  TRY(post_body(*server.client, target + "/advance", "", "application/json"));
  while (true) {
    std::string page, matrix;
    TRY_ASSIGN(const double page_took, timed_get(*server.client, target, page));
    TRY_ASSIGN(const double matrix_took, timed_get(*server.client, target + "/matrix?limit=100", matrix));
    found.page_millis = std::max(found.page_millis, page_took);
    found.matrix_millis = std::max(found.matrix_millis, matrix_took);
    found.resident = std::max(found.resident, server.resident_mib());
    const std::string status = Fields(page).text("status");
    if (status == "completed") break;
    if (status != "active") return fail(Code::conflict, "the batch is " + status);
    if (was_interrupted()) return fail(Code::unavailable, "interrupted");
    std::this_thread::sleep_for(members > 5'000 ? 50ms
                                                : 2ms);  // nothing to wait on: somebody looks now and then
  }
  found.seconds = std::chrono::duration<double>(Steady::now() - began).count();
  found.late_millis = probe.worst_millis();
  return found;
}

Result<> measure(const RunbookBenchOptions& options) {
  BenchServer server;
  TRY(server.start(options.store, {}, {"--scheduler", "off", "--body-max", "256m"}));
  TRY(post_body(*server.client, "/api/v1/runbooks", runbook_of("bench", "bench", options.steps, ""),
           "application/yaml"));
  std::vector<Instance> workers;
  workers.reserve(options.workers);
  for (std::size_t i = 0; i < options.workers; ++i)
    TRY(workers.emplace_back().start(
        {"bench", "worker", "--server", server.url, "--name", fmt::format("bench-{}", i), "--max", "250"}));
  Probe probe(server.url);
  TRY(probe.start());
  TRY(run_batch(server, probe, 200));  // warm-up
  fmt::print("{:>8} {:>6} {:>10} {:>9} {:>9} {:>9} {:>10} {:>9} {:>8}\n", "members", "batches", "steps/s",
             "us/step", "of first", "page ms", "matrix ms", "late ms", "RSS MiB");
  double first = 0;
  const std::size_t most = std::ranges::max(options.sizes);
  for (const std::size_t size : options.sizes) {
    const std::size_t rounds = std::clamp<std::size_t>(most / size / 10, 1, 10);
    Found all;
    for (std::size_t i = 0; i < rounds; ++i) {
      TRY_ASSIGN(const Found one, run_batch(server, probe, size));
      all.seconds += one.seconds;
      all.page_millis = std::max(all.page_millis, one.page_millis);
      all.matrix_millis = std::max(all.matrix_millis, one.matrix_millis);
      all.resident = std::max(all.resident, one.resident);
      all.late_millis = std::max(all.late_millis, one.late_millis);
    }
    const double micros = all.seconds * 1e6 / static_cast<double>(size * rounds * options.steps);
    if (first == 0) first = micros;
    fmt::print("{:>8} {:>6} {:>10.0f} {:>9.1f} {:>8.2f}x {:>9.1f} {:>10.1f} {:>9.1f} {:>8.0f}\n", size,
               rounds, 1e6 / micros, micros, micros / first, all.page_millis, all.matrix_millis,
               all.late_millis, all.resident);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace

void add_bench_runbook(Parser bench, Action& chosen) {
  auto options = std::make_shared<RunbookBenchOptions>();
  Parser command = bench.add_subcommand("runbook", "Batches of several sizes, and what a step of each costs");
  command.add_option("--store", options->store,
                     "sqlite:PATH or postgres://…; default a temporary SQLite file");
  command.add_option("--members", options->sizes, "default 1000,10000,100000")
      .delimiter(',')
      .range(1, 1'000'000);
  command.add_option("--steps", options->steps, "default 5").range(1, 100);
  command.add_option("--workers", options->workers, "worker processes; default 1").range(1, 64);
  command.callback([options, &chosen] {
    chosen = [options] {
      watch_signals();
      return finish(measure(*options));
    };
  });
}

}  // namespace baton::cli
