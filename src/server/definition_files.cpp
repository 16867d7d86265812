#include "server/definition_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>

#include "base/yaml.hpp"
#include "ports/ask.hpp"

namespace baton::server {
namespace fs = std::filesystem;

std::expected<std::string, Diagnostic> read_text(const std::string& path) {
  const auto unreadable = [](std::string why) {
    return std::unexpected(
        Diagnostic{.at = {}, .code = "unreadable", .message = "cannot read the file: " + why, .hint = {}});
  };
  std::error_code error;
  if (fs::is_directory(path, error)) return unreadable("it is a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return unreadable(errno != 0 ? std::strerror(errno) : "unknown reason");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

namespace {

// A file of either kind; `parse` is that of its kind.
template <class File, class Parse>
File read_file(const std::string& path, Parse parse) {
  File file{.path = path, .text = {}, .definition = {}, .diagnostics = {}};
  auto text = read_text(path);
  if (!text) {
    file.diagnostics.push_back(std::move(text).error());
    return file;
  }
  file.text = *std::move(text);
  auto parsed = parse(file.text);
  file.definition = std::move(parsed.definition);
  file.diagnostics = std::move(parsed.diagnostics);
  return file;
}

}  // namespace

DefinitionFile read_definition(const std::string& path) {
  return read_file<DefinitionFile>(path, [](std::string_view text) { return workflow::parse(text); });
}

RunbookFile read_runbook(const std::string& path) {
  return read_file<RunbookFile>(path, [](std::string_view text) { return runbook::parse(text); });
}

bool is_runbook(std::string_view text) {
  const auto document = yaml::parse(text);
  if (!document) return false;
  const auto has = [&](std::string_view key) { return document->find(key) != nullptr; };
  return (has("phases") || has("data_source")) && !has("nodes");
}

Result<std::vector<DefinitionFile>> read_definitions(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const fs::path extension = it->path().extension();
    if (extension == ".yaml" || extension == ".yml") paths.push_back(it->path());
  }
  if (error)
    return fail(Code::invalid,
                fmt::format("cannot read the definitions in {}: {}", directory.string(), error.message()));
  std::ranges::sort(paths);
  std::vector<DefinitionFile> files;
  for (const fs::path& path : paths) {
    files.push_back(read_definition(path.string()));
    DefinitionFile& file = files.back();
    if (!file.definition && is_runbook(file.text))
      file.diagnostics = {{.at = {},
                           .code = "not_a_workflow",
                           .message = "this is a runbook, and only workflows are published from here",
                           .hint = "keep it elsewhere, and publish it with `baton runbook publish`"}};
  }
  return files;
}

std::string render(const std::vector<DefinitionFile>& files) {
  std::string text;
  for (const DefinitionFile& file : files)
    for (const Diagnostic& each : file.diagnostics) text += baton::render(file.path, each) + '\n';
  return text;
}

Result<std::vector<WorkflowReply>> publish(Inbox& inbox, const workflow::Tenant& tenant,
                                           const std::vector<DefinitionFile>& files) {
  std::vector<std::future<Reply>> answers;
  for (const DefinitionFile& file : files)
    answers.push_back(
        ask(inbox, PublishWorkflow{.tenant = tenant, .definition = file.definition, .text = file.text}));
  std::vector<WorkflowReply> published;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Reply reply = answers[i].get();
    if (const auto* refused = std::get_if<Refused>(&reply))
      return fail(Code::conflict, fmt::format("{}: {}", files[i].path, refused->message));
    if (const auto* done = std::get_if<WorkflowReply>(&reply)) published.push_back(*done);
  }
  return published;
}

}  // namespace baton::server
