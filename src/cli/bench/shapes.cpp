// `baton bench fan-out` and `baton bench polls`: what large things cost, in time and in memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "cli/bench/bench_server.hpp"
#include "cli/bench/wire.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/fields.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

using namespace bench;
using namespace std::chrono_literals;

constexpr const char* definition =
    "workflow_id: bench_fan_out\n"
    "nodes:\n"
    "  start: {type: start, next: split}\n"
    "  split:\n"
    "    type: fan_out\n"
    "    source: \"{{ inputs.items }}\"\n"
    "    task: {handler: echo, queue: bench, params: {item: \"{{ item }}\", n: \"{{ index }}\", of: \"{{ "
    "inputs.name }}\"}}\n"
    "    next: merge\n"
    "  merge: {type: fan_in, next: end}\n"
    "  end: {type: end}\n";

struct FanOutOptions {
  std::string store;
  std::vector<std::size_t> sizes{100, 1'000, 10'000, 100'000};
};

std::string submission(std::size_t items) {
  std::string body = R"({"workflow_id":"bench_fan_out","input_data":{"name":"bench","items":[)";
  for (std::size_t i = 0; i < items; ++i) body += (i == 0 ? "" : ",") + std::to_string(i);
  return body + "]}}";
}

struct FanOut {
  double seconds = 0;
  double view_millis = 0;  // the slowest look at the job while it ran, and at its end
  double resident = 0;     // the most that the server held
};

// Small ones are run again and again, so that each size has had as many items.
Result<FanOut> run_fan_out(BenchServer& server, std::size_t items) {
  FanOut found;
  const auto began = Steady::now();
  TRY_ASSIGN(const auto created, server.client->request("POST", "/api/v1/jobs", submission(items)));
  if (created.status != 201) return fail(Code::invalid, created.body);
  const std::string target = "/api/v1/jobs/" + Fields(created.body).text("job_id");
  while (true) {
    const auto asked = Steady::now();
    TRY_ASSIGN(const auto view, server.client->request("GET", target));
    const auto took = Steady::now() - asked;
    found.view_millis = std::max(found.view_millis, std::chrono::duration<double, std::milli>(took).count());
    found.resident = std::max(found.resident, server.resident_mib());
    const std::string status = Fields(view.body).text("status");
    if (status == "COMPLETED") break;
    if (status != "RUNNING" && status != "PENDING") return fail(Code::conflict, "the job is " + status);
    if (was_interrupted()) return fail(Code::unavailable, "interrupted");
    // Held by the server until the job ends; large ones are looked at in between.
    TRY_ASSIGN(const auto waited,
               server.client->request("GET", target + "?wait_ms=" + (items > 5'000 ? "100" : "20000")));
    (void)waited;
  }
  found.seconds = std::chrono::duration<double>(Steady::now() - began).count();
  return found;
}

Result<> measure_fan_outs(const FanOutOptions& options) {
  BenchServer server;
  TRY(server.start(options.store, {"bench.yaml", definition}));
  Instance worker;
  TRY(worker.start({"bench", "worker", "--server", server.url, "--name", "bench", "--max", "200"}));
  TRY(run_fan_out(server, 100));  // warm-up
  fmt::print("{:>8} {:>6} {:>12} {:>10} {:>12} {:>10} {:>8}\n", "items", "jobs", "items/s", "us/item",
             "of first", "view ms", "RSS MiB");
  double first = 0;
  const std::size_t most = std::ranges::max(options.sizes);
  for (const std::size_t size : options.sizes) {
    const std::size_t rounds = std::clamp<std::size_t>(most / size / 10, 1, 100);
    FanOut all;
    for (std::size_t i = 0; i < rounds; ++i) {
      TRY_ASSIGN(const FanOut one, run_fan_out(server, size));
      all.seconds += one.seconds;
      all.view_millis = std::max(all.view_millis, one.view_millis);
      all.resident = std::max(all.resident, one.resident);
    }
    const double micros = all.seconds * 1e6 / static_cast<double>(size * rounds);
    if (first == 0) first = micros;
    fmt::print("{:>8} {:>6} {:>12.0f} {:>10.1f} {:>11.2f}x {:>10.1f} {:>8.0f}\n", size, rounds, 1e6 / micros,
               micros, micros / first, all.view_millis, all.resident);
    std::fflush(stdout);
  }
  return {};
}

// Waiting polls, on a connection each.
Result<> measure_polls(std::size_t count) {
  BenchServer server;
  TRY(server.start("", {"bench.yaml", definition}, {"--connections-max", std::to_string(count + 100)}));
  const double before = server.resident_mib();
  Wire wire(server.url);
  const std::string poll =
      post("/api/v1/workers/idle/jobs:poll", R"({"max":1,"wait_ms":60000,"worker":"idle"})");
  for (std::size_t i = 0; i < count; ++i) {
    TRY_ASSIGN(const std::size_t connection, wire.open());
    TRY(wire.send(connection, poll));
  }
  std::this_thread::sleep_for(3s);  // what the connections cost to make is over
  const double cpu = server.process.cpu_seconds();
  std::this_thread::sleep_for(10s);  // the time that is measured: nothing happens in it
  fmt::print("{} waiting polls: {:.0f} MiB resident ({:.0f} before them), {:.1f} ms of CPU a second\n", count,
             server.resident_mib(), before, (server.process.cpu_seconds() - cpu) * 100);
  const auto asked = Steady::now();
  TRY_ASSIGN(const auto health, server.client->request("GET", "/readyz"));
  fmt::print("another request meanwhile: {} in {:.1f} ms\n", health.status,
             std::chrono::duration<double, std::milli>(Steady::now() - asked).count());
  return {};
}

}  // namespace

void add_bench_fan_out(Parser bench, Action& chosen) {
  auto options = std::make_shared<FanOutOptions>();
  Parser command =
      bench.add_subcommand("fan-out", "Fan-outs of several sizes, and what an item of each costs");
  command.add_option("--store", options->store,
                     "sqlite:PATH or postgres://…; default a temporary SQLite file");
  command.add_option("--items", options->sizes, "default 100,1000,10000,100000")
      .delimiter(',')
      .range(1, 1'000'000);
  command.callback([options, &chosen] {
    chosen = [options] {
      watch_signals();
      return finish(measure_fan_outs(*options));
    };
  });
}

void add_bench_polls(Parser bench, Action& chosen) {
  auto count = std::make_shared<std::size_t>(10'000);
  Parser command = bench.add_subcommand("polls", "Long polls that wait: what they cost a server");
  command.add_option("--count", *count, "default 10000").range(1, 60'000);
  command.callback([count, &chosen] {
    chosen = [count] {
      watch_signals();
      return finish(measure_polls(*count));
    };
  });
}

}  // namespace baton::cli
