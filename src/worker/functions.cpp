#include "worker/functions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>

namespace baton::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t name_bytes_max = 255;
constexpr std::size_t names_listed_max = 20;

// What could name something else than a file in the directory is refused before the file system sees it.
bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && name.front() != '.' && name.back() != '~' &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '/'; });
}

bool is_powershell(const fs::path& file) { return file.extension() == ".ps1"; }

bool is_function(const fs::path& file) {
  std::error_code error;
  if (!is_plain(file.filename().string()) || !fs::is_regular_file(file, error)) return false;
  return is_powershell(file) || access(file.c_str(), X_OK) == 0;
}

std::vector<std::string> command_of(const fs::path& file) {
  if (is_powershell(file)) return {"pwsh", "-NoLogo", "-NoProfile", "-NonInteractive", "-File", file};
  return {file};
}

Result<std::vector<fs::path>> files_of(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (is_function(it->path())) files.push_back(it->path());
  if (error)
    return fail(Code::invalid, fmt::format("cannot read {}: {}", directory.string(), error.message()));
  std::ranges::sort(files);
  return files;
}

// Names come from definitions and may hold anything.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, 100));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

}  // namespace

Result<std::vector<std::string>> Functions::find(std::string_view name) const {
  if (!is_plain(name)) return std::unexpected(no_such(name));
  const fs::path exact = directory_ / name;
  if (is_function(exact)) return command_of(exact);
  TRY_ASSIGN(auto files, files_of(directory_));
  std::erase_if(files, [&](const fs::path& file) { return file.stem().string() != name; });
  if (files.size() == 1) return command_of(files.front());
  if (files.empty()) return std::unexpected(no_such(name));
  return fail(Code::conflict, fmt::format("'{}' could be {} or {}: rename one of them", shown(name),
                                          files[0].filename().string(), files[1].filename().string()));
}

Result<std::vector<std::string>> Functions::list() const {
  TRY_ASSIGN(const auto files, files_of(directory_));
  std::map<std::string, std::size_t> stems;
  for (const fs::path& file : files) ++stems[file.stem().string()];
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const bool by_stem = stems[stem] == 1 && is_plain(stem);
    names.push_back(by_stem ? stem : file.filename().string());
  }
  std::ranges::sort(names);
  return names;
}

Error Functions::no_such(std::string_view name) const {
  const auto names = list();
  if (!names) return names.error();
  std::string there = names->empty() ? "there are none" : "there are: ";
  const std::size_t listed = std::min(names->size(), names_listed_max);
  there += fmt::format("{}",
                       fmt::join(names->begin(), names->begin() + static_cast<std::ptrdiff_t>(listed), ", "));
  if (listed < names->size()) there += fmt::format(" and {} more", names->size() - listed);
  return {Code::not_found, fmt::format("no such function: '{}'; {}", shown(name), there)};
}

}  // namespace baton::worker
