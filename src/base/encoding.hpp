// Which encoding a text has that should be UTF-8, for messages to people. Pure.
#pragma once

#include <string_view>

namespace baton {

// "UTF-16" or "UTF-32": told by the byte order mark, or by a first character of which half is NUL. Empty: neither,
// though the text may still hold bytes that are not UTF-8.
[[nodiscard]] constexpr std::string_view wide_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) return "UTF-16";
  if (text.size() >= 2 && (text[0] == '\0') != (text[1] == '\0')) return "UTF-16";
  return {};
}

}  // namespace baton
