#include "cli/commands/input.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/encoding.hpp"
#include "cli/terminal/output.hpp"
#include "core/workflow/definition/span.hpp"

namespace baton::cli {
namespace json = boost::json;

std::string check_span(const std::string& text) {
  if (workflow::read_span(text)) return {};
  return fmt::format("'{}' is neither seconds nor a span such as 90s, 1h30m or 2d", text);
}

Result<std::string> read_file(const std::string& path) {
  if (path == "-") return std::string{std::istreambuf_iterator<char>(std::cin), {}};
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(Code::invalid, fmt::format("cannot read {}: it is a directory", path));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(Code::invalid, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

Result<std::string> read_utf8_file(const std::string& path) {
  TRY_ASSIGN(std::string text, read_file(path));
  const std::string name = path == "-" ? "standard input" : path;
  if (const std::string_view wide = wide_encoding(text); !wide.empty())
    return fail(Code::invalid, fmt::format("{} is {}; save it as UTF-8", name, wide));
  if (is_utf8(text)) return text;
  std::size_t line = 1;
  for (std::string_view rest = text;; ++line) {
    const std::string_view first = rest.substr(0, rest.find('\n'));
    if (!is_utf8(first) || first.size() == rest.size()) break;
    rest.remove_prefix(first.size() + 1);
  }
  return fail(Code::invalid, fmt::format("{} is not UTF-8, see line {}; save it as UTF-8", name, line));
}

Result<Json> parse_input(std::string_view text, std::string_view source) {
  json::stream_parser parser;
  json::error_code error;
  std::size_t offset = parser.write_some(text, error);
  // What follows the value may only be blanks.
  const std::size_t rest = std::min(text.find_first_not_of(" \t\r\n", offset), text.size());
  if (!error && rest < text.size()) {
    error = json::error::extra_data;
    offset = rest;
  }
  if (!error) parser.finish(error);
  if (error) {
    const std::string near = printable(text.substr(offset, 20));
    return fail(Code::invalid, fmt::format("{} is not JSON: {} at byte {}{}", source, error.message(), offset,
                                           near.empty() ? " (the end)" : fmt::format(", before '{}'", near)));
  }
  const json::value value = parser.release();
  if (!value.is_object())
    return fail(Code::invalid,
                fmt::format("{} must be a JSON object, such as {{\"message\":\"hello\"}}", source));
  return Json{compact(text)};
}

Result<Json> read_input(const std::string& argument) {
  if (argument == "-" || argument.starts_with('@')) {
    const std::string path = argument == "-" ? argument : argument.substr(1);
    TRY_ASSIGN(const std::string text, read_file(path));
    return parse_input(text, path == "-" ? "the input on standard input" : "the input in " + path);
  }
  return parse_input(argument, "the input");
}

}  // namespace baton::cli
