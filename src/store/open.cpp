#include "store/open.hpp"

#include "store/journal/journal_store.hpp"
#include "store/postgres/connection.hpp"
#include "store/sql_reads.hpp"
#include "store/sql_store.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/log_reader.hpp"
#include "store/sqlite/writer_lock.hpp"
#include "store/statements.hpp"

namespace baton::store {
namespace {

struct Target {
  Dialect dialect{};
  std::string where;  // a path, or the whole URL
};

Result<Target> parse(std::string_view url) {
  if (url.starts_with("postgres://") || url.starts_with("postgresql://"))
    return Target{Dialect::postgres, std::string(url)};
  constexpr std::string_view sqlite_scheme = "sqlite:";
  if (url.starts_with(sqlite_scheme)) {
    const std::string_view path = url.substr(sqlite_scheme.size());
    // A database in memory has no readers beside its writer.
    if (path.empty() || path == ":memory:")
      return fail(Code::invalid, "a SQLite database needs a file: sqlite:PATH");
    return Target{Dialect::sqlite, std::string(path)};
  }
  // The URL may hold a password, so only its scheme is repeated.
  return fail(Code::invalid, "cannot open a database of kind '" + std::string(url.substr(0, url.find(':'))) +
                                 "': expected sqlite:PATH or postgres://USER@HOST/DATABASE");
}

Connect connector(const Target& target, sqlite::Access access) {
  if (target.dialect == Dialect::postgres) return [url = target.where] { return postgres::connect(url); };
  return [path = target.where, access] { return sqlite::connect(path, access); };
}

// The lock on a file is taken by the first open() and kept over the next ones, until the store goes.
Connect locked_connector(const Target& target) {
  Connect connect = connector(target, sqlite::Access::writer);
  if (target.dialect == Dialect::postgres) return connect;  // locked by the store, on the connection itself
  return [path = target.where, connect,
          lock = std::shared_ptr<sqlite::WriterLock>()] mutable -> Result<std::unique_ptr<Connection>> {
    if (!lock) {
      TRY_ASSIGN(auto taken, sqlite::WriterLock::take(path));
      lock = std::make_shared<sqlite::WriterLock>(std::move(taken));
    }
    return connect();
  };
}

// What was lost in a crash of the database was lost with all connections to it, so that a look at each new one is enough.
Result<> check_followed(Connection& connection, Followed& followed, Partition partition) {
  const std::int64_t believed = followed.shown();  // before the look: the tables go on meanwhile
  const Statement ask{"SELECT followed FROM writer_state WHERE partition=?1", {Type::integer}};
  std::int64_t shown = believed;
  const Query query{&ask, 1, constant({std::int64_t{partition.number}}),
                    [&](const RowView& row) -> Result<> { return shown = row.integer(0), Result<>{}; }, {}};
  TRY(connection.run({&query, 1}, Mode::read));
  if (shown < believed) followed.doubt(shown);
  if (shown < believed || followed.is_doubted())
    return fail(Code::unavailable, "the database has lost what the tables showed last; they follow again");
  return {};
}

Connect checked_connector(Connect connect, Followed& followed, Partition partition) {
  return [connect = std::move(connect), &followed, partition]() -> Result<std::unique_ptr<Connection>> {
    TRY_ASSIGN(auto connection, connect());
    TRY(check_followed(*connection, followed, partition));
    return connection;
  };
}

}  // namespace

Result<std::unique_ptr<Tables>> make_tables(std::string_view url, MissingLog missing_log) {
  TRY_ASSIGN(const auto target, parse(url));
  LogFile log;
  if (target.dialect == Dialect::sqlite)
    log = {target.where, connector(target, sqlite::Access::log), missing_log == MissingLog::accept};
  return make_sql_store(target.dialect, locked_connector(target), std::move(log));
}

Result<std::unique_ptr<Store>> make_store(std::string_view url, MissingLog missing_log) {
  TRY_ASSIGN(auto tables, make_tables(url, missing_log));
  return std::make_unique<JournalStore>(std::move(tables));
}

Result<std::unique_ptr<Reads>> make_reads(std::string_view url) {
  TRY_ASSIGN(const auto target, parse(url));
  return make_sql_reads(target.dialect, connector(target, sqlite::Access::reader));
}

Result<std::unique_ptr<Reads>> make_reads(std::string_view url, Followed& followed, Partition partition) {
  TRY_ASSIGN(const auto target, parse(url));
  return make_sql_reads(target.dialect, checked_connector(connector(target, sqlite::Access::reader), followed, partition));
}

Result<std::unique_ptr<TokenAdmin>> make_token_admin(std::string_view url) {
  TRY_ASSIGN(const auto target, parse(url));
  return make_sql_token_admin(target.dialect, connector(target, sqlite::Access::admin));
}

Result<Checked> check_database(std::string_view url, Partition partition, const TellFinding& tell) {
  TRY_ASSIGN(const auto target, parse(url));
  Connect log;
  if (target.dialect == Dialect::sqlite) log = [path = target.where] { return sqlite::connect_with_log(path); };
  return check(target.dialect, connector(target, sqlite::Access::reader), log, partition, tell);
}

}  // namespace baton::store
