// Which member of which row struct is which column. Everything that is said about columns is said with these
// words (tables.hpp, runbook_tables.hpp); SQL, parameters and decoding of both dialects are generated from it
// (statements.hpp). The DDL is in schema.cpp.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>

namespace baton::store {

enum class Kind {
  key,       // names the row
  fixed,     // written once, with the row
  live,      // written again by each update
  document,  // JSON that others may have written, so it is text; an update without one leaves it as it is
  outcome,   // a document that no decision reads: the writer does not load it
  guard,     // no column: the status in which an update expects the row
};

template <class Row, class Member>
struct Column {
  std::string_view name;
  Member Row::*member;
  Kind kind;
  bool millis = false;  // an instant as Unix milliseconds instead of a timestamp
};

template <class Row, class Member>
constexpr Column<Row, Member> key(std::string_view name, Member Row::*member) {
  return {name, member, Kind::key};
}
template <class Row, class Member>
constexpr Column<Row, Member> key_millis(std::string_view name, Member Row::*member) {
  return {name, member, Kind::key, true};
}
template <class Row, class Member>
constexpr Column<Row, Member> fixed(std::string_view name, Member Row::*member) {
  return {name, member, Kind::fixed};
}
template <class Row, class Member>
constexpr Column<Row, Member> live(std::string_view name, Member Row::*member) {
  return {name, member, Kind::live};
}
template <class Row, class Member>
constexpr Column<Row, Member> document(std::string_view name, Member Row::*member) {
  return {name, member, Kind::document};
}
template <class Row, class Member>
constexpr Column<Row, Member> outcome(std::string_view name, Member Row::*member) {
  return {name, member, Kind::outcome};
}
template <class Row, class Member>
constexpr Column<Row, Member> guard(Member Row::*member) {
  return {"stored_status", member, Kind::guard};
}

// The columns of a struct as those of one that is derived from it.
template <class Row, class Base, class... Member>
constexpr auto inherit(const std::tuple<Column<Base, Member>...>& columns) {
  return std::apply(
      [](const auto&... column) {
        return std::tuple{Column<Row, Member>{column.name, column.member, column.kind, column.millis}...};
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

// What an update does to a row: its live columns, the documents that it brings, and nothing else.
template <class Row>
void copy_live(const Row& from, Row& to) {
  for_each_column<Row>([&](const auto& column) {
    const auto& value = from.*column.member;
    bool copies = column.kind == Kind::live;
    if constexpr (requires { value.has_value(); }) {
      copies = copies || ((column.kind == Kind::document || column.kind == Kind::outcome) && value);
    }
    if (copies) to.*column.member = value;
  });
}

}  // namespace baton::store
