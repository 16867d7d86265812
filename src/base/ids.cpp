#include "base/ids.hpp"

namespace baton {
namespace {
constexpr char hex[] = "0123456789abcdef";
}

std::string uuid7(Time now, std::uint64_t random_high, std::uint64_t random_low) {
  const auto millis = static_cast<std::uint64_t>(to_millis(now));
  const std::uint64_t high = (millis << 16) | 0x7000u | (random_high & 0x0fffu);
  const std::uint64_t low = (random_low & 0x3fff'ffff'ffff'ffffu) | 0x8000'0000'0000'0000u;
  std::string text(36, '-');
  std::size_t at = 0;
  for (int nibble = 0; nibble < 32; ++nibble) {
    if (nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20) ++at;
    const std::uint64_t word = nibble < 16 ? high : low;
    text[at++] = hex[(word >> (60 - 4 * (nibble % 16))) & 0xf];
  }
  return text;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !digit) return false;
  }
  return true;
}

}  // namespace baton
