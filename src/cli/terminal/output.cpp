#include "cli/terminal/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace baton::cli {
namespace {

// Bytes that continue a UTF-8 character take no column.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The bytes of the character that the text begins with, if a terminal would do something for it other than
// show it; otherwise 0.
std::size_t harmful(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;  // U+0080 to U+009F
  if (byte(0) != 0xE2) return 0;
  const bool overrides = byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE;  // U+202A to U+202E
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;   // U+2066 to U+2069
  return overrides || isolates ? 3 : 0;
}

}  // namespace

bool has_colour(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view{term} == "dumb";
  return isatty(fileno(stream)) == 1 && std::getenv("NO_COLOR") == nullptr && !dumb;
}

std::string paint(std::string_view text, Colour colour, bool enabled) {
  if (!enabled || colour == Colour::none) return std::string{text};
  const int code = colour == Colour::red      ? 31
                   : colour == Colour::green  ? 32
                   : colour == Colour::yellow ? 33
                   : colour == Colour::blue   ? 34
                                              : 2;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

Colour colour_of_status(std::string_view status) {
  // Jobs and nodes speak in capitals, batches and steps do not.
  struct Known {
    std::string_view status;
    Colour colour;
  };
  static constexpr std::array known{
      Known{"COMPLETED", Colour::green},      Known{"FAILED", Colour::red},
      Known{"CANCELLED", Colour::yellow},     Known{"SKIPPED", Colour::yellow},
      Known{"RUNNING", Colour::blue},         Known{"completed", Colour::green},
      Known{"completed_with_failures", Colour::red},
      Known{"succeeded", Colour::green},      Known{"failed", Colour::red},
      Known{"poll_timeout", Colour::red},     Known{"rolled_back", Colour::red},
      Known{"cancelled", Colour::yellow},     Known{"skipped", Colour::yellow},
      Known{"superseded", Colour::yellow},    Known{"removed", Colour::yellow},
      Known{"active", Colour::blue},          Known{"dispatched", Colour::blue},
      Known{"init_dispatched", Colour::blue}, Known{"polling", Colour::blue},
  };
  const auto* const found = std::ranges::find(known, status, &Known::status);
  return found == known.end() ? Colour::none : found->colour;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string{text};
  if (columns == 0) return "";
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end)
    if (begins_character(text[end]) && kept++ == columns - 1) break;
  return std::string{text.substr(0, end)} + "…";
}

std::string printable(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t bad = harmful(text);
    clean += bad > 0 ? '?' : text.front();
    text.remove_prefix(std::max<std::size_t>(bad, 1));
  }
  return clean;
}

std::string one_line(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) all += (all.empty() ? "" : " | ") + printable(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += printable(row[i]);
      if (i + 1 < row.size()) line.append(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::size_t end_of_string(std::string_view json, std::size_t from) {
  std::size_t i = from + 1;
  while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
  return std::min(i + 1, json.size());
}

std::string compact(std::string_view json) {
  std::string out;
  for (std::size_t i = 0; i < json.size();) {
    const std::size_t end = json[i] == '"' ? end_of_string(json, i) : i + 1;
    if (std::string_view{" \t\r\n"}.find(json[i]) == std::string_view::npos) out += json.substr(i, end - i);
    i = end;
  }
  return out;
}

std::string pretty(std::string_view json) {
  const std::string text = compact(json);
  std::string out;
  std::size_t depth = 0;
  const auto new_line = [&] { out.append("\n").append(2 * depth, ' '); };
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t end = c == '"' ? end_of_string(text, i) : i + 1;
    const bool closes = c == '}' || c == ']';
    const bool is_empty = closes && i > 0 && (text[i - 1] == '{' || text[i - 1] == '[');
    if (closes && depth > 0) --depth;
    if (closes && !is_empty) new_line();
    out.append(text, i, end - i);
    if (c == '{' || c == '[') {
      ++depth;
      if (end < text.size() && text[end] != '}' && text[end] != ']') new_line();
    }
    if (c == ',') new_line();
    if (c == ':') out += ' ';
    i = end;
  }
  return out;
}

void print_json(std::string_view text) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  fmt::print("{}\n", terminal ? pretty(text) : std::string{text});
  std::fflush(stdout);
}

void complain(std::string_view message) { fmt::print(stderr, "baton: {}\n", message); }

}  // namespace baton::cli
