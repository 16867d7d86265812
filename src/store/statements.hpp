// SQL, parameters and decoding, generated from tables.hpp for either dialect.
#pragma once

#include <algorithm>
#include <compare>
#include <optional>
#include <string>
#include <type_traits>

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
  else if constexpr (std::is_same_v<T, Time>)
    return Type::time;
  else if constexpr (std::is_same_v<T, bool>)
    return Type::boolean;
  else if constexpr (std::is_integral_v<T>)
    return Type::integer;
  else
    return Type::text;
}

// The value borrows from `from`.
template <class T>
Value encode(const T& from) {
  if constexpr (is_optional<T>::value)
    return from ? encode(*from) : Value{};
  else if constexpr (is_id<T>::value)
    return std::string_view{from.value};
  else if constexpr (std::is_same_v<T, Json>)
    return std::string_view{from.text};
  else if constexpr (std::is_same_v<T, std::string>)
    return std::string_view{from};
  else if constexpr (std::is_same_v<T, Time> || std::is_same_v<T, bool>)
    return from;
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
  } else if constexpr (std::is_same_v<T, std::string>) {
    to = row.text(column);
    return true;
  } else if constexpr (std::is_same_v<T, Time>) {
    const auto time = from_iso(row.text(column));
    if (time) to = *time;
    return time.has_value();
  } else if constexpr (std::is_same_v<T, bool>) {
    to = row.boolean(column);
    return true;
  } else if constexpr (std::is_enum_v<T>) {
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
  update,   // keys and live
  summary,  // all but JSON documents, which may be large
};

template <class Member>
constexpr bool includes(Columns columns, Kind kind) {
  switch (columns) {
    case Columns::all: return true;
    case Columns::keys: return kind == Kind::key;
    case Columns::update: return kind != Kind::fixed;
    case Columns::summary: return type_of<Member>() != Type::json;
  }
  return false;
}

template <class Row, class F>
constexpr void for_columns(Columns columns, F&& f) {
  for_each_column<Row>([&]<class Member>(const Column<Row, Member>& column) {
    if (includes<Member>(columns, column.kind)) f(column);
  });
}

template <class Row>
std::vector<Type> types(Columns columns) {
  std::vector<Type> list;
  for_columns<Row>(columns, [&]<class Member>(const Column<Row, Member>& column) {
    list.push_back(column.millis ? Type::integer : type_of<Member>());
  });
  return list;
}

template <class Row>
std::string names(Columns columns, std::string_view prefix = "") {
  std::string list;
  for_columns<Row>(columns, [&](const auto& column) {
    if (!list.empty()) list += ',';
    list.append(prefix).append(column.name);
  });
  return list;
}

template <class Row>
void fill(const Row& row, Columns columns, std::span<Value> out) {
  auto at = out.begin();
  for_columns<Row>(columns, [&]<class Member>(const Column<Row, Member>& column) {
    if constexpr (std::is_same_v<Member, Time>) {
      *at++ = column.millis ? Value{to_millis(row.*column.member)} : Value{row.*column.member};
    } else {
      *at++ = encode(row.*column.member);
    }
  });
}

template <class Row>
Result<Row> read(const RowView& view, Columns columns = Columns::all) {
  Row row;
  int at = 0;
  bool ok = true;
  for_columns<Row>(columns, [&]<class Member>(const Column<Row, Member>& column) {
    if constexpr (std::is_same_v<Member, Time>) {
      if (column.millis) {
        row.*column.member = from_millis(view.integer(at++));
        return;
      }
    }
    ok = decode(view, at++, row.*column.member) && ok;
  });
  if (!ok)
    return fail(Code::invalid,
                "table " + std::string(Table<Row>::name) + " holds a row that this version cannot read");
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

// Makes a PostgreSQL statement that changes another number of rows than `expected` fail (22012, division by
// zero), which also skips everything that was sent behind it. SQLite looks at the number of changes instead.
inline std::string exactly(Dialect dialect, std::string sql, std::string_view expected) {
  if (dialect == Dialect::sqlite) return sql;
  return "WITH hit AS (" + std::move(sql) + " RETURNING 1) SELECT 1/(count(*)=" + std::string(expected) +
         ")::int FROM hit";
}

template <class Row>
Statement insert_statement(Dialect dialect) {
  Statement s{"INSERT INTO " + std::string(Table<Row>::name) + "(" + names<Row>(Columns::all) + ") ",
              types<Row>(Columns::all), true};
  const std::string list = parameters(s.parameters.size());
  s.sql += dialect == Dialect::sqlite ? "VALUES(" + list + ")" : "SELECT * FROM unnest(" + list + ")";
  return s;
}

// `a=?1 AND b=?2` in SQLite, `t.a=k.a AND t.b=k.b` in PostgreSQL.
template <class Row>
std::string key_matches(Dialect dialect) {
  std::string condition;
  std::size_t parameter = 0;
  for_columns<Row>(Columns::keys, [&](const auto& column) {
    const std::string name(column.name);
    if (parameter++ != 0) condition += " AND ";
    condition +=
        dialect == Dialect::sqlite ? name + "=?" + std::to_string(parameter) : "t." + name + "=k." + name;
  });
  return condition;
}

template <class Row>
Statement update_statement(Dialect dialect) {
  Statement s{
      "UPDATE " + std::string(Table<Row>::name) + (dialect == Dialect::sqlite ? " SET " : " AS t SET "),
      types<Row>(Columns::update), true, true};
  std::size_t parameter = 0;
  std::string assignments;
  for_columns<Row>(Columns::update, [&](const auto& column) {
    ++parameter;
    if (column.kind == Kind::key) return;
    const std::string name(column.name);
    if (!assignments.empty()) assignments += ',';
    assignments += name + "=" + (dialect == Dialect::sqlite ? "?" + std::to_string(parameter) : "k." + name);
  });
  s.sql += assignments;
  if (dialect == Dialect::postgres)
    s.sql += " FROM unnest(" + parameters(parameter) + ") AS k(" + names<Row>(Columns::update) + ")";
  s.sql = exactly(dialect, s.sql + " WHERE " + key_matches<Row>(dialect), "cardinality(?1)");
  return s;
}

template <class Row>
Statement delete_statement(Dialect dialect) {
  Statement s{"DELETE FROM " + std::string(Table<Row>::name), types<Row>(Columns::keys), true};
  if (dialect == Dialect::postgres) {
    s.sql +=
        " AS t USING unnest(" + parameters(s.parameters.size()) + ") AS k(" + names<Row>(Columns::keys) + ")";
  }
  s.sql += " WHERE " + key_matches<Row>(dialect);
  return s;
}

template <class Row>
Statement select_statement(Dialect dialect, Columns columns = Columns::all) {
  const std::string table(Table<Row>::name);
  Statement s{"", types<Row>(Columns::keys), true};
  if (dialect == Dialect::sqlite) {
    s.sql = "SELECT " + names<Row>(columns) + " FROM " + table;
  } else {
    s.sql = "SELECT " + names<Row>(columns, "t.") + " FROM unnest(" + parameters(s.parameters.size()) +
            ") AS k(" + names<Row>(Columns::keys) + "), " + table + " AS t";
  }
  s.sql += " WHERE " + key_matches<Row>(dialect);
  return s;
}

// --- calls
// ----------------------------------------------------------------------------------------------------------------------------

template <class Row>
bool key_less(const Row& a, const Row& b) {
  std::strong_ordering order = std::strong_ordering::equal;
  for_columns<Row>(Columns::keys, [&](const auto& column) {
    if constexpr (requires {
                    a.*column.member <=> b.*column.member;
                  }) {  // documents have no order, and are never keys
      if (order == 0) order = a.*column.member <=> b.*column.member;
    }
  });
  return order < 0;
}

// The rows in the order of their keys: neighbours on a page are then written one after the other, which both
// databases reward.
template <class Row>
std::vector<const Row*> in_key_order(const std::vector<Row>& rows) {
  std::vector<const Row*> order;
  order.reserve(rows.size());
  for (const Row& row : rows) order.push_back(&row);
  std::ranges::sort(order, [](const Row* a, const Row* b) { return key_less(*a, *b); });
  return order;
}

// Appends a call that writes `rows`; nothing for no rows.
template <class Row>
void add_write(std::vector<Call>& calls, const Statement& statement, const std::vector<Row>& rows,
               Columns columns) {
  if (rows.empty()) return;
  calls.push_back(
      {&statement,
       rows.size(),
       [order = in_key_order(rows), columns](std::size_t set, std::span<Value> out) {
         fill(*order[set], columns, out);
       },
       {},
       {Code::conflict, "table " + std::string(Table<Row>::name) + " lacks a row that was to be updated"}});
}

// A sink that appends each row of an answer to `out`.
template <class Row>
auto collect(std::vector<Row>& out, Columns columns = Columns::all) {
  return [&out, columns](const RowView& view) -> Result<> {
    TRY_ASSIGN(auto row, read<Row>(view, columns));
    out.push_back(std::move(row));
    return {};
  };
}

// Parameters that are the same whatever the set.
inline auto constant(std::vector<Value> values) {
  return [values = std::move(values)](std::size_t, std::span<Value> out) {
    std::ranges::copy(values, out.begin());
  };
}

}  // namespace baton::store
