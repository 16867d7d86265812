// Whatever a CSV file holds, reading it must not crash, and what was read must be rectangular, UTF-8 and the
// same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/csv.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

namespace {

namespace csv = baton::csv;

void append_row(std::string& text, const std::vector<std::string>& row, char separator) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) text += separator;
    text += '"';
    for (const char c : row[i]) text.append(c == '"' ? 2 : 1, c);
    text += '"';
  }
  text += '\n';
}

void check_again(const csv::Table& table) {
  std::string text;
  append_row(text, table.columns, table.separator);
  for (const auto& row : table.rows) append_row(text, row, table.separator);
  const auto again = csv::read(text);
  ENSURE(again && again->columns == table.columns && again->rows == table.rows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = csv::read({reinterpret_cast<const char*>(data), size}, {.rows = 1000, .columns = 50});
  if (!table) {
    ENSURE(!table.error().empty() && table.error().size() <= csv::errors_max);
    for (const std::string& error : table.error()) ENSURE(baton::is_utf8(error));
    return 0;
  }
  ENSURE(!table->columns.empty() && table->rows.size() <= 1000);
  for (const auto& row : table->rows) {
    ENSURE(row.size() == table->columns.size());
    for (const auto& cell : row) ENSURE(baton::is_utf8(cell) && cell.find('\0') == cell.npos);
  }
  check_again(*table);
  return 0;
}
