#include "store/data_tables.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "store/data_columns.hpp"
#include "store/migrations.hpp"
#include "store/statements.hpp"

namespace baton::store {
namespace {

bool contains(const auto& list, std::string_view one) { return std::ranges::find(list, one) != list.end(); }

// The text of a PostgreSQL statement may hold no other question marks than those of its parameters.
std::string quoted_name(Dialect dialect, std::string_view name) {
  const bool escapes = dialect == Dialect::postgres && name.contains('?');
  std::string out = escapes ? "U&\"" : "\"";
  for (const char c : name) {
    if (escapes && c == '?')
      out += "\\003F";
    else if (c == '"' || (escapes && c == '\\'))
      out.append(2, c);
    else
      out += c;
  }
  return out + '"';
}

// PostgreSQL would cut a long name behind our back, and with it the version at its end.
std::string table_of(Dialect dialect, const std::string& name) {
  return dialect == Dialect::postgres && name.size() > name_bytes_max ? cut_name(name) : name;
}

Statement catalog_statement(Dialect dialect) {
  if (dialect == Dialect::sqlite) return {"SELECT ?1,name FROM pragma_table_info(?1)", {Type::text}};
  return {
      "SELECT ?1,attname::text FROM pg_attribute WHERE attrelid=to_regclass(quote_ident(?1)) AND attnum>0"
      " AND NOT attisdropped ORDER BY attnum",
      {Type::text}};
}

// Its columns in their order; none: there is no such table.
Result<std::vector<std::string>> columns_of(Connection& connection, Dialect dialect,
                                            const std::string& table) {
  const Statement catalog = catalog_statement(dialect);
  std::vector<std::string> columns;
  const Query query{
      &catalog,
      1,
      constant({std::string_view(table)}),
      [&](const RowView& row) -> Result<> { return columns.emplace_back(row.text(1)), Result<>{}; },
      {}};
  TRY(connection.run({&query, 1}, Mode::read));
  return columns;
}

std::string create_table(Dialect dialect, const std::string& table, const std::vector<std::string>& columns) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + quoted_name(dialect, table) +
                    in_dialect(
                        " (_row_id {id}, _member_key {text} NOT NULL UNIQUE, _batch_time {time},"
                        " _first_seen_at {time} NOT NULL DEFAULT ({now}),"
                        " _last_seen_at {time} NOT NULL DEFAULT ({now}),"
                        " _is_current {int} NOT NULL DEFAULT 1",
                        dialect);
  for (const std::string& column : columns)
    sql += ", " + quoted_name(dialect, column) + in_dialect(" {text}", dialect);
  return sql + in_dialect(") {heap}", dialect);
}

// A table with at least these columns. SQLite does not tell Name from name, so a column that is there already
// may give its own spelling.
Result<std::vector<std::string>> prepare_table(Connection& connection, Dialect dialect,
                                               const std::string& table, std::vector<std::string>& columns) {
  TRY_ASSIGN(auto existing, columns_of(connection, dialect, table));
  if (existing.empty()) {
    TRY(connection.script(create_table(dialect, table, columns)));
    return columns_of(connection, dialect, table);
  }
  std::string changes;
  for (std::string& column : columns) {
    const auto same = [&](const std::string& other) {
      return dialect == Dialect::sqlite ? lower(other) == lower(column) : other == column;
    };
    if (const auto found = std::ranges::find_if(existing, same); found != existing.end()) {
      column = *found;
      continue;
    }
    changes += "ALTER TABLE " + quoted_name(dialect, table) + " ADD COLUMN " + quoted_name(dialect, column) +
               in_dialect(" {text};", dialect);
    existing.push_back(column);
  }
  if (!changes.empty()) TRY(connection.script(changes));
  return existing;
}

// Parameters: the key, the time of the batch, the moment, and the columns.
Statement upsert_rows(Dialect dialect, const std::string& table, const std::vector<std::string>& columns,
                      const std::vector<std::string>& existing) {
  Statement s{"", {Type::text, Type::time, Type::time}, true};
  s.parameters.resize(3 + columns.size(), Type::text);
  const std::string is_true = "'1'";  // quoted, it is also a good boolean, as others may have declared it
  std::string names = "_member_key,_batch_time,_first_seen_at,_last_seen_at,_is_current";
  std::string values = dialect == Dialect::sqlite ? "?1,?2,?3,?3," : "k.p1,k.p2,k.p3,k.p3,";
  std::string updates = "_batch_time=excluded._batch_time,_last_seen_at=excluded._last_seen_at,_is_current=";
  std::string aliases = "p1,p2,p3";
  values += is_true, updates += is_true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string name = quoted_name(dialect, columns[i]);
    const std::string place = std::to_string(i + 4);
    names += "," + name;
    values += (dialect == Dialect::sqlite ? ",?" : ",k.p") + place;
    aliases += ",p" + place;
    updates += "," + name + "=excluded." + name;
  }
  for (const std::string& other : existing) {  // the row is replaced, not added to
    if (!is_system_column(other) && !contains(columns, other))
      updates += "," + quoted_name(dialect, other) + "=NULL";
  }
  s.sql = "INSERT INTO " + quoted_name(dialect, table) + "(" + names + ") " +
          (dialect == Dialect::sqlite ? "VALUES(" + values + ")"
                                      : "SELECT " + values + " FROM unnest(" +
                                            parameters(s.parameters.size()) + ") AS k(" + aliases + ")") +
          " ON CONFLICT(_member_key) DO UPDATE SET " + updates;
  return s;
}

template <class T>
std::vector<T> unique(std::vector<T> list) {
  std::ranges::sort(list);
  const auto rest = std::ranges::unique(list);
  list.erase(rest.begin(), rest.end());
  return list;
}

}  // namespace

Result<> write_data_rows(Connection& connection, Dialect dialect, const runbook::DataRows& rows) {
  TRY(check_data_table_name(rows.table));
  const std::string table = table_of(dialect, rows.table);
  auto columns = data_column_names(rows.columns);
  TRY_ASSIGN(const auto existing, prepare_table(connection, dialect, table, columns));

  std::map<std::string_view, const runbook::DataRow*> by_key;
  for (const runbook::DataRow& row : rows.rows) by_key[row.member_key] = &row;
  std::vector<std::pair<const runbook::DataRow*, Cells>> sets;
  for (const auto& [key, row] : by_key) {
    TRY_ASSIGN(auto cells, cells_of(*row, rows.columns));
    sets.emplace_back(row, std::move(cells));
  }
  const Statement upsert = upsert_rows(dialect, table, columns, existing);
  const auto fill_row = [&](std::size_t set, std::span<Value> out) {
    const auto& [row, cells] = sets[set];
    out[0] = encode(row->member_key), out[1] = encode(row->batch_time), out[2] = rows.seen_at;
    for (std::size_t i = 0; i < cells.size(); ++i) out[3 + i] = encode(cells[i]);
  };
  const Statement finish{
      "UPDATE " + quoted_name(dialect, table) +
          " SET _is_current='0' WHERE _is_current='1' AND _last_seen_at<?1",
      {Type::time}};
  std::vector<Query> queries;
  if (!sets.empty()) queries.push_back({&upsert, sets.size(), fill_row, {}, {}});
  if (rows.finish) queries.push_back({&finish, 1, constant({rows.seen_at}), {}, {}});
  return queries.empty() ? Result<>{} : connection.run(queries, Mode::write);
}

// --- reading

DataRowLoad::DataRowLoad(Dialect dialect, const std::vector<runbook::Need>& needs)
    : dialect_(dialect), catalog_(catalog_statement(dialect)) {
  for (const runbook::Need& need : needs) {
    if (const auto* row = std::get_if<runbook::need::DataRow>(&need))
      tables_[row->table].member_keys.emplace_back(row->member_key);
  }
  for (auto& [name, table] : tables_) table.member_keys = unique(std::move(table.member_keys));
}

void DataRowLoad::add_catalog_queries(std::vector<Query>& queries) {
  for (auto& [name, table] : tables_) {
    table.stored_name = table_of(dialect_, name);
    queries.push_back({&catalog_,
                       1,
                       constant({std::string_view(table.stored_name)}),
                       [&table](const RowView& row) -> Result<> {
                         return table.columns.emplace_back(row.text(1)), Result<>{};
                       },
                       {}});
  }
}

// Rows are asked for by key alone, because what says "current" differs between the programs that write them.
void DataRowLoad::add_queries(std::vector<Query>& queries) {
  for (auto& [name, table] : tables_) {
    if (!contains(table.columns, "_member_key")) continue;  // there is no such table, or it is another kind of table
    std::string sql = selected_columns(table, "t._member_key");
    const std::string from = quoted_name(dialect_, table.stored_name) + " AS t WHERE t._member_key=";
    sql += dialect_ == Dialect::sqlite ? " FROM " + from + "?1"
                                       : " FROM unnest(?1) AS k(member_key), " + from + "k.member_key";
    table.select = {std::move(sql), {Type::text}, true};
    queries.push_back({&table.select,
                       table.member_keys.size(),
                       [&table](std::size_t set, std::span<Value> out) { out[0] = table.member_keys[set]; },
                       [this, &name, &table](const RowView& row) { return take(name, table, row.text(0), row); },
                       {}});
  }
}

void DataRowLoad::add_queries_any_case(std::vector<Query>& queries) {
  std::set<std::pair<std::string_view, std::string_view>> found;
  for (const auto& row : found_) found.emplace(row.table, row.member_key);
  for (auto& [name, table] : tables_) {
    std::erase_if(table.member_keys, [&](std::string_view key) { return found.contains({name, key}); });
    if (table.member_keys.empty() || !contains(table.columns, "_member_key")) continue;
    const bool is_sqlite = dialect_ == Dialect::sqlite;
    const std::string from = quoted_name(dialect_, table.stored_name) + " AS t WHERE ";
    std::string sql = selected_columns(table, is_sqlite ? "t._member_key" : "k.member_key");
    sql += is_sqlite ? " FROM " + from + "t._member_key COLLATE NOCASE IN (SELECT value FROM json_each(?1))"
                     : " FROM unnest(?1) AS k(member_key), " + from + "lower(t._member_key)=lower(k.member_key)";
    table.select_any_case = {sql + " ORDER BY t._member_key", {Type::text}, true};
    for (const std::string_view key : table.member_keys) {
      table.key_list += table.key_list.empty() ? '[' : ',';
      append_quoted(table.key_list, key);
    }
    table.key_list += ']';
    queries.push_back({&table.select_any_case,
                       is_sqlite ? 1 : table.member_keys.size(),
                       [&table, is_sqlite](std::size_t set, std::span<Value> out) {
                         out[0] = is_sqlite ? std::string_view(table.key_list) : table.member_keys[set];
                       },
                       [this, &name, &table](const RowView& row) -> Result<> {
                         for (const std::string_view key : table.member_keys)
                           if (equal_ignoring_case(key, row.text(0))) TRY(take(name, table, key, row));
                         return {};
                       },
                       {}});
  }
}

std::vector<runbook::Loaded::FoundData> DataRowLoad::finish() {
  std::set<std::pair<std::string, std::string>> seen;
  std::erase_if(found_, [&](const auto& row) { return !seen.emplace(row.table, row.member_key).second; });
  return std::move(found_);
}

std::string DataRowLoad::selected_columns(Table& table, std::string_view key) const {
  const bool has_current = contains(table.columns, "_is_current");
  std::string sql =
      "SELECT " + std::string(key) + "," + (has_current ? "CAST(t._is_current AS text)" : "'1'");
  table.data_columns.clear();
  for (const std::string& column : table.columns) {
    if (is_system_column(column)) continue;
    sql += ",t." + quoted_name(dialect_, column);
    table.data_columns.push_back(column);
  }
  return sql;
}

Result<> DataRowLoad::take(const std::string& name, const Table& table, std::string_view asked_key,
                           const RowView& row) {
  const std::string_view current = row.text(1);
  if (current != "1" && current != "t" && current != "true") return {};
  std::string data = "{";
  for (std::size_t i = 0; i < table.data_columns.size(); ++i) {
    const int column = static_cast<int>(i) + 2;
    if (i != 0) data += ',';
    append_quoted(data, table.data_columns[i]);
    data += ':';
    if (row.is_null(column))
      data += "null";
    else
      append_quoted(data, row.text(column));
  }
  found_.push_back({name, std::string(asked_key), Json{data + "}"}});
  return {};
}

}  // namespace baton::store
