// `baton bench calls`: service calls that are all due in the same second, and calls that are due one after
// the other in an idle server, against a sink that counts.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.hpp"
#include "cli/bench/bench_server.hpp"
#include "cli/bench/sink.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {
namespace {

using namespace bench;
using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

struct CallsBenchOptions {
  std::string store;
  std::size_t calls = 100'000, idle = 1'000, later = 0, hosts = 1;
};

Time now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }
double seconds_since(Steady::time_point began) {
  return std::chrono::duration<double>(Steady::now() - began).count();
}

std::string call_text(const Sink& sink, std::size_t i, Time due) {
  return fmt::format(R"({{"name":"bench","dueAt":"{}","requestSpec":{{"url":"{}{}"}}}})", to_iso(due),
                     sink.url(), i);
}

// Calls `from` to `to`, in batches.
template <class TextOf>
Result<> submit(BenchServer& server, const std::string& tenant, std::size_t from, std::size_t to,
                TextOf&& text_of) {
  constexpr std::size_t at_once = 1'000;
  for (std::size_t begin = from; begin < to; begin += at_once) {
    std::string body = R"({"calls":[)";
    for (std::size_t i = begin; i < std::min(to, begin + at_once); ++i)
      body += (i == begin ? "" : ",") + text_of(i);
    TRY_ASSIGN(const auto answer,
               server.client->request("POST", "/api/v1/tenants/" + tenant + "/service-calls:batch",
                                      body + "]}", "application/json", {}, 60s));
    if (answer.status != 202) return fail(Code::invalid, answer.body.substr(0, 500));
  }
  return {};
}

Result<> wait_for(const Sink& sink, std::size_t requests, std::chrono::seconds patience) {
  const auto until = Steady::now() + patience;
  while (sink.seen() < requests) {
    if (Steady::now() > until)
      return fail(Code::unavailable, fmt::format("only {} of {} calls came", sink.seen(), requests));
    std::this_thread::sleep_for(5ms);  // a look at a counter of another thread, for a bounded time
  }
  return {};
}

void print_lags(std::string_view what, const Sink& sink, std::size_t from, std::size_t to, Time first,
                Duration step) {
  std::vector<double> lags;
  for (std::size_t i = from; i < to; ++i) {
    const Time due = first + step * static_cast<std::int64_t>(i - from);
    lags.push_back(static_cast<double>(sink.first_micros(i) - to_millis(due) * 1000) / 1000);
  }
  std::ranges::sort(lags);
  const auto at = [&](double share) {
    return lags[std::min(lags.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(lags.size())))];
  };
  fmt::print("{}: lag p50 {:.2f} ms, p99 {:.2f} ms, most {:.2f} ms, least {:.2f} ms, over {} calls\n", what,
             at(0.5), at(0.99), lags.back(), lags.front(), lags.size());
}

// All due at one moment, and meanwhile another tenant's, one each 100 ms.
Result<> burst(BenchServer& server, const CallsBenchOptions& options) {
  constexpr std::size_t lone = 50;
  Sink sink(options.calls + lone);
  const auto began = Steady::now();
  const Time due = now() + std::chrono::milliseconds{2'000 + options.calls / 5};
  TRY(submit(server, "many", 0, options.calls, [&](std::size_t i) { return call_text(sink, i, due); }));
  const double submit_seconds = seconds_since(began);
  if (now() > due) return fail(Code::unavailable, "submitting took longer than the calls could wait");
  const Time lone_due = due + 200ms;
  TRY(submit(server, "lone", options.calls, options.calls + lone, [&](std::size_t i) {
    return call_text(sink, i, lone_due + Duration{100} * static_cast<std::int64_t>(i - options.calls));
  }));
  TRY(wait_for(sink, options.calls + lone, 300s));
  std::this_thread::sleep_for(300ms);  // whoever comes twice comes now
  sink.stop();
  std::int64_t last = 0;
  std::size_t early = 0, lost = 0, twice = 0;
  for (std::size_t i = 0; i < options.calls; ++i) {
    last = std::max(last, sink.first_micros(i));
    early += sink.times(i) > 0 && sink.first_micros(i) < to_millis(due) * 1000;
    lost += sink.times(i) == 0;
    twice += sink.times(i) > 1;
  }
  const double seconds = static_cast<double>(last - to_millis(due) * 1000) / 1e6;
  fmt::print("submit: {} calls in batches of 1,000, {:.0f}/s\n", options.calls,
             static_cast<double>(options.calls) / submit_seconds);
  fmt::print("burst: {} calls due at once: {:.0f} calls/s; early {}, lost {}, twice {}; RSS {:.0f} MiB\n",
             options.calls, static_cast<double>(options.calls) / seconds, early, lost, twice,
             server.resident_mib());
  print_lags("another tenant meanwhile", sink, options.calls, options.calls + lone, lone_due, Duration{100});
  return {};
}

Result<> idle(BenchServer& server, const CallsBenchOptions& options) {
  constexpr Duration step{7};
  Sink sink(options.idle);
  const Time first = now() + 2s;
  TRY(submit(server, "idle", 0, options.idle,
             [&](std::size_t i) { return call_text(sink, i, first + step * static_cast<std::int64_t>(i)); }));
  TRY(wait_for(sink, options.idle, 60s));
  sink.stop();
  print_lags("idle", sink, 0, options.idle, first, step);
  return {};
}

// For tomorrow: what they cost until then, and when the server comes back after a kill. A call that is due at
// once tells when it is at work again.
Result<> later(BenchServer& server, const CallsBenchOptions& options) {
  Sink sink(1);
  const auto began = Steady::now();
  const Time tomorrow = now() + 24h;
  const auto text = [&](std::size_t i) {
    const Time due = tomorrow + Duration{static_cast<std::int64_t>(i % 3'600'000)};
    return fmt::format(R"({{"name":"bench","dueAt":"{}","requestSpec":{{"url":"http://h{}.example/{}"}}}})",
                       to_iso(due), i % options.hosts, i);
  };
  TRY(submit(server, "later", 0, options.later, text));
  fmt::print("later: {} calls for tomorrow, {} hosts: {:.0f} submits/s, RSS {:.0f} MiB\n", options.later,
             options.hosts, static_cast<double>(options.later) / seconds_since(began), server.resident_mib());
  const auto killed = Steady::now();
  TRY(server.restart());
  const double ready = seconds_since(killed);
  TRY(submit(server, "now", 0, 1, [&](std::size_t i) { return call_text(sink, i, now()); }));
  TRY(wait_for(sink, 1, 60s));
  fmt::print("killed and started again: ready after {:.2f} s, a call made after {:.2f} s, RSS {:.0f} MiB\n",
             ready, seconds_since(killed), server.resident_mib());
  return {};
}

Result<> measure(const CallsBenchOptions& options) {
  BenchServer server;
  TRY(server.start(options.store, {},
                   {"--egress-allow", "127.0.0.1", "--calls-per-origin", "1024", "--body-max", "64m"}));
  if (options.later > 0) TRY(later(server, options));
  if (options.idle > 0) TRY(idle(server, options));
  if (options.calls > 0) TRY(burst(server, options));
  return {};
}

}  // namespace

void add_bench_calls(Parser bench, Action& chosen) {
  auto options = std::make_shared<CallsBenchOptions>();
  Parser command =
      bench.add_subcommand("calls", "Service calls that are due at once, and one after the other");
  command.add_option("--store", options->store,
                     "sqlite:PATH or postgres://…; default a temporary SQLite file");
  command.add_option("--calls", options->calls, "due at once; default 100000, 0 leaves it out");
  command.add_option("--idle", options->idle, "due one after the other; default 1000, 0 leaves it out");
  command.add_option("--later", options->later, "due tomorrow, submitted first; default 0");
  command.add_option("--hosts", options->hosts, "that those of tomorrow go to; default 1").positive();
  command.callback([options, &chosen] { chosen = [options] { return finish(measure(*options)); }; });
}

}  // namespace baton::cli
