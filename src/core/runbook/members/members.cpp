#include "core/runbook/members/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <unordered_map>

#include "base/diagnostic.hpp"
#include "base/json_write.hpp"
#include "base/text.hpp"

namespace baton::runbook {
namespace {

using Cells = std::vector<Cell>;

constexpr std::size_t errors_max = 100;

void append_list(std::string& out, std::string_view text, char separator) {
  out += '[';
  bool first = true;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (const auto part = trimmed(text.substr(0, end)); !part.empty()) {
      if (!first) out += ',';
      append_quoted(out, part);
      first = false;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += ']';
}

// The array without the blanks between its tokens, so that numbers keep their digits. False: it is none.
bool append_json_array(std::string& out, std::string_view text) {
  boost::json::error_code error;
  const auto value = boost::json::parse({text.data(), text.size()}, error);
  if (error || !value.is_array()) return false;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string || (c != ' ' && c != '\t' && c != '\r' && c != '\n')) out += c;
    if (in_string && c == '\\')
      out += text[++i];
    else if (c == '"')
      in_string = !in_string;
  }
  return true;
}

// One cell of a data table: null, text, or a list that was written as its JSON.
void append_stored(std::string& out, const boost::json::value& cell, const MultiFormat* format) {
  const std::string_view text = cell.is_string() ? trimmed(std::string_view(cell.get_string())) : std::string_view{};
  if (!format || !(cell.is_string() || cell.is_null()))
    append_value(out, cell);
  else if (text.empty())
    out += "[]";
  else if (append_json_array(out, text))
    return;
  else if (*format == MultiFormat::json_array)
    append_value(out, cell);
  else
    append_list(out, text, *format == MultiFormat::comma_delimited ? ',' : ';');
}

class MemberReader {
 public:
  MemberReader(const DataSource& source, const SourceTable& table, bool with_times)
      : source_(source),
        table_(table),
        columns_(table.columns),
        has_times_(with_times && !source.immediate && !source.batch_time_column.empty()) {}

  std::expected<std::vector<SourceMember>, std::vector<std::string>> read();

 private:
  void find_columns();
  std::size_t find(const std::string& name, std::string_view role);
  SourceMember read_row(const Cells& cells);
  void check_key(const std::string& key);
  void append_cell(std::string& out, const SourceMember& member, std::size_t column, const Cell& cell);
  // Keys and times are texts, whatever the source has them as: they are compared with what others write.
  [[nodiscard]] bool is_value(std::size_t column, const Cell& cell) const {
    return cell.is_literal() && column != key_ && !(has_times_ && column == time_);
  }

  void error(std::string message) {
    if (errors_.size() < errors_max) errors_.push_back(std::move(message));
  }
  void cell_error(std::string_view key, std::size_t column, std::string_view what);
  [[nodiscard]] std::string place(std::size_t row) const;

  const DataSource& source_;
  const SourceTable& table_;
  const std::vector<std::string>& columns_;
  const bool has_times_;
  std::size_t key_ = 0;
  std::size_t time_ = 0;
  std::vector<std::string> names_;                     // as the data has them: "Column":
  std::vector<std::optional<MultiFormat>> formats_;    // by column
  std::unordered_map<std::string, std::size_t> seen_;  // the row of each key
  std::size_t row_ = 0;                                // that is being read, from 1
  std::vector<std::string> errors_;
};

// What somebody with an editor looks for is the line; a query has no lines.
std::string MemberReader::place(std::size_t row) const {
  return row <= table_.lines.size() ? fmt::format("line {}", table_.lines[row - 1]) : fmt::format("row {}", row);
}

// The key helps to find the row where the rows are not numbered, or were numbered otherwise.
void MemberReader::cell_error(std::string_view key, std::size_t column, std::string_view what) {
  error(fmt::format("{}{}, column {}: {}", place(row_), key.empty() ? "" : fmt::format(" ({})", in_quotes(key)),
                    in_quotes(columns_[column]), what));
}

std::expected<std::vector<SourceMember>, std::vector<std::string>> MemberReader::read() {
  const std::vector<Cells>& rows = table_.rows;
  find_columns();
  std::vector<SourceMember> members;
  if (errors_.empty()) {
    seen_.reserve(rows.size());
    members.reserve(rows.size());
    for (const Cells& cells : rows) {
      ++row_;
      if (cells.size() == columns_.size()) {
        members.push_back(read_row(cells));
      } else {
        error(fmt::format("{}: {} cell{}, but {} columns", place(row_), cells.size(),
                          cells.size() == 1 ? "" : "s", columns_.size()));
      }
      if (errors_.size() == errors_max) break;
    }
  }
  if (!errors_.empty()) return std::unexpected(std::move(errors_));
  return members;
}

void MemberReader::find_columns() {
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    names_.push_back(quoted(columns_[i]) + ':');
    if (!by_name.try_emplace(lower(columns_[i]), i).second)
      error(fmt::format("column {}: the source has it twice", in_quotes(columns_[i])));
  }
  key_ = find(source_.primary_key, "primary_key");
  if (has_times_) time_ = find(source_.batch_time_column, "batch_time_column");
  formats_.resize(columns_.size());
  for (const MultiValuedColumn& multi : source_.multi_valued_columns) {
    if (const auto found = by_name.find(lower(multi.name)); found != by_name.end())
      formats_[found->second] = multi.format;
  }
}

// Databases fold the case of names, people do not care for it: any case will do.
std::size_t MemberReader::find(const std::string& name, std::string_view role) {
  const auto same = [&](const std::string& column) { return lower(column) == lower(name); };
  if (const auto found = std::ranges::find_if(columns_, same); found != columns_.end())
    return static_cast<std::size_t>(found - columns_.begin());
  const std::string near = nearest(name, {columns_.begin(), columns_.end()});
  error(fmt::format("column {} ({}): the source has no such column; {}", in_quotes(name), role,
                    near.empty() ? fmt::format("it has {}", fmt::join(columns_, ", "))
                                 : fmt::format("did you mean '{}'?", near)));
  return 0;
}

SourceMember MemberReader::read_row(const Cells& cells) {
  SourceMember member;
  member.member_key = trimmed(cells[key_].text());
  check_key(member.member_key);
  if (has_times_) {
    const std::string_view text = trimmed(cells[time_].text());
    member.batch_time = parse_batch_time(text);
    if (!member.batch_time) {
      cell_error(member.member_key, time_,
                 text.empty() ? "the time is missing"
                              : fmt::format("{} is not a time; write 2026-03-01T20:00Z", in_quotes(text)));
    }
  }
  std::string& data = member.data.text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    data += i == 0 ? '{' : ',';
    data += names_[i];
    append_cell(data, member, i, cells[i]);
  }
  data += '}';
  return member;
}

void MemberReader::check_key(const std::string& key) {
  if (key.empty()) return cell_error({}, key_, "the key is missing");
  const auto [first, is_new] = seen_.try_emplace(key, row_);
  if (!is_new) cell_error(key, key_, fmt::format("the key is that of {} already", place(first->second)));
}

void MemberReader::append_cell(std::string& out, const SourceMember& member, std::size_t column,
                               const Cell& cell) {
  if (!cell && !formats_[column]) return void(out += "null");
  if (!formats_[column]) return is_value(column, cell) ? void(out += cell.text()) : append_quoted(out, cell.text());
  const std::string_view text = trimmed(cell.text());
  switch (*formats_[column]) {
    case MultiFormat::semicolon_delimited: return append_list(out, text, ';');
    case MultiFormat::comma_delimited: return append_list(out, text, ',');
    case MultiFormat::json_array:
      if (text.empty()) return void(out += "[]");
      if (!append_json_array(out, text)) cell_error(member.member_key, column, "not a JSON array");
  }
}

// ---- Times ----

// Adds to an ISO time what may be left out.
std::optional<Time> parse_iso(std::string_view text) {
  constexpr std::size_t date = 10, minutes = 16;  // 2026-03-01T20:00
  if (text.size() == date) return from_iso(std::string(text) + "T00:00:00Z");
  if (text.size() < minutes) return std::nullopt;
  std::string whole(text.substr(0, minutes));
  text.remove_prefix(minutes);
  const auto seconds =
      text.starts_with(':') ? std::min(text.find_first_not_of(":.0123456789"), text.size()) : 0;
  whole += seconds == 0 ? ":00" : text.substr(0, seconds);
  text.remove_prefix(seconds);
  whole += text.empty() ? "Z" : trimmed(text);  // the offset, which databases put behind a blank
  return from_iso(whole);
}

}  // namespace

std::expected<std::vector<SourceMember>, std::vector<std::string>> read_members(
    const DataSource& source, const SourceTable& table, bool with_times) {
  return MemberReader(source, table, with_times).read();
}

std::optional<Time> parse_batch_time(std::string_view text) {
  return parse_iso(trimmed(text));
}

std::uint64_t hash_data(std::string_view data_json) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : data_json) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return hash == 0 ? 1 : hash;  // 0 says that there is no data
}

Json with_lists(const DataSource& source, Json data) {
  boost::json::error_code error;
  const auto row = boost::json::parse(data.text, error);
  if (error || !row.is_object() || source.multi_valued_columns.empty()) return data;
  Json out{"{"};
  for (const auto& [column, cell] : row.get_object()) {
    const auto same = [&, &name = column](const MultiValuedColumn& multi) { return lower(multi.name) == lower(name); };
    const auto multi = std::ranges::find_if(source.multi_valued_columns, same);
    if (out.text.size() > 1) out.text += ',';
    append_quoted(out.text, column);
    out.text += ':';
    append_stored(out.text, cell, multi == source.multi_valued_columns.end() ? nullptr : &multi->format);
  }
  out.text += '}';
  return out;
}

Time immediate_time(Time now) {
  return std::chrono::floor<std::chrono::duration<std::int64_t, std::ratio<300>>>(now);
}

}  // namespace baton::runbook
