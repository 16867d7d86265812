// Characters and UTF-8. Letters with a case are those of ASCII: there is no table of all others here. Private
// to the template folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace baton::expression {

[[nodiscard]] constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
[[nodiscard]] constexpr char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
[[nodiscard]] constexpr bool is_word_start(char c) { return is_lower(c) || is_upper(c) || c == '_'; }
[[nodiscard]] constexpr bool is_word_part(char c) { return is_word_start(c) || is_digit(c); }

// Where the word is next, from `at` on; npos when nowhere. In linear time whatever they are, which
// std::string_view::find is not.
[[nodiscard]] inline std::size_t find_text(std::string_view text, std::string_view word, std::size_t at = 0) {
  if (at > text.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + at, text.size() - at, word.data(), word.size());
  if (!found) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

inline void append_character(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xe0 | code >> 12);
    } else {
      byte(0xf0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3f));
    }
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

}  // namespace baton::expression
