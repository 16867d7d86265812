#include "worker/runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

namespace baton::worker {
namespace {

// What an event is about: the lowest bits beside the ticket. Ticket 0 is the wake-up call.
enum Channel : std::uint64_t { process, output, error, report };
constexpr unsigned channel_bits = 2;

constexpr std::size_t read_bytes = 64 * 1024;
constexpr int reads_in_a_row = 8;  // then the other programs have their turn

// A pipe holds no more than this when its writers are dead; one that is written to still must not hold us up.
constexpr int last_reads = 64;

// The bytes, none when there is nothing now, and nullopt at the end of the stream.
std::optional<std::string_view> read_some(const Fd& fd, std::vector<char>& buffer) {
  while (true) {
    const auto got = read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) return std::string_view(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::string_view{};
    return std::nullopt;
  }
}

void keep_tail(std::string& tail, std::string_view bytes, std::size_t bytes_max) {
  tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), bytes_max)));
  if (tail.size() > bytes_max) tail.erase(0, tail.size() - bytes_max);
}

// A file in memory instead of a pipe: it can never fill up, so nobody has to feed it, and a program that does
// not read does no harm.
Result<Fd> make_input(const std::string& text) {
  Fd file(memfd_create("baton-params", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(text.size());
  for (ssize_t done = 0, written = 0; file && done < size; done += written) {
    written = pwrite(file.get(), text.data() + done, text.size() - static_cast<std::size_t>(done), done);
    if (written < 0) file.reset();
  }
  if (!file)
    return fail(Code::unavailable, fmt::format("cannot hold the parameters: {}", std::strerror(errno)));
  return file;
}

}  // namespace

Runner::Runner(RunListener& listener, std::vector<std::string> environment, RunOptions options)
    : listener_(listener),
      environment_(std::move(environment)),
      options_(options),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      buffer_(read_bytes) {
  reserve_fds(report_fd + 1);
  watch(wake_, 0, 0);
}

Runner::~Runner() = default;

void Runner::watch(const Fd& fd, Ticket ticket, std::uint64_t channel) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = ticket << channel_bits | channel}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event);
}

Result<Runner::Run> Runner::launch(const Program& program) const {
  TRY_ASSIGN(const Fd input, make_input(program.input));
  TRY_ASSIGN(Pipe output, make_pipe());
  TRY_ASSIGN(Pipe error, make_pipe());
  TRY_ASSIGN(Pipe report, make_pipe());
  // Only our ends: the others are file descriptions of their own, which programs expect to block.
  for (const Pipe* pipe : {&output, &error, &report}) fcntl(pipe->reads.get(), F_SETFL, O_NONBLOCK);
  Launch launch{.command = program.command,
                .environment = environment_,
                .fds = {input.get(), output.writes.get(), error.writes.get(), report.writes.get()},
                .isolation = options_.isolation};
  launch.environment.insert(launch.environment.end(), program.variables.begin(), program.variables.end());
  TRY_ASSIGN(Process process, Process::start(launch));
  return Run{.process = std::move(process),
             .output = std::move(output.reads),
             .error = std::move(error.reads),
             .report = std::move(report.reads),
             .started = Clock::now(),
             .log_lines = Lines(options_.line_bytes),
             .report_lines = Lines(options_.report_bytes)};
}

Result<Ticket> Runner::start(const Program& program) {
  TRY_ASSIGN(Run run, launch(program));
  const Ticket ticket = ++last_;
  watch(run.process.ended(), ticket, process);
  watch(run.output, ticket, output);
  watch(run.error, ticket, error);
  watch(run.report, ticket, report);
  runs_.emplace(ticket, std::move(run));
  return ticket;
}

void Runner::terminate(Ticket ticket) {
  const auto found = runs_.find(ticket);
  if (found == runs_.end() || std::exchange(found->second.terminating, true)) return;
  found->second.process.signal(SIGTERM);
  found->second.process.signal(SIGCONT);  // a stopped program hears nothing else
  kills_.emplace(Clock::now() + options_.grace, ticket);
}

void Runner::kill_all() {
  for (const auto& [ticket, run] : runs_) run.process.signal(SIGKILL);
}

void Runner::reap_orphans() {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    // One of ours is reaped by its own event; until then it may hide others, which wait for the next time.
    const auto is_it = [&](const auto& run) { return run.second.process.id() == info.si_pid; };
    if (std::ranges::any_of(runs_, is_it)) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

void Runner::kill_overdue() {
  const auto now = Clock::now();
  while (!kills_.empty() && kills_.begin()->first <= now) {
    if (const auto found = runs_.find(kills_.begin()->second); found != runs_.end())
      found->second.process.signal(SIGKILL);
    kills_.erase(kills_.begin());
  }
}

std::chrono::milliseconds Runner::until_next_kill(std::chrono::milliseconds wait_max) const {
  if (kills_.empty()) return wait_max;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(kills_.begin()->first - Clock::now());
  return std::clamp(left, std::chrono::milliseconds{0}, wait_max);
}

void Runner::turn(std::chrono::milliseconds wait_max) {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(until_next_kill(wait_max).count()));
  for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)].data.u64);
  kill_overdue();
}

void Runner::wake() const {
  const std::uint64_t one = 1;
  const int saved = errno;
  [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
  errno = saved;
}

void Runner::handle(std::uint64_t event) {
  const Ticket ticket = event >> channel_bits;
  if (ticket == 0) {
    std::uint64_t calls = 0;
    [[maybe_unused]] const auto got = read(wake_.get(), &calls, sizeof calls);
    return;
  }
  const auto found = runs_.find(ticket);
  if (found == runs_.end()) return;  // it ended by an event of the same turn
  const auto channel = event & ((1U << channel_bits) - 1);
  if (channel == process) return finish(ticket);
  for (int i = 0; i < reads_in_a_row; ++i) {
    const bool more =
        channel == output ? read_output(ticket, found->second) : read_lines(ticket, found->second, channel);
    if (!more) return;
  }
}

bool Runner::read_output(Ticket ticket, Run& run) {
  if (!run.output) return false;
  const auto bytes = read_some(run.output, buffer_);
  if (!bytes) run.output.reset();
  if (!bytes || bytes->empty()) return false;
  Ending& ending = run.ending;
  if (ending.output.size() + bytes->size() <= options_.output_bytes) {
    ending.output += *bytes;
    return true;
  }
  // With the pipe gone even a program that ignores SIGTERM is not kept waiting for a reader.
  ending.too_much_output = true;
  ending.output = {};
  run.output.reset();
  terminate(ticket);
  return false;
}

bool Runner::read_lines(Ticket ticket, Run& run, std::uint64_t channel) {
  Fd& fd = channel == error ? run.error : run.report;
  if (!fd) return false;
  const auto bytes = read_some(fd, buffer_);
  if (!bytes) fd.reset();
  if (!bytes || bytes->empty()) return false;
  if (channel == error) {
    keep_tail(run.ending.error_tail, *bytes, options_.tail_bytes);
    run.log_lines.add(*bytes, [&](std::string_view line) { listener_.on_log(ticket, line); });
  } else {
    run.report_lines.add(*bytes, [&](std::string_view line) { listener_.on_report(ticket, line); });
  }
  return true;
}

void Runner::finish(Ticket ticket) {
  Run& run = runs_.at(ticket);
  // Before it is reaped: until then its id, and so the group's, cannot be somebody else's.
  run.process.signal(SIGKILL);
  for (int i = 0; i < last_reads && read_output(ticket, run); ++i) {
  }
  for (int i = 0; i < last_reads && read_lines(ticket, run, error); ++i) {
  }
  for (int i = 0; i < last_reads && read_lines(ticket, run, report); ++i) {
  }
  run.log_lines.finish([&](std::string_view line) { listener_.on_log(ticket, line); });
  run.report_lines.finish([&](std::string_view line) { listener_.on_report(ticket, line); });
  const Exit exit = run.process.wait();
  Ending ending = std::move(run.ending);
  ending.exit_code = exit.code;
  ending.signal = exit.signal;
  ending.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - run.started);
  runs_.erase(ticket);
  listener_.on_end(ticket, std::move(ending));
}

}  // namespace baton::worker
