// The log of a SQLite database (commit_log.hpp), for those who read it while no server runs.
#pragma once

#include "store/connection.hpp"

namespace baton::store::sqlite {

// A connection to the database with its log attached as `log`, which can change neither. Null: there is no log, or nothing
// in it yet. Code::busy: a server has it. No server can start as long as something was read of the log and the connection lives.
[[nodiscard]] Result<std::unique_ptr<Connection>> connect_with_log(const std::string& path);

}  // namespace baton::store::sqlite
