// The life of the server's process.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "server/logging.hpp"
#include "server/server.hpp"

namespace baton::server {
namespace {

enum Exit : int { ended = 0, cannot_start = 1, wrong_settings = 2, fenced = 3, corrupt = 5, second_signal = 130 };

// What ends the wait of the main thread. A signal handler may touch only these.
std::atomic<int> wake_fd{-1};
std::atomic<int> signals{0};
std::atomic<int> fatal{0};  // with what the engine ends the process

void wake_main() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd, &one, sizeof one);
}

// Everything acknowledged is durable already, so leaving at once is safe; it is only impolite.
void on_signal(int) {
  if (signals.fetch_add(1) > 0) _exit(second_signal);
  const int saved = errno;
  wake_main();
  errno = saved;
}

// The threads that are made while the signals are blocked never see them: the main thread alone does.
void block_signals(bool block) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

void watch_signals() {
  block_signals(true);
  wake_fd = eventfd(0, EFD_CLOEXEC);
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = 0;  // only the wait below is interrupted by it, and that wait looks again
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void wait_for_the_end() {
  block_signals(false);
  std::uint64_t count = 0;
  while (signals == 0 && fatal == 0) {
    [[maybe_unused]] const auto got = read(wake_fd, &count, sizeof count);
  }
}

// Of those who call us, and of those whom we call.
void raise_file_limit(std::size_t connections_max, std::size_t calls_max) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  constexpr std::size_t for_ourselves = 64;  // store, logs, listeners
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < connections_max + calls_max + for_ourselves)
    spdlog::warn("the system allows {} open files, too few for connections_max {} and calls_max {}", limit.rlim_max,
                 connections_max, calls_max);
}

int exit_code(Code code) {
  switch (code) {
    case Code::fenced: return fenced;
    case Code::corrupt: return corrupt;
    case Code::invalid: return wrong_settings;
    default: return cannot_start;
  }
}

int tell_why(const Error& error) {
  // Several lines are for a person who starts the server by hand, whatever the form of the log.
  fmt::print(stderr, "baton: {}\n", error.message);
  return exit_code(error.code);
}

}  // namespace

int serve(const Config& config) {
  set_up_logging(config.log_level, config.log_format);
  for (const std::string& note : config.notes) spdlog::info("{}", note);
  raise_file_limit(config.connections_max, config.calls_max);
  watch_signals();
  Server server(config, [](const Error& error) {
    spdlog::error("the engine has stopped for good: {}", error.message);
    fatal = exit_code(error.code);
    wake_main();
  });
  if (const auto started = server.start(); !started) return tell_why(started.error());
  fmt::print("{}\n", server.url());
  if (const std::string amqp = server.amqp(); !amqp.empty()) fmt::print("amqp://{}\n", amqp);
  if (const std::string admin = server.amqp_admin(); !admin.empty()) fmt::print("amqp-admin://{}\n", admin);
  std::fflush(stdout);
  wait_for_the_end();
  if (fatal == 0) spdlog::info("stopping: answering what was accepted; a second signal ends at once");
  server.stop();
  spdlog::info("stopped");
  return fatal != 0 ? fatal.load() : ended;
}

}  // namespace baton::server
