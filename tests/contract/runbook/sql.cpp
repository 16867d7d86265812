#include "tests/contract/runbook/sql.hpp"

#include <libpq-fe.h>
#include <sqlite3.h>

#include <stdexcept>

namespace baton::runbook_contract {
namespace {

constexpr int busy_timeout_ms = 10'000;

class Sqlite final : public Sql {
 public:
  explicit Sqlite(const std::string& path) {
    if (sqlite3_open_v2(path.c_str(), &connection_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK)
      throw std::runtime_error("cannot open " + path);
    sqlite3_busy_timeout(connection_, busy_timeout_ms);
  }
  ~Sqlite() override { sqlite3_close(connection_); }

  std::vector<Row> query(const std::string& sql) override {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) fail(sql);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
    std::vector<Row> rows;
    int state = SQLITE_ROW;
    while ((state = sqlite3_step(raw)) == SQLITE_ROW) rows.push_back(row_of(raw));
    if (state != SQLITE_DONE) fail(sql);
    return rows;
  }

 private:
  static Row row_of(sqlite3_stmt* statement) {
    Row row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      row.columns.emplace_back(sqlite3_column_name(statement, i),
                               value ? std::optional<std::string>(value) : std::nullopt);
    }
    return row;
  }
  [[noreturn]] void fail(const std::string& sql) const {
    throw std::runtime_error(std::string(sqlite3_errmsg(connection_)) + ": " + sql);
  }

  sqlite3* connection_ = nullptr;
};

class Postgres final : public Sql {
 public:
  explicit Postgres(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK)
      throw std::runtime_error("cannot connect to " + url + ": " + PQerrorMessage(connection_));
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    exec("SET TIME ZONE 'UTC'");
    exec("SET synchronous_commit = off");  // rows of a test are seen at once, and need not outlive a crash
  }
  ~Postgres() override { PQfinish(connection_); }

  std::vector<Row> query(const std::string& sql) override {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_, sql.c_str()), PQclear);
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
      throw std::runtime_error(std::string(PQerrorMessage(connection_)) + ": " + sql);
    std::vector<Row> rows(static_cast<std::size_t>(PQntuples(result.get())));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (int column = 0; column < PQnfields(result.get()); ++column) {
        const bool null = PQgetisnull(result.get(), static_cast<int>(i), column) != 0;
        const char* value = PQgetvalue(result.get(), static_cast<int>(i), column);
        rows[i].columns.emplace_back(PQfname(result.get(), column),
                                     null ? std::nullopt : std::optional<std::string>(value));
      }
    }
    return rows;
  }

 private:
  PGconn* connection_;
};

}  // namespace

std::optional<std::string> Row::operator[](const std::string& name) const {
  for (const auto& [column, value] : columns)
    if (column == name) return value;
  throw std::runtime_error("the query has no column " + name);
}

std::string text_of(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    if (&row != &rows.front()) text += ",";
    for (const auto& column : row.columns) {
      if (&column != &row.columns.front()) text += " ";
      text += column.second.value_or("null");
    }
  }
  return text;
}

std::unique_ptr<Sql> open_sql(StoreType type, const std::string& where) {
  if (type == StoreType::sqlite) return std::make_unique<Sqlite>(where);
  return std::make_unique<Postgres>(where);
}

Cell::Cell(const std::string& value) : literal("'") {
  for (const char c : value) literal += c == '\'' ? std::string("''") : std::string(1, c);
  literal += "'";
}

}  // namespace baton::runbook_contract
