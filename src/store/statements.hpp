// SQL, parameters and decoding, generated from tables.hpp for either dialect.
#pragma once

#include <algorithm>
#include <compare>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "store/connection.hpp"
#include "store/tables.hpp"

namespace baton::store {

// --- values
// ---------------------------------------------------------------------------------------------------------------------------

template <class T>
struct is_id : std::false_type {};
template <class Tag>
struct is_id<Id<Tag>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class T>
constexpr Type type_of() {
  if constexpr (is_optional<T>::value)
    return type_of<typename T::value_type>();
  else if constexpr (std::is_same_v<T, Json>)
    return Type::json;
  else if constexpr (std::is_same_v<T, Bytes>)
    return Type::bytes;
  else if constexpr (std::is_same_v<T, Time>)
    return Type::time;
  else if constexpr (std::is_integral_v<T>)
    return Type::integer;
  else
    return Type::text;
}

// Enumerations whose `none` is stored as NULL, as it is in the rows of those who do not know the column.
template <class T>
constexpr bool none_is_null =
    std::is_same_v<T, runbook::JobState> || std::is_same_v<T, runbook::Walk> || std::is_same_v<T, runbook::PhaseWait>;

// The value borrows from `from`.
template <class T>
Value encode(const T& from) {
  if constexpr (is_optional<T>::value)
    return from ? encode(*from) : Value{};
  else if constexpr (is_id<T>::value)
    return std::string_view{from.value};
  else if constexpr (std::is_same_v<T, Json>)
    return std::string_view{from.text};
  else if constexpr (std::is_same_v<T, Bytes>)
    return std::string_view{from.value};
  else if constexpr (std::is_same_v<T, std::string>)
    return std::string_view{from};
  else if constexpr (std::is_same_v<T, Time>)
    return from;
  else if constexpr (none_is_null<T>)
    return from == T::none ? Value{} : Value{name(from)};
  else if constexpr (std::is_enum_v<T>)
    return name(from);
  else
    return std::int64_t{from};
}

inline std::optional<workflow::JobStatus> parse(std::string_view word, workflow::JobStatus) {
  return workflow::job_status(word);
}
inline std::optional<workflow::NodeStatus> parse(std::string_view word, workflow::NodeStatus) {
  return workflow::node_status(word);
}
inline std::optional<workflow::EventType> parse(std::string_view word, workflow::EventType) {
  return workflow::event_type(word);
}
inline std::optional<Role> parse(std::string_view word, Role) { return role(word); }
inline std::optional<call::Status> parse(std::string_view word, call::Status) { return call::status(word); }
inline std::optional<call::EventType> parse(std::string_view word, call::EventType) {
  return call::event_type(word);
}
inline std::optional<runbook::BatchStatus> parse(std::string_view word, runbook::BatchStatus) {
  return runbook::batch_status(word);
}
inline std::optional<runbook::MemberStatus> parse(std::string_view word, runbook::MemberStatus) {
  return runbook::member_status(word);
}
inline std::optional<runbook::PhaseStatus> parse(std::string_view word, runbook::PhaseStatus) {
  return runbook::phase_status(word);
}
inline std::optional<runbook::StepStatus> parse(std::string_view word, runbook::StepStatus) {
  return runbook::step_status(word);
}
inline std::optional<runbook::JobState> parse(std::string_view word, runbook::JobState) {
  return runbook::job_state(word);
}
inline std::optional<runbook::Walk> parse(std::string_view word, runbook::Walk) {
  return runbook::walk(word);
}
inline std::optional<runbook::CleanupKind> parse(std::string_view word, runbook::CleanupKind) {
  return runbook::cleanup_kind(word);
}
inline std::optional<runbook::PhaseWait> parse(std::string_view word, runbook::PhaseWait) {
  return runbook::phase_wait(word);
}
inline std::optional<runbook::HoldKind> parse(std::string_view word, runbook::HoldKind) {
  return runbook::hold_kind(word);
}
inline std::optional<runbook::HoldStatus> parse(std::string_view word, runbook::HoldStatus) {
  return runbook::hold_status(word);
}
inline std::optional<runbook::PhaseOverlap> parse(std::string_view word, runbook::PhaseOverlap) {
  return runbook::phase_overlap(word);
}
inline std::optional<runbook::OpenBatches> parse(std::string_view word, runbook::OpenBatches) {
  return runbook::open_batches(word);
}
inline std::optional<message::EntityType> parse(std::string_view word, message::EntityType) {
  return message::entity_type(word);
}
inline std::optional<message::Lane> parse(std::string_view word, message::Lane) { return message::lane(word); }

// False: the cell holds what this version cannot read.
template <class T>
bool decode(const RowView& row, int column, T& to) {
  if constexpr (is_optional<T>::value) {
    if (row.is_null(column)) return to.reset(), true;
    return decode(row, column, to.emplace());
  } else if constexpr (is_id<T>::value) {
    to.value = row.text(column);
    return true;
  } else if constexpr (std::is_same_v<T, Json>) {
    to.text = row.text(column);
    return true;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    to.value = row.bytes(column);
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    to = row.text(column);
    return true;
  } else if constexpr (std::is_same_v<T, Time>) {
    const auto time = from_iso_or_utc(row.text(column));  // others write times without an offset
    if (time) to = *time;
    return time.has_value();
  } else if constexpr (std::is_same_v<T, bool>) {
    to = row.integer(column) != 0;
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    if constexpr (none_is_null<T>)
      if (row.is_null(column)) return to = T::none, true;
    const auto value = parse(row.text(column), T{});
    if (value) to = *value;
    return value.has_value();
  } else {
    to = static_cast<T>(row.integer(column));
    return true;
  }
}

// --- column lists
// ---------------------------------------------------------------------------------------------------------------------

// Which columns a statement takes or gives, in the order of the table.
enum class Columns {
  all,
  keys,
  deciding,  // all but outcomes
  summary,   // all but JSON documents and bytes, which may be large
};

template <class Member>
constexpr bool includes(Columns columns, ColumnRole role) {
  switch (columns) {
    case Columns::all: return true;
    case Columns::keys: return role == ColumnRole::key;
    case Columns::deciding: return role != ColumnRole::outcome;
    case Columns::summary: return type_of<Member>() != Type::json && type_of<Member>() != Type::bytes;
  }
  return false;
}

template <class Row, class F>
constexpr void for_columns(Columns columns, F&& f) {
  for_each_column<Row>([&]<class Member>(const Column<Row, Member>& column) {
    if (includes<Member>(columns, column.role)) f(column);
  });
}

// What an update takes: the columns of the set, and the key that names the row.
template <class Row, class F>
constexpr void for_columns(ColumnSet set, F&& f) {
  for_each_column<Row>([&](const auto& column) {
    if (column.role == ColumnRole::key || (set & 1) != 0) f(column);
    set >>= 1;
  });
}

template <class Row>
constexpr ColumnSet live_columns() {
  ColumnSet set = 0, bit = 1;
  for_each_column<Row>([&](const auto& column) {
    if (column.role == ColumnRole::live) set |= bit;
    bit <<= 1;
  });
  return set;
}

// What is told of a row without its bytes, which may be large.
template <class Row>
constexpr ColumnSet columns_without_bytes() {
  ColumnSet set = 0, bit = 1;
  for_each_column<Row>([&]<class Member>(const Column<Row, Member>&) {
    if (type_of<Member>() != Type::bytes) set |= bit;
    bit <<= 1;
  });
  return set;
}

template <class Row, class Member>
constexpr Type type_of(const Column<Row, Member>& column) {
  if (column.role == ColumnRole::document || column.role == ColumnRole::outcome) return Type::text;
  return type_of<Member>();
}

// Here and below, `columns` are Columns or a ColumnSet.
template <class Row>
std::vector<Type> types(auto columns) {
  std::vector<Type> list;
  for_columns<Row>(columns, [&](const auto& column) { list.push_back(type_of(column)); });
  return list;
}

template <class Row>
std::string names(auto columns, std::string_view prefix = "") {
  std::string list;
  for_columns<Row>(columns, [&](const auto& column) {
    if (!list.empty()) list += ',';
    list.append(prefix).append(column.name);
  });
  return list;
}

template <class Row>
void fill(const Row& row, auto columns, std::span<Value> out) {
  auto at = out.begin();
  for_columns<Row>(columns, [&]<class Member>(const Column<Row, Member>& column) {
    *at++ = encode(row.*column.member);
  });
}

// Rows are large, so one is read where it will stay; `row` is new. `at` is its first column in the answer.
template <class Row>
Result<> read_into(Row& row, const RowView& view, auto columns, int at = 0) {
  bool ok = true;
  for_columns<Row>(columns, [&]<class Member>(const Column<Row, Member>& column) {
    ok = decode(view, at++, row.*column.member) && ok;
  });
  if (!ok)
    return fail(Code::invalid,
                "table " + std::string(Table<Row>::name) + " holds a row that this version cannot read");
  return {};
}

template <class Row>
Result<Row> read(const RowView& view, Columns columns = Columns::all) {
  Result<Row> row{std::in_place};
  TRY(read_into(*row, view, columns));
  return row;
}

// --- statements
// -----------------------------------------------------------------------------------------------------------------------

// ?1,?2,…
inline std::string parameters(std::size_t count) {
  std::string list;
  for (std::size_t i = 1; i <= count; ++i) list += (i == 1 ? "?" : ",?") + std::to_string(i);
  return list;
}

// A status that others may have written in capitals, to be compared with one of our words. Indexes are on this
// expression, where they are on a status (migrations.cpp).
inline std::string status_word(Dialect dialect, std::string_view column) {
  const std::string name(column);
  return dialect == Dialect::sqlite ? name + " COLLATE NOCASE" : "lower(" + name + ")";
}

// Makes a PostgreSQL statement that changes another number of rows than `expected` fail (22012, division by
// zero), which also skips everything that was sent behind it. SQLite looks at the number of changes instead.
inline std::string exactly(Dialect dialect, std::string sql, std::string_view expected) {
  if (dialect == Dialect::sqlite) return sql;
  return "WITH hit AS (" + std::move(sql) + " RETURNING 1) SELECT 1/(count(*)=" + std::string(expected) +
         ")::int FROM hit";
}

template <class Row>
std::string table_name() {
  return std::string(Table<Row>::name);
}

template <class Row>
Statement insert_statement(Dialect dialect) {
  Statement s{"INSERT INTO " + std::string(Table<Row>::name) + "(" + names<Row>(Columns::all) + ") ",
              types<Row>(Columns::all), true};
  const std::string list = parameters(s.parameters.size());
  s.sql += dialect == Dialect::sqlite ? "VALUES(" + list + ")" : "SELECT * FROM unnest(" + list + ")";
  return s;
}

// Inserts, or writes the live columns of the row that is there.
template <class Row>
Statement upsert_statement(Dialect dialect) {
  Statement s = insert_statement<Row>(dialect);
  s.sql += " ON CONFLICT(" + names<Row>(Columns::keys) + ") DO UPDATE SET ";
  bool first = true;
  for_each_column<Row>([&](const auto& column) {
    if (column.role != ColumnRole::live) return;
    if (!std::exchange(first, false)) s.sql += ',';
    s.sql.append(column.name).append("=excluded.").append(column.name);
  });
  return s;
}

// A column of which the parameters name the value.
struct Match {
  std::string_view column;
  Type type{};
};

template <class Row>
std::vector<Match> key_of_table() {
  std::vector<Match> keys;
  for_columns<Row>(Columns::keys, [&](const auto& column) {
    keys.push_back({column.name, type_of(column)});
  });
  return keys;
}

// `t.a=?1 AND t.b=?2` in SQLite, `t.a=k.a AND t.b=k.b` in PostgreSQL.
inline std::string matches(Dialect dialect, const std::vector<Match>& keys) {
  std::string condition;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name(keys[i].column);
    if (i != 0) condition += " AND ";
    condition += "t." + name + (dialect == Dialect::sqlite ? "=?" + std::to_string(i + 1) : "=k." + name);
  }
  return condition;
}

// `unnest(?1,?2) AS k(a,b)`
inline std::string key_sets(const std::vector<Match>& keys) {
  std::string list;
  for (const Match& key : keys) list.append(list.empty() ? "" : ",").append(key.column);
  return "unnest(" + parameters(keys.size()) + ") AS k(" + list + ")";
}

// Writes the columns of the set. A guard: the row must be there; and it must have the status that is the last parameter. With
// none, a row that is gone is not missed.
enum class Guard { none, exists, status };

template <class Row>
Statement update_statement(Dialect dialect, ColumnSet set = live_columns<Row>(), Guard guard = Guard::exists) {
  const bool arrays = dialect == Dialect::postgres;
  Statement s{"UPDATE " + table_name<Row>() + " AS t SET ", types<Row>(set), true, guard != Guard::none};
  std::size_t parameter = 0;
  const auto next_value = [&](std::string_view name) {
    ++parameter;
    return arrays ? "k." + std::string(name) : "?" + std::to_string(parameter);
  };
  std::string assignments, condition;
  for_columns<Row>(set, [&](const auto& column) {
    const std::string assignment = std::string(column.name) + "=" + next_value(column.name);
    if (column.role == ColumnRole::key)
      condition += (condition.empty() ? "t." : " AND t.") + assignment;
    else
      assignments += (assignments.empty() ? "" : ",") + assignment;
  });
  std::string sets = names<Row>(set);
  if (guard == Guard::status) {
    condition += " AND " + status_word(dialect, "t.status") + "=" + next_value("status_before");
    sets += ",status_before";
    s.parameters.push_back(Type::text);
  }
  s.sql += assignments;
  if (arrays) s.sql += " FROM unnest(" + parameters(parameter) + ") AS k(" + sets + ")";
  s.sql += " WHERE " + condition;
  if (guard != Guard::none) s.sql = exactly(dialect, std::move(s.sql), "cardinality(?1)");
  return s;
}

// The rows whose columns `keys` equal the parameters; `condition` and `order` name columns as t.column.
//
// PostgreSQL plans before the first statistics, when it takes every table for empty and reading all of a
// small index for as good as looking something up in it, and keeps the plan. The OFFSET makes it look up, key
// by key.
template <class Row>
Statement select_by(Dialect dialect, Columns columns, const std::vector<Match>& keys,
                    std::string_view condition = "", std::string_view order = "", int limit = 0) {
  std::string rows = table_name<Row>() + " AS t WHERE " + matches(dialect, keys);
  if (!condition.empty()) rows.append(" AND ").append(condition);
  const std::string ordered = order.empty() ? "" : " ORDER BY " + std::string(order);
  const std::string first = limit == 0 ? "" : ordered + " LIMIT " + std::to_string(limit);  // of each set
  if (dialect == Dialect::postgres)
    rows = key_sets(keys) + " CROSS JOIN LATERAL (SELECT * FROM " + rows + first + " OFFSET 0) AS t";
  Statement s{"SELECT " + names<Row>(columns, "t.") + " FROM " + rows, {}, true};
  for (const Match& match : keys) s.parameters.push_back(match.type);
  s.sql += dialect == Dialect::postgres || limit == 0 ? ordered : first;
  return s;
}

// By primary key, which leaves no choice to a planner.
template <class Row, class Set = Columns>
Statement select_statement(Dialect dialect, Set columns = Columns::all) {
  const auto keys = key_of_table<Row>();
  const std::string sets = dialect == Dialect::postgres ? key_sets(keys) + ", " : "";
  return {"SELECT " + names<Row>(columns, "t.") + " FROM " + sets + table_name<Row>() + " AS t WHERE " +
              matches(dialect, keys),
          types<Row>(Columns::keys), true};
}

// Deletes by primary key; rows that are not there are not missed. PostgreSQL looks up key by key, as in select_by.
template <class Row>
Statement delete_statement(Dialect dialect) {
  const auto keys = key_of_table<Row>();
  const std::string rows = table_name<Row>() + " AS t WHERE " + matches(dialect, keys);
  Statement s{"DELETE FROM " + rows, types<Row>(Columns::keys), true};
  if (dialect == Dialect::postgres)
    s.sql = "DELETE FROM " + table_name<Row>() + " AS t WHERE t.ctid=ANY(ARRAY(SELECT f.ctid FROM " + key_sets(keys) +
            " CROSS JOIN LATERAL (SELECT t.ctid FROM " + rows + " OFFSET 0) AS f))";
  return s;
}

// --- queries
// ----------------------------------------------------------------------------------------------------------------------------

template <class Row>
auto key_of(const Row& row) {
  constexpr std::size_t n = std::apply(
      [](const auto&... column) { return (std::size_t{column.role == ColumnRole::key} + ...); }, Table<Row>::columns);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tie(row.*std::get<I>(Table<Row>::columns).member...);
  }(std::make_index_sequence<n>{});
}

// The rows in the order of their keys: neighbours on a page are then written one after the other, which both
// databases reward.
template <class Row>
std::vector<const Row*> in_key_order(const std::vector<Row>& rows) {
  std::vector<const Row*> order;
  order.reserve(rows.size());
  for (const Row& row : rows) order.push_back(&row);
  std::ranges::sort(order, [](const Row* a, const Row* b) { return key_of(*a) < key_of(*b); });
  return order;
}

template <class Row>
Error missed(Guard guard) {
  if (guard == Guard::status)
    return {Code::conflict, "a row of table " + table_name<Row>() +
                                " is gone, or another program has changed its status meanwhile"};
  return {Code::conflict, "table " + table_name<Row>() + " lacks a row that was to be updated"};
}

// Appends a query that writes `rows`; nothing for no rows.
template <class Row>
void add_write(std::vector<Query>& queries, const Statement& statement, const std::vector<Row>& rows,
               auto columns) {
  if (rows.empty()) return;
  queries.push_back({&statement,
                     rows.size(),
                     [order = in_key_order(rows), columns](std::size_t set, std::span<Value> out) {
                       fill(*order[set], columns, out);
                     },
                     {},
                     missed<Row>(Guard::exists)});
}

template <class Row>
void add_update(std::vector<Query>& queries, const Statement& statement, const std::vector<Row>& rows) {
  add_write(queries, statement, rows, live_columns<Row>());
}

// A sink that appends each row of an answer to `out`.
template <class Row, class Which = Columns>
auto collect(std::vector<Row>& out, Which columns = Columns::all) {
  return [&out, columns](const RowView& view) -> Result<> {
    return read_into(out.emplace_back(), view, columns);
  };
}

// Parameters that are the same whatever the set.
inline auto constant(std::vector<Value> values) {
  return [values = std::move(values)](std::size_t, std::span<Value> out) {
    std::ranges::copy(values, out.begin());
  };
}

}  // namespace baton::store
