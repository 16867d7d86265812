// Where members come from: a CSV file, a query, a URL. Read in one go, whole or not at all; an error is never
// "nobody is there".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton {

struct SourceTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;  // as many cells as there are columns
};

class DataSources {
 public:
  virtual ~DataSources() = default;
  // May take long; any thread, several at once. The message of an error names row and column where there are
  // some, and never holds the connection itself, which may be a secret.
  [[nodiscard]] virtual Result<SourceTable> fetch(const runbook::DataSource& source) = 0;
  // The server stops: fetches that are under way end with an error within a moment, and so does every later
  // one. From any thread.
  virtual void interrupt() {}
};

}  // namespace baton
