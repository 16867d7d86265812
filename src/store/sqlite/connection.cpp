#include "store/sqlite/connection.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <unordered_map>

#include "store/background.hpp"

namespace baton::store::sqlite {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

// A statement that is not reset keeps its read transaction open, which would stop every checkpoint.
class ResetOnExit {
 public:
  explicit ResetOnExit(sqlite3_stmt* statement) : statement_(statement) {}
  ~ResetOnExit() { sqlite3_reset(statement_); }
  ResetOnExit(const ResetOnExit&) = delete;
  ResetOnExit& operator=(const ResetOnExit&) = delete;

 private:
  sqlite3_stmt* statement_;
};

Result<Database> open_file(const std::string& path) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database db(raw);
  if (result != SQLITE_OK) return fail(Code::unavailable, sqlite3_errmsg(raw));
  return db;
}

Code code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_FULL: return Code::full;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Code::busy;
    case SQLITE_CONSTRAINT: return Code::conflict;
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE: return Code::invalid;
    default: return Code::unavailable;  // I/O error, no memory: rolled back, may work later
  }
}

class Row final : public RowView {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  bool is_null(int column) const override { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t integer(int column) const override { return sqlite3_column_int64(statement_, column); }
  std::string_view text(int column) const override {
    const auto* data = sqlite3_column_text(statement_, column);  // before the size: it may convert
    if (data == nullptr) return {};
    return {reinterpret_cast<const char*>(data),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  std::string bytes(int column) const override {
    const void* data = sqlite3_column_blob(statement_, column);
    return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

// The text of a parameter that is an instant. The rows of a batch mostly carry the same one.
class TimeText {
 public:
  std::string_view text(Time time) {
    if (time != time_) {
      time_ = time;
      text_ = to_iso(time);
    }
    return text_;
  }

 private:
  Time time_{};
  std::string text_ = to_iso(Time{});
};

class SqliteConnection final : public Connection {
 public:
  explicit SqliteConnection(Database db, Access access)
      : db_(std::move(db)),
        begin_write_(access == Access::log ? "BEGIN" : "BEGIN IMMEDIATE"),
        copies_beside_(access == Access::writer) {
    sqlite3_wal_hook(db_.get(), committed, this);
  }

  Result<> run(std::span<const Query> queries, Mode mode) override {
    if (mode != Mode::write_lazily) return run_synced(queries, mode);
    // The WAL is not synced now. The next commit syncs all of it, and a crash before that undoes this one whole.
    TRY(script("PRAGMA synchronous=NORMAL"));
    Result<> done = run_synced(queries, mode);
    if (!script("PRAGMA synchronous=FULL")) broken_ = true;
    return done;
  }

  Result<> run_synced(std::span<const Query> queries, Mode mode) {
    const bool own = sqlite3_get_autocommit(db_.get()) != 0;
    if (own) TRY(script(mode == Mode::read ? "BEGIN" : begin_write_));
    for (const Query& query : queries) {
      if (auto done = run_query(query); !done) return own ? roll_back(std::move(done).error()) : done;
    }
    if (own) TRY(commit(mode));
    return {};
  }

  // Outside of any transaction.
  Result<> run_alone(const Query& query) { return run_query(query); }

  Result<> script(const std::string& sql) override {
    const int result = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    return result == SQLITE_OK ? Result<>{} : error(result);
  }

  bool broken() const override { return broken_; }

  std::optional<std::uint64_t> room() const override {
    struct statvfs disk{};
    if (::statvfs(sqlite3_db_filename(db_.get(), "main"), &disk) != 0) return std::nullopt;
    return std::uint64_t{disk.f_bavail} * disk.f_frsize;
  }

 private:
  std::unexpected<Error> error(int result) const {
    std::string message = std::string("SQLite: ") + sqlite3_errmsg(db_.get());
    const Code code = code_of(result);
    if (code == Code::busy) {
      message += std::string("; another program has an open write transaction on ") + sqlite3_db_filename(db_.get(), "main");
      if (const char* log = sqlite3_db_filename(db_.get(), "log")) message += std::string(" or ") + log;
    }
    return fail(code, std::move(message));
  }

  Result<> roll_back(Error error) {
    // Some errors (a full disk, an I/O error) have rolled back already.
    if (sqlite3_get_autocommit(db_.get()) == 0 && !script("ROLLBACK")) broken_ = true;
    return std::unexpected(std::move(error));
  }

  // Only here can an I/O error leave it open whether the transaction is in the file.
  Result<> commit(Mode mode) {
    const int result = sqlite3_exec(db_.get(), "COMMIT", nullptr, nullptr, nullptr);
    if (result == SQLITE_OK) return {};
    Error failure = error(result).error();
    if (mode != Mode::read && (result & 0xff) != SQLITE_FULL && (result & 0xff) != SQLITE_BUSY) {
      failure.code = Code::unknown;
      broken_ = true;
    }
    return roll_back(std::move(failure));
  }

  // A commit has left a WAL of so many pages. A longer one saves copying pages that change again soon, but readers search it
  // and a start replays it.
  static int committed(void* self, sqlite3*, const char* name, int pages) {
    constexpr int pages_max = 8'000;
    if (pages >= pages_max) static_cast<SqliteConnection*>(self)->copy_wal(name, pages >= pages_max * 3 / 2);
    return SQLITE_OK;
  }

  // The WAL begins anew when it was copied whole. Most of it is copied by another thread, so that neither the next commits nor
  // those who want to read them wait for that, and what came meanwhile, which is little, by this one. That the database cannot be
  // written is found out by who comes next: this commit is durable.
  void copy_wal(const char* name, bool is_too_long) {
    if (is_too_long) copying_.wait();  // commits come faster than they can be copied
    if (copying_.is_busy()) return;
    const auto copied = copying_.end();
    if (copied && !*copied && !passes(copied->error().code)) broken_ = true;
    if (copies_beside_ && !copied && !is_too_long)
      copying_.begin([this, path = std::string(sqlite3_db_filename(db_.get(), name))] { return copy_beside(path); });
    else if (const int result = copy(db_.get(), name); result != SQLITE_OK && !passes(code_of(result)))
      broken_ = true;
  }
  static int copy(sqlite3* db, const char* name) {
    return sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  }
  // Whoever else copies it lets go of it, and on a full disk the next commits tell that it is full.
  static bool passes(Code code) { return code == Code::busy || code == Code::full; }

  Result<> copy_beside(const std::string& path) {
    if (!copier_) {
      TRY_ASSIGN(copier_, open_file(path));
      sqlite3_exec(copier_.get(), "PRAGMA synchronous=FULL;PRAGMA mmap_size=0", nullptr, nullptr, nullptr);
    }
    const int result = copy(copier_.get(), "main");
    return result == SQLITE_OK ? Result<>{} : fail(code_of(result), sqlite3_errmsg(copier_.get()));
  }

  Result<> run_query(const Query& query) {
    TRY_ASSIGN(sqlite3_stmt* const statement, prepare(query.statement->sql));
    values_.resize(query.statement->parameters.size());
    times_.resize(std::max(times_.size(), values_.size()));
    const Row view(statement);
    for (std::size_t set = 0; set < query.sets; ++set) {
      const ResetOnExit guard(statement);
      if (query.fill) query.fill(set, values_);
      TRY(bind(statement, query.statement->parameters));
      int result = sqlite3_step(statement);
      for (; result == SQLITE_ROW; result = sqlite3_step(statement)) {
        if (query.row) TRY(query.row(view));
      }
      if (result != SQLITE_DONE) return error(result);
      if (query.statement->exact && sqlite3_changes(db_.get()) != 1) return std::unexpected(query.missed);
    }
    return {};
  }

  Result<sqlite3_stmt*> prepare(const std::string& sql) {
    Prepared& prepared = prepared_[sql];
    if (!prepared) {
      sqlite3_stmt* raw = nullptr;
      const int result = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                            SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
      if (result != SQLITE_OK) return error(result);
      prepared.reset(raw);
    }
    return prepared.get();
  }

  Result<> bind(sqlite3_stmt* statement, const std::vector<Type>& types) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const int at = static_cast<int>(i) + 1;
      const int result =
          std::visit(overloaded{
                         [&](std::monostate) { return sqlite3_bind_null(statement, at); },
                         [&](std::int64_t number) { return sqlite3_bind_int64(statement, at, number); },
                         [&](Time time) { return bind_text(statement, at, times_[i].text(time)); },
                         [&](std::string_view text) {
                           return types[i] == Type::bytes ? bind_bytes(statement, at, text) : bind_text(statement, at, text);
                         },
                     },
                     values_[i]);
      if (result != SQLITE_OK) return error(result);
    }
    return {};
  }

  // Nothing is copied: the text outlives the step, and each step binds all parameters anew. An empty view may
  // have no address, which SQLite would take for NULL.
  static int bind_text(sqlite3_stmt* statement, int at, std::string_view text) {
    return sqlite3_bind_text64(statement, at, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  }
  static int bind_bytes(sqlite3_stmt* statement, int at, std::string_view bytes) {
    return sqlite3_bind_blob64(statement, at, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
  }

  Database db_;
  const std::string begin_write_;  // one that is immediate waits for whoever writes any of the attached files
  std::unordered_map<std::string, Prepared> prepared_;  // destroyed before db_
  std::vector<Value> values_;
  std::vector<TimeText> times_;  // by parameter
  bool broken_ = false;

  const bool copies_beside_;
  Database copier_;     // of the other thread
  Background copying_;  // ends before what it uses
};

// What the file holds is nobody else's business; the WAL takes its mode from the file. One that is there is not opened:
// closing it would drop the locks of all connections that this process has to it, and another program that closes it
// would take itself for the last one and delete the WAL under us.
Result<> create_file(const std::string& path) {
  std::error_code failure;
  if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty()) {
    std::filesystem::create_directories(parent, failure);
    if (failure) return fail(Code::unavailable, failure.message());
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST) return {};
  if (file < 0) return fail(Code::unavailable, std::strerror(errno));
  ::close(file);
  return {};
}

std::string settings(Access access) {
  // Debian's library overwrites with zeros what is deleted, and writes that to the WAL: half of what a commit of the
  // journal costs. What a file holds is protected by its mode.
  std::string sql =
      "PRAGMA secure_delete=OFF;PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA mmap_size=0;"
      "PRAGMA journal_size_limit=67108864;";  // a WAL that a long reader made grow is cut after a checkpoint
  sql += access == Access::writer ? "PRAGMA cache_size=-32768;" : "PRAGMA cache_size=-8192;";
  if (access == Access::reader) sql = "PRAGMA cache_size=-8192;PRAGMA mmap_size=0;PRAGMA query_only=1;";
  // What this connection has cached of the database is void after each following. The log, which is attached later, is locked as it is opened, and not for each commit: nobody else has business with it.
  if (access == Access::log)
    sql = "PRAGMA cache_size=-4096;PRAGMA mmap_size=0;PRAGMA locking_mode=EXCLUSIVE;PRAGMA main.locking_mode=NORMAL;";
  return sql;
}

// What is in it goes again soon: its WAL may be long, so that little of it is ever copied.
constexpr const char* log_settings =
    "PRAGMA log.journal_mode=WAL;PRAGMA log.synchronous=FULL;PRAGMA log.secure_delete=OFF;PRAGMA log.journal_size_limit=67108864;"
    "CREATE TABLE IF NOT EXISTS log.baton_journal (id INTEGER PRIMARY KEY, format INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS log.baton_log (partition INTEGER PRIMARY KEY, id TEXT NOT NULL, is_known INTEGER NOT NULL) STRICT;";

// What somebody can do about it who starts a server.
std::unexpected<Error> log_is_unusable(const std::string& path, const Error& error, sqlite3* db) {
  const int result = sqlite3_errcode(db) & 0xff;
  if (result == SQLITE_NOTADB || result == SQLITE_CORRUPT)
    return fail(Code::corrupt,
                "the log " + path + " is damaged (" + error.message + "), and with it commits may be lost that were acknowledged: put back a good one "
                "with its -wal, or, if there is none, move both away and go on without them once with `baton serve --without-log`");
  if (error.code == Code::busy)
    return fail(Code::busy, "another program has the log " + path + " open, which a server needs for itself: end that program (fuser " + path +
                                " names it) and start again");
  return fail(error.code, "its log " + path + ": " + error.message);
}

// By the name that the database has itself, whatever links lead to it: another name would be another log.
Result<> attach_log(SqliteConnection& connection, sqlite3* db) {
  const std::string path = log_path(sqlite3_db_filename(db, "main"));
  TRY(create_file(path));
  const Statement attach{"ATTACH ?1 AS log", {Type::text}};
  const Query query{&attach, 1, [&](std::size_t, std::span<Value> to) { to[0] = std::string_view(path); }, {}, {}};
  Result<> done = connection.run_alone(query);
  if (done) done = connection.script(log_settings);
  if (done) done = connection.script("PRAGMA log.wal_checkpoint(TRUNCATE)");
  return done ? done : log_is_unusable(path, done.error(), db);
}

// Statistics of memory cost a mutex in every allocation, and nobody reads them.
void configure_library() {
  static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  std::ignore = once;  // refused if somebody else has used the library before us: slower, not wrong
}

Result<std::unique_ptr<Connection>> open_database(const std::string& path, Access access) {
  configure_library();
  if (access == Access::writer || access == Access::admin) TRY(create_file(path));
  TRY_ASSIGN(Database db, open_file(path));
  sqlite3* const raw = db.get();
  // A writer that waits for another program holds up everybody; it waits as long as with PostgreSQL for a lock.
  sqlite3_busy_timeout(raw, access == Access::writer || access == Access::log ? 2'000 : 5'000);
  auto connection = std::make_unique<SqliteConnection>(std::move(db), access);
  TRY(connection->script(settings(access)));
  if (access == Access::log) TRY(attach_log(*connection, raw));
  // After a failed sync the system may hold pages in memory that are not on disk and will not be written
  // again. Copying the WAL into the database writes what the next commits will build on anew.
  if (access == Access::writer) TRY(connection->script("PRAGMA wal_checkpoint(TRUNCATE)"));
  return connection;
}

}  // namespace

Result<std::unique_ptr<Connection>> connect(const std::string& path, Access access) {
  auto connection = open_database(path, access);
  if (!connection)
    return fail(connection.error().code,
                "cannot open the SQLite database " + path + ": " + connection.error().message);
  return connection;
}

}  // namespace baton::store::sqlite
