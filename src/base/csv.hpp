// Reads CSV (RFC 4180) as spreadsheets and scripts write it: strictly, so that nothing is guessed about a
// row, and with messages that somebody with an editor can act on. Pure.
//
//  * UTF-8, with or without a byte order mark. Anything else is refused, not converted; that is told once.
//  * Lines end with LF or CRLF. Lines with nothing but spaces are skipped.
//  * The first line names the columns. The separator is the one of comma, semicolon and tab that is most
//  often
//    in that line outside of quotes; on a tie the first of them; comma when there is none.
//  * A cell in quotes may hold separators, line ends and doubled quotes; an unquoted one no quote at all.
//  * Blanks around names of columns are dropped, those of cells are kept. An empty cell is an empty text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace baton::csv {

struct Limits {
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t rows = 1'000'000;
  std::size_t columns = 500;
  std::size_t cells = 20'000'000;  // each takes memory, also when it is empty
};

struct Table {
  char separator = ',';
  std::vector<std::string> columns;  // at least one; none is empty, none is twice, whatever its case
  std::vector<std::vector<std::string>> rows;  // each has as many cells as there are columns
  std::vector<std::uint32_t> lines;            // of each row: on which line of the file it begins
};

// What is wrong, in the order of the text, the first hundred: "line 17, column 'Name': not UTF-8, …". Lines
// are numbered as an editor shows them; a row is on the line where it begins.
using Errors = std::vector<std::string>;
inline constexpr std::size_t errors_max = 100;

[[nodiscard]] std::expected<Table, Errors> read(std::string_view text, const Limits& limits = {});

}  // namespace baton::csv
