#include "tests/support/process.hpp"

#include <fcntl.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace baton::support {
namespace {

using namespace std::chrono_literals;
constexpr auto look_again = 2ms;  // a file tells nobody that it was written to

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

Process::Process(std::vector<std::string> command, const std::vector<std::string>& variables) {
  const Fd in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto create = [&](const char* name) {
    return Fd(open((directory_.path() / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  };
  const Fd out = create("out"), err = create("err");
  Launch launch{.command = std::move(command),
                .environment = own_environment(),
                .fds = {in.get(), out.get(), err.get()},
                .ends_with_us = true};
  for (const std::string& variable : variables) {
    const auto name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(launch.environment, [&](const std::string& each) { return each.starts_with(name); });
    launch.environment.push_back(variable);
  }
  auto started = baton::Process::start(launch);
  if (!started) throw std::runtime_error(started.error().message);
  process_ = std::move(*started);
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
  const auto exit = process_.wait(within);
  if (!exit) return std::nullopt;
  return exit->signal != 0 ? 128 + exit->signal : exit->code;
}

std::string Process::out() const { return read(directory_.path() / "out"); }
std::string Process::err() const { return read(directory_.path() / "err"); }

}  // namespace baton::support
