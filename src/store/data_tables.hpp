// The tables that hold what data sources said of the members of runbooks: one per version of a runbook, made
// when it is first written, with a column of text for each column of the query. Their names and columns come
// from people, so every name is quoted; data_columns.hpp says which columns there are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/runbook/machine/store_needs.hpp"
#include "store/connection.hpp"

namespace baton::store {

// Makes the table and the columns that it lacks, then writes the rows in one transaction. Of rows with the
// same key the last one counts.
[[nodiscard]] Result<> write_data_rows(Connection& connection, Dialect dialect,
                                       const runbook::DataRows& rows);

// The needs of data rows: first the columns of the tables are asked for, then the rows by their exact keys, then,
// for keys that have no current row, without regard to case, which reads through the table once.
class DataRowLoad {
 public:
  DataRowLoad(Dialect dialect, const std::vector<runbook::Need>& needs);

  [[nodiscard]] bool empty() const { return tables_.empty(); }
  void add_catalog_queries(std::vector<Query>& queries);
  void add_queries(std::vector<Query>& queries);
  void add_queries_any_case(std::vector<Query>& queries);
  // Of rows that differ in case only, the first.
  [[nodiscard]] std::vector<runbook::Loaded::FoundData> finish();

 private:
  struct Table {
    std::string stored_name;
    std::vector<std::string> columns;           // system columns included; empty: there is no such table
    std::vector<std::string> data_columns;      // without them
    std::vector<std::string_view> member_keys;  // that were asked for and not found yet, each once
    std::string key_list;                       // SQLite: the same as a JSON array
    Statement select, select_any_case;
  };
  [[nodiscard]] std::string selected_columns(Table& table, std::string_view key) const;
  Result<> take(const std::string& name, const Table& table, std::string_view asked_key, const RowView& row);

  Dialect dialect_;
  Statement catalog_;
  std::map<std::string, Table> tables_;
  std::vector<runbook::Loaded::FoundData> found_;
};

}  // namespace baton::store
