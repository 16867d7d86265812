#include "base/base64.hpp"

#include <cstdint>

namespace baton {
namespace {

constexpr std::string_view url_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view usual_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::string> decode(std::string_view text, std::string_view digits) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const auto digit = digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>((bits >> static_cast<unsigned>(held)) & 255U);
    }
  }
  return out;
}

std::string encode(std::string_view bytes, std::string_view digits) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      out += digits[(bits >> static_cast<unsigned>(held)) & 63U];
    }
  }
  if (held > 0) out += digits[(bits << static_cast<unsigned>(6 - held)) & 63U];
  return out;
}

}  // namespace

std::string base64url(std::string_view bytes) { return encode(bytes, url_digits); }

std::string base64(std::string_view bytes) {
  std::string out = encode(bytes, usual_digits);
  out.append((4 - out.size() % 4) % 4, '=');
  return out;
}

std::optional<std::string> from_base64url(std::string_view text) { return decode(text, url_digits); }

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return decode(text, usual_digits);
}

}  // namespace baton
