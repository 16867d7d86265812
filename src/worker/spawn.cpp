#include "worker/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace baton::worker {
namespace {

std::unexpected<Error> system_error(std::string_view what, int error = errno) {
  return fail(Code::unavailable, fmt::format("{}: {}", what, std::strerror(error)));
}

// A file in memory instead of a pipe: it can never fill up, so nobody has to feed it, and a program that does
// not read does no harm.
Result<Fd> make_input(const std::string& text) {
  Fd file(memfd_create("baton-params", MFD_CLOEXEC));
  if (!file) return system_error("cannot make a file in memory");
  for (std::size_t done = 0; done < text.size();) {
    const auto written = write(file.get(), text.data() + done, text.size() - done);
    if (written < 0) return system_error("cannot write the parameters");
    done += static_cast<std::size_t>(written);
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return system_error("cannot rewind the parameters");
  return file;
}

struct Pipe {
  Fd ours, theirs;
};

Result<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  // Only our end: the other one is a file description of its own, which programs expect to block.
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return system_error("cannot set up a pipe");
  return pipe;
}

// How the child differs from us before it becomes the program.
class Preparation {
 public:
  Preparation(int input, int output, int error, int report, Isolation isolation) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, error, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, report, report_fd);
    // Not all libraries that we use open their sockets close-on-exec.
    posix_spawn_file_actions_addclosefrom_np(&actions_, report_fd + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    const int leads = isolation == Isolation::session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes_,
                             static_cast<short>(leads | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  ~Preparation() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  // 0, or the errno of what failed, exec included.
  int start(pid_t& id, char* const* argv, char* const* envp) const {
    return posix_spawnp(&id, argv[0], &actions_, &attributes_, argv, envp);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string explain(const std::string& file, int error) {
  const std::string hint = error == ENOEXEC  ? "; a script begins with #! and its interpreter"
                           : error == ENOENT ? "; is its interpreter installed?"
                                             : "";
  return fmt::format("cannot run {}: {}{}", file, std::strerror(error), hint);
}

// exec takes pointers to characters that it does not change.
std::vector<char*> pointers(const std::vector<std::string>& first,
                            const std::vector<std::string>& second = {}) {
  std::vector<char*> all;
  all.reserve(first.size() + second.size() + 1);
  for (const auto& word : first) all.push_back(const_cast<char*>(word.c_str()));
  for (const auto& word : second) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Isolation needed_isolation() {
  const Fd terminal(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  return terminal ? Isolation::session : Isolation::group;
}

Result<Child> spawn(const Program& program, const std::vector<std::string>& environment,
                    Isolation isolation) {
  TRY_ASSIGN(const Fd input, make_input(program.input));
  TRY_ASSIGN(Pipe output, make_pipe());
  TRY_ASSIGN(Pipe error, make_pipe());
  TRY_ASSIGN(Pipe report, make_pipe());
  const Preparation preparation(input.get(), output.theirs.get(), error.theirs.get(), report.theirs.get(),
                                isolation);
  const auto argv = pointers(program.command);
  const auto envp = pointers(environment, program.variables);
  Child child;
  if (const int failed = preparation.start(child.id, argv.data(), envp.data()); failed != 0)
    return fail(Code::unavailable, explain(program.command.front(), failed));
  child.process = Fd(static_cast<int>(syscall(SYS_pidfd_open, child.id, 0)));
  if (!child.process) {
    const int why = errno;
    kill(-child.id, SIGKILL);
    waitpid(child.id, nullptr, 0);
    return system_error("cannot watch a process", why);
  }
  child.output = std::move(output.ours);
  child.error = std::move(error.ours);
  child.report = std::move(report.ours);
  return child;
}

void reserve_standard_fds() {
  // A descriptor that is open stays as it is; one that is not becomes /dev/null for the life of the process.
  for (int fd = 0; fd <= report_fd; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0) return;
}

}  // namespace baton::worker
