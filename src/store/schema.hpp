// The tables, as numbered migrations that only go forward. They run when a writer opens a database
// or the token administration an empty one, under a lock, so that two of them cannot migrate at once.
#pragma once

#include "store/connection.hpp"

namespace baton::store {

// Brings the database to the version of this program. A database that is newer is refused and not touched.
[[nodiscard]] Result<> migrate(Connection& connection, Dialect dialect);

// For the administration of tokens, which may come before the first server but never migrates beside one.
[[nodiscard]] Result<> migrate_if_empty(Connection& connection, Dialect dialect);

// DDL in the words of a dialect: {text}, {json}, {time}, {int}, {bigint}, {bool}, {id}, {now}, {heap} and so on.
[[nodiscard]] std::string in_dialect(std::string_view text, Dialect dialect);

// For readers, which never migrate: the database must have exactly this program's version.
[[nodiscard]] Result<> check_version(Connection& connection, Dialect dialect);

}  // namespace baton::store
