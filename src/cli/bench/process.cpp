#include "cli/bench/process.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace baton::cli::bench {
namespace {

namespace fs = std::filesystem;

constexpr int start_time_ms = 30'000;

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

Result<> Instance::start(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::string program = fs::read_symlink("/proc/self/exe", error).string();
  if (error) return fail(Code::unavailable, "cannot find the program itself: /proc is not there");
  TRY_ASSIGN(Pipe output, make_pipe());
  Launch launch{.command = {program},
                .environment = own_environment(),
                .fds = {STDIN_FILENO, output.writes.get(), STDERR_FILENO},
                .ends_with_us = true};
  launch.command.insert(launch.command.end(), arguments.begin(), arguments.end());
  // The settings of a server come from the bench alone, not from whatever the shell has set for another one.
  std::erase_if(launch.environment, [](const std::string& each) { return each.starts_with("BATON_"); });
  TRY_ASSIGN(process_, Process::start(launch));
  output_ = std::move(output.reads);
  return {};
}

Result<std::string> Instance::read_line() {
  std::string line;
  while (true) {
    pollfd ready{output_.get(), POLLIN, 0};
    char c = 0;
    if (poll(&ready, 1, start_time_ms) != 1 || read(output_.get(), &c, 1) != 1)
      return fail(Code::unavailable, "a process that the bench started did not come up");
    if (c == '\n') return line;
    line += c;
  }
}

void Instance::stop(int signal) {
  process_.signal(signal);
  process_.wait();
}

std::uint64_t Instance::resident_bytes() const {
  std::ifstream file(fmt::format("/proc/{}/statm", process_.id()));
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

double Instance::cpu_seconds() const {
  std::ifstream file(fmt::format("/proc/{}/stat", process_.id()));
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
