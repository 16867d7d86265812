#include "store/data_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <map>
#include <set>

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
  boost::system::error_code error;
  const auto data = boost::json::parse(row.data.text, error);
  if (error || !data.is_object())
    return fail(Code::invalid, "the data of member '" + row.member_key + "' is not a JSON object");
  Cells cells(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto* value = data.as_object().if_contains(columns[i]);
    if (value == nullptr || value->is_null()) continue;
    cells[i] = value->is_string() ? std::string(value->as_string()) : boost::json::serialize(*value);
  }
  return cells;
}

}  // namespace baton::store
