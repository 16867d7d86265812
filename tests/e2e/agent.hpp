// `baton worker` as a process of its own, with a directory of scripts.
#pragma once

#include <signal.h>

#include <fstream>
#include <thread>

#include "tests/e2e/server.hpp"

namespace baton::e2e {

inline std::string read_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Not a zombie either, which has no program any more.
inline bool is_running(pid_t id) {
  std::error_code error;
  return std::filesystem::exists(
      std::filesystem::read_symlink("/proc/" + std::to_string(id) + "/exe", error));
}

class FunctionDirectory {
 public:
  void add(const std::string& name, const std::string& script) const {
    const auto file = path() / name;
    {
      std::ofstream out(file.string() + ".new");
      out << "#!/bin/sh\n" << script << '\n';
    }
    std::filesystem::permissions(file.string() + ".new", std::filesystem::perms::owner_all);
    std::filesystem::rename(file.string() + ".new", file);  // never half a script
  }
  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }

 private:
  support::TemporaryDirectory directory_;
};

class Agent {
 public:
  Agent(const std::string& url, const FunctionDirectory& functions, std::vector<std::string> options = {},
        std::vector<std::string> variables = {}) {
    std::vector<std::string> command{
        BATON_BINARY, "worker", "--server", url,           "--queue",
        "pool",       "--name", "agent",    "--functions", functions.path().string()};
    command.insert(command.end(), options.begin(), options.end());
    process_ = std::make_unique<support::Process>(std::move(command), std::move(variables));
  }
  [[nodiscard]] support::Process& process() { return *process_; }
  [[nodiscard]] std::string said() const { return process_->err(); }

 private:
  std::unique_ptr<support::Process> process_;
};

}  // namespace baton::e2e
