// UTF-8 by characters. Text that is not well-formed is safe: a byte that begins nothing goes with the one
// before it.
#pragma once

#include <cstddef>
#include <string_view>

namespace baton {

// The bytes from `at`, which is inside the text, up to the next character. Never past the end, at least 1.
[[nodiscard]] constexpr std::size_t character_size(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  return end - at;
}

[[nodiscard]] constexpr std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += character_size(text, at)) ++count;
  return count;
}

}  // namespace baton
