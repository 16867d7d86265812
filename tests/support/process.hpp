// Child processes and temporary directories that a test cannot leave behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"

namespace baton::support {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Runs a program with its output in files; dies with its parent, and is killed by the destructor.
class Process {
 public:
  // Variables are added to the environment: "NAME=value". Throws if it cannot be started.
  explicit Process(std::vector<std::string> command, const std::vector<std::string>& variables = {});

  [[nodiscard]] pid_t pid() const { return process_.id(); }
  void signal(int number) const { process_.signal(number); }
  // The first line of its standard output; none when it ends or the time is over before there is one.
  [[nodiscard]] std::optional<std::string> first_line(std::chrono::milliseconds within);
  // The exit code, 128 + signal when killed; none while it still runs after that time.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds within);
  [[nodiscard]] std::string out() const;  // what it has written so far
  [[nodiscard]] std::string err() const;

 private:
  TemporaryDirectory directory_;
  baton::Process process_;
};

}  // namespace baton::support
