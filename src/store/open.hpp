// The stores by URL: sqlite:PATH, postgres://… or postgresql://….
#pragma once

#include <memory>
#include <string_view>

#include "ports/followed.hpp"
#include "ports/reads.hpp"
#include "store/check/check.hpp"
#include "store/journal/tables.hpp"

namespace baton::store {

// A SQLite database that was not stopped in order, or is a copy of one that was running, needs its log
// (commit_log.hpp). `accept`: the first open() goes on without what a missing log held.
enum class MissingLog { refuse, accept };

// Touches nothing before Store::open().
[[nodiscard]] Result<std::unique_ptr<Store>> make_store(std::string_view url, MissingLog missing_log = MissingLog::refuse);
// The same without a journal: what is committed is in the tables at once. The journal is built on it.
[[nodiscard]] Result<std::unique_ptr<Tables>> make_tables(std::string_view url, MissingLog missing_log = MissingLog::refuse);
// The database must have been opened by a store or by the token administration before: a reader creates and
// migrates nothing.
[[nodiscard]] Result<std::unique_ptr<Reads>> make_reads(std::string_view url);
// The same beside the engine of this process. Each connection that is made looks whether the tables show what `followed`
// believes; if they do not, it doubts that, and the connection fails with Code::unavailable until the engine has settled it.
[[nodiscard]] Result<std::unique_ptr<Reads>> make_reads(std::string_view url, Followed& followed, Partition partition);
// Creates and migrates the database if need be, beside a running writer or without one.
[[nodiscard]] Result<std::unique_ptr<TokenAdmin>> make_token_admin(std::string_view url);

// Whether journal and tables agree, beside a running writer or without one; it reads in one snapshot and changes nothing.
[[nodiscard]] Result<Checked> check_database(std::string_view url, Partition partition, const TellFinding& tell);

}  // namespace baton::store
