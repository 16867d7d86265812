#include "base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/diagnostic.hpp"
#include "base/encoding.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace baton::csv {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view not_utf8 =
    "not UTF-8, and perhaps not the only cell; save the file as UTF-8 (in Excel: \"CSV UTF-8\")";
constexpr std::string_view nul_byte = "a NUL byte; is the file UTF-16? Save it as UTF-8";

// The bytes that a cell without quotes cannot just go on with.
constexpr bool is_odd(char c) { return c == '\n' || c == '\r' || c == '"' || c == '\0'; }

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits) : text_(text), limits_(limits) {}
  std::expected<Table, Errors> read();

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char here() const { return text_[at_]; }
  [[nodiscard]] bool is_full() const { return errors_.size() >= errors_max; }

  bool refuse_encoding();
  void skip_blank_lines();
  void find_separator();
  void read_header();
  void read_rows();
  std::size_t read_row(std::vector<std::string>& row);
  void read_cell(std::string& cell, std::size_t column);
  void read_quoted(std::string& cell, std::size_t column);
  void read_unquoted(std::string& cell, std::size_t column);
  bool odd_byte(std::size_t column);
  void skip_to_separator();
  bool end_row();

  void error(std::string message) {
    if (!is_full()) errors_.push_back(std::move(message));
  }
  void cell_error(std::size_t line, std::size_t column, std::string_view what);
  void encoding_error(std::size_t line, std::size_t column, std::string_view what);

  std::string_view text_;
  const Limits& limits_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool given_up_ = false;  // the rest cannot be told into cells
  bool encoding_told_ = false;
  Table table_;
  Errors errors_;
};

void Reader::cell_error(std::size_t line, std::size_t column, std::string_view what) {
  const std::string name =
      column < table_.columns.size() ? in_quotes(table_.columns[column]) : fmt::format("{}", column + 1);
  error(fmt::format("line {}, column {}: {}", line, name, what));
}

// A file has one encoding: what is wrong with it is not told of each cell.
void Reader::encoding_error(std::size_t line, std::size_t column, std::string_view what) {
  if (!std::exchange(encoding_told_, true)) cell_error(line, column, what);
}

std::expected<Table, Errors> Reader::read() {
  if (!refuse_encoding()) {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    skip_blank_lines();
    if (at_end()) {
      error("the file is empty; its first line must name the columns");
    } else {
      read_header();
      read_rows();
    }
  }
  if (!errors_.empty()) return std::unexpected(std::move(errors_));
  return std::move(table_);
}

bool Reader::refuse_encoding() {
  if (text_.size() > limits_.bytes) {
    error(fmt::format("the file has {} bytes; at most {} are read", text_.size(), limits_.bytes));
  } else if (const std::string_view wide = wide_encoding(text_); !wide.empty()) {
    error(fmt::format("line 1, column 1: the file is {}; save it as UTF-8 (in Excel: \"CSV UTF-8\")", wide));
  }
  return !errors_.empty();
}

void Reader::skip_blank_lines() {
  while (!at_end()) {
    std::size_t to = std::min(text_.find_first_not_of(' ', at_), text_.size());
    if (to < text_.size() && text_[to] == '\r' && to + 1 < text_.size() && text_[to + 1] == '\n') ++to;
    if (to < text_.size() && text_[to] != '\n') return;
    if (to < text_.size()) ++to, ++line_;
    at_ = to;
  }
}

void Reader::find_separator() {
  constexpr std::string_view candidates = ",;\t";
  std::array<std::size_t, candidates.size()> counts{};
  bool in_quote = false;
  for (std::size_t i = at_; i < text_.size() && (in_quote || text_[i] != '\n'); ++i) {
    if (text_[i] == '"') in_quote = !in_quote;
    const auto found = in_quote ? candidates.npos : candidates.find(text_[i]);
    if (found != candidates.npos) ++counts[found];
  }
  table_.separator = candidates[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
}

void Reader::read_header() {
  find_separator();
  const std::size_t line = line_;
  std::vector<std::string> names;
  const std::size_t count = read_row(names);
  if (given_up_) return;
  for (std::string& name : names) name = clean_text(trimmed(name), name.size());
  if (count > limits_.columns) {
    error(fmt::format("line {}: {}; at most {} are read", line, counted(count, "column"), limits_.columns));
    given_up_ = true;
    return;
  }
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) {
      error(fmt::format("line {}, column {}: the column has no name", line, i + 1));
    } else if (const auto [first, is_new] = seen.try_emplace(lower(names[i]), i); !is_new) {
      error(fmt::format("line {}, column {}: the name {} is that of column {} already", line, i + 1,
                        in_quotes(names[i]), first->second + 1));
    }
  }
  table_.columns = std::move(names);
}

void Reader::read_rows() {
  const std::size_t expected = table_.columns.size();
  for (skip_blank_lines(); !at_end() && !given_up_ && !is_full(); skip_blank_lines()) {
    if (table_.rows.size() == limits_.rows || (table_.rows.size() + 1) * expected > limits_.cells) {
      error(fmt::format("line {}: too many rows; at most {} are read from a file with {} columns", line_,
                        std::min(limits_.rows, limits_.cells / expected), expected));
      return;
    }
    const std::size_t line = line_;
    std::vector<std::string> row;
    row.reserve(expected);
    const std::size_t count = read_row(row);
    if (given_up_) return;
    if (count != expected) {
      error(fmt::format("line {}: {}, but {}", line, counted(count, "cell"), counted(expected, "column")));
    } else if (errors_.empty()) {
      table_.rows.push_back(std::move(row));
      table_.lines.push_back(static_cast<std::uint32_t>(line));
    }
  }
}

// Reads one row and the end of its line, and tells how many cells it has. Those beyond the limit are all read
// into the last one, so that a wrong file cannot take more memory than a right one.
std::size_t Reader::read_row(std::vector<std::string>& row) {
  for (std::size_t column = 0;; ++column) {
    if (column <= limits_.columns) row.emplace_back();
    row.back().clear();
    read_cell(row.back(), column);
    if (given_up_ || end_row()) return column + 1;
    ++at_;  // the separator
  }
}

// True at the end of the line, which is passed.
bool Reader::end_row() {
  if (at_end()) return true;
  if (here() == table_.separator) return false;
  if (here() == '\r') ++at_;
  ++at_;
  ++line_;
  return true;
}

// Stops at a separator, at a line end, or at the end.
void Reader::read_cell(std::string& cell, std::size_t column) {
  const std::size_t line = line_;
  if (!at_end() && here() == '"') {
    read_quoted(cell, column);
  } else {
    read_unquoted(cell, column);
  }
  if (!is_utf8(cell)) encoding_error(line, column, not_utf8);
}

void Reader::read_unquoted(std::string& cell, std::size_t column) {
  const std::size_t from = at_;
  const char separator = table_.separator;
  while (!at_end()) {
    while (at_ < text_.size() && here() != separator && !is_odd(here())) ++at_;
    if (at_end() || here() == separator || !odd_byte(column)) break;
  }
  cell.assign(text_, from, at_ - from);
}

// At a byte that is not plain and not the separator. False: it ends the line. Otherwise it is wrong, which is
// told once for a cell, and the rest of the cell is passed.
bool Reader::odd_byte(std::size_t column) {
  if (here() == '\n' || text_.substr(at_, 2) == "\r\n") return false;
  if (here() == '\0') {
    encoding_error(line_, column, nul_byte);
  } else if (here() == '"') {
    cell_error(line_, column,
               "a quote in a cell without quotes; put the cell in quotes and double the quote");
  } else {
    cell_error(line_, column, "a carriage return in a cell without quotes; lines end with LF or CRLF");
  }
  skip_to_separator();
  return true;
}

void Reader::skip_to_separator() {
  while (!at_end() && here() != table_.separator && here() != '\n' && text_.substr(at_, 2) != "\r\n") ++at_;
}

void Reader::read_quoted(std::string& cell, std::size_t column) {
  const std::size_t begin_line = line_;
  bool has_nul = false;
  for (++at_;; ++at_) {
    const std::size_t quote = text_.find('"', at_);
    const std::string_view piece = text_.substr(at_, quote == text_.npos ? text_.npos : quote - at_);
    line_ += static_cast<std::size_t>(std::ranges::count(piece, '\n'));
    has_nul = has_nul || piece.find('\0') != piece.npos;
    if (quote == text_.npos) {
      cell_error(begin_line, column, "the quote that begins here has no end");
      given_up_ = true;
      at_ = text_.size();
      return;
    }
    cell.append(piece);
    at_ = quote + 1;
    if (at_end() || here() != '"') break;
    cell += '"';
  }
  if (has_nul) encoding_error(begin_line, column, nul_byte);
  if (at_end() || here() == table_.separator || here() == '\n' || text_.substr(at_, 2) == "\r\n") return;
  cell_error(line_, column, "text after the closing quote; a quote within quotes is doubled");
  skip_to_separator();
}

}  // namespace

std::expected<Table, Errors> read(std::string_view text, const Limits& limits) {
  return Reader(text, limits).read();
}

}  // namespace baton::csv
