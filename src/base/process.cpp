#include "base/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace baton {
namespace {

std::unexpected<Error> system_error(std::string_view what) {
  return fail(Code::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

std::unexpected<Error> cannot_run(const std::string& file, int error) {
  const std::string_view hint = error == ENOEXEC  ? "; a script begins with #! and its interpreter"
                                : error == ENOENT ? "; is its interpreter installed?"
                                                  : "";
  return fail(Code::unavailable, fmt::format("cannot run {}: {}{}", file, std::strerror(error), hint));
}

// exec takes pointers to characters that it does not change.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (const auto& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

// execvp would do this too, and run a file that is no program as a script of the shell.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  if (name.find('/') != std::string::npos) return name;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    std::string file = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return {};
}

struct Arguments {
  std::string file;
  std::vector<char*> argv, envp;
};

// All that the child does. Until exec it runs in our memory, so it makes system calls and nothing else.
[[noreturn]] void become(const Launch& launch, const Arguments& arguments, pid_t parent, int failed) {
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &usual, nullptr);
  if (launch.isolation == Isolation::session) setsid();
  if (launch.isolation == Isolation::group) setpgid(0, 0);
  if (launch.ends_with_us) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died before the line above
  }
  for (std::size_t i = 0; i < launch.fds.size(); ++i) dup2(launch.fds[i], static_cast<int>(i));
  // Not all libraries that we use open their sockets close-on-exec.
  close_range(static_cast<unsigned>(launch.fds.size()), ~0U, CLOSE_RANGE_CLOEXEC);
  sigprocmask(SIG_SETMASK, &usual.sa_mask, nullptr);
  execve(arguments.file.c_str(), arguments.argv.data(), arguments.envp.data());
  const int error = errno;
  (void)!write(failed, &error, sizeof error);
  _exit(127);
}

// vfork, because fork copies the page tables of a process that may be large. A handler of ours must not run
// in the child.
pid_t start_child(const Launch& launch, const Arguments& arguments, int failed) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid();
  const pid_t id = vfork();
  if (id == 0) become(launch, arguments, parent, failed);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return id;
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Isolation needed_isolation() {
  const Fd terminal(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  return terminal ? Isolation::session : Isolation::group;
}

Result<Process> Process::start(const Launch& launch) {
  const Arguments arguments{find_program(launch.command.front()), pointers(launch.command),
                            pointers(launch.environment)};
  TRY_ASSIGN(Pipe failed, make_pipe());  // closed by exec
  Process made;
  made.has_group_ = launch.isolation != Isolation::none;
  made.id_ = start_child(launch, arguments, failed.writes.get());
  if (made.id_ < 0) return system_error("cannot make a process");
  failed.writes.reset();
  int error = 0;
  if (read(failed.reads.get(), &error, sizeof error) == sizeof error)
    return cannot_run(launch.command.front(), error);
  made.ended_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, made.id_, 0)));
  if (!made.ended_) return system_error("cannot watch a process");
  return made;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(has_group_, other.has_group_);
  std::swap(ended_, other.ended_);
  std::swap(exit_, other.exit_);
  return *this;
}

Process::~Process() {
  if (id_ <= 0) return;
  signal(SIGKILL);
  wait();
}

void Process::signal(int number) const {
  if (!exit_) kill(has_group_ ? -id_ : id_, number);
}

std::optional<Exit> Process::wait(std::chrono::milliseconds within) {
  pollfd ready{ended_.get(), POLLIN, 0};
  if (!exit_ && poll(&ready, 1, static_cast<int>(within.count())) != 1) return std::nullopt;
  return wait();
}

Exit Process::wait() {
  if (exit_) return *exit_;
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED) != 0 && errno == EINTR) {
  }
  const bool exited = info.si_code == CLD_EXITED;
  exit_ = Exit{.code = exited ? info.si_status : 0, .signal = exited ? 0 : info.si_status};
  return *exit_;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

void reserve_fds(int count) {
  // A descriptor that is open stays as it is; one that is not becomes /dev/null for the life of the process.
  for (int fd = 0; fd < count; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0) return;
}

}  // namespace baton
