// What a data source says, before anything is made of it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::runbook {

// Missing, a text, or what the source knows to be a number or a boolean. As large as an optional text: a table may have
// millions of them.
class Cell {
 public:
  Cell() = default;
  Cell(std::nullopt_t) {}
  Cell(std::string text) : text_(std::move(text)), kind_(Kind::text) {}
  Cell(std::string_view text) : Cell(std::string(text)) {}
  Cell(const char* text) : Cell(std::string(text)) {}
  // A number as the source writes it. A text, if a reader of JSON would make another number of it or it is none: more
  // digits than an integer of 64 bits or a double has, NaN, infinity.
  [[nodiscard]] static Cell number(std::string_view digits);
  [[nodiscard]] static Cell boolean(bool value) { return literal(value ? "true" : "false"); }

  [[nodiscard]] explicit operator bool() const { return kind_ != Kind::missing; }
  [[nodiscard]] const std::string& text() const { return text_; }  // empty: also of one that is missing
  [[nodiscard]] bool is_literal() const { return kind_ == Kind::literal; }  // its text is JSON

 private:
  enum class Kind : std::uint8_t { missing, text, literal };
  [[nodiscard]] static Cell literal(std::string_view json) {
    Cell cell(json);
    cell.kind_ = Kind::literal;
    return cell;
  }
  std::string text_;
  Kind kind_ = Kind::missing;
};

struct SourceTable {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as there are columns
  // Of a file: on which line each row begins, as an editor shows it. Empty: the rows have numbers only.
  std::vector<std::uint32_t> lines = {};
};

}  // namespace baton::runbook
