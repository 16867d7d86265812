#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "base/diagnostic.hpp"
#include "scheduler/readers.hpp"
#include "scheduler/table_builder.hpp"

namespace baton::scheduler {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// Whoever writes a runbook may read this database, and no other file: no ATTACH, no PRAGMA.
int allow(void*, int action, const char*, const char* name, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
      return name != nullptr && sqlite3_stricmp(name, "load_extension") != 0 ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
  }
}

struct Patience {
  std::chrono::steady_clock::time_point deadline;
  const std::stop_token& stop;
};

int is_over(void* patience) {
  const auto& p = *static_cast<Patience*>(patience);
  return p.stop.stop_requested() || std::chrono::steady_clock::now() > p.deadline ? 1 : 0;
}

// Another program has locked the database: it is waited for a while.
int wait_for_lock(void* patience, int times) {
  constexpr std::chrono::milliseconds slice{50};
  constexpr int slices_max = 100;
  if (times >= slices_max || is_over(patience) != 0) return 0;
  std::this_thread::sleep_for(slice);
  return 1;
}

std::unexpected<Error> error(sqlite3* db, int result) {
  switch (result & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_AUTH:
    case SQLITE_TOOBIG:
    case SQLITE_NOTADB: return fail(Code::invalid, fmt::format("SQLite: {}", sqlite3_errmsg(db)));
    case SQLITE_INTERRUPT: return fail(Code::unavailable, "SQLite: the query took too long");
    default: return fail(Code::unavailable, fmt::format("SQLite: {}", sqlite3_errmsg(db)));
  }
}

Result<Database> open_database(const std::string& path, const Limits& limits, Patience& patience) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database db(raw);
  if (result != SQLITE_OK) return error(raw, result);
  sqlite3_busy_handler(raw, wait_for_lock, &patience);
  sqlite3_progress_handler(raw, 10'000, is_over, &patience);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH,
                static_cast<int>(std::min<std::size_t>(limits.bytes, 1'000'000'000)));
  sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(raw, allow, nullptr);
  return db;
}

Result<Statement> prepare(sqlite3* db, std::string_view sql, std::string_view& rest) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int result = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &raw, &tail);
  Statement statement(raw);
  if (result != SQLITE_OK) return error(db, result);
  rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
  return statement;
}

// One statement that answers rows, with nothing but blanks and comments behind it.
Result<Statement> prepare_query(sqlite3* db, const std::string& query) {
  std::string_view rest;
  TRY_ASSIGN(Statement statement, prepare(db, query, rest));
  if (!statement) return fail(Code::invalid, "the query is empty");
  while (!rest.empty()) {
    TRY_ASSIGN(const Statement second, prepare(db, rest, rest));
    if (second) return fail(Code::invalid, "the query has more than one statement");
  }
  if (sqlite3_column_count(statement.get()) == 0) return fail(Code::invalid, "the query answers no rows");
  return statement;
}

Result<> add_row(sqlite3_stmt* statement, TableBuilder& table) {
  TRY(table.begin_row());
  for (int i = 0; i < static_cast<int>(table.columns()); ++i) {
    const int type = sqlite3_column_type(statement, i);
    if (type == SQLITE_NULL) continue;
    if (type == SQLITE_BLOB) {
      return fail(Code::invalid, fmt::format("row {}, column {}: a blob; CAST it AS TEXT", table.rows(),
                                             in_quotes(sqlite3_column_name(statement, i))));
    }
    const auto* text = sqlite3_column_text(statement, i);  // before the size: it may convert
    if (text == nullptr) return fail(Code::unavailable, "SQLite: out of memory");
    const std::string_view value(reinterpret_cast<const char*>(text),
                                 static_cast<std::size_t>(sqlite3_column_bytes(statement, i)));
    const bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
    TRY(table.set(static_cast<std::size_t>(i), is_number ? runbook::Cell::number(value) : runbook::Cell(value)));
  }
  return {};
}

}  // namespace

Result<SourceTable> read_sqlite(std::string_view path, const std::string& query, const Limits& limits,
                                const std::stop_token& stop) {
  if (path.starts_with("sqlite:")) path.remove_prefix(7);
  Patience patience{std::chrono::steady_clock::now() + limits.timeout, stop};
  TRY_ASSIGN(const Database db, open_database(std::string(path), limits, patience));
  TRY_ASSIGN(const Statement statement, prepare_query(db.get(), query));
  TableBuilder table(limits);
  for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
    const char* name = sqlite3_column_name(statement.get(), i);
    TRY(table.add_column(name == nullptr ? "" : name));
  }
  int result = sqlite3_step(statement.get());
  for (; result == SQLITE_ROW; result = sqlite3_step(statement.get())) TRY(add_row(statement.get(), table));
  if (result != SQLITE_DONE) return error(db.get(), result);
  return table.finish();
}

}  // namespace baton::scheduler
