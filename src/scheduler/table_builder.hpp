// Builds a table cell by cell and refuses what is too much of anything, or is no text.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ports/data_source.hpp"
#include "scheduler/limits.hpp"

namespace baton::scheduler {

class TableBuilder {
 public:
  explicit TableBuilder(const Limits& limits) : limits_(limits) {}

  // The next column. Its name must not be empty, nor that of an earlier one, in whatever case.
  [[nodiscard]] Result<> add_column(std::string name);
  [[nodiscard]] Result<> begin_row();
  // The cell of a column in the last row; a cell that is never set is missing.
  [[nodiscard]] Result<> set(std::size_t column, runbook::Cell cell);

  [[nodiscard]] std::size_t rows() const { return table_.rows.size(); }
  [[nodiscard]] std::size_t columns() const { return table_.columns.size(); }
  [[nodiscard]] SourceTable finish();

 private:
  [[nodiscard]] Result<> check_cells() const;

  const Limits& limits_;
  SourceTable table_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::scheduler
