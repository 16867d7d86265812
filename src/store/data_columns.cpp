#include "store/data_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/json_document.hpp"
#include "base/text.hpp"
#include "core/runbook/members/members.hpp"

namespace baton::store {

bool is_system_column(std::string_view column) {
  constexpr std::array<std::string_view, 6> system = {"_row_id",        "_member_key",   "_batch_time",
                                                      "_first_seen_at", "_last_seen_at", "_is_current"};
  return std::ranges::find(system, lower(column)) != system.end();
}

std::string cut_name(const std::string& name) {
  const auto hash = static_cast<std::uint32_t>(runbook::hash_data(name));
  return clean_text(name, name_bytes_max - 9) + fmt::format("_{:08x}", hash);
}

std::vector<std::string> data_column_names(const std::vector<std::string>& columns) {
  std::map<std::string, int> spellings;
  for (const std::string& column : columns) ++spellings[lower(column)];
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    const bool fits = !column.empty() && clean_text(column, name_bytes_max) == column &&
                      !is_system_column(column) && spellings[lower(column)] == 1;
    std::string name = fits ? column : cut_name(column);
    while (!taken.insert(lower(name)).second) name = cut_name(name);
    names.push_back(std::move(name));
  }
  return names;
}

Result<> check_data_table_name(const std::string& name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (name.starts_with("runbook_") && std::ranges::all_of(name, is_plain)) return {};
  return fail(Code::invalid, "a table for members is not named '" + clean_text(name, 100) +
                                 "': expected runbook_NAME_vVERSION of small letters, digits and '_'");
}

Result<Cells> cells_of(const runbook::DataRow& row, const std::vector<std::string>& columns) {
  const auto data = JsonDocument::parse(row.data.text);
  if (!data || data->root().kind() != JsonKind::object)
    return fail(Code::invalid, "the data of member '" + row.member_key + "' is not a JSON object");
  const auto members = data->root().members();
  Cells cells(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    // All rows of a source mostly have the same columns in the same order.
    const bool is_here = i < members.size() && members[i].first == columns[i];
    const JsonView value = is_here ? members[i].second : data->root().find(columns[i]);
    if (!value || value.is_null()) continue;
    cells[i] = value.kind() == JsonKind::string ? std::string(value.string()) : value.json().text;
  }
  return cells;
}

}  // namespace baton::store
