#include "caller/text.hpp"

#include <cstdint>

namespace baton::caller {
namespace {

// The length of the character that begins here; 0: there is none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const std::uint8_t second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool beyond = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

std::string to_text(std::string_view bytes, std::size_t bytes_max) {
  static constexpr std::string_view replacement = "\xef\xbf\xbd";
  std::string text;
  while (!bytes.empty()) {
    const auto length = character(bytes);
    const auto next = length == 0 ? replacement : bytes.substr(0, length);
    if (text.size() + next.size() > bytes_max) break;
    text += next;
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace baton::caller
