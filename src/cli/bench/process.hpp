// Processes of this very program, and files, that are gone when the bench is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/process.hpp"

namespace baton::cli::bench {

class TemporaryDirectory {
 public:
  TemporaryDirectory() = default;
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] Result<> make();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // A file system in memory keeps nothing, so nothing written to it is durable.
  [[nodiscard]] bool is_in_memory() const;

 private:
  std::filesystem::path path_;
};

// This program with other arguments. The system kills it when this process dies, however it dies.
class Instance {
 public:
  [[nodiscard]] Result<> start(const std::vector<std::string>& arguments);
  // The next line of its standard output; an error when it ended or was silent for too long.
  [[nodiscard]] Result<std::string> read_line();
  // Ends it, and waits.
  void stop(int signal);

  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] double cpu_seconds() const;

 private:
  Process process_;
  Fd output_;
};

}  // namespace baton::cli::bench
