// `baton worker`: an agent that turns programs into functions.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "cli/agent/agent.hpp"
#include "cli/commands/commands.hpp"
#include "cli/remote.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::vector<std::string> queues;
  std::string functions;
  std::string name;
  std::size_t concurrency = 0;
  int grace_seconds = 5;
  double heartbeat_seconds = 10;
  int drain_seconds = 30;
  std::optional<int> idle_exit_seconds;
  std::size_t log_limit = 256 * 1024;
  std::size_t output_limit = 8 * 1024 * 1024;
  bool is_quiet = false;
  bool pass_token = false;
};

std::string default_name() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}", host, getpid());
}

// What programs inherit. The token is not for them: it is taken out, and overwritten where other processes of
// the same user could read it (/proc/PID/environ).
std::vector<std::string> environment_of(const std::optional<std::string>& token, bool pass_token) {
  constexpr std::string_view token_prefix = "BATON_TOKEN=";
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view assignment{*each};
    if (assignment.starts_with(token_prefix))
      std::memset(*each + token_prefix.size(), 'x', assignment.size() - token_prefix.size());
    else if (!agent::is_task_variable(assignment))
      all.emplace_back(assignment);
  }
  if (pass_token && token) all.push_back(std::string(token_prefix) + *token);
  return all;
}

// Only as far as needed: programs inherit the limit, and some of them go through all of it.
void raise_file_limit(std::size_t concurrency) {
  const rlim_t needed = concurrency * 4 + 128;  // three pipes and the process itself
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < needed)
    complain(fmt::format("the system allows {} open files, too few for --concurrency {}", limit.rlim_cur,
                         concurrency));
}

int work(const Options& options) {
  std::error_code error;
  const auto directory = std::filesystem::absolute(options.functions, error);
  if (error || !std::filesystem::is_directory(directory, error)) {
    complain(fmt::format("--functions {}: there is no such directory", options.functions));
    return exit_usage;
  }
  if (!(options.heartbeat_seconds >= 0.1)) {  // not a number passes a range
    complain("--heartbeat-seconds must be a number from 0.1 to 3600");
    return exit_usage;
  }
  const auto functions = worker::Functions(directory).list();
  if (!functions) {
    complain(functions.error().message);
    return exit_usage;
  }
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  agent::AgentOptions chosen{
      .server = server_access(options.remote), .queues = options.queues, .functions = directory};
  std::ranges::sort(chosen.queues);
  chosen.queues.erase(std::ranges::unique(chosen.queues).begin(), chosen.queues.end());
  chosen.name = options.name.empty() ? default_name() : options.name;
  chosen.concurrency = options.concurrency == 0 ? cores * 2 : options.concurrency;
  chosen.environment = environment_of(chosen.server.token, options.pass_token);
  chosen.limits.output_bytes = options.output_limit;
  chosen.limits.grace = std::chrono::seconds{options.grace_seconds};
  chosen.beat_every = std::chrono::milliseconds{static_cast<int>(options.heartbeat_seconds * 1000)};
  chosen.log_bytes_max = options.log_limit;
  chosen.drain_time = std::chrono::seconds{options.drain_seconds};
  if (options.idle_exit_seconds) chosen.idle_exit = std::chrono::seconds{*options.idle_exit_seconds};
  chosen.is_quiet = options.is_quiet;
  raise_file_limit(chosen.concurrency);
  fmt::print(stderr, "worker {} on {}, {} at once; functions in {}: {}\n", chosen.name,
             fmt::join(chosen.queues, ", "), chosen.concurrency, directory.string(),
             functions->empty() ? "none yet" : fmt::format("{}", fmt::join(*functions, ", ")));
  return agent::Agent(std::move(chosen)).run();
}

void add_limits(Parser command, Options& options) {
  command.add_option("--concurrency", options.concurrency, "programs at once; default twice the cores")
      .range(1, 10'000);
  command
      .add_option("--heartbeat-seconds", options.heartbeat_seconds,
                  "between heartbeats; default 10, a third of the server's --lease-seconds")
      .range(0.1, 3'600.0);
  command.add_option("--grace-seconds", options.grace_seconds, "between SIGTERM and SIGKILL; default 5")
      .range(0, 3'600);
  command
      .add_option("--drain-seconds", options.drain_seconds,
                  "for what runs when the worker is told to end; default 30")
      .range(0, 86'400);
  command
      .add_option("--idle-exit-seconds", options.idle_exit_seconds, "end when there was no task for so long")
      .range(1, 86'400);
  command.add_option("--log-limit", options.log_limit, "of standard error, each task; default 256k")
      .bytes()
      .type_name("BYTES");
  command
      .add_option("--output-limit", options.output_limit,
                  "of standard output; more fails the task; default 8m")
      .bytes()
      .type_name("BYTES");
}

}  // namespace

void add_worker(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser command = app.add_subcommand("worker", "Run the programs of a directory as functions");
  add_server_options(command, options->remote);
  command
      .add_option("--queue", options->queues,
                  "take tasks from this queue, or jobs of this worker_id; may be repeated")
      .required()
      .allow_extra_args(false)
      .type_name("QUEUE");
  command
      .add_option("--functions", options->functions,
                  "the executable DIR/NAME does the tasks of handler, or jobs of function, NAME")
      .required()
      .type_name("DIR");
  command.add_option("--name", options->name, "shown in the timeline; default HOST-PID").type_name("NAME");
  add_limits(command, *options);
  command.add_flag("--quiet", options->is_quiet, "no line for each task");
  command.add_flag("--pass-token", options->pass_token, "programs get BATON_TOKEN too");
  command.footer(
      "A program gets the task's parameters as JSON on standard input and writes its result\n"
      "as JSON to standard output; exit code 0 is success, standard error is the log.\n"
      "Example:\n"
      "  baton worker --queue pool-1 --functions ./functions\n"
      "SIGTERM or SIGINT ends the worker when its programs have ended; a second one at once.\n"
      "Exit codes: 0 ended as asked, 1 refused by the server or not all could be ended well,\n"
      "2 wrong usage, 130 ended at once.");
  command.callback([options, &chosen] { chosen = [options] { return work(*options); }; });
}

}  // namespace baton::cli
