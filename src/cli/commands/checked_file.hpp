// What `validate` says of files: workflows and runbooks, read from disk and checked whole. Needs no server.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"

namespace baton::cli {

struct CheckedFile {
  bool is_runbook = false;  // else a workflow
  std::string path;
  bool valid = false;
  std::string name;     // the workflow_id, or the runbook's name; empty when it is not valid
  std::string summary;  // what is in it, for people: "3 nodes"
  std::vector<Diagnostic> diagnostics;
};

// A document with phases and without nodes is checked as a runbook, every other one as a workflow.
[[nodiscard]] CheckedFile check_file(const std::string& path);
[[nodiscard]] CheckedFile check_runbook(const std::string& path);

// Every problem of every file, as compilers print them, then a line for each file that is valid; or JSON.
// The answer is the exit code.
[[nodiscard]] int print_checked(const std::vector<CheckedFile>& files, bool as_json);

}  // namespace baton::cli
