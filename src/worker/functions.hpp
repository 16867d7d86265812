// The functions of a directory: which program a handler's name stands for. Looked up anew for each task, so
// that functions can be added and replaced while the agent runs. Only the directory itself is looked at.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace baton::worker {

class Functions {
 public:
  explicit Functions(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // The command that runs NAME: the executable file NAME, else the only one called NAME.something. A name
  // that is not that of a plain file here, hidden ones included, is not found, whatever it would resolve to.
  [[nodiscard]] Result<std::vector<std::string>> find(std::string_view name) const;

  // The names by which the functions can be called, sorted.
  [[nodiscard]] Result<std::vector<std::string>> list() const;

 private:
  [[nodiscard]] Error no_such(std::string_view name) const;
  std::filesystem::path directory_;
};

}  // namespace baton::worker
