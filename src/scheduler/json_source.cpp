#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <unordered_map>

#include "base/diagnostic.hpp"
#include "base/encoding.hpp"
#include "base/json.hpp"
#include "scheduler/readers.hpp"
#include "scheduler/table_builder.hpp"

namespace baton::scheduler {
namespace {

namespace bj = boost::json;
using runbook::Cell;

constexpr std::size_t depth_max = 64;

// Receives the parser's events and fills a table, so that the document as such is never in memory. Numbers
// keep their digits.
class Handler {
 public:
  constexpr static std::size_t max_object_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_array_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_key_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_string_size = static_cast<std::size_t>(-1);

  explicit Handler(const Limits& limits) : table_(limits) {}
  [[nodiscard]] Result<SourceTable> finish();
  [[nodiscard]] const Result<>& outcome() const { return outcome_; }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code& e) { return check(begin(true), e); }
  bool on_object_end(std::size_t, bj::error_code& e) { return check(end('}'), e); }
  bool on_array_begin(bj::error_code& e) { return check(begin(false), e); }
  bool on_array_end(std::size_t, bj::error_code& e) { return check(end(']'), e); }
  bool on_key_part(bj::string_view s, std::size_t, bj::error_code&) { return add(s); }
  bool on_key(bj::string_view s, std::size_t, bj::error_code&) { return add(s), take_key(); }
  bool on_string_part(bj::string_view s, std::size_t, bj::error_code&) { return add(s); }
  bool on_string(bj::string_view s, std::size_t, bj::error_code& e) {
    return add(s), check(scalar(CellKind::string), e);
  }
  bool on_number_part(bj::string_view s, bj::error_code&) { return add(s); }
  bool on_int64(std::int64_t, bj::string_view s, bj::error_code& e) {
    return add(s), check(scalar(CellKind::number), e);
  }
  bool on_uint64(std::uint64_t, bj::string_view s, bj::error_code& e) {
    return add(s), check(scalar(CellKind::number), e);
  }
  bool on_double(double, bj::string_view s, bj::error_code& e) {
    return add(s), check(scalar(CellKind::number), e);
  }
  bool on_bool(bool b, bj::error_code& e) {
    return add(b ? "true" : "false"), check(scalar(CellKind::boolean), e);
  }
  bool on_null(bj::error_code& e) { return add("null"), check(scalar(CellKind::null), e); }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }

 private:
  enum class CellKind { string, number, boolean, null };
  // What an open container is: the object around the rows, their array, one of them, the value of a cell with
  // all that is in it, or something that nobody asked for.
  enum class Place { outside, wrapper, rows, row, cell, skipped };

  [[nodiscard]] Place place() const { return open_.empty() ? Place::outside : open_.back(); }
  bool add(bj::string_view s) { return text_.append(s.data(), s.size()), true; }
  bool take_key();
  Result<> begin(bool is_object);
  Result<> end(char bracket);
  Result<> scalar(CellKind kind);
  Result<> set_cell(Cell cell);
  Result<> not_rows() const;
  // In compact JSON what needs no comma before it is behind one of these.
  void comma() {
    const char last = cell_.empty() ? '[' : cell_.back();
    if (last != '[' && last != '{' && last != ':') cell_ += ',';
  }
  bool check(Result<> done, bj::error_code& error) {
    if (done) return true;
    outcome_ = std::move(done);
    error = bj::error::syntax;
    return false;
  }

  TableBuilder table_;
  std::unordered_map<std::string, std::size_t> columns_;
  std::vector<Place> open_;
  std::string text_;  // of the key, string or number that is being read
  std::string key_;   // of the wrapper or of the row
  std::string cell_;  // a value that is an array or object, as compact JSON
  bool found_rows_ = false;
  Result<> outcome_;
};

bool Handler::take_key() {
  if (place() == Place::cell) {
    comma();
    append_quoted(cell_, text_);
    cell_ += ':';
  } else {
    key_ = text_;
  }
  text_.clear();
  return true;
}

Result<> Handler::not_rows() const {
  if (place() == Place::rows)
    return fail(Code::invalid, fmt::format("row {}: not a JSON object", table_.rows() + 1));
  return fail(Code::invalid, "neither a JSON array nor an object with an array as 'value' or 'items'");
}

Result<> Handler::begin(bool is_object) {
  switch (place()) {
    case Place::outside:
      found_rows_ = !is_object;
      open_.push_back(is_object ? Place::wrapper : Place::rows);
      return {};
    case Place::wrapper: {
      const bool is_rows = !is_object && !found_rows_ && (key_ == "value" || key_ == "items");
      found_rows_ = found_rows_ || is_rows;
      open_.push_back(is_rows ? Place::rows : Place::skipped);
      return {};
    }
    case Place::rows:
      if (!is_object) return not_rows();
      open_.push_back(Place::row);
      return table_.begin_row();
    case Place::row:
    case Place::cell:
      comma();
      cell_ += is_object ? '{' : '[';
      open_.push_back(Place::cell);
      return {};
    case Place::skipped: open_.push_back(Place::skipped); return {};
  }
  return {};
}

Result<> Handler::end(char bracket) {
  const Place ended = place();
  open_.pop_back();
  if (ended != Place::cell) return {};
  cell_ += bracket;
  if (place() == Place::cell) return {};
  Result<> done = set_cell(cell_);
  cell_.clear();
  return done;
}

Result<> Handler::scalar(CellKind kind) {
  const std::string text = std::exchange(text_, {});
  switch (place()) {
    case Place::outside:
    case Place::rows: return not_rows();
    case Place::wrapper:
      // Half of the members would look as if the others had left.
      if (kind == CellKind::string && (key_ == "@odata.nextLink" || key_ == "nextLink"))
        return fail(Code::invalid, fmt::format("the answer is one page of several ({})", key_));
      return {};
    case Place::row:
      return set_cell(kind == CellKind::null      ? Cell()
                      : kind == CellKind::number  ? Cell::number(text)
                      : kind == CellKind::boolean ? Cell::boolean(text == "true")
                                                  : Cell(text));
    case Place::cell:
      comma();
      if (kind == CellKind::string) {
        append_quoted(cell_, text);
      } else {
        cell_ += text;
      }
      return {};
    case Place::skipped: return {};
  }
  return {};
}

// Columns are those of all rows together, in the order in which they are met.
Result<> Handler::set_cell(Cell cell) {
  const auto [column, is_new] = columns_.try_emplace(key_, table_.columns());
  if (is_new) TRY(table_.add_column(key_));
  return table_.set(column->second, std::move(cell));
}

Result<SourceTable> Handler::finish() {
  if (!found_rows_) return std::unexpected(not_rows().error());
  if (table_.rows() > 0 && table_.columns() == 0)
    return fail(Code::invalid, "row 1: an object without fields");
  return table_.finish();
}

}  // namespace

Result<SourceTable> read_json_text(std::string_view text, const Limits& limits) {
  if (const std::string_view wide = wide_encoding(text); !wide.empty())
    return fail(Code::invalid, fmt::format("the answer is {}; it must be UTF-8", wide));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  bj::parse_options options;
  options.max_depth = depth_max;
  bj::basic_parser<Handler> parser(options, limits);
  bj::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  TRY(parser.handler().outcome());
  if (!error && read < text.size()) error = bj::error::extra_data;
  if (error && !is_utf8(text)) return fail(Code::invalid, "the answer is not UTF-8");
  if (error) return fail(Code::invalid, fmt::format("not JSON: {} at byte {}", error.message(), read));
  return parser.handler().finish();
}

}  // namespace baton::scheduler
