// The Reads and TokenAdmin ports on a SQL connection of either dialect.
#pragma once

#include <memory>

#include "ports/reads.hpp"
#include "store/connection.hpp"

namespace baton::store {

// Connect at once, so that what is wrong is said at start. A connection that is lost later is made anew by
// the next question.
[[nodiscard]] Result<std::unique_ptr<Reads>> make_sql_reads(Dialect dialect, Connect connect);
[[nodiscard]] Result<std::unique_ptr<TokenAdmin>> make_sql_token_admin(Dialect dialect, Connect connect);

// The statement behind Reads::jobs, for one status; here so that a test can ask the database for its plan.
[[nodiscard]] Statement jobs_statement(const JobFilter& filter, bool has_before);

}  // namespace baton::store
