#include "cli/bench/figures.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace baton::cli::bench {
namespace {

std::string title(const Level& level) {
  return level.rate > 0 ? fmt::format("open, {:.0f}/s", level.rate)
                        : fmt::format("{} client{}", level.clients, level.clients == 1 ? "" : "s");
}

double share(double part, double seconds) { return seconds > 0 ? part / seconds : 0; }

std::string level_json(const Level& level) {
  const Measured& m = level.measured;
  std::string text = fmt::format(
      R"({{"loop":"{}","clients":{},"rate_wanted":{:.1f},"jobs":{},"failed":{},"seconds":{:.3f},"jobs_per_second":{:.1f},)"
      R"("p50_ms":{:.3f},"p90_ms":{:.3f},"p99_ms":{:.3f},"max_ms":{:.3f},"jobs_per_commit":{:.2f},"commit_share":{:.3f},)"
      R"("cpu_server":{:.3f},"cpu_workers":{:.3f},"cpu_clients":{:.3f})",
      level.rate > 0 ? "open" : "closed", level.clients, level.rate, m.jobs, m.failed, m.seconds, m.rate(),
      m.latencies.millis(0.5), m.latencies.millis(0.9), m.latencies.millis(0.99), m.latencies.millis(1),
      level.per_commit(), share(level.usage.commit_seconds, m.seconds),
      share(level.usage.server_cpu, m.seconds), share(level.usage.worker_cpu, m.seconds),
      share(level.usage.client_cpu, m.seconds));
  if (level.ceiling)
    text += fmt::format(R"(,"ceiling_jobs_per_second":{:.1f},"ceiling_batch":{},"ratio":{:.3f})",
                        level.ceiling->rate, level.ceiling->batch, level.ratio());
  return text + '}';
}

}  // namespace

double Level::per_commit() const {
  return usage.commits > 0 ? static_cast<double>(measured.jobs) / usage.commits : 0;
}

double Findings::growth() const {
  return resident.empty() ? 0 : resident.back().mebibytes / resident.front().mebibytes - 1;
}

std::string heading() {
  return fmt::format("{:<14} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7}   {:>11} {:>9}   {}\n", "", "jobs/s",
                     "p50 ms", "p90 ms", "p99 ms", "max ms", "failed", "jobs/commit", "in commit",
                     "CPU server+worker+clients");
}

std::string line(const Level& level) {
  const Measured& m = level.measured;
  const Usage& u = level.usage;
  return fmt::format(
      "{:<14} {:>8.0f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>7}   {:>11.1f} {:>8.0f}%   "
      "{:.0f}%+{:.0f}%+{:.0f}%\n",
      title(level), m.rate(), m.latencies.millis(0.5), m.latencies.millis(0.9), m.latencies.millis(0.99),
      m.latencies.millis(1), m.failed, level.per_commit(), 100 * share(u.commit_seconds, m.seconds),
      100 * share(u.server_cpu, m.seconds), 100 * share(u.worker_cpu, m.seconds),
      100 * share(u.client_cpu, m.seconds));
}

std::string ceiling_lines(const Findings& findings) {
  std::string text =
      "\nThe ceiling: the same rows straight into the store, with as many transactions for each job\n";
  text += fmt::format("{:<14} {:>16} {:>15} {:>8}\n", "", "jobs/transaction", "ceiling jobs/s", "reached");
  for (const Level& level : findings.levels)
    if (level.ceiling)
      text += fmt::format("{:<14} {:>16} {:>15.0f} {:>7.0f}%\n", title(level), level.ceiling->batch,
                          level.ceiling->rate, 100 * level.ratio());
  return text;
}

std::string soak_lines(const Findings& findings) {
  std::string text = fmt::format("\n{:>12} {:>12}\n", "jobs", "server RSS");
  for (const Resident& each : findings.resident)
    text += fmt::format("{:>12} {:>8.1f} MiB\n", each.jobs, each.mebibytes);
  return text + fmt::format("growth from the first to the last: {:+.1f} %\n", 100 * findings.growth());
}

std::string to_json(const Findings& findings) {
  std::string text =
      fmt::format(R"({{"store":{},"workers":{},"levels":[)", baton::quoted(findings.store), findings.workers);
  for (const Level& level : findings.levels) {
    if (&level != &findings.levels.front()) text += ',';
    text += level_json(level);
  }
  text += ']';
  if (!findings.resident.empty()) {
    text += R"(,"resident":[)";
    for (const Resident& each : findings.resident) {
      if (&each != &findings.resident.front()) text += ',';
      text += fmt::format(R"({{"jobs":{},"mebibytes":{:.1f}}})", each.jobs, each.mebibytes);
    }
    text += fmt::format(R"(],"growth":{:.4f})", findings.growth());
  }
  return text + '}';
}

}  // namespace baton::cli::bench
