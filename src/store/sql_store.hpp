// The Store port on a SQL connection of either dialect.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "store/commit_log.hpp"
#include "store/connection.hpp"
#include "store/journal/tables.hpp"

namespace baton::store {

// `connect` is called by each open(), and with PostgreSQL for a second connection, on which the tables follow; what else it
// takes (a lock) it keeps to itself. The second one is tried out when it was not used for `idle_max`. `log` is
// SQLite's (commit_log.hpp); without it all commits are written to the database.
[[nodiscard]] std::unique_ptr<Tables> make_sql_store(Dialect dialect, Connect connect, LogFile log = {},
                                                     std::chrono::milliseconds idle_max = std::chrono::seconds{10});

}  // namespace baton::store
