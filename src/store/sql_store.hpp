// The Store port on a SQL connection of either dialect.
#pragma once

#include <functional>
#include <memory>

#include "ports/store.hpp"
#include "store/connection.hpp"

namespace baton::store {

// `connect` is called by each open(); what else it takes (a lock) it keeps to itself.
[[nodiscard]] std::unique_ptr<Store> make_sql_store(Dialect dialect, Connect connect);

}  // namespace baton::store
