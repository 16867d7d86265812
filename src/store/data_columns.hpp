// The names and cells of the tables that hold what data sources said, the same for every adapter; see
// data_tables.hpp.
//
// A query may name its columns as it likes, a database may not take all names. One that is too long, empty,
// that of a system column, or differs from another only in case is cut and ends in its hash.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/runbook/machine/rows.hpp"

namespace baton::store {

constexpr std::size_t name_bytes_max = 63;  // PostgreSQL's; the others have no limit, but shall look the same

// The columns of the table for the columns of a query, which are all different.
[[nodiscard]] std::vector<std::string> data_column_names(const std::vector<std::string>& columns);
[[nodiscard]] bool is_system_column(std::string_view column);
[[nodiscard]] std::string cut_name(const std::string& name);
[[nodiscard]] Result<> check_data_table_name(const std::string& name);

// The cells of a row in the order of the query's columns. What is neither text nor null is stored as its
// JSON.
using Cells = std::vector<std::optional<std::string>>;
[[nodiscard]] Result<Cells> cells_of(const runbook::DataRow& row, const std::vector<std::string>& columns);

}  // namespace baton::store
