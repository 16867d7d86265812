#include <sqlite3.h>

#include <memory>

#include "scheduler/source_fixture.hpp"

namespace baton::scheduler {
namespace {

using enum runbook::SourceType;

class SqliteSource : public SourceTest {
 protected:
  SqliteSource() {
    execute(R"sql(
        CREATE TABLE people (Upn TEXT, Date TEXT, Age INTEGER, Weight REAL, Photo BLOB);
        INSERT INTO people VALUES ('ann', '2026-03-01', 41, 60.5, NULL), ('bob', NULL, NULL, 1e30, x'00ff');
        CREATE TABLE bad (Upn TEXT); INSERT INTO bad VALUES ('ann'), (CAST(x'fc' AS TEXT));
    )sql");
  }

  [[nodiscard]] std::string path() const { return (directory_ / "people.db").string(); }

  void execute(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  std::string ask(const std::string& query, const Limits& limits = {}) {
    return shown(fetch(sqlite, path(), query, limits));
  }
};

TEST_F(SqliteSource, a_value_is_a_text_or_a_number_or_missing) {
  EXPECT_EQ(ask("SELECT Upn, Date, Age, Weight FROM people ORDER BY Upn"),
            "Upn,Date,Age,Weight|ann,2026-03-01,=41,=60.5|bob,-,-,=1.0e+30");
  EXPECT_EQ(ask("SELECT '007' AS a, 1e999 AS b, CAST(41 AS TEXT) AS c"), "a,b,c|007,Inf,41");
  EXPECT_EQ(shown(fetch(sqlite, "sqlite:" + path(), "SELECT Upn FROM people WHERE Age > 100; -- nobody\n")),
            "Upn");
}

TEST_F(SqliteSource, a_database_in_wal_mode_is_read_while_others_write) {
  execute("PRAGMA journal_mode=WAL; INSERT INTO people(Upn) VALUES ('eve')");
  EXPECT_EQ(ask("SELECT count(*) AS n FROM people"), "n|=3");
}

TEST_F(SqliteSource, what_is_no_text_is_named_by_row_and_column) {
  EXPECT_EQ(ask("SELECT Upn, Photo FROM people"),
            "connection 'WAVES': row 2, column 'Photo': a blob; CAST it AS TEXT");
  EXPECT_EQ(ask("SELECT Upn FROM bad"), "connection 'WAVES': row 2, column 'Upn': not UTF-8");
  EXPECT_EQ(ask("SELECT 'a' || char(0) AS x"), "connection 'WAVES': row 1, column 'x': a NUL character");
}

TEST_F(SqliteSource, columns_have_names_that_differ) {
  EXPECT_EQ(ask("SELECT Upn, Age AS upn FROM people"), "connection 'WAVES': column 'upn' is there twice");
  EXPECT_EQ(ask("SELECT Upn AS '' FROM people"), "connection 'WAVES': column 1 has no name");
}

TEST_F(SqliteSource, wrong_queries_are_told) {
  const auto wrong = fetch(sqlite, path(), "SELECT * FROM nowhere");
  EXPECT_EQ(shown(wrong), "connection 'WAVES': SQLite: no such table: nowhere");
  EXPECT_EQ(code(wrong), Code::invalid);
  EXPECT_EQ(ask(" -- nothing\n"), "connection 'WAVES': the query is empty");
  EXPECT_EQ(ask("SELECT 1 AS a; SELECT 2 AS a"), "connection 'WAVES': the query has more than one statement");
}

TEST_F(SqliteSource, a_query_can_only_read_and_only_this_database) {
  for (const std::string query :
       {"DELETE FROM people RETURNING Upn", "DROP TABLE people", "ATTACH 'other.db' AS other",
        "PRAGMA user_version=7", "SELECT 1 AS a; DROP TABLE people", "SELECT load_extension('x')",
        "VACUUM INTO 'copy.db'", "BEGIN IMMEDIATE", "INSERT INTO people(Upn) VALUES ('x') RETURNING Upn"})
    EXPECT_EQ(code(fetch(sqlite, path(), query)), Code::invalid) << query;
  EXPECT_EQ(ask("SELECT count(*) AS n FROM people"), "n|=2");
}

TEST_F(SqliteSource, a_missing_or_wrong_database_is_told_without_its_path) {
  const auto missing = (directory_ / "missing.db").string();
  EXPECT_EQ(shown(fetch(sqlite, missing, "SELECT 1")),
            "connection 'WAVES': SQLite: unable to open database file");
  EXPECT_FALSE(std::filesystem::exists(missing));
  EXPECT_EQ(shown(fetch(sqlite, file("no.db", std::string(2000, 'x')), "SELECT * FROM people")),
            "connection 'WAVES': SQLite: file is not a database");
}

TEST_F(SqliteSource, limits_hold) {
  const std::string endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
  EXPECT_EQ(ask(endless, {.rows = 1000}), "connection 'WAVES': too many rows; at most 1000 are read");
  EXPECT_EQ(ask(endless, {.cells = 10}), "connection 'WAVES': too many cells; at most 10 are read");
  EXPECT_EQ(ask(endless, {.bytes = 1000}),
            "connection 'WAVES': row 370, column 'i': too much text; at most 1000 bytes are read");
  EXPECT_EQ(ask("SELECT 1 AS a, 2 AS b, 3 AS c", {.columns = 2}),
            "connection 'WAVES': too many columns; at most 2 are read");
  EXPECT_EQ(ask(endless + " WHERE i < 0", {.timeout = std::chrono::seconds{0}}),
            "connection 'WAVES': SQLite: the query took too long");
}

TEST_F(SqliteSource, a_query_and_a_wait_for_a_lock_end_when_the_server_stops) {
  EXPECT_TRUE(ends_when_interrupted(sqlite, path(),
                                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                                    "SELECT i FROM n WHERE i < 0"));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_TRUE(ends_when_interrupted(sqlite, path(), "SELECT * FROM people"));
  sqlite3_close(other);
}

}  // namespace
}  // namespace baton::scheduler
