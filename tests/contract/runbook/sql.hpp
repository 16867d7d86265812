// The database as an external scheduler sees it: plain SQL on a connection of its own, beside the server's.
// Written against the drivers and not against src/store, so that the contract does not depend on what it
// tests.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::runbook_contract {

enum class StoreType { sqlite, postgres };

using Id = std::int64_t;

// One row; the columns in the order of the query, NULL is none.
struct Row {
  std::vector<std::pair<std::string, std::optional<std::string>>> columns;
  [[nodiscard]] std::optional<std::string> operator[](const std::string& name) const;
};

// Columns are separated by a blank and rows by a comma: "succeeded 1,pending null".
[[nodiscard]] std::string text_of(const std::vector<Row>& rows);

// One connection, used by one thread. Throws std::runtime_error with the statement.
class Sql {
 public:
  Sql() = default;
  virtual ~Sql() = default;
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  virtual std::vector<Row> query(const std::string& sql) = 0;
  void exec(const std::string& sql) { (void)query(sql); }
  [[nodiscard]] std::string text(const std::string& sql) { return text_of(query(sql)); }
};

// A SQLite file or the URL of a PostgreSQL database.
[[nodiscard]] std::unique_ptr<Sql> open_sql(StoreType type, const std::string& where);

// A value as SQL text. Always quoted, because '1' is a good integer and a good boolean in both databases.
struct Cell {
  std::string literal;
  Cell(std::nullptr_t) : literal("NULL") {}
  Cell(const std::string& value);
  Cell(const char* value) : Cell(std::string(value)) {}
  template <std::integral Number>
  Cell(Number value) : Cell(std::to_string(value)) {}
  Cell(bool value) : Cell(value ? "1" : "0") {}
};

}  // namespace baton::runbook_contract
