#include "scheduler/table_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace baton::scheduler {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

Result<> TableBuilder::add_column(std::string name) {
  const std::size_t number = columns() + 1;
  if (!is_utf8(name)) return fail(Code::invalid, fmt::format("column {}: the name is not UTF-8", number));
  if (name.empty()) return fail(Code::invalid, fmt::format("column {} has no name", number));
  if (number > limits_.columns)
    return fail(Code::invalid, fmt::format("too many columns; at most {} are read", limits_.columns));
  for (const std::string& earlier : table_.columns) {
    if (same_name(earlier, name))
      return fail(Code::invalid, fmt::format("column {} is there twice", in_quotes(name)));
  }
  table_.columns.push_back(std::move(name));
  return check_cells();
}

Result<> TableBuilder::begin_row() {
  if (rows() == limits_.rows)
    return fail(Code::invalid, fmt::format("too many rows; at most {} are read", limits_.rows));
  table_.rows.emplace_back(columns());
  return check_cells();
}

Result<> TableBuilder::check_cells() const {
  if (rows() * columns() <= limits_.cells) return {};
  return fail(Code::invalid, fmt::format("too many cells; at most {} are read", limits_.cells));
}

Result<> TableBuilder::set(std::size_t column, runbook::Cell cell) {
  const auto wrong = [&](std::string_view what) {
    return fail(Code::invalid,
                fmt::format("row {}, column {}: {}", rows(), in_quotes(table_.columns[column]), what));
  };
  auto& row = table_.rows.back();
  if (row.size() <= column) row.resize(column + 1);
  bytes_ += cell.text().size();
  if (bytes_ > limits_.bytes)
    return wrong(fmt::format("too much text; at most {} bytes are read", limits_.bytes));
  if (cell.text().contains('\0')) return wrong("a NUL character");
  if (!is_utf8(cell.text())) return wrong("not UTF-8");
  row[column] = std::move(cell);
  return {};
}

SourceTable TableBuilder::finish() {
  for (auto& row : table_.rows) row.resize(columns());
  return std::move(table_);
}

}  // namespace baton::scheduler
