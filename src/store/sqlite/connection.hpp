// SQLite through its C interface: WAL, prepared statements kept for the life of the connection.
#pragma once

#include <string>

#include "store/connection.hpp"

namespace baton::store::sqlite {

enum class Access {
  writer,  // creates the file; large cache
  admin,   // creates the file; small cache
  reader,  // the file must exist; can change nothing
};

[[nodiscard]] Result<std::unique_ptr<Connection>> connect(const std::string& path, Access access);

}  // namespace baton::store::sqlite
