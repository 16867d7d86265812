// SQLite through its C interface: WAL, prepared statements kept for the life of the connection.
#pragma once

#include <string>

#include "store/connection.hpp"

namespace baton::store::sqlite {

enum class Access {
  writer,  // creates the file; large cache
  admin,   // creates the file; small cache
  reader,  // the file must exist; can change nothing
  log,     // the file must exist; reads it, and writes the log beside it, which is attached as `log`
};

// The log of a database (sql_journal.hpp); what belongs to it begins so, as what belongs to a WAL does.
[[nodiscard]] inline std::string log_path(const std::string& path) { return path + "-log"; }

[[nodiscard]] Result<std::unique_ptr<Connection>> connect(const std::string& path, Access access);

}  // namespace baton::store::sqlite
