#include "base/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace baton {
namespace {

// What to do with a byte: 0 copies it, 'u' writes \u00XX, 'x' starts (or breaks) a longer UTF-8 sequence, the
// rest is the letter after the backslash.
constexpr std::array<char, 256> actions = [] {
  std::array<char, 256> table{};
  for (std::size_t c = 0; c < 0x20; ++c) table[c] = 'u';
  for (std::size_t c = 0x80; c < 0x100; ++c) table[c] = 'x';
  table['"'] = '"';
  table['\\'] = '\\';
  table['\b'] = 'b';
  table['\f'] = 'f';
  table['\n'] = 'n';
  table['\r'] = 'r';
  table['\t'] = 't';
  return table;
}();

struct Sequence {
  std::size_t
      size;  // bytes to pass; when invalid, the longest start of a valid sequence, as Unicode recommends
  bool valid;
};

// Looks at the sequence that begins with the byte `text[at]`, which is not ASCII.
Sequence look_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(at);
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte alone rules out overlong forms, surrogates, and what lies above U+10FFFF.
  const std::uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < size; ++i) {
    if (at + i >= text.size()) return {i, false};
    const std::uint8_t next = byte(at + i);
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xbf)) return {i, false};
  }
  return {size, true};
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  out.reserve(out.size() + text.size() + 2);
  out += '"';
  std::size_t copied = 0;  // everything before is in `out`; runs of plain bytes are copied at once
  std::size_t at = 0;
  while (at < text.size()) {
    const auto c = static_cast<std::uint8_t>(text[at]);
    const char action = actions[c];
    if (action == 0) {
      ++at;
      continue;
    }
    const Sequence sequence = action == 'x' ? look_at(text, at) : Sequence{1, false};
    if (!sequence.valid) {
      out.append(text, copied, at - copied);
      if (action == 'x') {
        out += "\xef\xbf\xbd";
      } else if (action == 'u') {
        out += "\\u00";
        out += hex[c >> 4];
        out += hex[c & 0xf];
      } else {
        out += '\\';
        out += action;
      }
      copied = at + sequence.size;
    }
    at += sequence.size;
  }
  out.append(text, copied);
  out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

void append_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Sequence sequence =
        static_cast<std::uint8_t>(text[at]) < 0x80 ? Sequence{1, true} : look_at(text, at);
    if (!sequence.valid) return false;
    at += sequence.size;
  }
  return true;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_printable(std::string_view text, std::size_t length_max) {
  return !text.empty() && text.size() <= length_max && is_utf8(text) &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

std::string clean_text(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Sequence sequence =
        static_cast<std::uint8_t>(text[at]) < 0x80 ? Sequence{1, text[at] != '\0'} : look_at(text, at);
    const std::string_view piece = sequence.valid ? text.substr(at, sequence.size) : replacement;
    if (out.size() + piece.size() > bytes_max) break;
    out += piece;
    at += sequence.size;
  }
  return out;
}

}  // namespace baton
