// Where members come from: a CSV file, a query, a URL. Read in one go, whole or not at all; an error is never
// "nobody is there".
#pragma once

#include "base/result.hpp"
#include "core/runbook/definition/definition.hpp"
#include "core/runbook/members/source_table.hpp"

namespace baton {

using runbook::SourceTable;

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
