#include "cli/bench/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace baton::cli::bench {
namespace {

namespace fs = std::filesystem;

constexpr int start_time_ms = 30'000;

// The settings of a server come from the bench alone, not from whatever the shell has set for another one.
std::vector<char*> environment() {
  std::vector<char*> kept;
  for (char** each = environ; *each != nullptr; ++each)
    if (!std::string_view{*each}.starts_with("BATON_")) kept.push_back(*each);
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<> TemporaryDirectory::make() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "baton-bench-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr)
    return fail(Code::unavailable, fmt::format("cannot make a temporary directory like {}", name));
  path_ = name;
  return {};
}

bool TemporaryDirectory::is_in_memory() const {
  struct statfs info{};
  return statfs(path_.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, -1)), out_(std::exchange(other.out_, -1)) {}

Process::~Process() {
  if (id_ > 0) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
}

Result<> Process::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"baton"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> envp = environment();
  std::error_code error;
  const std::string program = fs::read_symlink("/proc/self/exe", error).string();
  if (error) return fail(Code::unavailable, "cannot find the program itself: /proc is not there");
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(Code::unavailable, "cannot make a pipe");
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before the line above
    dup2(ends[1], STDOUT_FILENO);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  out_ = ends[0];
  if (id_ < 0)
    return fail(Code::unavailable, fmt::format("cannot start a process: {}", std::strerror(errno)));
  return {};
}

Result<std::string> Process::read_line() {
  std::string line;
  while (true) {
    pollfd ready{out_, POLLIN, 0};
    char c = 0;
    if (poll(&ready, 1, start_time_ms) != 1 || read(out_, &c, 1) != 1)
      return fail(Code::unavailable, "a process that the bench started did not come up");
    if (c == '\n') return line;
    line += c;
  }
}

void Process::stop() {
  if (id_ <= 0) return;
  kill(id_, SIGTERM);
  waitpid(id_, nullptr, 0);
  id_ = -1;
}

std::uint64_t Process::resident_bytes() const {
  std::ifstream file(fmt::format("/proc/{}/statm", id_));
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

double Process::cpu_seconds() const {
  std::ifstream file(fmt::format("/proc/{}/stat", id_));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name, in parentheses, may hold blanks; user and system time are the 12th and 13th field behind it.
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 2)));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace baton::cli::bench
