#include "store/schema.hpp"

#include <tuple>

#include "store/migrations.hpp"

namespace baton::store {
namespace {

const auto latest = static_cast<std::int64_t>(migrations().size());

Result<std::int64_t> query_number(Connection& connection, std::string sql) {
  const Statement statement{std::move(sql), {}};
  std::int64_t number = 0;
  const Query query{&statement,
                    1,
                    {},
                    [&](const RowView& row) -> Result<> { return number = row.integer(0), Result<>{}; },
                    {}};
  TRY(connection.run({&query, 1}, Mode::read));
  return number;
}

// 0: an empty database.
Result<std::int64_t> current_version(Connection& connection, Dialect dialect) {
  TRY_ASSIGN(const auto migrated, query_number(connection, in_dialect("SELECT {migrated}", dialect)));
  if (migrated == 0) return 0;
  return query_number(connection, "SELECT coalesce(max(version), 0) FROM schema_migrations");
}

std::unexpected<Error> newer(std::int64_t version) {
  return fail(Code::invalid, "the database has schema version " + std::to_string(version) +
                                 ", but this program knows only up to " + std::to_string(latest) +
                                 ": run a newer baton");
}

std::unexpected<Error> not_migrated(std::int64_t version, Dialect dialect, const Error& error) {
  if (dialect == Dialect::sqlite || error.code != Code::unavailable) return std::unexpected(error);
  return fail(error.code, "the database was not migrated from schema version " + std::to_string(version) + " to " +
                              std::to_string(latest) + ", and nothing of it was changed: " + error.message +
                              ". If another program holds its tables, end what it does (pg_stat_activity lists all "
                              "that is open) and start again");
}

Result<> migrate_locked(Connection& connection, Dialect dialect) {
  TRY(
      connection.script(in_dialect("CREATE TABLE IF NOT EXISTS schema_migrations (version {int} PRIMARY KEY, "
                                   "applied_at {time} NOT NULL) {heap}",
                                   dialect)));
  TRY_ASSIGN(auto version, current_version(connection, dialect));
  if (version > latest) return newer(version);
  while (version < latest) {
    TRY(connection.script(in_dialect(migrations()[static_cast<std::size_t>(version)], dialect)));
    ++version;
    TRY(connection.script(in_dialect(
        "INSERT INTO schema_migrations(version, applied_at) VALUES (" + std::to_string(version) + ", {now})",
        dialect)));
  }
  return {};
}

}  // namespace

Result<> migrate(Connection& connection, Dialect dialect) {
  // Most opens find nothing to do, and then need no lock.
  TRY_ASSIGN(const auto version, current_version(connection, dialect));
  if (version == latest) return {};
  if (version > latest) return newer(version);
  auto migrated = connection.script(in_dialect("{begin}", dialect));
  if (migrated) migrated = migrate_locked(connection, dialect);
  // Some errors have ended the transaction already; the rollback is then refused, which changes nothing.
  if (!migrated) {
    std::ignore = connection.script("ROLLBACK");
    return not_migrated(version, dialect, migrated.error());
  }
  migrated = connection.script("COMMIT");
  if (!migrated) std::ignore = connection.script("ROLLBACK");
  return migrated;
}

Result<> migrate_if_empty(Connection& connection, Dialect dialect) {
  TRY_ASSIGN(const auto version, current_version(connection, dialect));
  return version == 0 ? migrate(connection, dialect) : check_version(connection, dialect);
}

Result<> check_version(Connection& connection, Dialect dialect) {
  TRY_ASSIGN(const auto version, current_version(connection, dialect));
  if (version > latest) return newer(version);
  if (version < latest) {
    return fail(Code::unavailable, "the database has schema version " + std::to_string(version) +
                                       ", but this program needs " + std::to_string(latest) +
                                       ": start the server once to migrate it");
  }
  return {};
}

}  // namespace baton::store
