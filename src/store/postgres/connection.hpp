// PostgreSQL through libpq. A run is one pipeline: all of its statements leave in one go and their answers
// come back in one go.
#pragma once

#include <string>

#include "store/connection.hpp"

namespace baton::store::postgres {

// url: postgres://… or postgresql://…, with libpq's parameters, which have precedence over ours.
[[nodiscard]] Result<std::unique_ptr<Connection>> connect(const std::string& url);

}  // namespace baton::store::postgres
