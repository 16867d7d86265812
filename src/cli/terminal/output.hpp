// How commands speak: JSON for programs, tables and colours for people.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace baton::cli {

enum class Colour { none, red, green, yellow, blue, dim };

// True on a terminal unless NO_COLOR is set (to anything) or TERM is dumb.
[[nodiscard]] bool has_colour(std::FILE* stream);
[[nodiscard]] std::string paint(std::string_view text, Colour colour, bool enabled);
[[nodiscard]] Colour colour_of_status(std::string_view status);

// Columns as wide as their widest cell; the first row is the heading. Cells are made printable.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);
// Control characters, and those that turn the direction of text around, become '?', so that stored text
// cannot drive the terminal or look like another.
[[nodiscard]] std::string printable(std::string_view text);
// The same of a text that may have several lines, such as an error: they are joined with " | ".
[[nodiscard]] std::string one_line(std::string_view text);

// How many columns of a terminal the text takes, and as much of it as fits in so many; what was cut ends in "…".
[[nodiscard]] std::size_t columns_of(std::string_view text);
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns);

// The index behind the string literal that begins at `from`, in well-formed JSON.
[[nodiscard]] std::size_t end_of_string(std::string_view json, std::size_t from);

// Well-formed JSON without its blanks, and with an indent of two. Only blanks change: numbers stay as they
// were written.
[[nodiscard]] std::string compact(std::string_view json);
[[nodiscard]] std::string pretty(std::string_view json);

// Pretty on a terminal, one line otherwise.
void print_json(std::string_view json);
// "baton: MESSAGE" on standard error.
void complain(std::string_view message);

}  // namespace baton::cli
