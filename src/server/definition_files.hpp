// Definitions of workflows and runbooks on disk: read, check whole, publish.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/runbook/definition/definition.hpp"
#include "core/workflow/definition/definition.hpp"
#include "ports/commands.hpp"

namespace baton::server {

struct DefinitionFile {
  std::string path;
  std::string text;
  std::shared_ptr<const workflow::Definition> definition;  // null when there is any error
  std::vector<Diagnostic> diagnostics;
};

struct RunbookFile {
  std::string path;
  std::string text;
  std::shared_ptr<const runbook::Definition> definition;  // null when there is any error
  std::vector<Diagnostic> diagnostics;
};

// An unreadable file is one diagnostic like any other, so that all problems of all files can be told at once.
[[nodiscard]] std::expected<std::string, Diagnostic> read_text(const std::string& path);
[[nodiscard]] DefinitionFile read_definition(const std::string& path);
[[nodiscard]] RunbookFile read_runbook(const std::string& path);

// Whether a text is meant as a runbook rather than as a workflow: it has phases or a data source, and no
// nodes.
[[nodiscard]] bool is_runbook(std::string_view text);

// Every *.yaml and *.yml of the directory, by name; not its subdirectories.
[[nodiscard]] Result<std::vector<DefinitionFile>> read_definitions(const std::filesystem::path& directory);

// Every diagnostic of every file, one a line, as compilers print them.
[[nodiscard]] std::string render(const std::vector<DefinitionFile>& files);

// All of them or the first refusal, in words for people.
[[nodiscard]] Result<std::vector<WorkflowReply>> publish(Inbox& inbox, const workflow::Tenant& tenant,
                                                         const std::vector<DefinitionFile>& files);

}  // namespace baton::server
