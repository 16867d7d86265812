// Which member of which row struct is which column. Everything that is said about columns is said with these
// words (tables.hpp, runbook_tables.hpp); SQL, parameters and decoding of both dialects are generated from it
// (statements.hpp). The DDL is in migrations.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

namespace baton::store {

enum class ColumnRole {
  key,       // names the row
  fixed,     // written once, with the row
  live,      // written again by updates
  document,  // the same; JSON that others may have written, so it is text
  outcome,   // a document that no decision reads: the writer does not load it
};

template <class Row, class Member>
struct Column {
  std::string_view name;
  Member Row::*member;
  ColumnRole role;
};

template <class Row, class Member>
constexpr Column<Row, Member> key(std::string_view name, Member Row::*member) {
  return {name, member, ColumnRole::key};
}
template <class Row, class Member>
constexpr Column<Row, Member> fixed(std::string_view name, Member Row::*member) {
  return {name, member, ColumnRole::fixed};
}
template <class Row, class Member>
constexpr Column<Row, Member> live(std::string_view name, Member Row::*member) {
  return {name, member, ColumnRole::live};
}
template <class Row, class Member>
constexpr Column<Row, Member> document(std::string_view name, Member Row::*member) {
  return {name, member, ColumnRole::document};
}
template <class Row, class Member>
constexpr Column<Row, Member> outcome(std::string_view name, Member Row::*member) {
  return {name, member, ColumnRole::outcome};
}

// The columns of a struct as those of one that is derived from it.
template <class Row, class Base, class... Member>
constexpr auto inherit(const std::tuple<Column<Base, Member>...>& columns) {
  return std::apply(
      [](const auto&... column) {
        return std::tuple{Column<Row, Member>{column.name, column.member, column.role}...};
      },
      columns);
}

// Key columns come first, in the order of the primary key.
template <class Row>
struct Table;

template <class Row, class F>
constexpr void for_each_column(F&& f) {
  std::apply([&](const auto&... column) { (f(column), ...); }, Table<Row>::columns);
}

// Columns of a table by their place: the first is the lowest bit.
using ColumnSet = std::uint64_t;

// What an update changes of its row.
template <class Row>
ColumnSet differing_columns(const Row& before, const Row& row) {
  static_assert(std::tuple_size_v<decltype(Table<Row>::columns)> <= 64);
  ColumnSet set = 0, bit = 1;
  for_each_column<Row>([&](const auto& column) {
    if (column.role != ColumnRole::key && before.*column.member != row.*column.member) set |= bit;
    bit <<= 1;
  });
  return set;
}

// What an update of these columns does to a row.
template <class Row>
void copy_columns(const Row& from, Row& to, ColumnSet set) {
  for_each_column<Row>([&](const auto& column) {
    if ((set & 1) != 0) to.*column.member = from.*column.member;
    set >>= 1;
  });
}

// What an update of a row that nobody else writes does to it: all of its live columns.
template <class Row>
void copy_live(const Row& from, Row& to) {
  for_each_column<Row>([&](const auto& column) {
    if (column.role == ColumnRole::live) to.*column.member = from.*column.member;
  });
}
template <class Row>
void move_live(Row& from, Row& to) {
  for_each_column<Row>([&](const auto& column) {
    if (column.role == ColumnRole::live) to.*column.member = std::move(from.*column.member);
  });
}

}  // namespace baton::store
