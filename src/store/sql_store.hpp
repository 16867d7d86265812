// The Store port on a SQL connection of either dialect.
#pragma once

#include <functional>
#include <memory>

#include "store/connection.hpp"
#include "store/journal/tables.hpp"

namespace baton::store {

// `connect` is called by each open(), and with PostgreSQL for a second connection, on which the tables follow; what else it
// takes (a lock) it keeps to itself.
[[nodiscard]] std::unique_ptr<Tables> make_sql_store(Dialect dialect, Connect connect);

}  // namespace baton::store
