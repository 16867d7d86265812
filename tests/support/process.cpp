#include "tests/support/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace baton::support {
namespace {

using namespace std::chrono_literals;
constexpr auto look_again = 2ms;  // there is no portable wait for a child with a time limit

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(std::vector<std::string> command, std::vector<std::string> variables) {
  const std::string out = directory_.path() / "out";
  const std::string err = directory_.path() / "err";
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (std::string& variable : variables) putenv(variable.data());
  dup2(open("/dev/null", O_RDONLY), 0);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
  execvp(argv[0], argv.data());
  _exit(127);
}

Process::~Process() {
  if (!exit_code_) {
    signal(SIGKILL);
    (void)wait(10s);
  }
}

void Process::signal(int number) const {
  if (!exit_code_) kill(pid_, number);
}

std::optional<std::string> Process::first_line(std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (true) {
    const bool ended = wait(0ms).has_value();
    const std::string text = out();
    if (const auto end = text.find('\n'); end != std::string::npos) return text.substr(0, end);
    if (ended || std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(look_again);
  }
}

std::optional<int> Process::wait(std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!exit_code_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_)
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    else if (std::chrono::steady_clock::now() > deadline)
      return std::nullopt;
    else
      std::this_thread::sleep_for(look_again);
  }
  return exit_code_;
}

std::string Process::out() const { return read(directory_.path() / "out"); }
std::string Process::err() const { return read(directory_.path() / "err"); }

}  // namespace baton::support
